"""The scan of a log dir: every file told apart, sized as Kafka and as the disk count, cheap when little changed.

From the file table to the answer all is pure, so that a remembered table and a fresh one give the same. What is
remembered between scans is the file table (``files``) and each folder's identity. A folder whose identity
is the same has the same names in it, so only its open files are asked about again. The rule that makes a scan with
memory equal to one without:

* a folder's identity is taken **before** it is listed, and trusted only if its times were settled by then: whatever
  happens to its names afterwards moves the change time;
* a file that is not open does not change while its name stands (``files`` says why);
* a file with several names counts once; when a new one of those turns up, everything is read anew, since its other
  name may be in a folder that is remembered from when it was the only one;
* a broker that recovers after a crash may rebuild indexes in place: ``forget`` is for whoever saw it start, and
  ``forget_after`` bounds what nobody saw.

A live broker is the normal case: names go away under the look, and the log dir is listed again until none does, at most
a few times.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from brimline.model.scan import (
    FileKind,
    FolderColumns,
    FolderKind,
    FolderState,
    Int64Column,
    Int64Matrix,
    LogDirScan,
    SegmentColumns,
    UInt8Column,
)
from brimline.observe.scan.batch import Folder, read_topic_ids
from brimline.observe.scan.files import SEGMENT_KINDS, FileTable, empty_table
from brimline.observe.scan.folders import state_of
from brimline.observe.scan.look import LOG_DIR, NOTHING, look_at
from brimline.observe.scan.stat import StatBuffer
from brimline.observe.scan.timestamps import read_timestamps

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


FORGET_AFTER = timedelta(hours=1)


class LogDirScanner:
    """One log dir and its memory. Used by one thread at a time."""

    def __init__(
        self, path: Path | str, *, clock_ns: Callable[[], int] = time.time_ns, forget_after: timedelta = FORGET_AFTER
    ) -> None:
        self.path = str(path)
        self._clock_ns = clock_ns
        self._forget_after_ns = int(forget_after.total_seconds() * 1_000_000_000)
        self._buffer = StatBuffer()
        self.forget()

    def forget(self) -> None:
        """The next scan reads everything."""
        self._memory = NOTHING
        self._begun_ns = self._clock_ns()

    def scan(self, *, timestamps: bool = False, topic_ids: bool = False) -> LogDirScan:
        """One look at names and sizes. What stands inside files costs more, and is read only when it is asked for:
        the newest timestamp of each segment, and the topic id of each replica (of those whose topic may have been cut
        out of the name it is always read). Either is remembered, and then in every later answer."""
        now_ns = self._clock_ns()
        if not 0 <= now_ns - self._begun_ns < self._forget_after_ns:
            self.forget()
        finished = False
        try:
            answer = self._scan(now_ns, timestamps=timestamps, topic_ids=topic_ids)
            finished = True
        finally:
            if not finished:
                self.forget()
        return answer

    def _scan(self, now_ns: int, *, timestamps: bool, topic_ids: bool) -> LogDirScan:
        try:
            root_fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return self._nothing(now_ns, FolderState.ABSENT)
        except OSError as error:
            return self._nothing(now_ns, state_of(error))
        try:
            look = look_at(root_fd, self._memory, self._buffer, now_ns)
            if self._memory.folders and not look.memory.links <= self._memory.links:
                self.forget()
                look = look_at(root_fd, NOTHING, self._buffer, now_ns)
            folders = look.memory.folders
            read_topic_ids(root_fd, folders if topic_ids else (each for each in folders if each.what.topic_may_be_cut))
            if timestamps:
                read_timestamps(root_fd, look.memory.folders, look.memory.table)
        except OSError as error:
            return self._nothing(now_ns, state_of(error))
        finally:
            os.close(root_fd)
        self._memory = look.memory
        figures = tally(look.memory.folders, look.memory.table, look.passing)
        return LogDirScan(
            path=self.path,
            observed_at=_moment(now_ns),
            state=FolderState.READ,
            folders=figures.folders,
            segments=figures.segments,
            folders_read=look.folders_read,
            vanished=look.vanished,
        )

    def _nothing(self, now_ns: int, state: FolderState) -> LogDirScan:
        self.forget()
        figures = tally([Folder(name="", what=LOG_DIR, allocated=0, state=state)], empty_table(), empty_table())
        return LogDirScan(
            path=self.path,
            observed_at=_moment(now_ns),
            state=state,
            folders=figures.folders,
            segments=figures.segments,
            folders_read=0,
            vanished=0,
        )


def _moment(now_ns: int) -> datetime:
    return datetime.fromtimestamp(now_ns // 1_000_000_000, UTC) + timedelta(microseconds=now_ns % 1_000_000_000 // 1000)
