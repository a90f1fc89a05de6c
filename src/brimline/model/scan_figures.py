"""What a scan says when it is laid beside what the broker and the remote store say."""

from dataclasses import dataclass
from enum import Enum

from brimline.model.partitions import TopicPartition
from brimline.model.quantities import Bytes


class Difference(Enum):
    """Why a replica's size in DescribeLogDirs is not the size of its files."""

    NONE = "equal"
    APPENDED = "appended to between the two looks"
    SEGMENTS_DELETED = "segments were deleted or truncated between the two looks"
    PREALLOCATED = "the active segment is preallocated: its file is longer than what was written to it"
    NOT_DESCRIBED = "on disk, not in the answer: created or moved between the two looks, or not asked for"
    NOT_ON_DISK = "in the answer, not on disk: deleted or moved between the two looks"
    LOG_DIR_OFFLINE = "the broker has taken the log dir offline and describes no replica of it"
    NOT_READABLE = "the scan may not look into the folder"
    SYMBOLIC_LINK = "the folder is a symbolic link, which a scan does not follow"


class Term(Enum):
    """What lies between the bytes that Kafka describes and the bytes that the disk has given away."""

    DESCRIBED = "replicas, as the broker describes them"
    DIFFERENCES = "replicas whose files say otherwise"
    LOG_BLOCKS = "logs: whole blocks are allocated, holes are not"
    INDEXES = "indexes"
    PRODUCER_SNAPSHOTS = "producer snapshots"
    DELETED_SEGMENTS = "segments waiting for deletion (.deleted)"
    COMPACTION = "compaction in progress (.cleaned, .swap)"
    CHECKPOINTS = "checkpoints and other small files of Kafka"
    FOLDERS = "the folders themselves"
    DELETE_FOLDERS = "deleted replicas waiting for removal (-delete)"
    STRAY_FOLDERS = "stray replicas (-stray)"
    METADATA_LOG = "the cluster's metadata log"
    REMOTE_INDEX_CACHE = "cache of remote indexes"
    BALLAST = "Brimline's ballast"
    FOREIGN = "files and folders that are not Kafka's"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaReconciliation:
    partition: TopicPartition
    is_future: bool
    described: Bytes | None
    scanned: Bytes | None
    difference: Difference

    @property
    def bytes(self) -> int:
        """How much more the files say than the broker."""
        return (self.scanned or 0) - (self.described or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The terms, in their order, add up to ``allocated_bytes`` exactly; none is left without a name."""

    path: str
    replicas: tuple[ReplicaReconciliation, ...]
    terms: tuple[tuple[Term, int], ...]
    allocated_bytes: Bytes

    @property
    def differing(self) -> tuple[ReplicaReconciliation, ...]:
        return tuple(replica for replica in self.replicas if replica.difference is not Difference.NONE)

    def term(self, term: Term) -> int:
        return dict(self.terms)[term]


class OnlyLocalReason(Enum):
    """Why an only-local size is not known."""

    KNOWN = "known"
    NOT_GIVEN = "no remote segments were given for the partition: not tiered, or not asked about"
    NO_TOPIC_ID = "partition.metadata could not be read, and a name may have been used twice"
    NOT_READABLE = "the scan may not look into the folder"
    FUTURE_REPLICA = "a future replica is a copy in the making: nothing is uploaded from it"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyLocalSize:
    """What would be lost with this disk, of one replica; ``None`` only for a reason.

    A segment counts whole or not at all: whole, unless finished uploads cover every offset from its base offset up to
    the next segment's. ``partly_uploaded`` is the part of ``size`` in segments that uploads cover in part: a replica
    that rolled its segments elsewhere than the uploading leader has some, and the active segment may be one.
    """

    folder: int
    """Row in the scan's folders."""
    size: Bytes | None
    partly_uploaded: Bytes | None
    reason: OnlyLocalReason = OnlyLocalReason.KNOWN
