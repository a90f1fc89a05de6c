"""What the ledger says: one frozen type for every kind of entry.

A **cycle** is one plan for one device and what became of it. Its trims are numbered by their place in the plan, and
every later entry speaks of them by number. A trim is told in this order, with anything but the first left out where it
did not come to pass::

    plan → request → answer (→ request → answer …) → came-back | abandoned | withdrawn      … and of the cycle: ended

A trim ends when its files are gone (came-back), when it was given up (abandoned) or is not wanted any more (withdrawn),
not when its answer came.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import NewType, TypeAlias
from uuid import UUID

from brimline.model import BrokerId, Bytes, Offset, TopicPartition

CycleId = NewType("CycleId", str)
TrimNumber = NewType("TrimNumber", int)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRange:
    """Neighbouring segments at the head of a log: all of its ``count`` segments with a base offset from first to last.

    A log is trimmed from its head only, so two numbers name the segments of any trim, however many there are.
    """

    first: Offset
    last: Offset
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrim:
    """One partition's log, to be cut at ``target``: the base offset of the first segment that stays.

    ``allocated_bytes`` are the blocks of the segments as the plan's scan found them. The times are those of the oldest
    and the newest record, in milliseconds; -1 is unknown.
    """

    partition: TopicPartition
    topic_id: UUID | None
    log_dir: str
    log_start: Offset
    target: Offset
    segments: SegmentRange
    allocated_bytes: Bytes
    oldest_ms: int
    newest_ms: int
    reason: str

    def __post_init__(self) -> None:
        if not self.segments.first <= self.segments.last < self.target:
            raise ValueError(f"{self.partition}: segments {self.segments} are not those below {self.target}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """A partition of which nothing could be taken this time, whatever its age; the next cycle may."""

    partition: TopicPartition
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``excess_bytes`` are used beyond the ceiling and not going: what the trims are for. ``going_bytes`` leave anyway.

    ``by``: who asked for it: the guard, or a person. ``trims`` are in the order in which they are carried out.
    """

    cycle: CycleId
    device: str
    log_dirs: tuple[str, ...]
    total_bytes: Bytes
    used_bytes: Bytes
    ceiling_percent: int
    excess_bytes: Bytes
    going_bytes: Bytes
    by: str
    trims: tuple[PlannedTrim, ...]
    passed_over: tuple[PassedOver, ...] = ()

    def __post_init__(self) -> None:
        if len({trim.partition for trim in self.trims}) < len(self.trims):
            raise ValueError("a partition is trimmed once in a plan")

    @property
    def planned_bytes(self) -> Bytes:
        return Bytes(sum(trim.allocated_bytes for trim in self.trims))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedTrim:
    """``log_start`` and ``present_bytes`` (blocks of its files) are what was there right before the request."""

    number: TrimNumber
    leader: BrokerId
    log_start: Offset
    present_bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """Is on the disk before the request is sent; that it was sent is not certain."""

    cycle: CycleId
    trims: tuple[RequestedTrim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredTrim:
    """``low_watermark``: the lowest log start of all live replicas; else ``error`` says what came instead."""

    number: TrimNumber
    low_watermark: Offset | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    cycle: CycleId
    trims: tuple[AnsweredTrim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreedTrim:
    """``freed_bytes``: blocks of its files that were there when it was asked for (or first looked at) and are gone."""

    number: TrimNumber
    freed_bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CameBack:
    """The files of these trims are gone, so they are done. One without a request was done by somebody else."""

    cycle: CycleId
    trims: tuple[FreedTrim, ...]


class GivenUpAct(Enum):
    """The value is the entry's kind."""

    ABANDONED = "abandoned"
    WITHDRAWN = "withdrawn"
    """Nothing failed: enough is back, a pause, a newer plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUpTrim:
    number: TrimNumber
    why: str
    freed_bytes: Bytes
    """What of it came back all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """Nothing more is sent for these trims. What was sent before may still be carried out."""

    act: GivenUpAct
    cycle: CycleId
    trims: tuple[GivenUpTrim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleEnded:
    """Every trim of the cycle has ended."""

    cycle: CycleId
    done: int
    abandoned: int
    freed_bytes: Bytes


class BallastAct(Enum):
    """The value is the entry's kind."""

    ALLOCATED = "ballast-allocated"
    RELEASED = "ballast-released"
    RESTORED = "ballast-restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class BallastEntry:
    """``usable_bytes`` of the volume before the act. ``was_late``: on a full disk the act comes before the entry."""

    act: BallastAct
    path: str
    device: str
    size: Bytes
    usable_bytes: Bytes
    why: str
    was_late: bool = False


class CordonAct(Enum):
    """The value is the entry's kind."""

    CORDONED = "cordoned"
    UNCORDONED = "uncordoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonEntry:
    """A log dir of the broker was to be put into ``cordoned.log.dirs``, or has been taken out of it."""

    act: CordonAct
    log_dir: str
    why: str


class ShedAct(Enum):
    """The value is the entry's kind."""

    SHED = "shed"
    OVER = "shed-over"
    """The partition has other replicas than those that were left to it: nothing is missing any more by our doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedEntry:
    """A replica was to be taken out of its partition's assignment, which was ``before``; or that is over."""

    act: ShedAct
    partition: TopicPartition
    follower: BrokerId
    log_dir: str
    before: tuple[BrokerId, ...]
    size: Bytes
    why: str

    @property
    def left(self) -> tuple[BrokerId, ...]:
        return tuple(each for each in self.before if each != self.follower)

    def over(self, why: str) -> "ShedEntry":
        return replace(self, act=ShedAct.OVER, why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """No cycle begins, and none goes on, until somebody resumes."""

    by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    by: str
    reason: str


CycleEntry: TypeAlias = Plan | Requested | Answered | CameBack | GivenUp | CycleEnded
Entry: TypeAlias = CycleEntry | BallastEntry | CordonEntry | ShedEntry | Paused | Resumed


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An entry with its place in the ledger: ``sequence`` counts without gaps, whatever the clock does."""

    sequence: int
    at: datetime
    entry: Entry
