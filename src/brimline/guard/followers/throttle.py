"""Replicas of a full disk that are not in sync, held by the leader's throttle where they cannot be skipped.

**Invariant.** While the guard enforces, ``brimline.follower.throttle`` is on and followers are not skipped, what is
held is what the last report of the followers' disks names as lagging in a full log dir. Nothing else is held, and
nothing at all while somebody else's throttle is seen (``act.replica_throttle``). A guard that is stopped takes it back;
one that was killed waits, when it is started again, for its first report, and then holds on or takes back.
"""

import logging
from dataclasses import dataclass
from typing import Protocol

from brimline.act.replica_throttle import Held, Partitions
from brimline.guard.followers.holding import LOOK, UNTIL_WOKEN, HoldingTask
from brimline.guard.followers.report import PeerReport
from brimline.guard.followers.words import counted_partitions
from brimline.model import Failure
from brimline.service.log_lines import say


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


class ThrottleTask(HoldingTask[ThrottleHolder, ThrottleReport]):
    _peers: PeerReport | None = None

    def _first_report(self) -> ThrottleReport:
        return ThrottleReport(held=self._holder.held)

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
            return UNTIL_WOKEN
        wait = self._seconds_to_wait()
        if wait > 0:
            return wait
        counts = peers is not None and self._is_wanted() and now < peers.counts_until
        wanted = lagging_on_full_disks(peers) if counts and peers is not None else {}
        if not wanted and self._holder.held is None:
            self._tell(ThrottleReport())
            return UNTIL_WOKEN
        self._tell(self._acted(wanted))
        return UNTIL_WOKEN if self.report.is_quiet else LOOK

    def end(self) -> None:
        """The guard is stopped, perhaps for good: what nobody looks after is taken back."""
        if self._holder.held is not None:
            self._tell(self._acted({}))

    def _acted(self, wanted: Partitions) -> ThrottleReport:
        count = sum(map(len, wanted.values()))

        def act() -> ThrottleReport:
            foreign = self._holder.hold(wanted) if wanted else None
            if not wanted:
                self._holder.release()
            return ThrottleReport(wanted=count, held=self._holder.held, foreign=foreign)

        return self._tried(act, lambda failure: ThrottleReport(wanted=count, held=self._holder.held, failure=failure))


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
        return f"lagging replicas cannot be held or released: {report.failure}"
    if report.foreign is not None:
        return (
            f"replicas of {counted_partitions(report.wanted)} on a full disk lag and are not held: another "
            f"replication throttle is set ({report.foreign}), and Kafka has one rate per broker"
        )
    count = 0 if report.held is None else report.held.partitions
    return f"replication of {counted_partitions(count)} to lagging replicas on a full disk is held (throttle)"


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
            say(logging.INFO, "follower-throttle", "replication throttle removed")
