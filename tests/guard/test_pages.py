"""What the guard serves, and that ``brimline status`` can read it."""

import io
import json
from collections.abc import Callable
from http import HTTPStatus

import pytest

from brimline.cli.glyphs import ASCII
from brimline.cli.guard_state import read_state
from brimline.cli.table_guard import guard_lines, write_guard_table
from brimline.decide.disk_state import DiskLimits
from brimline.decide.fill_rate import Pace
from brimline.guard.disk_task import DiskReport, DiskSettings, DiskTask
from brimline.guard.http import Request, Response
from brimline.guard.pages import Pages
from brimline.guard.percent_task import PercentReport, PercentTask
from brimline.guard.state_document import GuardState, state_document
from brimline.metrics.board import MetricBoard
from brimline.metrics.catalogue import BROKER_CONNECTED
from brimline.model import BrimlineError, Bytes, Failure, FailureKind
from tests.guard.brokers import FakeBroker, facts, held
from tests.guard.files import config
from tests.guard.test_percent_task import PLAIN, ROWS, T0, TIERED
from tests.guard.ticking import Answers, FakeDisks, TickingClock

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
    )


def test_the_document_names_states_reasons_and_what_would_be_done(state: GuardState) -> None:
    document = json.loads(state_document(state))

    full, ok, unknown = document["volumes"]
    assert (full["state"], full["breaches"], full["mountPoint"]) == ("full", ["disk.max.used.percent"], "/data")
    assert [act.split(" ")[1] for act in full["wouldDo"]] == ["refuse", "delete"]
    assert (ok["state"], ok["bytesToLimit"], ok["wouldDo"]) == ("ok", 400, [])
    assert (unknown["state"], unknown["totalBytes"], unknown["failure"]["kind"]) == ("unknown", None, "gone")
    assert document["retention"]["plain"]["over100"] == 1
    assert document["retention"]["plain"]["highest"][0] == {"topic": "orders", "partition": 1, "percent": 150}
    assert document["retention"]["tiered"]["highest"] == [{"topic": "t", "partition": 0, "percent": 64}]


def test_status_reads_the_document(state: GuardState) -> None:
    shown = read_state(state_document(state).decode(), "http://here")

    text = "\n".join(str(line) for line in guard_lines(shown, ASCII))

    assert "Broker 7  1 full and 1 unknown" in text
    assert "FULL" in text
    assert "c does not exist" in text
    assert "150 %  orders-1" in text
    assert "would refuse Produce for every partition in a" in text


def test_the_table_is_written_where_there_is_only_ascii(state: GuardState) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")

    write_guard_table(read_state(state_document(state).decode(), "http://here"), out)

    out.flush()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "brimline.guard-state", "version": 2}', "<html>"])
def test_something_else_at_that_address_is_one_sentence(text: str) -> None:
    with pytest.raises(BrimlineError, match="http://here answers, but not as a guard"):
        read_state(text, "http://here")


def asked(state: GuardState, path: str, unhealthy: Callable[[], str | None] = lambda: None, **headers: str) -> Response:
    board = MetricBoard()
    board.put(BROKER_CONNECTED.single(1))
    pages = Pages(board, lambda: state, lambda: None, unhealthy, lambda: None)
    return pages.respond(Request(method="GET", path=path, headers=headers))


def test_metrics_are_prometheus_text(state: GuardState) -> None:
    page = asked(state, "/metrics")

    assert page.content_type.startswith("text/plain; version=0.0.4")
    assert b"\nbrimline_broker_connected 1\n" in page.body


def test_metrics_are_openmetrics_on_request(state: GuardState) -> None:
    page = asked(state, "/metrics", accept="application/openmetrics-text; version=1.0.0")

    assert page.body.endswith(b"# EOF\n")


def test_an_unhealthy_guard_says_why(state: GuardState) -> None:
    page = asked(state, "/healthz", unhealthy=lambda: "tasks that died: disks")

    assert page.status is HTTPStatus.SERVICE_UNAVAILABLE
    assert page.body == b"tasks that died: disks\n"


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/v1/state", "/metrics"])
def test_every_page_is_there(state: GuardState, path: str) -> None:
    assert asked(state, path).status is HTTPStatus.OK


def test_there_is_nothing_else(state: GuardState) -> None:
    assert asked(state, "/v1/secrets").status is HTTPStatus.NOT_FOUND
