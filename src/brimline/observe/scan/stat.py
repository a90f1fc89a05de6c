"""Many files' status at once, into columns.

``os.stat`` builds an object of twenty numbers per file, of which a scan needs six; over 160,000 files that costs more
than the kernel's own work. So the kernel is let write into one buffer, record after record (``statx(2)``, whose
record is the same on every architecture), and numpy reads the buffer as columns. The GIL is released for every call:
a disk that hangs does not hang the process. Where the C library has no ``statx``, ``os.stat`` fills the same buffer.
"""

import ctypes
import os
import stat
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from brimline.model.scan import BoolColumn, Int64Column

FOLDER_SETTLE_NS = 2_000_000_000
"""Two changes within one tick of the file system's clock leave one time. Ticks are milliseconds on the file systems
that Kafka is run on; two seconds are the coarsest that any Linux file system has."""

_RECORD_BYTES = 256
_RECORD = np.dtype(
    {
        "names": [
            "mask",
            "nlink",
            "mode",
            "ino",
            "size",
            "blocks",
            "ctime_s",
            "ctime_ns",
            "mtime_s",
            "mtime_ns",
            "dev",
        ],
        "formats": ["u4", "u4", "u2", "i8", "i8", "i8", "i8", "u4", "i8", "u4", "i8"],
        "offsets": [0, 16, 28, 32, 40, 48, 96, 104, 112, 120, 136],
        "itemsize": _RECORD_BYTES,
    }
)
_BASIC_STATS = 0x7FF
_FLAGS = 0x100 | 0x800  # AT_SYMLINK_NOFOLLOW, AT_NO_AUTOMOUNT
_FIRST_CAPACITY = 4096
_BLOCK = 512
_SECOND = 1_000_000_000
# Odd, so that equal inode numbers of two file systems under one log dir do not meet.
_DEVICE_MIX = np.int64(0x5851F42D4C957F2D)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StatColumns:
    """One row per name. Where ``is_there`` is false the name was gone or could not be asked about."""

    is_there: BoolColumn
    is_folder: BoolColumn
    is_file: BoolColumn
    size: Int64Column
    allocated: Int64Column
    modified_ns: Int64Column
    link: Int64Column
    """Which file it is, for files with several names; 0 for the usual file with one."""

    def rows(self, which: slice | npt.NDArray[Any]) -> "StatColumns":
        return StatColumns(**{field.name: getattr(self, field.name)[which] for field in fields(self)})


class Identity(NamedTuple):
    """A folder with the same identity has the same names in it, if ``is_settled`` when they were listed.

    The change time is what counts: unlike the modification time nobody can set it back.
    """

    device: int
    inode: int
    changed_ns: int
    modified_ns: int

    def is_settled(self, asked_at_ns: int) -> bool:
        """Any change after the asking will show in the times. A time in the future is never settled."""
        return self.changed_ns <= asked_at_ns - FOLDER_SETTLE_NS


class StatBuffer:
    """Grows to the largest batch it was used for. One thread at a time."""

    def __init__(self) -> None:
        self._statx: Any = getattr(ctypes.CDLL(None), "statx", None)
        if self._statx is not None:
            # The record's mask tells success; an unread result is one conversion less per file.
            self._statx.restype = None
        self._filled = 0
        self._records: npt.NDArray[Any] = np.zeros(0, dtype=_RECORD)
        self._resize(_FIRST_CAPACITY)

    def __len__(self) -> int:
        return self._filled

    def add(self, folder_fd: int, names: Sequence[bytes]) -> None:
        """Names relative to the open folder; symbolic links are not followed."""
        begin, end = self._filled, self._filled + len(names)
        if end > len(self._places):
            self._resize(max(end, 2 * len(self._places)))
        if self._statx is None:
            for row, name in enumerate(names, begin):
                self._fill(row, folder_fd, name)
        else:
            calls = map(
                self._statx, repeat(folder_fd), names, repeat(_FLAGS), repeat(_BASIC_STATS), self._places[begin:end]
            )
            deque(calls, maxlen=0)
        self._filled = end

    def identities(self) -> list[Identity]:
        """Of all rows since the last ``take``."""
        records = self._records[: self._filled]
        columns = (
            records["dev"],
            records["ino"],
            records["ctime_s"] * _SECOND + records["ctime_ns"],
            records["mtime_s"] * _SECOND + records["mtime_ns"],
        )
        return [Identity(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    def take(self) -> StatColumns:
        """All rows since the last time."""
        records, self._filled = self._records[: self._filled], 0
        is_there = records["mask"] != 0
        file_type = np.where(is_there, records["mode"] & 0o170000, 0)
        is_folder = file_type == stat.S_IFDIR
        several = is_there & (records["nlink"] > 1) & ~is_folder
        link = np.zeros(len(records), dtype=np.int64)
        if several.any():
            link[several] = records["ino"][several] ^ (records["dev"][several] * _DEVICE_MIX)
        columns = StatColumns(
            is_there=is_there,
            is_folder=is_folder,
            is_file=file_type == stat.S_IFREG,
            size=records["size"].copy(),
            allocated=records["blocks"] * _BLOCK,
            modified_ns=records["mtime_s"] * _SECOND + records["mtime_ns"],
            link=link,
        )
        records["mask"] = 0
        return columns

    def _resize(self, capacity: int) -> None:
        buffer = ctypes.create_string_buffer(capacity * _RECORD_BYTES)
        records: npt.NDArray[Any] = np.frombuffer(memoryview(buffer), dtype=_RECORD)
        if self._filled:
            records[: self._filled] = self._records[: self._filled]
        self._records = records
        self._places = [ctypes.byref(buffer, row * _RECORD_BYTES) for row in range(capacity)]

    def _fill(self, row: int, folder_fd: int, name: bytes) -> None:
        try:
            status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        except OSError:
            return  # the mask stays 0, as it does when statx fails
        device = (os.minor(status.st_dev) << 32) | os.major(status.st_dev)
        self._records[row] = (
            _BASIC_STATS,
            status.st_nlink,
            status.st_mode,
            status.st_ino,
            status.st_size,
            status.st_blocks,
            *divmod(status.st_ctime_ns, _SECOND),
            *divmod(status.st_mtime_ns, _SECOND),
            device,
        )
