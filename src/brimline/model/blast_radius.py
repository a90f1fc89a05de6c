"""Who would miss what, if a plan were carried out: the consumer groups as they stand, and what each would lose.

Counts of records are differences of offsets, so each is **at most** that many: compaction, aborted transactions and
the markers of transactions leave offsets that no consumer is ever given. And a member of a running group may have read
further than it has committed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from brimline.model.failures import Failure
from brimline.model.partitions import TopicPartition
from brimline.model.quantities import Bytes, Offset


class GroupActivity(Enum):
    """The value is the stable name in JSON and CSV."""

    ACTIVE = "active"
    """It has members, or is about to have some."""
    EMPTY = "empty"
    """Nobody is in it now; whoever comes back begins where it left off."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroup:
    """``committed``: only of the partitions that were asked about, and only where the group has committed."""

    name: str
    activity: GroupActivity
    committed: Mapping[TopicPartition, Offset]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownGroups:
    """Groups, or all groups of a broker, of which nothing is known, and why. ``count`` is ``None`` where not even their
    number is."""

    what: str
    count: int | None
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsSeen:
    """``asked``: how many groups there are in all, whatever they read."""

    groups: tuple[ConsumerGroup, ...]
    asked: int
    unknown: tuple[UnknownGroups, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DoomedRange:
    """What one partition loses: the records from ``begin`` up to, not including, ``end``, its next log start.

    The times are those of the oldest and the newest segment, in milliseconds, as the plan counts age; -1 is unknown.
    """

    partition: TopicPartition
    begin: Offset
    end: Offset
    segments: int
    bytes: Bytes
    oldest_ms: int = -1
    newest_ms: int = -1

    @property
    def records(self) -> int:
        """At most."""
        return max(self.end - self.begin, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLoss:
    """``partitions`` get a new log start each."""

    topic: str
    partitions: int
    segments: int
    bytes: Bytes
    records: int
    """At most."""
    oldest_ms: int
    newest_ms: int
    groups: int
    """How many groups would miss something of it."""

    @property
    def lost_ms(self) -> int | None:
        """The span between its oldest and its newest lost segment; ``None`` where the times are not known."""
        return None if self.oldest_ms < 0 or self.newest_ms < 0 else max(self.newest_ms - self.oldest_ms, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoss:
    partition: TopicPartition
    committed: Offset
    new_log_start: Offset
    records: int
    """At most. What lies below the present log start is lost already and not counted."""
    was_below: bool
    """The group stands below the present log start: it will be reset whether the plan is carried out or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLoss:
    group: str
    activity: GroupActivity
    partitions: tuple[PartitionLoss, ...]

    @property
    def records(self) -> int:
        """At most."""
        return sum(partition.records for partition in self.partitions)

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(loss.partition.topic for loss in self.partitions))

    @property
    def below_already(self) -> int:
        return sum(partition.was_below for partition in self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlastRadius:
    """The largest losses first. ``unknown``: groups that may lose as well."""

    topics: tuple[TopicLoss, ...]
    groups: tuple[GroupLoss, ...]
    asked_groups: int
    unknown: tuple[UnknownGroups, ...]

    @property
    def records(self) -> int:
        """At most."""
        return sum(topic.records for topic in self.topics)
