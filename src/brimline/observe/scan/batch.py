"""From the names of some folders and the status of their files to rows of the file table, many folders at a time.

``partition.metadata``: the topic id of a replica's folder, the one thing in it that no name can mislead about.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from brimline.model.scan import (
    PARTITION_FOLDERS,
    SEGMENT_FOLDERS,
    FileKind,
    FolderKind,
    FolderState,
    Int32Column,
    Int64Column,
    UInt8Column,
)
from brimline.observe.scan.files import FileTable, empty_table, order_of
from brimline.observe.scan.names import NO_OFFSET, NOT_A_SEGMENT_FILE, FolderName, file_kind, read_segment_names
from brimline.observe.scan.stat import Identity, StatColumns

_file_kind = lru_cache(maxsize=4096)(file_kind)
_HAS_SEGMENTS = np.isin(np.arange(len(FolderKind)), SEGMENT_FOLDERS)


@dataclass(slots=True, kw_only=True, eq=False)
class Folder:
    """A folder of the log dir. ``identity`` is ``None`` when it must be read again next time."""

    name: str
    what: FolderName
    allocated: int
    state: FolderState = FolderState.READ
    identity: Identity | None = None
    topic_id: str | None = None
    nested: tuple[str, ...] = ()
    """Folders in it, which are never Kafka's; every scan walks them anew."""


class FolderBatch:
    """The names of some folders, row for row with the status that was asked for."""

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self._rows: list[int] = []
        self._counts: list[int] = []

    def add(self, row: int, names: Sequence[bytes]) -> None:
        """The names of the folder that has this row."""
        self.names += names
        self._rows.append(row)
        self._counts.append(len(names))

    def each(self) -> Iterator[tuple[int, list[bytes]]]:
        begin = 0
        for row, count in zip(self._rows, self._counts, strict=True):
            yield row, self.names[begin : begin + count]
            begin += count

    def table(self, status: StatColumns, folders: Sequence[Folder], now_ns: int) -> FileTable:
        if not self.names:
            return empty_table()
        rows = np.repeat(np.array(self._rows, dtype=np.int32), self._counts)
        kinds, base_offsets = self._kinds_and_base_offsets(status, rows, folders)
        order = order_of(rows, base_offsets)
        if order is None:
            order = np.arange(len(rows))
        table = FileTable.of(rows[order], kinds[order], status.rows(order), base_offset=base_offsets[order])
        open_rows = np.flatnonzero(table.is_open(now_ns))
        at, folder_rows = order[open_rows].tolist(), table.folder[open_rows].tolist()
        begin, begin_of = b"", -1
        for open_row, name_at, folder_row in zip(open_rows.tolist(), at, folder_rows, strict=True):
            if folder_row != begin_of:
                begin, begin_of = os.fsencode(folders[folder_row].name) + b"/", folder_row
            table.path[open_row] = begin + self.names[name_at]
        return table

    def _kinds_and_base_offsets(
        self, status: StatColumns, rows: Int32Column, folders: Sequence[Folder]
    ) -> tuple[UInt8Column, Int64Column]:
        kinds, base_offsets = read_segment_names(self.names)
        has_segments = np.repeat(_HAS_SEGMENTS[[folders[row].what.kind for row in self._rows]], self._counts)
        is_other = (kinds == NOT_A_SEGMENT_FILE) | ~has_segments | ~status.is_file
        base_offsets[is_other] = NO_OFFSET
        kinds[is_other] = FileKind.FOREIGN
        for at in np.flatnonzero(is_other & status.is_file).tolist():
            kinds[at] = _file_kind(folders[int(rows[at])].what.kind, os.fsdecode(self.names[at]))
        return kinds, base_offsets


_LONGEST = 256
_TOPIC_ID = re.compile(rb"^topic_id: ([A-Za-z0-9_-]{22})$", re.MULTILINE)
_NO_ID = "A" * 22


def read_topic_ids(root_fd: int, folders: Iterable[Folder]) -> None:
    """Fills in what is not known yet: the file is written once, and a folder that changed is a new ``Folder``."""
    for folder in folders:
        if folder.topic_id is None and folder.what.kind in PARTITION_FOLDERS and folder.state is FolderState.READ:
            folder.topic_id = read_topic_id(root_fd, f"{folder.name}/partition.metadata")


def read_topic_id(root_fd: int, path: str) -> str | None:
    """In Kafka's base64, as the file has it; ``None`` when there is none yet, or it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=root_fd)
    except OSError:
        return None
    try:
        found = _TOPIC_ID.search(os.read(fd, _LONGEST))
    except OSError:
        return None
    finally:
        os.close(fd)
    topic_id = found[1].decode() if found else _NO_ID
    return None if topic_id == _NO_ID else topic_id
