"""The files of a log dir as columns: the one thing a scanner remembers, and the one thing its answer is made of.

A row is **open** when its file may change without its folder changing: a folder's times move when a name in it comes,
goes or is renamed, not when a file grows. Kafka writes to few files in place, so few rows are open:

* the files of a folder's last segment (appended to; their indexes are sparse and filled through memory maps; trimmed,
  when the segment is closed, before the next one's files appear);
* what is being written under a passing name (``.cleaned``, ``.swap``, ``.tmp``, ``.part``) and whatever is not Kafka's;
* every file modified within ``FILE_SETTLE_NS``: its blocks may still change as the kernel writes it back
  (delayed allocation) or takes back what it had allocated ahead of a growing file (XFS, within five minutes).

Everything else is written once, or anew under another name and then renamed. Open rows keep their path.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from brimline.model.scan import BoolColumn, FileKind, Int32Column, Int64Column, TimestampSource, UInt8Column
from brimline.observe.scan.names import NO_OFFSET
from brimline.observe.scan.stat import StatColumns

FILE_SETTLE_NS = 600 * 1_000_000_000

SEGMENT_KINDS = 5
"""Kinds below this one are named by a base offset."""
_WRITTEN_ONCE = np.zeros(len(FileKind), dtype=np.bool_)
_WRITTEN_ONCE[
    [
        FileKind.LOG,
        FileKind.OFFSET_INDEX,
        FileKind.TIME_INDEX,
        FileKind.TXN_INDEX,
        FileKind.PRODUCER_SNAPSHOT,
        FileKind.DELETED,
        FileKind.LEADER_EPOCH_CHECKPOINT,
        FileKind.PARTITION_METADATA,
        FileKind.METADATA_SNAPSHOT,
        FileKind.QUORUM_STATE,
        FileKind.REMOTE_INDEX,
    ]
] = True

ObjectColumn: TypeAlias = npt.NDArray[Any]


@dataclass(slots=True, kw_only=True, eq=False)
class FileTable:
    """Ordered by folder, then base offset. ``folder`` holds rows of the scan's folders."""

    folder: Int32Column
    kind: UInt8Column
    base_offset: Int64Column
    size: Int64Column
    allocated: Int64Column
    modified_ns: Int64Column
    link: Int64Column
    newest_ms: Int64Column
    """A segment's newest timestamp, on the row of its ``.log``."""
    newest_source: UInt8Column
    path: ObjectColumn
    """Relative to the log dir, as bytes, on open rows; ``None`` on the others."""

    def __len__(self) -> int:
        return len(self.folder)

    @classmethod
    def of(
        cls,
        folder: npt.ArrayLike,
        kind: npt.ArrayLike,
        status: StatColumns,
        *,
        base_offset: npt.ArrayLike | None = None,
    ) -> "FileTable":
        rows = len(status.size)
        return cls(
            folder=np.broadcast_to(np.asarray(folder, dtype=np.int32), rows).copy(),
            kind=np.broadcast_to(np.asarray(kind, dtype=np.uint8), rows).copy(),
            base_offset=np.full(rows, NO_OFFSET) if base_offset is None else np.asarray(base_offset, dtype=np.int64),
            size=status.size,
            allocated=status.allocated,
            modified_ns=status.modified_ns,
            link=status.link,
            newest_ms=np.full(rows, -1, dtype=np.int64),
            newest_source=np.full(rows, TimestampSource.NOT_READ, dtype=np.uint8),
            path=np.full(rows, None, dtype=object),
        )

    @classmethod
    def together(cls, tables: Sequence["FileTable"]) -> "FileTable":
        if len(tables) == 1:
            return tables[0]
        return cls(**{name: np.concatenate([getattr(table, name) for table in tables]) for name in _COLUMNS})

    def rows(self, which: npt.NDArray[Any]) -> "FileTable":
        return FileTable(**{name: getattr(self, name)[which] for name in _COLUMNS})

    @property
    def has_path(self) -> BoolColumn:
        return np.asarray(self.path != np.array(None), dtype=np.bool_)

    def in_order(self) -> "FileTable":
        """By folder, then base offset."""
        order = order_of(self.folder, self.base_offset)
        return self if order is None else self.rows(order)

    def is_open(self, now_ns: int) -> BoolColumn:
        """Which rows may change without a change to their folder. Needs the rows of whole folders, in order."""
        is_segment = self.kind < SEGMENT_KINDS
        logs = np.flatnonzero(self.kind == FileKind.LOG)
        last = np.full(int(self.folder.max(initial=0)) + 1, np.iinfo(np.int64).max)
        last[self.folder[logs]] = self.base_offset[logs]  # in order: the last one stays
        is_last = is_segment & (self.base_offset >= last[self.folder])
        is_fresh = self.modified_ns > now_ns - FILE_SETTLE_NS
        return np.asarray(is_last | is_fresh | ~_WRITTEN_ONCE[self.kind], dtype=np.bool_)


def order_of(folder: Int32Column, base_offset: Int64Column) -> npt.NDArray[np.intp] | None:
    """Positions by folder, then base offset; ``None`` when that is how they stand."""
    span = int(base_offset.max(initial=0)) + 2
    if (int(folder.max(initial=0)) + 1) * span >= 2**62:
        return np.lexsort((base_offset, folder))
    place = folder * np.int64(span) + base_offset
    return np.argsort(place) if (place[1:] < place[:-1]).any() else None


_COLUMNS = tuple(field.name for field in fields(FileTable))


def empty_table() -> FileTable:
    nothing = np.zeros(0, dtype=np.int64)
    no = np.zeros(0, dtype=np.bool_)
    status = StatColumns(
        is_there=no, is_folder=no, is_file=no, size=nothing, allocated=nothing, modified_ns=nothing, link=nothing
    )
    return FileTable.of(0, 0, status)
