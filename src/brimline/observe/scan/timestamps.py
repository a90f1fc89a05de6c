"""The newest timestamp of every segment, as the broker would say it: the last entry of its time index, and where
that has none, the time of the log's last write.

Reading them is a step of its own: it costs three system calls a segment, as much again as the scan itself. A closed
segment's answer never changes, so it is read once; open ones are read by every scan that asks.

An entry is a timestamp (int64) and a relative offset (int32), big-endian, and timestamps only grow. A closed
segment's file ends with its last entry. An active one is preallocated with zeros, so its last entry is where the
zeros begin; it lags behind the log by up to ``index.interval.bytes``.
"""

import os
import struct
from collections.abc import Sequence

import numpy as np

from brimline.model.scan import FileKind, TimestampSource
from brimline.observe.scan.batch import Folder
from brimline.observe.scan.files import FileTable

ENTRY = struct.Struct(">qi")
_NOTHING = bytes(ENTRY.size)
_FIRST_LOOK = ENTRY.size * 341  # what fits into a page


def read_timestamps(root_fd: int, folders: Sequence[Folder], table: FileTable) -> None:
    """Fills in what the table does not know for good yet. ``table`` is in order."""
    logs = np.flatnonzero(table.kind == FileKind.LOG)
    folder = table.folder[logs]
    is_last = np.ones(len(logs), dtype=np.bool_)
    is_last[:-1] = folder[1:] != folder[:-1]
    is_open = table.has_path[logs]
    due = is_last | is_open | (table.newest_source[logs] == TimestampSource.NOT_READ)
    rows = logs[due]
    for row, folder_row, base_offset, last in zip(
        rows.tolist(), folder[due].tolist(), table.base_offset[rows].tolist(), is_last[due].tolist(), strict=True
    ):
        newest = _newest(root_fd, f"{folders[folder_row].name}/{base_offset:020d}")
        if newest is None:
            table.newest_ms[row] = table.modified_ns[row] // 1_000_000
            table.newest_source[row] = TimestampSource.MODIFICATION_TIME
        else:
            table.newest_ms[row] = newest
            table.newest_source[row] = TimestampSource.ACTIVE_TIME_INDEX if last else TimestampSource.TIME_INDEX


def _newest(root_fd: int, segment: str) -> int | None:
    """Milliseconds; ``None`` without an entry in the time index.

    The broker may delete the segment while we look. Its last write would then make it look young, and with it all of
    its log: it is as old as its renamed index says, and as old as can be once that is gone too.
    """
    for suffix in (".timeindex", ".timeindex.deleted"):
        try:
            return newest_entry(root_fd, segment + suffix)
        except FileNotFoundError:
            continue
    try:
        os.stat(f"{segment}.log", dir_fd=root_fd)
    except FileNotFoundError:
        return 0
    except OSError:
        pass
    return None


def newest_entry(root_fd: int, path: str) -> int | None:
    """Milliseconds; ``None`` without an entry, and when the file may not be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=root_fd)
    except FileNotFoundError:
        raise
    except OSError:
        return None
    try:
        return _last_entry(fd)
    except OSError:
        return None
    finally:
        os.close(fd)


def _last_entry(fd: int) -> int | None:
    # Closed segments have few entries: the first page is most often the whole file.
    page = os.pread(fd, _FIRST_LOOK, 0)
    if len(page) < _FIRST_LOOK:
        return _last_in(page)
    entries = os.fstat(fd).st_size // ENTRY.size
    if entries == 0 or page[-ENTRY.size :] == _NOTHING:
        return _last_in(page)
    last = os.pread(fd, ENTRY.size, (entries - 1) * ENTRY.size)
    if last != _NOTHING and len(last) == ENTRY.size:
        return _timestamp(last)
    written, unwritten = _FIRST_LOOK // ENTRY.size - 1, entries - 1
    newest = page[-ENTRY.size :]
    while unwritten - written > 1:
        middle = (written + unwritten) // 2
        entry = os.pread(fd, ENTRY.size, middle * ENTRY.size)
        if len(entry) == ENTRY.size and entry != _NOTHING:
            written, newest = middle, entry
        else:
            unwritten = middle
    return _timestamp(newest)


def _last_in(page: bytes) -> int | None:
    whole = page[: len(page) - len(page) % ENTRY.size]
    used = len(whole.rstrip(b"\0"))
    entries = -(-used // ENTRY.size)
    if entries:
        return _timestamp(whole[(entries - 1) * ENTRY.size : entries * ENTRY.size])
    # One entry of zeros is the first record at the epoch; more of them are room for entries to come.
    return 0 if len(whole) == ENTRY.size else None


def _timestamp(entry: bytes) -> int | None:
    timestamp: int = ENTRY.unpack(entry)[0]
    return timestamp if timestamp >= 0 else None
