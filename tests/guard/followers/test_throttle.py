"""When replicas of full disks that are not in sync are held, and when they are let go on."""

from datetime import UTC, datetime

from brimline.act.replica_throttle import Held, Partitions
from brimline.guard.followers.holding import LOOK
from brimline.guard.followers.report import FullFollower, PeerReport
from brimline.guard.followers.throttle import ThrottleReport, ThrottleTask, throttle_sentence
from brimline.model import BrokerId, Failure, FailureKind, ObservationFailed
from brimline.observe.cluster.log_dirs import LedTopic
from tests.service.ticking import TickingClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REFUSED = Failure(kind=FailureKind.NOT_AUTHORIZED, message="this principal needs ALTER_CONFIGS on the cluster")


class HolderInMemory:
    def __init__(self, held: Held | None = None) -> None:
        self.held = held
        self.foreign: str | None = None
        self.failure: Failure | None = None

    def hold(self, wanted: Partitions) -> str | None:
        if self.failure is not None:
            raise ObservationFailed(self.failure)
        self.held = None if self.foreign else Held(topics=dict(wanted), since=NOW)
        return self.foreign

    def release(self) -> None:
        if self.failure is not None:
            raise ObservationFailed(self.failure)
        self.held = None


class Tasked:
    def __init__(self, holder: HolderInMemory | None = None) -> None:
        self.clock = TickingClock()
        self.holder = holder or HolderInMemory()
        self.is_wanted = True
        self.woken = 0
        self.reports: list[ThrottleReport] = []
        self.task = ThrottleTask(self.holder, self.clock, lambda: self.is_wanted, self._wake, self.reports.append)

    def full(self, lagging: frozenset[int]) -> None:
        topic = LedTopic(name="orders", topic_id=None, partitions=(0, 1, 2), log_dir="/a", lagging=lagging)
        follower = FullFollower(broker=BrokerId(3), reason="full", log_dirs=("/a",), topics=(topic,))
        self.task.decided(PeerReport(full=(follower,), counts_until=self.clock.seconds() + 60))

    def room(self) -> None:
        self.task.decided(PeerReport(counts_until=self.clock.seconds() + 60))

    def _wake(self) -> None:
        self.woken += 1


def test_what_lags_on_a_full_disk_is_held_until_there_is_room() -> None:
    tasked = Tasked()
    tasked.full(frozenset({0, 2}))

    assert tasked.task.step() == LOOK
    assert tasked.holder.held is not None
    assert tasked.holder.held.topics == {"orders": (0, 2)}
    assert "replication of 2 partitions" in throttle_sentence(tasked.task.report)

    tasked.room()
    tasked.task.step()
    assert tasked.task.report == ThrottleReport()
    assert tasked.woken == 2


def test_what_is_in_sync_is_left_alone() -> None:
    tasked = Tasked()
    tasked.full(frozenset())
    tasked.task.step()

    assert tasked.holder.held is None


def test_somebody_elses_throttle_is_named() -> None:
    tasked = Tasked()
    tasked.holder.foreign = "leader.replication.throttled.rate=5"
    tasked.full(frozenset({0}))
    tasked.task.step()

    assert tasked.task.report.held is None
    assert "another replication throttle is set (leader.replication.throttled.rate=5)" in throttle_sentence(
        tasked.task.report
    )


def test_a_refusal_is_told_and_not_repeated_at_once() -> None:
    tasked = Tasked()
    tasked.holder.failure = REFUSED
    tasked.full(frozenset({0}))
    tasked.task.step()

    assert tasked.task.report.failure == REFUSED
    assert tasked.task.step() == ThrottleTask.RETRY


def test_a_guard_that_was_killed_waits_for_its_first_report_and_then_takes_back() -> None:
    tasked = Tasked(HolderInMemory(Held(topics={"orders": (0,)}, since=NOW)))
    tasked.task.step()
    assert tasked.holder.held is not None

    tasked.room()
    tasked.task.step()
    assert tasked.holder.held is None


def test_a_guard_that_may_not_takes_back_what_was_held() -> None:
    tasked = Tasked(HolderInMemory(Held(topics={"orders": (0,)}, since=NOW)))
    tasked.is_wanted = False
    tasked.task.step()

    assert tasked.holder.held is None


def test_a_report_that_is_too_old_counts_for_nothing() -> None:
    tasked = Tasked()
    tasked.full(frozenset({0}))
    tasked.task.step()
    tasked.clock.tick(61)
    tasked.task.step()

    assert tasked.holder.held is None


def test_a_guard_that_is_stopped_takes_back_what_it_holds() -> None:
    tasked = Tasked()
    tasked.full(frozenset({0}))
    tasked.task.step()
    tasked.task.end()

    assert tasked.holder.held is None
    assert tasked.reports[-1] == ThrottleReport()


def test_what_cannot_be_taken_back_at_the_end_is_told() -> None:
    tasked = Tasked(HolderInMemory(Held(topics={"orders": (0,)}, since=NOW)))
    tasked.holder.failure = REFUSED
    tasked.task.end()

    assert tasked.reports[-1].failure == REFUSED
    assert tasked.holder.held is not None
