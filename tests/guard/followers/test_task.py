"""Watching other brokers' disks: whom the guard asks, when, and what it makes of answers and of silence."""

from collections.abc import Collection, Iterable, Mapping

from brimline.decide.disk_state import DiskLimits
from brimline.decide.fill_rate import Pace
from brimline.decide.peer_disks import ASK_AGAIN, SHORTEST_PATIENCE, PeerState
from brimline.decide.reserve import Depth
from brimline.guard.followers.client import Remembered
from brimline.guard.followers.report import PeerReport
from brimline.guard.followers.task import LOOK_AT_LEADERS, FollowerTask
from brimline.model import BrokerId, BrokerLogDirs, Bytes, Failure, FailureKind, ObservationFailed
from brimline.observe.cluster.log_dirs import Followed, LedTopic
from tests.decide.test_peer_disks import OBSERVED, described
from tests.service.ticking import TickingClock

OWN, SECOND, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)
ORDERS = LedTopic(name="orders", topic_id=None, partitions=(0, 2))
SILENCE = Failure(kind=FailureKind.TIMED_OUT, message="did not answer in time")
ROOM, FULL = 500, 50
INTERVAL = 60.0


class ClusterInMemory:
    """Brokers with a log dir each; ``silent`` ones do not answer, ``is_cut_off``: nobody does."""

    def __init__(self, **usable: int) -> None:
        self.usable = {OWN: ROOM, SECOND: ROOM, THIRD: ROOM}
        self.silent: set[BrokerId] = set()
        self.is_cut_off = False
        self.led: dict[BrokerId, tuple[LedTopic, ...] | Failure] = {SECOND: (ORDERS,), THIRD: ()}
        self.asked: list[BrokerId] = []
        self.detailed: list[dict[BrokerId, Collection[str]]] = []

    def brokers(self) -> Collection[BrokerId]:
        self._fail_if_cut_off()
        return list(self.usable)

    def volumes(self, brokers: Iterable[BrokerId]) -> Mapping[BrokerId, BrokerLogDirs]:
        self._fail_if_cut_off()
        asked = list(brokers)
        self.asked += asked
        return {broker: self._answer(broker) for broker in asked}

    def followed(self, full: Mapping[BrokerId, Collection[str]], remembered: Remembered) -> Followed:
        self._fail_if_cut_off()
        self.detailed.append(dict(full))
        return {broker: self.led[broker] for broker in (*full, *remembered)}

    def _answer(self, broker: BrokerId) -> BrokerLogDirs:
        is_silent = broker in self.silent or broker not in self.usable
        log_dirs = {} if is_silent else {"/a": described(self.usable[broker])}
        return BrokerLogDirs(
            broker=broker,
            address="",
            observed_at=OBSERVED,
            log_dirs=log_dirs,
            failure=SILENCE if is_silent else None,
        )

    def _fail_if_cut_off(self) -> None:
        if self.is_cut_off:
            raise ObservationFailed(SILENCE)


class Tasked:
    def __init__(self, interval: float = INTERVAL) -> None:
        self.clock = TickingClock()
        self.cluster = ClusterInMemory()
        self.limits = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0))
        self.reports: list[PeerReport] = []
        self.task = FollowerTask(
            OWN,
            self.cluster,
            self.clock,
            lambda: self.limits,
            lambda: Pace(interval=interval),
            lambda: 0.0,
            self.reports.append,
        )

    def step(self) -> PeerReport:
        self.clock.tick(self.task.step())
        return self.task.report

    def run(self, seconds: float) -> PeerReport:
        until = self.clock.seconds() + seconds
        while self.clock.seconds() < until:
            before = self.clock.seconds()
            self.step()
            assert self.clock.seconds() > before, "a step that does not wait is followed by another one, for ever"
        return self.task.report

    def settle(self) -> None:
        """Every broker has answered twice, so that its fill rate is known."""
        self.run(INTERVAL)


def full(report: PeerReport) -> dict[int, int]:
    return {each.broker: each.partitions for each in report.full}


def test_every_broker_is_asked_once_in_an_interval_and_little() -> None:
    tasked = Tasked()
    tasked.settle()
    tasked.cluster.asked.clear()

    report = tasked.run(10 * INTERVAL)

    assert [tasked.cluster.asked.count(broker) for broker in (OWN, SECOND, THIRD)] == [10, 10, 10]
    assert tasked.cluster.detailed == []
    assert [peer.broker for peer in report.peers] == [SECOND, THIRD]
    assert report.own is not None
    assert report.others_have_room


def test_a_full_broker_is_looked_into_at_once_and_again_and_again() -> None:
    tasked = Tasked()
    tasked.settle()
    tasked.cluster.usable[SECOND] = FULL
    report = tasked.run(INTERVAL)

    assert full(report) == {SECOND: 2}
    assert report.full[0].reason == "log dir /a is 95.0 % used, limit disk.max.used.percent=90"
    assert tasked.cluster.detailed[0] == {SECOND: ("/a",)}

    tasked.cluster.led[SECOND] = ()
    assert full(tasked.run(LOOK_AT_LEADERS + 1)) == {SECOND: 0}

    tasked.cluster.usable[SECOND] = ROOM
    assert full(tasked.run(2.0)) == {}


def test_a_full_broker_that_loses_much_at_once_is_looked_into_at_once() -> None:
    tasked = Tasked()
    tasked.settle()
    tasked.cluster.usable[SECOND] = FULL
    tasked.run(1.5)
    looked = len(tasked.cluster.detailed)

    tasked.cluster.usable[SECOND] = FULL - 4
    tasked.run(2.0)
    assert len(tasked.cluster.detailed) == looked

    tasked.cluster.usable[SECOND] = FULL - 8
    tasked.run(2.0)
    assert len(tasked.cluster.detailed) == looked + 1


def test_how_deep_a_full_disk_is_comes_with_every_look() -> None:
    tasked = Tasked()
    tasked.settle()
    depths, lacking = [], []
    for usable in (90, 49, 24):  # of 1,000; the limit leaves 100 free, and the reserve is half of that
        tasked.cluster.usable[SECOND] = usable
        tasked.run(INTERVAL)
        (follower,) = tasked.run(10.0).full
        assert follower.reserve == 50
        depths.append(follower.depths)
        lacking.append(follower.lacking)

    assert depths == [{"/a": Depth.LIMIT}, {"/a": Depth.RESERVE}, {"/a": Depth.LAST}]
    assert lacking == [{}, {"/a": 51}, {"/a": 76}]

    tasked.cluster.silent = {SECOND}
    (follower,) = tasked.run(INTERVAL).full
    assert (follower.depths, follower.lacking) == ({"/a": Depth.LAST}, {})


def test_a_full_broker_that_falls_silent_stays_full_for_a_while() -> None:
    tasked = Tasked(interval=5.0)
    tasked.run(10.0)
    tasked.cluster.usable[SECOND] = FULL
    tasked.run(5.0)

    tasked.cluster.silent.add(SECOND)
    assert full(tasked.run(SHORTEST_PATIENCE - 6.0)) == {SECOND: 2}
    report = tasked.run(12.0)

    assert full(report) == {}
    assert report.count(PeerState.SILENT) == 1


def test_a_full_broker_that_leaves_the_cluster_is_forgotten_after_a_while() -> None:
    tasked = Tasked(interval=5.0)
    tasked.cluster.usable[SECOND] = FULL
    tasked.run(10.0)

    del tasked.cluster.usable[SECOND]
    assert full(tasked.run(SHORTEST_PATIENCE - 12.0)) == {SECOND: 2}
    report = tasked.run(30.0)

    assert [peer.broker for peer in report.peers] == [THIRD]


def test_what_cannot_be_looked_into_stays_as_it_was_known() -> None:
    tasked = Tasked(interval=1.0)
    tasked.cluster.usable[SECOND] = FULL
    tasked.run(5.0)

    tasked.cluster.led[SECOND] = SILENCE
    report = tasked.run(5.0)

    assert full(report) == {SECOND: 2}
    assert report.full[0].failure == SILENCE


def test_a_guard_that_is_cut_off_lets_everything_go_after_a_while() -> None:
    tasked = Tasked(interval=5.0)
    tasked.cluster.usable[SECOND] = FULL
    tasked.run(10.0)

    tasked.cluster.is_cut_off = True
    report = tasked.run(SHORTEST_PATIENCE - 12.0)
    assert (full(report), report.failure) == ({SECOND: 2}, SILENCE)
    report = tasked.run(30.0)
    assert (full(report), report.count(PeerState.SILENT)) == ({}, 2)

    tasked.cluster.is_cut_off = False
    report = tasked.run(10.0)
    assert (full(report), report.failure) == ({SECOND: 2}, None)


def test_a_guard_that_is_cut_off_does_not_try_all_the_time() -> None:
    tasked = Tasked()
    tasked.cluster.is_cut_off = True

    assert tasked.task.step() >= ASK_AGAIN


def test_a_report_counts_for_as_long_as_an_answer() -> None:
    tasked = Tasked()
    now = tasked.clock.seconds()

    assert tasked.step().counts_until == now + 3 * INTERVAL


def test_without_limits_nobody_is_asked() -> None:
    tasked = Tasked()
    tasked.cluster.usable[SECOND] = FULL
    tasked.step()
    tasked.limits = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0))
    tasked.cluster.asked.clear()

    assert full(tasked.step()) == {}
    assert tasked.cluster.asked == []


def test_a_new_broker_is_found() -> None:
    tasked = Tasked()
    tasked.settle()
    tasked.cluster.usable[BrokerId(4)] = ROOM

    assert len(tasked.run(2 * INTERVAL).peers) == 3
