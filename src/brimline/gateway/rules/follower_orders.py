"""Which partitions are not to grow on which followers: the guard's word, for as long as it keeps giving it.

**Invariant.** A ``SkipSnapshot`` never changes; ``FollowerSkips`` replaces it whole, so the forwarder takes no lock and
sees one moment.

**Fail open.** Nothing here is on record, and a word that is not renewed in time counts for nothing, which is checked
when it is read. A gateway that has just started skips nothing; a guard that has died, or cannot say which followers are
full, lets replication go on, seconds later. The other way round a follower could stay out of the ISR for ever, for a
disk that has long had room again.

Thousands of partitions may be skipped. They are sent once, with a number that names them (``epoch``); renewing says
that number alone. A gateway that has no such set, because it was started meanwhile or was told another one, says so,
and is sent the set again.

Fences of followers go the same way (``Fences.lease_followers``): whose partitions are not to be produced to.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from brimline.decide.followers import Partition
from brimline.documents.orders import WithheldFollower, WithheldTopic
from brimline.gateway.rules.placement import Placement
from brimline.model import BadInput

LONGEST_SECONDS = 60.0
"""The guard renews its word every second or so; nothing that it says should outlive it by more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedPartitions:
    """Of one follower, in the two ways in which a fetch can call them."""

    by_name: frozenset[Partition] = frozenset()
    by_id: frozenset[Partition] = frozenset()
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SkipSnapshot:
    """``followers`` goes by broker id, and counts until ``until`` on the clock ``seconds``."""

    seconds: Callable[[], float]
    epoch: int | None = None
    followers: Mapping[int, SkippedPartitions] = field(default_factory=dict)
    until: float = 0.0

    @property
    def is_in_force(self) -> bool:
        return bool(self.followers) and self.seconds() < self.until

    @property
    def seconds_left(self) -> float:
        return max(self.until - self.seconds(), 0.0)


class FollowerSkips:
    """Thread-safe."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._replacing = threading.Lock()
        self.snapshot = SkipSnapshot(seconds=seconds)

    def put(self, followers: Mapping[int, Iterable[WithheldTopic]], *, epoch: int, seconds: float) -> None:
        """In place of everything that was said before; it counts for so many seconds."""
        _check(seconds)
        skipped = {broker: _skipped(topics) for broker, topics in followers.items()}
        with self._replacing:
            self.snapshot = SkipSnapshot(
                seconds=self._seconds,
                epoch=epoch,
                followers={broker: partitions for broker, partitions in skipped.items() if partitions.count},
                until=self._seconds() + seconds,
            )

    def renew(self, *, epoch: int, seconds: float) -> bool:
        """Whether this is what was said last: then it counts for so many seconds from now."""
        _check(seconds)
        with self._replacing:
            if self.snapshot.epoch != epoch:
                return False
            self.snapshot = replace(self.snapshot, until=self._seconds() + seconds)
            return True

    def drop_expired(self) -> Mapping[int, SkippedPartitions]:
        """What has run out since the last time, for whoever tells people of it."""
        with self._replacing:
            snapshot = self.snapshot
            if not snapshot.followers or snapshot.is_in_force:
                return {}
            self.snapshot = SkipSnapshot(seconds=self._seconds)
            return snapshot.followers


class OwnSkips:
    """What this broker itself has no room for: all that is in its full log dirs. For its own fetches from leaders.

    Nobody has to say so: it follows from the gateway's own look at the disks and from the guard's lease.
    """

    def __init__(
        self, broker: int, full_log_dirs: Callable[[], frozenset[str]], placement: Callable[[], Placement]
    ) -> None:
        self._broker = broker
        self._full_log_dirs = full_log_dirs
        self._placement = placement
        self._of: tuple[frozenset[str], Placement | None] = (frozenset(), None)
        self._snapshot = SkipSnapshot(seconds=time.monotonic)

    @property
    def snapshot(self) -> SkipSnapshot:
        full, placement = self._full_log_dirs(), self._placement()
        if self._of[0] != full or self._of[1] is not placement:
            self._of = full, placement
            skipped = _in_log_dirs(full, placement)
            followers = {self._broker: skipped} if skipped.count else {}
            self._snapshot = SkipSnapshot(seconds=time.monotonic, followers=followers, until=math.inf)
        return self._snapshot


def _in_log_dirs(full: frozenset[str], placement: Placement) -> SkippedPartitions:
    by_name = frozenset(where for where, log_dir in placement.log_dirs.items() if log_dir in full)
    numbers: dict[str, list[int]] = {}
    for topic, number in by_name:
        numbers.setdefault(topic, []).append(number)
    return SkippedPartitions(
        by_name=frozenset((topic.encode(), number) for topic, number in by_name),
        by_id=frozenset(
            (topic_id.bytes, number) for topic_id, topic in placement.names.items() for number in numbers.get(topic, ())
        ),
        count=len(by_name),
    )


def _skipped(topics: Iterable[WithheldTopic]) -> SkippedPartitions:
    listed = list(topics)
    return SkippedPartitions(
        by_name=frozenset((each.topic.encode(), number) for each in listed if each.topic for number in each.partitions),
        by_id=frozenset(
            (each.topic_id.bytes, number) for each in listed if each.topic_id for number in each.partitions
        ),
        count=sum(len(each.partitions) for each in listed),
    )


def _check(seconds: float) -> None:
    if not 0 < seconds <= LONGEST_SECONDS:
        raise BadInput(f"skips last more than 0 and at most {LONGEST_SECONDS:.0f} seconds, not {seconds}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedFollower:
    """A broker without room, why, and the partitions that it holds there and this broker leads."""

    broker: int
    reason: str
    partitions: tuple[tuple[str, int], ...]


def fenced_followers(followers: Mapping[int, WithheldFollower]) -> list[FencedFollower]:
    """Names alone count: the gateway knows the names of all topics whose logs are here, and we speak of no others."""
    return [
        FencedFollower(
            broker=broker,
            reason=each.reason,
            partitions=tuple(
                (topic.topic, number) for topic in each.topics if topic.topic for number in topic.partitions
            ),
        )
        for broker, each in followers.items()
    ]
