"""A scan beside DescribeLogDirs and beside ``du``: every difference has a name. Pure: facts in, names out.

The broker's answer and the scan are of two moments, so a live replica may differ by what happened between them; which
way tells what it was. Given a broker that rests, only preallocation and what a scan may not see are left.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from brimline.model import Bytes, LogDirDescription, TopicPartition
from brimline.model.scan import REPLICA_FOLDERS, FileKind, FolderKind, FolderState, LogDirScan


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


_WHOLE_FOLDERS = {
    Term.DELETE_FOLDERS: FolderKind.DELETE,
    Term.STRAY_FOLDERS: FolderKind.STRAY,
    Term.METADATA_LOG: FolderKind.METADATA_LOG,
    Term.REMOTE_INDEX_CACHE: FolderKind.REMOTE_INDEX_CACHE,
}
_TERM_OF_FILE = {
    FileKind.LOG: Term.LOG_BLOCKS,
    FileKind.OFFSET_INDEX: Term.INDEXES,
    FileKind.TIME_INDEX: Term.INDEXES,
    FileKind.TXN_INDEX: Term.INDEXES,
    FileKind.PRODUCER_SNAPSHOT: Term.PRODUCER_SNAPSHOTS,
    FileKind.DELETED: Term.DELETED_SEGMENTS,
    FileKind.CLEANED: Term.COMPACTION,
    FileKind.SWAP: Term.COMPACTION,
    FileKind.FOLDER: Term.FOLDERS,
    FileKind.BALLAST: Term.BALLAST,
    FileKind.FOREIGN: Term.FOREIGN,
}


def reconcile(scan: LogDirScan, described: LogDirDescription, described_at: datetime) -> Reconciliation:
    """``described`` is the broker's answer about the same log dir, under whatever path the broker knows it by."""
    replicas = tuple(_replicas(scan, described, is_scan_later=described_at <= scan.observed_at))
    return Reconciliation(
        path=scan.path,
        replicas=replicas,
        terms=tuple(_terms(scan, replicas).items()),
        allocated_bytes=scan.allocated_bytes,
    )


def _replicas(scan: LogDirScan, described: LogDirDescription, *, is_scan_later: bool) -> list[ReplicaReconciliation]:
    sizes = {(partition, info.is_future): info.size for partition, info in described.replicas.each()}
    found = []
    for row in scan.folders.rows_of(*REPLICA_FOLDERS):
        partition = scan.folders.topic_partition(row)
        assert partition is not None  # a replica's folder has a replica's name
        is_future = scan.folders.kind[row] == FolderKind.FUTURE
        size = sizes.pop((partition, is_future), None)
        difference = _difference(scan, row, size, is_offline=described.error is not None, is_scan_later=is_scan_later)
        is_read = scan.folders.state[row] == FolderState.READ
        found.append(
            ReplicaReconciliation(
                partition=partition,
                is_future=is_future,
                described=size,
                scanned=Bytes(int(scan.folders.log_bytes[row])) if is_read else None,
                difference=difference,
            )
        )
    return found + [
        _not_on_disk(partition, size, is_future=is_future) for (partition, is_future), size in sizes.items()
    ]


def _not_on_disk(partition: TopicPartition, size: Bytes, *, is_future: bool) -> ReplicaReconciliation:
    return ReplicaReconciliation(
        partition=partition, is_future=is_future, described=size, scanned=None, difference=Difference.NOT_ON_DISK
    )


def _difference(
    scan: LogDirScan, row: int, described: Bytes | None, *, is_offline: bool, is_scan_later: bool
) -> Difference:
    state = scan.folders.state[row]
    if state == FolderState.SYMBOLIC_LINK:
        return Difference.SYMBOLIC_LINK
    if state != FolderState.READ:
        return Difference.NOT_READABLE
    if described is None:
        return Difference.LOG_DIR_OFFLINE if is_offline else Difference.NOT_DESCRIBED
    more_on_disk = int(scan.folders.log_bytes[row]) - described
    if more_on_disk == 0:
        return Difference.NONE
    segments = slice(int(scan.folders.segments_begin[row]), int(scan.folders.segments_begin[row + 1]))
    if more_on_disk > 0 and scan.segments.is_preallocated[segments].any():
        return Difference.PREALLOCATED
    return Difference.APPENDED if (more_on_disk > 0) == is_scan_later else Difference.SEGMENTS_DELETED


def _terms(scan: LogDirScan, replicas: tuple[ReplicaReconciliation, ...]) -> dict[Term, int]:
    terms = dict.fromkeys(Term, 0)
    terms[Term.DESCRIBED] = sum(replica.described or 0 for replica in replicas)
    on_disk = sum(scan.size_of(folder, FileKind.LOG) for folder in REPLICA_FOLDERS)
    terms[Term.DIFFERENCES] = on_disk - terms[Term.DESCRIBED]
    terms[Term.LOG_BLOCKS] = -on_disk
    for folder in (FolderKind.LOG_DIR, *REPLICA_FOLDERS):
        for file in FileKind:
            terms[_TERM_OF_FILE.get(file, Term.CHECKPOINTS)] += scan.allocated_of(folder, file)
    for term, folder in _WHOLE_FOLDERS.items():
        terms[term] = scan.allocated_of(folder)
    terms[Term.FOREIGN] += scan.allocated_of(FolderKind.FOREIGN)
    return terms
