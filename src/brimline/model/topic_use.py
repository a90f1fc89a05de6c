"""What a topic takes of the disks: the facts of ``brimline topics``, and what follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from brimline.model.blast_radius import GroupActivity
from brimline.model.quantities import BrokerId, Bytes, Labelled, Offset, human_bytes, human_span
from brimline.model.reclaim import CleanupRules


class Stays(Labelled):
    """Why the head of a log stays: the first segment that ordinary retention does not remove holds up all others."""

    GOING = 0
    WITHIN_LIMITS = 1
    NO_LIMIT = 2
    COMPACTION = 3
    NO_CLEANUP_POLICY = 4
    ACTIVE_SEGMENT = 5
    FUTURE_TIMESTAMP = 6
    NOT_IN_SYNC = 7
    NOT_UPLOADED = 8
    MOVING = 9
    UNKNOWN = 10
    """The topic's configuration, or the segments: those are seen on the broker's host only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaUse:
    """One replica, as its broker describes it."""

    broker: BrokerId
    log_dir: str
    size: Bytes
    remote_size: Bytes | None = None
    only_local_size: Bytes | None = None
    is_future: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionUse:
    """Offsets and times are the leader's word; ``None`` is not known, or that there is no record.

    ``written_since``: the first offset of the last hour; the high watermark if there is none. The times are those of
    the first record and of the record with the largest timestamp.
    """

    partition: int
    replicas: tuple[ReplicaUse, ...]
    leader: BrokerId | None = None
    in_sync: int | None = None
    log_start: Offset | None = None
    high_watermark: Offset | None = None
    log_end: Offset | None = None
    written_since: Offset | None = None
    oldest_ms: int | None = None
    newest_ms: int | None = None

    @property
    def size(self) -> Bytes:
        """Of one copy: the leader's, or where that is not known the largest."""
        kept = [replica for replica in self.replicas if not replica.is_future]
        led = [replica.size for replica in kept if replica.broker == self.leader]
        return Bytes(max(led or [replica.size for replica in kept], default=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Of a log's files: what retention takes at its next pass, and the first segment that it leaves."""

    going_bytes: Bytes
    is_active: bool
    size: Bytes
    newest_ms: int
    held: Stays | None = None
    """Its limits would let it go, and this keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicUse:
    """``rules`` is ``None`` where they are not known. ``own``: the keys that the topic itself sets."""

    name: str
    rules: CleanupRules | None
    own: frozenset[str] = frozenset()
    segment_bytes: int | None = None
    segment_ms: int | None = None
    min_in_sync: int | None = None
    partitions: tuple[PartitionUse, ...] = ()
    committed: Mapping[str, Mapping[int, Offset]] = field(default_factory=dict)
    """By group."""
    activity: Mapping[str, GroupActivity] = field(default_factory=dict)

    @property
    def is_internal(self) -> bool:
        """Kafka's own."""
        return self.name.startswith("__") or (self.rules is not None and self.rules.is_internal)

    def retention(self, mark: str = "") -> str:
        """For people; ``mark`` stands behind what the topic itself sets."""
        if self.rules is None:
            return "-"
        if self.rules.compacts and not self.rules.deletes:
            return "compact" + mark * ("cleanup.policy" in self.own)
        limits = []
        if self.rules.retention_ms >= 0:
            limits.append(human_span(self.rules.retention_ms / 1000) + mark * ("retention.ms" in self.own))
        if self.rules.retention_bytes >= 0:
            limits.append(human_bytes(self.rules.retention_bytes) + mark * ("retention.bytes" in self.own))
        return " or ".join(limits) or "none" + mark * bool({"retention.ms", "retention.bytes"} & self.own)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    group: str
    activity: GroupActivity
    records: int
    """At most: differences of offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlace:
    broker: BrokerId
    log_dir: str
    bytes: Bytes
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSummary:
    """``bytes``: all replicas. ``one_copy_bytes``: one of each partition. ``None`` is not known."""

    use: TopicUse
    bytes: Bytes
    one_copy_bytes: Bytes
    replicas: int
    written_bytes: Bytes | None
    """Of one copy, in the last hour: its share of the offsets, so about."""
    oldest_ms: int | None
    remote_bytes: Bytes | None
    only_local_bytes: Bytes | None
    groups: tuple[GroupLag, ...]
    """The one that is furthest behind first."""
    places: tuple[TopicPlace, ...]
    stays: Stays
    why: str
    going_bytes: Bytes | None = None
    """What the next retention passes take of the replicas whose files were seen."""

    @property
    def name(self) -> str:
        return self.use.name

    @property
    def is_unread(self) -> bool:
        """No consumer group has committed an offset for it, and it is not Kafka's own."""
        return not self.groups and not self.use.is_internal
