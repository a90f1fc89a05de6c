"""From the file table to the answer. Pure, so that a remembered table and a fresh one give the same answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brimline.model.scan import (
    FileKind,
    FolderColumns,
    FolderKind,
    Int64Column,
    Int64Matrix,
    SegmentColumns,
    UInt8Column,
)
from brimline.observe.scan_batch import Folder
from brimline.observe.scan_files import SEGMENT_KINDS, FileTable, empty_table

_WRITTEN_TO = (FolderKind.CURRENT, FolderKind.FUTURE, FolderKind.METADATA_LOG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    folders: FolderColumns
    segments: SegmentColumns


def tally(folders: Sequence[Folder], table: FileTable, passing: FileTable) -> Tally:
    """``table`` is in order; ``passing`` has no segments."""
    if passing.link.any():
        table, passing = FileTable.together([table, passing]), empty_table()
    kinds = np.array([folder.what.kind for folder in folders], dtype=np.uint8)
    allocated = _once_per_file(table)
    segments = _segments(table, allocated, kinds)
    by_kind = _sums(table, allocated, len(folders))
    for sums, more in zip(by_kind, _sums(passing, passing.allocated, len(folders)), strict=True):
        sums += more
    by_kind[-1][:, FileKind.FOLDER] += np.array([folder.allocated for folder in folders], dtype=np.int64)
    columns = FolderColumns(
        names=tuple(folder.name for folder in folders),
        kind=kinds,
        state=np.array([folder.state for folder in folders], dtype=np.uint8),
        topics=tuple(folder.what.topic for folder in folders),
        partition=np.array([folder.what.partition for folder in folders], dtype=np.int32),
        topic_ids=tuple(folder.topic_id for folder in folders),
        topic_may_be_cut=np.array([folder.what.topic_may_be_cut for folder in folders], dtype=np.bool_),
        files=by_kind[0],
        size=by_kind[1],
        allocated=by_kind[2],
        segments_begin=np.searchsorted(segments.folder, np.arange(len(folders) + 1)).astype(np.int64),
    )
    return Tally(folders=columns, segments=segments)


def _once_per_file(table: FileTable) -> Int64Column:
    """Allocated bytes, where a file with several names counts under the first of them only, as in ``du``."""
    linked = np.flatnonzero(table.link)
    if not len(linked):
        return table.allocated
    linked = linked[np.lexsort((table.base_offset[linked], table.kind[linked], table.folder[linked]))]
    _, first = np.unique(table.link[linked], return_index=True)
    allocated = table.allocated.copy()
    allocated[np.delete(linked, first)] = 0
    return allocated


def _sums(table: FileTable, allocated: Int64Column, folders: int) -> tuple[Int64Matrix, Int64Matrix, Int64Matrix]:
    """Files, size and allocated bytes by folder and kind. Sums are floats on the way: exact up to 8 PiB a cell."""
    shape, cell = (folders, len(FileKind)), table.folder.astype(np.int64) * len(FileKind) + table.kind
    cells = folders * len(FileKind)
    return (
        np.bincount(cell, minlength=cells).reshape(shape).astype(np.int64),
        np.bincount(cell, weights=table.size, minlength=cells).astype(np.int64).reshape(shape),
        np.bincount(cell, weights=allocated, minlength=cells).astype(np.int64).reshape(shape),
    )


def _segments(table: FileTable, allocated: Int64Column, folder_kinds: UInt8Column) -> SegmentColumns:
    named = np.flatnonzero(table.kind < SEGMENT_KINDS)
    folder, base_offset = table.folder[named], table.base_offset[named]
    starts = np.ones(len(named), dtype=np.bool_)
    starts[1:] = (folder[1:] != folder[:-1]) | (base_offset[1:] != base_offset[:-1])
    begins = np.flatnonzero(starts)
    together = np.add.reduceat(allocated[named], begins) if len(begins) else np.zeros(0, dtype=np.int64)
    is_log = table.kind[named] == FileKind.LOG
    logs = named[is_log]
    # An index or a snapshot without a log is no segment: it stays in the sums of its folder.
    group = (np.cumsum(starts) - 1)[is_log]
    log_folder = table.folder[logs]
    is_last = np.ones(len(logs), dtype=np.bool_)
    is_last[:-1] = log_folder[1:] != log_folder[:-1]
    return SegmentColumns(
        folder=log_folder,
        base_offset=table.base_offset[logs],
        log_bytes=table.size[logs],
        log_allocated_bytes=allocated[logs],
        allocated_bytes=together[group],
        modified_ns=table.modified_ns[logs],
        newest_timestamp_ms=table.newest_ms[logs],
        timestamp_source=table.newest_source[logs],
        is_active=is_last & np.isin(folder_kinds[log_folder], _WRITTEN_TO),
    )
