"""Replicas of a full disk that are not in sync, held by the leader's throttle where they cannot be skipped.

**Invariant.** While the guard enforces, ``brimline.follower.throttle`` is on and followers are not skipped, what is
held is what the last report of the followers' disks names as lagging in a full log dir. Nothing else is held, and
nothing at all while somebody else's throttle is seen (``act.replica_throttle``). A guard that is started again waits
for its first report, and then holds on or takes back.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from brimline.act.replica_throttle import Held, Partitions
from brimline.guard.followers.report import PeerReport
from brimline.model import Failure, FailureKind, ObservationFailed
from brimline.service.clock import Clock
from brimline.service.durable_files import NotRecorded
from brimline.service.log_lines import say

LOOK = 5.0
"""Seconds until somebody else's throttle is seen."""
RETRY = 30.0
"""What was refused once is refused again, and the broker logs every refusal."""
_UNTIL_WOKEN = 60.0


class ThrottleHolder(Protocol):
    """What throttles; ``ReplicaThrottle`` does it on a real broker."""

    @property
    def held(self) -> Held | None: ...

    def hold(self, wanted: Partitions) -> str | None: ...

    def release(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleReport:
    """``foreign``: whose throttle keeps ours away."""

    wanted: int = 0
    held: Held | None = None
    foreign: str | None = None
    failure: Failure | None = None

    @property
    def is_quiet(self) -> bool:
        return not self.wanted and self.held is None and self.failure is None


NOTHING_THROTTLED = ThrottleReport()


class ThrottleTask:
    """``is_wanted`` is asked before every step; ``changed`` is told of every look."""

    def __init__(
        self,
        holder: ThrottleHolder,
        clock: Clock,
        is_wanted: Callable[[], bool],
        wake: Callable[[], None],
        changed: Callable[[ThrottleReport], None],
    ) -> None:
        self._holder = holder
        self._clock = clock
        self._is_wanted = is_wanted
        self._wake = wake
        self._changed = changed
        self._peers: PeerReport | None = None
        self._retry_at = clock.seconds()
        self.report = ThrottleReport(held=holder.held)

    def decided(self, peers: PeerReport) -> None:
        """From any thread; returns at once."""
        is_news = self._peers is None or lagging_on_full_disks(peers) != lagging_on_full_disks(self._peers)
        self._peers = peers
        if is_news:
            self._wake()

    def step(self) -> float:
        """Do what is due; returns the seconds until more is."""
        peers, now = self._peers, self._clock.seconds()
        if peers is None and self._is_wanted():
            return _UNTIL_WOKEN
        if now < self._retry_at:
            return self._retry_at - now
        counts = peers is not None and self._is_wanted() and now < peers.counts_until
        wanted = lagging_on_full_disks(peers) if counts and peers is not None else {}
        if not wanted and self._holder.held is None:
            self._tell(ThrottleReport())
            return _UNTIL_WOKEN
        self._tell(self._acted(wanted))
        return _UNTIL_WOKEN if self.report.is_quiet else LOOK

    def _acted(self, wanted: Partitions) -> ThrottleReport:
        count, foreign = sum(map(len, wanted.values())), None
        try:
            if wanted:
                foreign = self._holder.hold(wanted)
            else:
                self._holder.release()
        except ObservationFailed as error:
            return self._failed(count, error.failure)
        except NotRecorded as error:
            return self._failed(count, Failure(kind=FailureKind.UNREADABLE, message=str(error)))
        return ThrottleReport(wanted=count, held=self._holder.held, foreign=foreign)

    def _failed(self, count: int, failure: Failure) -> ThrottleReport:
        is_refused = failure.kind not in (FailureKind.UNREACHABLE, FailureKind.TIMED_OUT)
        self._retry_at = self._clock.seconds() + (RETRY if is_refused else LOOK)
        return ThrottleReport(wanted=count, held=self._holder.held, failure=failure)

    def _tell(self, report: ThrottleReport) -> None:
        self.report = report
        self._changed(report)


def lagging_on_full_disks(peers: PeerReport) -> Partitions:
    """Topic → the partitions led here that a full follower is not in sync with."""
    found: dict[str, set[int]] = {}
    for follower in peers.full:
        for topic in follower.topics:
            if topic.lagging:
                found.setdefault(topic.name, set()).update(topic.lagging)
    return {name: tuple(sorted(numbers)) for name, numbers in sorted(found.items())}


def throttle_sentence(report: ThrottleReport) -> str:
    """Not for a quiet report."""
    if report.failure is not None:
        return f"replicas that are not in sync cannot be held or let go on: {report.failure}"
    if report.foreign is not None:
        return (
            f"replicas of {_counted(report.wanted)} on a full disk are not in sync, and are not held: somebody "
            f"else's replication throttle is set ({report.foreign}), and Kafka has one rate for a whole broker"
        )
    count = 0 if report.held is None else report.held.partitions
    return f"replication of {_counted(count)} to replicas on a full disk that are not in sync is held (throttle)"


def _counted(partitions: int) -> str:
    return f"{partitions} partition{'s' * (partitions != 1)}"


class ThrottleNews:
    def __init__(self) -> None:
        self._said = ""

    def tell(self, report: ThrottleReport) -> None:
        phase = f"{report.failure} {report.foreign} {report.held is not None}"
        if phase == self._said:
            return
        was_told, self._said = bool(self._said), phase
        if not report.is_quiet:
            level = logging.WARNING if report.failure is None else logging.ERROR
            say(level, "follower-throttle", throttle_sentence(report), partitions=report.wanted)
        elif was_told:
            say(logging.INFO, "follower-throttle", "no replication throttle of this guard is set any more")
