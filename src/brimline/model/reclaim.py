"""What a reclaim plan is made from: devices, logs, segments, and what Kafka and the operator say of them.

Four tables, each pointing into the next: a segment belongs to a log, a log to a device and to a topic. One broker has a
few log dirs on a device or two, a fleet has millions of segments on hundreds of devices; both are the same tables. A
**log** is any folder of a log dir, one row each, so that every byte of a log dir is in some row; only replicas'
folders have segments and a topic.

In a column -1 stands for "unknown", everywhere else ``None`` does.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self, overload

import numpy as np

from brimline.model.partitions import TopicPartition
from brimline.model.quantities import Bytes, Labelled
from brimline.model.scan import BoolColumn, Int32Column, Int64Column, UInt8Column

CEILING_OFF = 100
"""``log.retention.disk.usage.percent`` of 100 is no ceiling: no disk is used more than wholly."""
NO_TOPIC = -1
"""The topic of a folder that is no replica's."""
USE_RETENTION = -2
"""``local.retention.ms`` and ``local.retention.bytes`` of -2: as ``retention.ms`` and ``retention.bytes``."""
AN_HOUR_MS = 3_600_000
HANGING_MS = 900_000
"""A transaction that is open for longer hangs: ``transaction.max.timeout.ms`` by default."""


class Views(Labelled):
    """Do the files and the broker's answer tell the same story of a log? Only then is it trimmed."""

    AGREE = 0
    NOT_DESCRIBED = 1
    NOT_READABLE = 2
    TOPIC_ID_UNKNOWN = 3
    OTHER_TOPIC_ID = 4
    SEGMENTS_MISSING = 5
    OTHER_OFFSETS = 6
    NO_PERMISSION = 7

    @property
    def sentence(self) -> str:
        return _VIEWS[self]


_VIEWS = {
    Views.AGREE: "the files and the broker's answer agree",
    Views.NOT_DESCRIBED: "the broker does not describe the replica in this log dir",
    Views.NOT_READABLE: "the folder cannot be read",
    Views.TOPIC_ID_UNKNOWN: "the topic id is unknown, and the name may have been used twice",
    Views.OTHER_TOPIC_ID: "the folder belongs to an older topic of that name",
    Views.SEGMENTS_MISSING: "some segments were deleted since the scan",
    Views.OTHER_OFFSETS: "offsets of broker and files differ",
    Views.NO_PERMISSION: "no permission: this principal needs DELETE on the topic",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupRules:
    """What a topic's configuration says about its clean-up, as the broker computes it that holds the replica.

    Retention of less than 0 is no limit (for the local ones -2 refers to the other pair).
    """

    deletes: bool = True
    """``cleanup.policy`` contains ``delete``."""
    compacts: bool = False
    retention_ms: int = 7 * 24 * AN_HOUR_MS
    retention_bytes: int = -1
    local_retention_ms: int = USE_RETENTION
    local_retention_bytes: int = USE_RETENTION
    is_tiered: bool = False
    is_copy_disabled: bool = False
    is_internal: bool = False
    """As the broker's Metadata answer says; Kafka's own topics are known by name too."""
    is_for_ever: bool = False
    """The topic itself sets ``retention.ms=-1``, and no limit of bytes: somebody wants all of it kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    name: str
    rules: CleanupRules | None
    """``None``: not known, for example for lack of a permission."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleColumns:
    """``CleanupRules`` of many topics. Where they are not known the other columns mean nothing."""

    is_known: BoolColumn
    deletes: BoolColumn
    compacts: BoolColumn
    retention_ms: Int64Column
    retention_bytes: Int64Column
    local_retention_ms: Int64Column
    local_retention_bytes: Int64Column
    is_tiered: BoolColumn
    is_copy_disabled: BoolColumn
    is_internal: BoolColumn
    is_for_ever: BoolColumn

    @classmethod
    def of(cls, rules: Sequence[CleanupRules | None]) -> Self:
        known = [each or _NO_RULES for each in rules]
        columns = {
            name: np.array([getattr(each, name) for each in known], dtype=type(getattr(_NO_RULES, name)))
            for name in RULE_NAMES
        }
        return cls(is_known=np.array([each is not None for each in rules], dtype=np.bool_), **columns)

    def row(self, number: int) -> CleanupRules | None:
        if not self.is_known[number]:
            return None
        return CleanupRules(**{name: getattr(self, name)[number].item() for name in RULE_NAMES})


RULE_NAMES = tuple(field.name for field in fields(CleanupRules))
_NO_RULES = CleanupRules()


class TopicTable(Sequence[TopicFacts]):
    """The same as columns, for those who have thousands and look at few."""

    def __init__(self, names: Sequence[str], rules: RuleColumns, lengths: Sequence[int] = ()) -> None:
        self.names = names
        self.rules = rules
        self.lengths = lengths or (len(names),)
        """Of the brokers whose topics these are. A name may stand in several of them."""

    @classmethod
    def of(cls, topics: Sequence[TopicFacts]) -> "TopicTable":
        if isinstance(topics, TopicTable):
            return topics
        return cls([topic.name for topic in topics], RuleColumns.of([topic.rules for topic in topics]))

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, row: int) -> TopicFacts: ...

    @overload
    def __getitem__(self, row: slice) -> "TopicTable": ...

    def __getitem__(self, row: int | slice) -> "TopicFacts | TopicTable":
        if isinstance(row, slice):
            return TopicTable.of([self[number] for number in range(*row.indices(len(self)))])
        return TopicFacts(name=self.names[row], rules=self.rules.row(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimPolicy:
    """The operator's word: the ceiling, and the brakes. The defaults are KIP-61's letter, which has none: which brakes
    a broker goes by is said by its properties file (``settings.keys``)."""

    ceiling_percent: int = CEILING_OFF
    min_retention_ms: int = 0
    """In every partition, segments that are younger stay. 0: no such brake."""
    min_retention_bytes: int = 0
    """In every partition, at least so much of the log stays, counted as Kafka counts ``retention.bytes``."""
    max_bytes_per_cycle: int | None = None
    """A plan takes no more than this from a device, even if then it takes nothing."""
    max_percent_per_cycle: int | None = None
    """Nor more than so much of the whole device, but always the oldest segment: a volume may be small."""
    protected_topics: tuple[str, ...] = ()
    """Regular expressions, each for a whole topic name."""
    spares_compacted: bool = False
    """Topics that are compacted and deleted from are protected as well: Kafka Streams keeps state in such."""
    spares_for_ever: bool = False
    """So are topics that say "for ever" (``CleanupRules.is_for_ever``)."""
    spares_transactions: bool = False
    """Nothing at or above the last stable offset goes: an open transaction is not beheaded."""
    only_curable: bool = False
    """Where what is not Kafka's is above the ceiling, no more is taken than keeps the device below its fence."""
    shares_brakes: bool = False
    """The brakes of the guards of other replicas count as well (``decide.reclaim.brakes``)."""
    max_used_percent: int = 100
    min_free_bytes: int = 0
    """The fence, as KIP-1201 has it: beyond either the device is full; 100 and 0 are off."""
    yields_at_reserve: bool = False
    """Nothing refuses writes: on the last reserve ``min_retention_ms`` and the limit of a cycle yield, since a broker
    that dies of a full disk keeps nothing."""
    future_tolerance_ms: int = AN_HOUR_MS
    """A timestamp later than now by more than this is not believed. Kafka 4 accepts one hour from producers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """A physical device: what several log dirs, and foreign files, may share. Bytes are ``None`` when unreadable."""

    name: str
    total_bytes: Bytes | None
    usable_bytes: Bytes | None
    now_ms: int
    """When the device was looked at: the "now" of every rule about age on it."""
    policy: ReclaimPolicy
    believed_ms: int | None = None
    """What the minimum retention counts from instead, where the clock may be ahead (``decide.reclaim.bounds``)."""

    @property
    def used_bytes(self) -> int | None:
        """By anyone. An odd file system reports more usable than total; then nothing is used."""
        if self.total_bytes is None or self.usable_bytes is None:
            return None
        return max(self.total_bytes - self.usable_bytes, 0)

    @property
    def limit_bytes(self) -> int | None:
        """What the ceiling allows to be used; ``None`` without a ceiling, and when the size is unknown."""
        if self.total_bytes is None or self.policy.ceiling_percent >= CEILING_OFF:
            return None
        return self.total_bytes * self.policy.ceiling_percent // 100

    @property
    def fence_bytes(self) -> int | None:
        """The most that may be used before the device is full; 99 % where both limits are off."""
        if self.total_bytes is None:
            return None
        percent, least_free = self.policy.max_used_percent, self.policy.min_free_bytes
        if percent >= CEILING_OFF and not least_free:
            return self.total_bytes - self.total_bytes // 100
        return min(self.total_bytes * percent // 100, max(self.total_bytes - least_free, 0))

    @property
    def reserve_bytes(self) -> int | None:
        """The last reserve, at which brakes yield; ``None`` where they never do.

        ``disk.min.free.bytes``, or 1 % where that is off; and not more than half of what the ceiling leaves free: on a
        small volume the default of 1 GiB would let the brakes yield always.
        """
        if self.total_bytes is None or self.limit_bytes is None or not self.policy.yields_at_reserve:
            return None
        least_free = self.policy.min_free_bytes or self.total_bytes // 100
        return min(least_free, (self.total_bytes - self.limit_bytes) // 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogTable:
    """A row per folder of a log dir, as the scan walks them."""

    device: Int32Column
    topic: Int32Column
    """Row in the topics, ``NO_TOPIC`` for folders that are no replica's."""
    partition: Int32Column
    kind: UInt8Column
    """``FolderKind``. Only ``CURRENT`` folders are candidates."""
    is_moving: BoolColumn
    """A copy for another log dir of the same broker is in the making (``-future``)."""
    views: UInt8Column
    """``Views``."""
    segments_begin: Int64Column
    """Row r owns the segments from ``segments_begin[r]`` up to, not including, ``segments_begin[r + 1]``."""
    log_start_offset: Int64Column
    """Where the log begins now, whoever moved it. Of a tiered topic: where the local log begins."""
    high_watermark: Int64Column
    log_end_offset: Int64Column
    """Where known and reached by the high watermark, ordinary retention may remove even the active segment."""
    highest_remote_offset: Int64Column
    """Of a tiered topic: the last offset that is in the remote store."""
    last_stable_offset: Int64Column
    """Where the first open transaction begins; the high watermark where there is none."""
    deleted_bytes: Int64Column
    """Allocated to files that wait for deletion (``.deleted``)."""
    foreign_bytes: Int64Column
    """Allocated to files that are not Kafka's."""
    other_bytes: Int64Column
    """Allocated to whatever else is in the folder and in no segment, the folder's own blocks included."""

    def __len__(self) -> int:
        return len(self.device)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentTable:
    """The segments, log by log, with ascending base offsets. The last one of a log is the active one."""

    base_offset: Int64Column
    log_bytes: Int64Column
    """As Kafka counts: what was written to the ``.log`` file."""
    allocated_bytes: Int64Column
    """As the disk counts: what comes back when the segment goes, indexes and producer snapshot included."""
    newest_timestamp_ms: Int64Column
    modified_ns: Int64Column

    def __len__(self) -> int:
        return len(self.base_offset)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReclaimTables:
    devices: Sequence[DeviceFacts]
    topics: Sequence[TopicFacts]
    logs: LogTable
    segments: SegmentTable

    def topic_partition(self, log: int) -> TopicPartition | None:
        topic = int(self.logs.topic[log])
        return None if topic == NO_TOPIC else TopicPartition(self.topics[topic].name, int(self.logs.partition[log]))


_BETWEEN_PATTERNS = re.compile(r",(?![^{}]*\})")


def split_patterns(text: str) -> tuple[str, ...]:
    """Regular expressions with a comma between them, as an operator writes the topics that are protected.

    A comma inside of braces belongs to the expression, as in ``[a-z]{2,4}``; anywhere else it cannot, since no topic's
    name has one.
    """
    return tuple(pattern for part in _BETWEEN_PATTERNS.split(text) if (pattern := part.strip()))
