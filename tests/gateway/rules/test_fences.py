"""Who may fence what, for how long, and what is left of it after a restart."""

import json
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brimline.decide.admission import Fence, FenceCause
from brimline.documents.codec import to_json
from brimline.gateway.rules.fences import (
    LONGEST_LEASE_SECONDS,
    LONGEST_REASON,
    Fences,
    follower_fences,
    standing_fences,
)
from brimline.gateway.rules.follower_orders import FencedFollower
from brimline.gateway.rules.placement import Placement
from brimline.model import BadInput
from brimline.service.durable_files import NotRecorded
from tests.waiting import PATIENCE_SECONDS

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Clock:
    """Both clocks tick together."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.passed)

    def seconds(self) -> float:
        return 1000 + self.passed


class Gateway:
    """A state dir in which fences can be opened again and again."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.clock = Clock()
        self.fences = self.restarted()

    def restarted(self) -> Fences:
        self.fences = Fences(
            state_dir=self.state_dir,
            node_id=1,
            log_dirs=["/data/a", "/data/b"],
            now=self.clock.now,
            seconds=self.clock.seconds,
        )
        return self.fences

    @property
    def file(self) -> Path:
        return self.state_dir / "fences-1.json"

    def log_lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.state_dir / "fences-1.log").read_text().splitlines()]

    def covering(self, topic: str, log_dir: str | None) -> FenceCause | None:
        fence = self.fences.snapshot.of(topic, log_dir)
        return None if fence is None else fence.cause

    def since(self) -> list[float]:
        return [(fence.since - BEGIN).total_seconds() for fence in self.fences.snapshot.in_force()]


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    return Gateway(tmp_path)


def test_nothing_is_fenced_at_first(gateway: Gateway) -> None:
    assert gateway.fences.snapshot.is_empty
    assert gateway.fences.snapshot.of("orders", "/data/a") is None
    assert gateway.fences.snapshot.in_force() == []
    assert gateway.fences.warnings == ()


def test_a_full_log_dir_is_fenced_and_no_other(gateway: Gateway) -> None:
    gateway.fences.set_full({"/data/a": "log dir /data/a is 99.4 % used"})

    assert not gateway.fences.snapshot.is_empty
    assert gateway.fences.snapshot.of("orders", "/data/a") == Fence(
        cause=FenceCause.FULL, reason="log dir /data/a is 99.4 % used", since=BEGIN, log_dir="/data/a"
    )
    assert gateway.covering("orders", "/data/b") is None
    assert gateway.covering("orders", None) is None


def test_a_log_dir_that_is_full_no_more_is_released(gateway: Gateway) -> None:
    gateway.fences.set_full({"/data/a": "full"})
    gateway.fences.set_full({})

    assert gateway.fences.snapshot.is_empty


def test_a_snapshot_stays_what_it_was(gateway: Gateway) -> None:
    gateway.fences.set_full({"/data/a": "full"})
    before = gateway.fences.snapshot

    gateway.fences.set_full({})

    assert before.of("orders", "/data/a") is not None


def test_since_is_kept_while_the_cause_lasts_and_the_reason_is_the_last_one(gateway: Gateway) -> None:
    gateway.fences.set_full({"/data/a": "99.1 % used"})
    gateway.clock.passed = 5
    gateway.fences.set_full({"/data/a": "99.2 % used", "/data/b": "99.9 % used"})

    fences = gateway.fences.snapshot.in_force()

    assert [fence.reason for fence in fences] == ["99.2 % used", "99.9 % used"]
    assert gateway.since() == [0, 5]


def test_since_begins_anew_after_a_release(gateway: Gateway) -> None:
    gateway.fences.set_full({"/data/a": "full"})
    gateway.fences.set_full({})
    gateway.clock.passed = 5
    gateway.fences.set_full({"/data/a": "full"})

    assert gateway.since() == [5]


def test_the_guards_word_counts_until_its_lease_has_run_out(gateway: Gateway) -> None:
    gateway.fences.lease({"/data/a": "full"}, seconds=5)
    gateway.clock.passed = 4.9
    assert gateway.covering("orders", "/data/a") is FenceCause.GUARD
    assert len(gateway.fences.snapshot.in_force()) == 1

    gateway.clock.passed = 5

    assert gateway.covering("orders", "/data/a") is None
    assert gateway.fences.snapshot.is_empty
    assert gateway.fences.snapshot.in_force() == []


def test_a_renewed_lease_goes_on(gateway: Gateway) -> None:
    gateway.fences.lease({"/data/a": "full"}, seconds=5)
    gateway.clock.passed = 4
    gateway.fences.lease({"/data/a": "fuller"}, seconds=5)
    gateway.clock.passed = 8

    assert not gateway.fences.snapshot.is_empty
    assert gateway.covering("orders", "/data/a") is FenceCause.GUARD
    assert gateway.since() == [0]


def test_a_lease_after_one_that_has_run_out_is_a_new_one(gateway: Gateway) -> None:
    gateway.fences.lease({"/data/a": "full"}, seconds=5)
    gateway.clock.passed = 6
    gateway.fences.lease({"/data/a": "full"}, seconds=5)

    assert gateway.since() == [6]


def test_the_guard_takes_its_word_back(gateway: Gateway) -> None:
    gateway.fences.lease({"/data/a": "full"}, seconds=5)
    gateway.fences.lease({}, seconds=5)

    assert gateway.fences.snapshot.is_empty


@pytest.mark.parametrize("seconds", [0, -1, LONGEST_LEASE_SECONDS + 1, float("nan"), float("inf")])
def test_a_lease_is_short(gateway: Gateway, seconds: float) -> None:
    with pytest.raises(BadInput, match="a lease lasts"):
        gateway.fences.lease({"/data/a": "full"}, seconds=seconds)


def test_a_topic_is_fenced_by_hand_wherever_it_is(gateway: Gateway) -> None:
    gateway.fences.fence(topic="orders", reason="replay", by="root")

    assert gateway.covering("orders", "/data/a") is FenceCause.MANUAL
    assert gateway.covering("orders", None) is FenceCause.MANUAL
    assert gateway.covering("others", "/data/a") is None
    assert not gateway.fences.snapshot.is_empty


@pytest.mark.parametrize("spelling", ["/data/a", "/data/a/", "/data//a"])
def test_a_log_dir_is_fenced_by_hand_however_it_is_spelt(gateway: Gateway, spelling: str) -> None:
    fence = gateway.fences.fence(log_dir=spelling, reason="disk swap", by="root")

    assert fence.log_dir == "/data/a"
    assert gateway.covering("orders", "/data/a") is FenceCause.MANUAL
    gateway.fences.unfence(log_dir=spelling, reason="done", by="root")
    assert gateway.fences.snapshot.is_empty


def test_the_client_is_told_of_the_strongest_cause(gateway: Gateway) -> None:
    causes = []
    gateway.fences.fence(topic="orders", reason="topic", by="root")
    causes.append(gateway.fences.snapshot.of("orders", "/data/a"))
    gateway.fences.fence(log_dir="/data/a", reason="log dir", by="root")
    causes.append(gateway.fences.snapshot.of("orders", "/data/a"))
    gateway.fences.set_full({"/data/a": "own eyes"})
    causes.append(gateway.fences.snapshot.of("orders", "/data/a"))
    gateway.fences.lease({"/data/a": "guard"}, seconds=5)
    causes.append(gateway.fences.snapshot.of("orders", "/data/a"))
    gateway.clock.passed = 5
    causes.append(gateway.fences.snapshot.of("orders", "/data/a"))

    said = [fence.reason for fence in causes if fence is not None]
    assert said == ["topic", "log dir", "own eyes", "guard", "own eyes"]


def test_nobody_lifts_the_fence_of_another(gateway: Gateway) -> None:
    gateway.fences.fence(log_dir="/data/a", reason="disk swap", by="root")
    gateway.fences.set_full({"/data/a": "full"})
    gateway.fences.lease({"/data/a": "full"}, seconds=5)
    gateway.fences.set_full({})
    gateway.fences.lease({}, seconds=5)

    assert gateway.covering("orders", "/data/a") is FenceCause.MANUAL


def test_what_was_fenced_by_hand_is_fenced_after_a_restart(gateway: Gateway) -> None:
    by_hand = gateway.fences.fence(log_dir="/data/a", reason="disk swap, Gerät 2", by="root")
    gateway.fences.fence(topic="orders", reason="replay", by="me")
    gateway.fences.fence(topic="others", reason="replay", by="me")
    gateway.fences.unfence(topic="others", reason="done", by="me")
    gateway.fences.set_full({"/data/b": "full"})
    gateway.clock.passed = 100

    gateway.restarted()

    assert gateway.fences.snapshot.of("anything", "/data/a") == by_hand
    assert gateway.covering("orders", None) is FenceCause.MANUAL
    assert gateway.covering("others", "/data/b") is None
    assert gateway.since() == [0, 0]


def test_a_fence_by_hand_can_be_given_another_reason(gateway: Gateway) -> None:
    gateway.fences.fence(topic="orders", reason="replay", by="root")
    gateway.clock.passed = 60
    gateway.fences.fence(topic="orders", reason="replay takes longer", by="me")

    gateway.restarted()

    assert [fence.reason for fence in gateway.fences.snapshot.in_force()] == ["replay takes longer"]
    assert gateway.since() == [0]


def test_every_act_is_a_line_of_the_log(gateway: Gateway) -> None:
    gateway.fences.fence(topic="orders", reason="replay", by="root")
    gateway.clock.passed = 60
    gateway.fences.unfence(topic="orders", reason="replay is over", by="me")
    gateway.fences.fence(log_dir="/data/a", reason="disk swap", by="root")

    assert gateway.log_lines() == [
        {"v": 1, "at": "2026-01-31T12:00:00.000Z", "op": "fence", "topic": "orders", "reason": "replay", "by": "root"},
        {
            "v": 1,
            "at": "2026-01-31T12:01:00.000Z",
            "op": "unfence",
            "topic": "orders",
            "reason": "replay is over",
            "by": "me",
        },
        {
            "v": 1,
            "at": "2026-01-31T12:01:00.000Z",
            "op": "fence",
            "logDir": "/data/a",
            "reason": "disk swap",
            "by": "root",
        },
    ]


def test_a_log_line_that_was_cut_short_spoils_no_other(gateway: Gateway) -> None:
    log = gateway.state_dir / "fences-1.log"
    log.write_text('{"at": "2026')

    gateway.fences.fence(topic="orders", reason="replay", by="root")

    cut_short, whole = log.read_text().splitlines()
    assert cut_short == '{"at": "2026'
    assert json.loads(whole)["topic"] == "orders"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"log_dir": "/data/c"}, "/data/c is not a log dir of this broker: it has /data/a, /data/b"),
        ({"topic": "__consumer_offsets"}, "__consumer_offsets is an internal topic"),
        ({}, "one log dir or one topic"),
        ({"log_dir": "/data/a", "topic": "orders"}, "one log dir or one topic"),
    ],
)
def test_what_cannot_be_fenced_is_said(gateway: Gateway, target: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        gateway.fences.fence(reason="why not", by="root", **target)

    assert gateway.fences.snapshot.is_empty
    assert not gateway.file.exists()


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_fence_needs_a_reason(gateway: Gateway, reason: str) -> None:
    with pytest.raises(BadInput, match="needs a reason"):
        gateway.fences.fence(topic="orders", reason=reason, by="root")


def test_a_reason_is_one_line_that_every_client_can_be_sent(gateway: Gateway) -> None:
    fence = gateway.fences.fence(topic="orders", reason="two\nlines \udc80 " + "x" * 1000, by="root")

    assert fence.reason.startswith("two lines ? xxx")
    assert len(fence.reason) == LONGEST_REASON
    assert fence.refusal.encode()


def test_what_nobody_fenced_cannot_be_unfenced(gateway: Gateway) -> None:
    with pytest.raises(BadInput, match="topic orders is not fenced by hand"):
        gateway.fences.unfence(topic="orders", reason="", by="root")


def test_a_full_log_dir_cannot_be_unfenced(gateway: Gateway) -> None:
    gateway.fences.set_full({"/data/a": "full"})

    with pytest.raises(BadInput, match=r"/data/a is fenced because it is full.*lifted automatically"):
        gateway.fences.unfence(log_dir="/data/a", reason="I want to", by="root")


@pytest.mark.parametrize("name", ["fences-1.log", "fences-1.json.tmp"])
def test_what_cannot_be_put_on_record_is_not_done(gateway: Gateway, name: str) -> None:
    gateway.fences.fence(topic="orders", reason="replay", by="root")
    (gateway.state_dir / "fences-1.log").unlink()
    (gateway.state_dir / name).mkdir()  # even root cannot write to a folder

    with pytest.raises(NotRecorded, match=r"nothing was changed: .*fences-1"):
        gateway.fences.fence(log_dir="/data/a", reason="disk swap", by="root")
    with pytest.raises(NotRecorded, match="nothing was changed"):
        gateway.fences.unfence(topic="orders", reason="done", by="root")

    assert gateway.covering("orders", "/data/a") is FenceCause.MANUAL
    assert len(gateway.fences.snapshot.in_force()) == 1
    gateway.restarted()
    assert len(gateway.fences.snapshot.in_force()) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"version": 0, "fences": []}',
        b'{"version": 1, "fences": [7]}',
        b'{"version": 1, "fences": [{"reason": "r", "by": "b", "since": "2026-01-31T12:00:00Z"}]}',
        b'{"version": 1, "fences": [{"topic": "t", "reason": "r", "by": "b", "since": "yesterday"}]}',
        b'{"version": 1, "fences": [{"topic": "t", "by": "b", "since": "2026-01-31T12:00:00Z"}]}',
    ],
)
def test_a_damaged_file_is_put_aside_and_stops_nobody(gateway: Gateway, content: bytes) -> None:
    gateway.file.write_bytes(content)

    fences = gateway.restarted()

    assert fences.snapshot.is_empty
    assert len(fences.warnings) == 1
    assert "is damaged and was renamed to fences-1.json.damaged" in fences.warnings[0]
    assert (gateway.state_dir / "fences-1.json.damaged").read_bytes() == content
    assert gateway.restarted().warnings == ()


def test_a_file_that_cannot_be_read_stops_nobody(gateway: Gateway) -> None:
    gateway.file.mkdir()

    fences = gateway.restarted()

    assert fences.snapshot.is_empty
    assert "cannot be read (not a plain file)" in fences.warnings[0]


def test_the_guards_lease_does_not_wait_for_the_disk_that_an_act_by_hand_waits_for(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forwarder takes leases, and a disk in trouble may take seconds."""
    reached, released = threading.Event(), threading.Event()

    def slow_fsync(_fd: int) -> None:
        reached.set()
        released.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    by_hand = threading.Thread(target=gateway.fences.fence, kwargs={"topic": "orders", "reason": "replay", "by": "me"})
    by_hand.start()
    assert reached.wait(PATIENCE_SECONDS)

    gateway.fences.lease({"/data/a": "full"}, seconds=5)
    gateway.fences.set_full({"/data/b": "full"})
    meanwhile = gateway.fences.snapshot.in_force()
    released.set()
    by_hand.join(PATIENCE_SECONDS)

    assert [fence.log_dir for fence in meanwhile] == ["/data/b", "/data/a"]
    assert len(gateway.fences.snapshot.in_force()) == 3


def test_a_log_dir_that_the_broker_has_no_more_can_still_be_unfenced(gateway: Gateway) -> None:
    gateway.fences.fence(log_dir="/data/a", reason="disk swap", by="root")
    without = Fences(state_dir=gateway.state_dir, node_id=1, log_dirs=["/data/b"])

    without.unfence(log_dir="/data/a", reason="the disk is gone", by="root")

    assert without.snapshot.is_empty


def test_brokers_that_share_a_state_dir_have_fences_of_their_own(gateway: Gateway) -> None:
    gateway.fences.fence(topic="orders", reason="replay", by="root")

    other = Fences(state_dir=gateway.state_dir, node_id=2, log_dirs=["/data/a"])

    assert other.snapshot.is_empty


def test_the_rows_of_the_state_document(gateway: Gateway) -> None:
    placement = Placement(
        topics={"/data/a": {"orders": 3, "__consumer_offsets": 50}, "/data/b": {"orders": 2, "others": 1}}
    )
    gateway.fences.set_full({"/data/a": "99.4 % used"})
    gateway.clock.passed = 1.5
    gateway.fences.lease({"/data/b": "full, says the guard"}, seconds=5)
    gateway.fences.fence(topic="orders", reason="replay", by="root")

    rows = to_json(standing_fences(gateway.fences.snapshot, placement))

    assert rows == [
        {
            "logDir": "/data/a",
            "cause": "full",
            "reason": "99.4 % used",
            "since": "2026-01-31T12:00:00.000Z",
            "by": None,
            "partitions": 3,
        },
        {
            "logDir": "/data/b",
            "cause": "guard",
            "reason": "full, says the guard",
            "since": "2026-01-31T12:00:01.500Z",
            "by": None,
            "partitions": 3,
        },
        {
            "topic": "orders",
            "cause": "manual",
            "reason": "replay",
            "since": "2026-01-31T12:00:01.500Z",
            "by": "root",
            "partitions": 5,
        },
    ]


# What followers have no room for -------------------------------------------------------------------------------------


def follower(broker: int, *partitions: tuple[str, int], reason: str = "broker 3 is full") -> FencedFollower:
    return FencedFollower(broker=broker, reason=reason, partitions=partitions)


def test_a_follower_without_room_fences_its_partitions_and_no_others(gateway: Gateway) -> None:
    gateway.fences.lease_followers([follower(3, ("orders", 1))], epoch=1, seconds=10)

    snapshot = gateway.fences.snapshot
    fence = snapshot.followers_in_force["orders", 1]
    assert (fence.cause, fence.follower) == (FenceCause.FOLLOWER, 3)
    assert fence.refusal.startswith("NOT_ENOUGH_SPACE: broker 3 is full; ")
    assert set(snapshot.followers_in_force) == {("orders", 1)}
    assert snapshot.of("orders", "/data/a") is None
    assert not snapshot.is_empty


def test_it_lasts_only_while_it_is_renewed_under_its_number(gateway: Gateway) -> None:
    gateway.fences.lease_followers([follower(3, ("orders", 1))], epoch=1, seconds=10)
    gateway.clock.passed = 9
    is_renewed, is_other = (gateway.fences.renew_followers(epoch=epoch, seconds=10) for epoch in (1, 2))
    gateway.clock.passed = 18
    still = gateway.fences.snapshot.followers_in_force.get(("orders", 1))
    gateway.clock.passed = 19

    assert (is_renewed, is_other) == (True, False)
    assert still is not None
    assert not gateway.fences.snapshot.followers_in_force
    assert gateway.fences.snapshot.is_empty


def test_it_is_not_on_record(gateway: Gateway) -> None:
    gateway.fences.lease_followers([follower(3, ("orders", 1))], epoch=1, seconds=10)

    assert gateway.restarted().snapshot.is_empty
    assert not gateway.fences.renew_followers(epoch=1, seconds=10)


def test_a_row_for_every_follower_with_how_long_and_how_much(gateway: Gateway) -> None:
    gateway.fences.lease_followers([follower(3, ("orders", 0), ("orders", 1))], epoch=1, seconds=10)
    gateway.clock.passed = 5
    gateway.fences.lease_followers(
        [follower(3, ("orders", 0)), follower(4, ("clicks", 0), reason="so is broker 4")], epoch=2, seconds=10
    )

    assert to_json(follower_fences(gateway.fences.snapshot)) == [
        {
            "follower": 3,
            "cause": "follower",
            "reason": "broker 3 is full",
            "since": "2026-01-31T12:00:00.000Z",
            "partitions": 1,
        },
        {
            "follower": 4,
            "cause": "follower",
            "reason": "so is broker 4",
            "since": "2026-01-31T12:00:05.000Z",
            "partitions": 1,
        },
    ]
    assert gateway.fences.snapshot.in_force() == []


@pytest.mark.parametrize("seconds", [0, -1, LONGEST_LEASE_SECONDS + 1])
def test_a_lease_for_followers_is_no_longer_than_others(gateway: Gateway, seconds: float) -> None:
    with pytest.raises(BadInput, match="a lease lasts"):
        gateway.fences.lease_followers([], epoch=1, seconds=seconds)
