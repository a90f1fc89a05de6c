"""What lies in a log dir, as a scan of its files finds it.

Two sizes are kept apart everywhere. **Size** is a file's length (``st_size``): a partition's size is, for Kafka, the
lengths of its live ``.log`` files. **Allocated** is what the file takes of the disk (``st_blocks`` of 512 bytes): an
active segment's index is 10 MiB long and takes a few KiB, and a log of one byte takes a block.

Folders and segments are columns, since a broker may hold 100,000 folders and more segments than that. Row 0 of the
folders is the log dir itself; the others follow in the order of their names, and so do their segments.
In a column -1 stands for "unknown".
"""

from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from brimline.model.partitions import TopicPartition
from brimline.model.quantities import Bytes

Int64Column: TypeAlias = npt.NDArray[np.int64]
Int32Column: TypeAlias = npt.NDArray[np.int32]
UInt8Column: TypeAlias = npt.NDArray[np.uint8]
BoolColumn: TypeAlias = npt.NDArray[np.bool_]
Int64Matrix: TypeAlias = npt.NDArray[np.int64]


class FolderKind(IntEnum):
    """What a folder of a log dir is, by Kafka's naming rules."""

    LOG_DIR = 0
    """The log dir itself, with the files at its root."""
    CURRENT = 1
    FUTURE = 2
    """The target of AlterReplicaLogDirs, a copy in the making."""
    DELETE = 3
    """A deleted replica waiting for its delay. DescribeLogDirs does not know it; the disk does."""
    STRAY = 4
    """A replica that the cluster assigns elsewhere. The broker neither reports nor removes it."""
    METADATA_LOG = 5
    REMOTE_INDEX_CACHE = 6
    FOREIGN = 7
    """Not Kafka's: a broker does not start over it."""


PARTITION_FOLDERS = (FolderKind.CURRENT, FolderKind.FUTURE, FolderKind.DELETE, FolderKind.STRAY)
REPLICA_FOLDERS = (FolderKind.CURRENT, FolderKind.FUTURE)
SEGMENT_FOLDERS = (*PARTITION_FOLDERS, FolderKind.METADATA_LOG)


class FileKind(IntEnum):
    """What a file is. The first five are named by a segment's base offset and go when the segment goes."""

    LOG = 0
    OFFSET_INDEX = 1
    TIME_INDEX = 2
    TXN_INDEX = 3
    PRODUCER_SNAPSHOT = 4
    DELETED = 5
    """Renamed to ``.deleted``: no longer the log's, still the disk's until ``file.delete.delay.ms`` is over."""
    CLEANED = 6
    """Output of a compaction that is being written."""
    SWAP = 7
    """Output of a compaction that is about to replace its segments."""
    TEMPORARY = 8
    """``.tmp`` and ``.part``: being written, renamed when whole."""
    LEADER_EPOCH_CHECKPOINT = 9
    PARTITION_METADATA = 10
    METADATA_SNAPSHOT = 11
    QUORUM_STATE = 12
    REMOTE_INDEX = 13
    META_PROPERTIES = 14
    LOCK = 15
    CLEAN_SHUTDOWN = 16
    OFFSET_CHECKPOINT = 17
    BOOTSTRAP_CHECKPOINT = 18
    FOREIGN = 19
    FOLDER = 20
    """The blocks of the folder itself: the list of its names."""
    BALLAST = 21
    """Brimline's own: given back when the volume runs out."""


class FolderState(IntEnum):
    """Whether a folder could be looked into. Its own blocks are counted in every state but the first."""

    ABSENT = 0
    READ = 1
    PERMISSION_DENIED = 2
    UNREADABLE = 3
    """The file system failed: the disk behind it may be dying."""
    SYMBOLIC_LINK = 4
    """Not followed, as by ``du``; Kafka follows it."""


class TimestampSource(IntEnum):
    """Where a segment's newest timestamp is from."""

    NOT_READ = 0
    TIME_INDEX = 1
    """The last entry of a closed segment: the broker's own largest timestamp."""
    ACTIVE_TIME_INDEX = 2
    """The active segment's last entry so far: it lags by up to ``index.interval.bytes`` of log."""
    MODIFICATION_TIME = 3
    """No entry in the time index: the broker, too, takes the time of the last write."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FolderColumns:
    """The folders of one log dir, a row each; the matrices have a column for every ``FileKind``."""

    names: tuple[str, ...]
    kind: UInt8Column
    state: UInt8Column
    topics: tuple[str | None, ...]
    partition: Int32Column
    topic_ids: tuple[str | None, ...]
    """From ``partition.metadata``, in Kafka's base64; ``topic_id`` gives a UUID."""
    topic_may_be_cut: BoolColumn
    """The name has Kafka's greatest length: its topic may have been cut to fit, only the topic id is sure."""
    files: Int64Matrix
    size: Int64Matrix
    allocated: Int64Matrix
    segments_begin: Int64Column
    """Row r owns the segments from ``segments_begin[r]`` up to, not including, ``segments_begin[r + 1]``."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def log_bytes(self) -> Int64Column:
        """The size as Kafka counts it: live ``.log`` files."""
        return self.size[:, FileKind.LOG]

    @property
    def allocated_bytes(self) -> Int64Column:
        """The size as the disk counts it: everything in the folder, and the folder."""
        return np.asarray(self.allocated.sum(axis=1), dtype=np.int64)

    def topic_partition(self, row: int) -> TopicPartition | None:
        topic = self.topics[row]
        return None if topic is None else TopicPartition(topic, int(self.partition[row]))

    def topic_id(self, row: int) -> UUID | None:
        text = self.topic_ids[row]
        return None if text is None else UUID(bytes=urlsafe_b64decode(text + "=="))

    def rows_of(self, *kinds: FolderKind) -> Iterator[int]:
        yield from np.flatnonzero(np.isin(self.kind, kinds)).tolist()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentColumns:
    """The live segments, ordered by folder and base offset."""

    folder: Int32Column
    """Row in ``FolderColumns``."""
    base_offset: Int64Column
    log_bytes: Int64Column
    log_allocated_bytes: Int64Column
    allocated_bytes: Int64Column
    """What deleting the segment gives back: its log, its indexes and the producer snapshot at its base offset."""
    modified_ns: Int64Column
    newest_timestamp_ms: Int64Column
    timestamp_source: UInt8Column
    is_active: BoolColumn

    def __len__(self) -> int:
        return len(self.base_offset)

    @property
    def is_preallocated(self) -> BoolColumn:
        """Active, and longer than what was written to it: ``log.preallocate``. Kafka counts less than ``log_bytes``.

        A file system that compresses looks the same from here.
        """
        return np.asarray(self.is_active & (self.log_allocated_bytes < self.log_bytes), dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogDirScan:
    """One look at one log dir. Everything in it was true at some moment between the look's begin and end."""

    path: str
    observed_at: datetime
    """When the look began."""
    state: FolderState
    folders: FolderColumns
    segments: SegmentColumns
    folders_read: int
    """How many folders had to be read; the others were remembered."""
    vanished: int
    """Names that were listed and then gone, and of which no later look found what became of them."""

    @property
    def allocated_bytes(self) -> Bytes:
        """To the byte what ``du -s -B1`` says: the sum over all folders and all kinds of file."""
        return Bytes(int(self.folders.allocated.sum()))

    def size_of(self, folder: FolderKind, *files: FileKind) -> Bytes:
        return Bytes(int(self.folders.size[np.ix_(self.folders.kind == folder, files or tuple(FileKind))].sum()))

    def allocated_of(self, folder: FolderKind, *files: FileKind) -> Bytes:
        return Bytes(int(self.folders.allocated[np.ix_(self.folders.kind == folder, files or tuple(FileKind))].sum()))
