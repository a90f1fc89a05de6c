"""What the guard serves, and that ``brimline status`` can read it."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import pytest

from brimline.act.cordon import Cordoned
from brimline.act.move_pause import Hold, Pause
from brimline.cli.shared.glyphs import ASCII
from brimline.cli.status.table import guard_lines, write_guard_table
from brimline.decide.disk_state import DiskLimits
from brimline.decide.fill_rate import Pace
from brimline.decide.followers import AUTO, FollowerAction, choose_action
from brimline.decide.peer_disks import Peer, PeerState
from brimline.disks.task import DiskReport, DiskSettings, DiskTask
from brimline.documents.guard_state import FailureDocument
from brimline.documents.history import Happening, Timeline
from brimline.documents.troubles import troubles
from brimline.guard.ballast.task import BallastStatus
from brimline.guard.client import read_state
from brimline.guard.followers.cordon import CordonReport
from brimline.guard.followers.report import FullFollower, OrderReport, PeerReport
from brimline.guard.followers.shedding import SheddingReport
from brimline.guard.gateway_link.task import GatewayReport, RefusedLately
from brimline.guard.http import HttpRequest, HttpResponse, Pages
from brimline.guard.moves.task import MoveReport
from brimline.guard.offline import offline_notice
from brimline.guard.percent.task import PercentReport, PercentTask
from brimline.guard.percent.topic_sizes import OTHERS, TopicSize
from brimline.metrics.board import MetricBoard
from brimline.metrics.catalogue import BROKER_CONNECTED
from brimline.model import BrimlineError, BrokerId, Bytes, Failure, FailureKind, TopicPartition
from brimline.observe.cluster.log_dirs import LedTopic
from brimline.pages.disk_page import DiskQuery, DiskSeen
from tests.guard import gateways
from tests.guard.brokers import FakeBroker, facts, held
from tests.guard.files import config
from tests.guard.followers.test_shedding import shed as shed_replica
from tests.guard.percent.test_task import PLAIN, ROWS, T0, TIERED
from tests.guard.states import GuardState, state_document
from tests.service.ticking import Answers, FakeDisks, TickingClock

HISTORY = Timeline(
    broker=1,
    events=(
        Happening(
            at=datetime(2026, 1, 31, 11, 59, tzinfo=UTC),
            what="disk-full",
            level="warning",
            by="guard",
            sentence="a is full",
        ),
    ),
)
LIMITS = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0))


def disk_report(clock: TickingClock, disks: FakeDisks) -> DiskReport:
    answers = Answers()
    settings = DiskSettings(limits=LIMITS, pace=Pace(interval=60.0), stall_timeout=10.0)
    task = DiskTask(list(disks.usable), settings, clock, answers, lambda _was, _volume: None, disks.look)
    task.step()
    answers.wait(len(disks.usable))
    task.step()
    return task.report


def percent_report(clock: TickingClock) -> PercentReport:
    broker = FakeBroker(facts(ROWS, {"orders": held(PLAIN), "t": held(TIERED, 0)}))
    broker.remote[T0] = (Bytes(600), Bytes(40))
    task = PercentTask(broker, clock, 300.0, 30.0, lambda _: None)
    task.step()
    return task.report


@pytest.fixture
def state() -> GuardState:
    clock = TickingClock()
    disks = FakeDisks(a=50, b=500, c=0)
    disks.device.update(b="8:2")
    disks.failure["c"] = Failure(kind=FailureKind.GONE, message="c does not exist")
    return GuardState(
        now=clock.now(),
        seconds=clock.seconds(),
        started_at=clock.now(),
        config=config("disk.max.used.percent=90\ndisk.min.free.bytes=0\nlog.retention.disk.usage.percent=80\n"),
        disks=disk_report(clock, disks),
        percents=percent_report(clock),
        mount_points={"8:1": "/data"},
        gateway=GatewayReport(is_wanted=False),
        moves=MoveReport(),
        peers=PeerReport(),
        orders=OrderReport(
            choice=choose_action(AUTO, carries_replication=False, carries_clients=False), is_enforced=False
        ),
        cordon=CordonReport(),
    )


def test_the_document_names_states_reasons_and_what_would_be_done(state: GuardState) -> None:
    document = json.loads(state_document(state))

    full, ok, unknown = document["volumes"]
    assert (full["state"], full["breaches"], full["mountPoint"]) == ("full", ["disk.max.used.percent"], "/data")
    assert [act.split(" ")[1] for act in full["wouldDo"]] == ["refuse"]
    assert (ok["state"], ok["bytesToLimit"], ok["wouldDo"]) == ("ok", 400, [])
    assert (unknown["state"], unknown["totalBytes"], unknown["failure"]["kind"]) == ("unknown", None, "gone")
    assert document["retention"]["plain"]["over100"] == 1
    assert document["retention"]["plain"]["highest"][0] == {"topic": "orders", "partition": 1, "percent": 150}
    assert document["retention"]["tiered"]["highest"] == [{"topic": "t", "partition": 0, "percent": 64}]


def test_status_reads_the_document(state: GuardState) -> None:
    shown = read_state(state_document(state).decode(), "http://here")

    text = "\n".join(str(line) for line in guard_lines(shown, ASCII))

    assert "Broker 7  FULL: a - UNKNOWN: c" in text
    assert "FULL" in text
    assert "c does not exist" in text
    assert "150 %  orders-1" in text
    assert "would refuse writes (observe mode)" in text


def test_status_shows_every_notice_with_its_way_out(state: GuardState) -> None:
    shown = read_state(state_document(state).decode(), "http://here")
    notices = (offline_notice("a", BrokerId(7)), replace(offline_notice("b", BrokerId(7)), word="HELD", cure=""))

    lines = [str(line) for line in guard_lines(replace(shown, notices=notices), ASCII)]

    assert lines[0].startswith("Broker 7  OFFLINE: a - OFFLINE: b - FULL: a")
    assert [line[2:10] for line in lines if line[2:10] in ("OFFLINE ", "HELD    ")] == ["OFFLINE ", "HELD    "]
    assert sum("restart broker 7" in line for line in lines) == 1


def test_status_leads_with_a_broker_that_is_down(state: GuardState) -> None:
    gone = Failure(kind=FailureKind.UNREACHABLE, message="127.0.0.1:19092 refused the connection")
    late = Failure(kind=FailureKind.TIMED_OUT, message="did not answer in time")

    assert shown_text(replace(state, percents=PercentReport(failure=gone))).startswith("Broker 7  DOWN - FULL: a")
    assert troubles_of(replace(state, percents=PercentReport(failure=late)))[0] == "NO ANSWER"


def test_status_names_the_largest_topics_of_a_disk_and_the_command_where_it_is_full(state: GuardState) -> None:
    sizes = (
        TopicSize(log_dir="a", topic="orders", bytes=Bytes(3 << 20), growth=float(1 << 20)),
        TopicSize(log_dir="a", topic=OTHERS, bytes=Bytes(5), growth=None),
        TopicSize(log_dir="b", topic="clicks", bytes=Bytes(2048), growth=-1024.0),
    )
    plain = state.percents.plain
    assert plain is not None

    text = shown_text(replace(state, percents=replace(state.percents, plain=replace(plain, topics=sizes))))

    assert "largest: orders 3.00 MiB (+1.00 MiB/h)\n          why they do not shrink: brimline topics --config" in text
    assert "largest: clicks 2.00 KiB (-1.00 KiB/h)\n" in text
    assert OTHERS not in text
    assert "not in Kafka's logs" not in text


def test_a_topic_in_two_log_dirs_of_a_volume_is_named_once(state: GuardState) -> None:
    sizes = [TopicSize(log_dir=path, topic="orders", bytes=Bytes(1 << 20), growth=1024.0) for path in "ab"]
    sizes.append(TopicSize(log_dir="b", topic="clicks", bytes=Bytes(1024), growth=None))
    assert state.percents.plain is not None
    plain = replace(state.percents.plain, topics=tuple(sizes))
    shown = read_state(state_document(replace(state, percents=replace(state.percents, plain=plain))).decode(), "")
    volumes = (replace(shown.volumes[0], log_dirs=("a", "b")),)

    text = "\n".join(str(line) for line in guard_lines(replace(shown, volumes=volumes), ASCII))

    assert "largest: orders 2.00 MiB (+2.00 KiB/h), clicks 1.00 KiB\n" in text


def test_status_of_a_dead_broker_does_not_call_its_gateway_ok(state: GuardState) -> None:
    shown = read_state(state_document(with_gateway(state, state=gateways.state())).decode(), "http://here")
    down = replace(shown.broker, connected=False, failure=FailureDocument(kind="unreachable", message="no"))

    text = "\n".join(str(line) for line in guard_lines(replace(shown, broker=down), ASCII))

    assert "Gateway  running, but its broker is down" in text
    assert "nothing refused" not in text


def test_status_says_that_something_else_fills_a_disk(state: GuardState) -> None:
    sizes = (TopicSize(log_dir="a", topic="orders", bytes=Bytes(1), growth=None),)
    plain = state.percents.plain
    assert plain is not None

    text = shown_text(replace(state, percents=replace(state.percents, plain=replace(plain, topics=sizes))))

    assert text.count("are not in Kafka's logs: look for other files on it") == 1


def with_gateway(guard: GuardState, /, **report: Any) -> GuardState:
    return replace(guard, gateway=GatewayReport(is_wanted=True, **report))


def shown_text(state: GuardState) -> str:
    shown = read_state(state_document(state).decode(), "http://here")
    return "\n".join(str(line) for line in guard_lines(shown, ASCII))


def troubles_of(state: GuardState) -> list[str]:
    return [str(each) for each in troubles(read_state(state_document(state).decode(), "http://here"))]


def test_without_a_gateway_there_is_nothing_to_say_of_it(state: GuardState) -> None:
    assert json.loads(state_document(state))["gateway"] is None
    assert "Gateway" not in shown_text(state)


def test_with_a_gateway_the_guard_does_not_say_would(state: GuardState) -> None:
    document = json.loads(state_document(with_gateway(state)))

    assert document["volumes"][0]["wouldDo"] == ["writes to a are refused"]


def test_a_gateway_that_should_be_there_and_is_not(state: GuardState) -> None:
    silent = with_gateway(state, failure=Failure(kind=FailureKind.UNREACHABLE, message="nobody listens on g.sock"))

    text = shown_text(silent)

    assert json.loads(state_document(silent))["gateway"]["up"] is False
    assert "Gateway  does not answer\n  ! nobody listens on g.sock\n          clients cannot reach the broker" in text
    assert troubles_of(silent)[0] == "GATEWAY DOWN"
    assert "writes are NOT refused: see below" in text
    assert "writes are refused" not in text


def test_a_gateway_that_refuses_nothing(state: GuardState) -> None:
    lines = shown_text(with_gateway(state, state=gateways.state())).splitlines()

    assert lines[lines.index("Gateway  OK, nothing refused") + 1 :][:2] == [
        "  up 17 min  -  gateway 0.1.0",
        "  7 connections on CLIENT://*:9092",
    ]


def test_fences_are_shown_with_why_since_when_and_what_to_do(state: GuardState) -> None:
    fences = [gateways.fence("guard"), gateways.fence("full"), gateways.fence("manual", by="alice", topic="clicks")]
    lately = RefusedLately()
    lately.add(gateways.state(), 0.0)
    answer = gateways.state(fences=fences, refusals=[gateways.refused(batches=1234)])

    lines = shown_text(with_gateway(state, state=answer, lately=lately.add(answer, 60.0))).splitlines()

    assert lines[lines.index("Gateway  refuses Produce for 1 log dir and 1 topic") + 3 :][:9] == [
        "  FENCED  /data/a",
        "          12 partitions, for 7 min (since 2026-01-01 00:10 UTC)",
        "          full: more than 90 % is used",
        "          make room: brimline topics --config server.properties shows what fills it; lower the retention "
        "of a topic, delete a topic or move replicas; the fence lifts automatically when the disk has room",
        "  FENCED  topic clicks",
        "          12 partitions, for 7 min (since 2026-01-01 00:10 UTC)",
        "          by alice: moving this disk",
        "          lift it with: brimline unfence --config server.properties --topic clicks",
        "  REFUSED 1,234 batches (121 KiB) in the last 60 s, mostly orders-3 from librdkafka 2.10.0 (1,234)",
    ]


def test_a_gateway_that_observes_says_what_it_would_refuse(state: GuardState) -> None:
    answer = gateways.state(enforcement="observe", fences=[gateways.fence()])

    text = shown_text(with_gateway(state, state=answer))

    assert "Gateway  observe mode: would refuse Produce for 1 log dir" in text
    assert "  FENCE   /data/a" in text
    assert "error 56" not in text


def test_a_state_of_a_guard_before_there_were_gateways_can_be_read(state: GuardState) -> None:
    document = json.loads(state_document(state))
    del document["gateway"]

    assert read_state(json.dumps(document), "http://here").gateway is None


def test_a_move_that_is_held_up_is_shown_with_the_way_out(state: GuardState) -> None:
    pause = Pause(before="20000000", since=state.now)
    moves = {"a": [TopicPartition("orders", 0)]}
    paused = replace(state, moves=MoveReport(moves=moves, is_held=True, hold=Hold.STANDS, pause=pause))

    document = json.loads(state_document(paused))["moves"]
    lines = shown_text(paused).splitlines()

    assert (document["paused"], document["valueBefore"], document["failure"]) == (True, "20000000", None)
    assert document["logDirs"] == [{"logDir": "a", "partitions": ["orders-0"]}]
    line = next(number for number, text in enumerate(lines) if text.startswith("  PAUSED"))
    assert lines[line].startswith("  PAUSED  pauses the move of orders-0 into a, which is full")
    assert lines[line + 1].startswith("          make room there, or cancel the move")


def test_a_move_that_cannot_be_held_up_is_shown_with_the_reason(state: GuardState) -> None:
    failure = Failure(kind=FailureKind.NOT_AUTHORIZED, message="this principal needs ALTER_CONFIGS on the cluster")
    enforcing = config("disk.max.used.percent=90\nbrimline.enforcement=gateway\n")
    moves = MoveReport(moves={"a": [TopicPartition("orders", 0)]}, failure=failure)

    text = shown_text(replace(state, config=enforcing, moves=moves))

    assert "  MOVING  cannot pause the move of orders-0 into a, which is full: this principal needs" in text


def test_without_moves_there_is_nothing_to_say_of_them(state: GuardState) -> None:
    document = json.loads(state_document(state))
    assert document["moves"] is None
    del document["moves"]  # as of a guard that knew nothing of moves

    assert read_state(json.dumps(document), "http://here").moves is None


def test_a_full_follower_is_shown_with_what_is_done_and_what_to_do(state: GuardState) -> None:
    topics = (LedTopic(name="orders", topic_id=None, partitions=(0, 2)),)
    follower = FullFollower(
        broker=BrokerId(3), reason="log dir /a is full", log_dirs=("/a",), topics=topics, held=topics
    )
    choice = choose_action("fence", carries_replication=False, carries_clients=True)
    orders = replace(state.orders, choice=choice, is_enforced=True, action=FollowerAction.FENCE, followers=(follower,))
    silent = Peer(broker=BrokerId(4), failure=Failure(kind=FailureKind.TIMED_OUT, message="late"))
    peers = PeerReport(peers=(Peer(broker=BrokerId(3), state=PeerState.FRESH), silent), full=(follower,))
    troubled = replace(state, orders=orders, peers=peers)

    document = json.loads(state_document(troubled))["followers"]
    text = shown_text(troubled)

    assert document["peers"] == {"fresh": 1, "stale": 0, "silent": 1, "no-volumes": 0}
    assert [(row["broker"], row["state"]) for row in document["unanswered"]] == [(4, "silent")]
    assert document["full"][0]["heldBack"]
    assert (
        "NO ROOM broker 3 has no room: log dir /a is full; the 2 partitions there that this broker leads are refused "
        "to producers (fence)"
    ) in text
    assert "make room there" in text
    assert "PEERS   disks of 1 of 2 other brokers unknown" in text
    assert "NO ROOM: broker 3" in troubles_of(troubled)


def test_replicas_that_were_shed_are_shown_with_the_command_that_puts_them_back(state: GuardState) -> None:
    peers = PeerReport(peers=(Peer(broker=BrokerId(3), state=PeerState.FRESH),))
    shed = SheddingReport(shed=(shed_replica(),))

    text = shown_text(replace(state, peers=peers, shed=shed))

    assert "SHED    1 replica removed because a disk of broker 3 was full, not put back: orders-0" in text
    assert "kafka-reassign-partitions.sh --bootstrap-server" in text


def test_cordoned_log_dirs_are_shown(state: GuardState) -> None:
    cordoned = Cordoned(ours=frozenset({"a"}), theirs=frozenset({"b"}))
    failure = Failure(kind=FailureKind.TIMED_OUT, message="late")
    cordon = CordonReport(cordoned=cordoned, kept_open=frozenset({"c"}), failure=failure)

    text = shown_text(replace(state, cordon=cordon))

    assert "CORDON  a: no new replicas" in text
    assert "CORDON  b: cordoned by an operator" in text
    assert "OPEN    c is full but not cordoned" in text
    assert "CORDON  full log dirs cannot be cordoned or reopened: late" in text


def test_without_other_brokers_there_is_nothing_to_say_of_them(state: GuardState) -> None:
    document = json.loads(state_document(state))
    assert document["followers"] is None
    del document["followers"], document["cordon"]  # as of a guard that knew nothing of them

    shown = read_state(json.dumps(document), "http://here")
    assert (shown.followers, shown.cordon) == (None, None)


def test_the_table_is_written_where_there_is_only_ascii(state: GuardState) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")

    write_guard_table(read_state(state_document(state).decode(), "http://here"), out)

    out.flush()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "brimline.guard-state"}', "<html>"])
def test_something_else_at_that_address_is_one_sentence(text: str) -> None:
    with pytest.raises(BrimlineError, match="http://here answers, but not like a guard"):
        read_state(text, "http://here")


def no_disk(query: DiskQuery) -> DiskSeen:
    raise ValueError(f"this broker has no device {query.device}")


def asked(
    state: GuardState, path: str, unhealthy: Callable[[], str | None] = lambda: None, **headers: str
) -> HttpResponse:
    board = MetricBoard()
    board.put(BROKER_CONNECTED.single(1))
    known = read_state(state_document(state).decode(), "http://here")
    pages = Pages(board, lambda: known, lambda: None, unhealthy, lambda: None, lambda: HISTORY, no_disk, lambda _: True)
    return pages.respond(HttpRequest(method="GET", path=path, headers=headers))


def test_metrics_are_prometheus_text(state: GuardState) -> None:
    page = asked(state, "/metrics")

    assert page.content_type.startswith("text/plain; version=0.0.4")
    assert b"\nbrimline_broker_connected 1\n" in page.body


def test_the_history_is_json(state: GuardState) -> None:
    page = asked(state, "/v1/history")

    assert page.content_type == "application/json"
    assert [event["word"] for event in json.loads(page.body)["events"]] == ["FULL"]


def test_metrics_are_openmetrics_on_request(state: GuardState) -> None:
    page = asked(state, "/metrics", accept="application/openmetrics-text; version=1.0.0")

    assert page.body.endswith(b"# EOF\n")


def test_an_unhealthy_guard_says_why(state: GuardState) -> None:
    page = asked(state, "/healthz", unhealthy=lambda: "dead tasks: disks")

    assert page.status is HTTPStatus.SERVICE_UNAVAILABLE
    assert page.body == b"dead tasks: disks\n"


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/v1/state", "/v1/history", "/metrics"])
def test_every_page_is_there(state: GuardState, path: str) -> None:
    assert asked(state, path).status is HTTPStatus.OK


def test_the_page_for_people_comes_with_a_strict_policy(state: GuardState) -> None:
    page = asked(state, "/")

    assert page.content_type == "text/html; charset=utf-8"
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert b"<h1>Broker " in page.body
    assert b"a is full" in page.body


def test_there_is_nothing_else(state: GuardState) -> None:
    assert asked(state, "/v1/secrets").status is HTTPStatus.NOT_FOUND


def test_the_ballasts_are_shown_where_there_are_any(state: GuardState) -> None:
    in_place = BallastStatus(device="8:1", path="/a/.brimline-ballast", size=Bytes(1 << 30), wanted=Bytes(1 << 30))
    waiting = BallastStatus(device="8:2", path="/b/.brimline-ballast", wanted=Bytes(1 << 30), releases=1)
    wanting = replace(state, config=config("brimline.ballast.bytes=1073741824\n"), ballasts=(in_place, waiting))

    document = json.loads(state_document(wanting))["ballast"]
    text = shown_text(wanting)

    assert document["wantedBytes"] == 1 << 30
    assert [(each["path"], each["inPlace"], each["releases"]) for each in document["volumes"]] == [
        ("/a/.brimline-ballast", True, 0),
        ("/b/.brimline-ballast", False, 1),
    ]
    assert "BALLAST 1.00 GiB released when the volume runs out: /a/.brimline-ballast" in text
    assert "BALLAST no ballast yet: waiting for 1.00 GiB of free space" in text
    assert json.loads(state_document(state))["ballast"] is None
    assert "BALLAST" not in shown_text(state)
