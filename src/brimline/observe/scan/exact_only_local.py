"""Exact only-local sizes, on leaders and followers alike, from a scan, the uploads and each log's leader epochs.

The broker says "local bytes at or above the highest uploaded offset"; from the disk it can be said exactly: a local
segment is safe when the **union** of the finished uploads covers every offset from its base offset up to the next
segment's base offset. The union, since a follower rolls its segments where it likes, and a new leader uploads from its
own. Where the active segment ends is in no file name, and its own broker uploads it only once it is closed: not safe.

An upload in a state other than finished is not counted: what is being copied is not safe yet, and what is being deleted
is not safe any more. Nor is one of another lineage (``observe.remote.only_local``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from uuid import UUID

from brimline.model import Bytes
from brimline.model.scan import REPLICA_FOLDERS, FolderKind, FolderState, LogDirScan
from brimline.observe.remote.only_local import coverage, covered_ranges, read_epoch_ends
from brimline.wire.remote_log_metadata import RemoteSegment

PartitionKey = tuple[UUID, int]


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


def only_local_sizes(
    scan: LogDirScan, uploads: Mapping[PartitionKey, Iterable[RemoteSegment]]
) -> tuple[OnlyLocalSize, ...]:
    """One for each current or future replica. ``scan`` was made with ``topic_ids``; a tiered partition without
    uploads is in ``uploads`` with none. The uploads are to be read before the scan is made: an upload that finished in
    between then counts as not yet safe, and one of a segment that has gone locally does no harm."""
    return tuple(_of_replica(scan, row, uploads) for row in scan.folders.rows_of(*REPLICA_FOLDERS))


def _of_replica(scan: LogDirScan, row: int, uploads: Mapping[PartitionKey, Iterable[RemoteSegment]]) -> OnlyLocalSize:
    reason = _reason(scan, row, uploads)
    if reason is not OnlyLocalReason.KNOWN:
        return OnlyLocalSize(folder=row, size=None, partly_uploaded=None, reason=reason)
    topic_id = scan.folders.topic_id(row)
    assert topic_id is not None
    segments = slice(int(scan.folders.segments_begin[row]), int(scan.folders.segments_begin[row + 1]))
    try:
        epoch_ends = read_epoch_ends(Path(scan.path, scan.folders.names[row]))
    except OSError:
        # It has left, or may not be read: then nothing proves that an upload is of this log.
        return OnlyLocalSize(folder=row, size=None, partly_uploaded=None, reason=OnlyLocalReason.NOT_READABLE)
    begins, ends = covered_ranges(uploads[topic_id, int(scan.folders.partition[row])], epoch_ends)
    is_safe, is_touched = coverage(scan.segments.base_offset[segments], begins, ends)
    sizes = scan.segments.log_bytes[segments]
    return OnlyLocalSize(
        folder=row,
        size=Bytes(int(sizes[~is_safe].sum())),
        partly_uploaded=Bytes(int(sizes[~is_safe & is_touched].sum())),
    )


def _reason(scan: LogDirScan, row: int, uploads: Mapping[PartitionKey, Iterable[RemoteSegment]]) -> OnlyLocalReason:
    if scan.folders.kind[row] == FolderKind.FUTURE:
        return OnlyLocalReason.FUTURE_REPLICA
    if scan.folders.state[row] != FolderState.READ:
        return OnlyLocalReason.NOT_READABLE
    topic_id = scan.folders.topic_id(row)
    if topic_id is None:
        return OnlyLocalReason.NO_TOPIC_ID
    if (topic_id, int(scan.folders.partition[row])) not in uploads:
        return OnlyLocalReason.NOT_GIVEN
    return OnlyLocalReason.KNOWN
