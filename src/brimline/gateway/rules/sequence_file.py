"""The file under the memory of refused sequences: numbered slots in a shared mapping, each with one record or none.

**Invariant.** What was stored is the kernel's and no longer this process's: a kill -9 the instant after loses nothing.
A record that a kill cut short fails its checksum and is none. Reading never fails: a file that cannot be used (damaged,
foreign, of another layout) is laid out anew, and where there can be no file the slots are in plain memory; either is a
warning.

The file's blocks are allocated before it is mapped, because a store into a hole on a full disk is a deadly signal, and
full disks are what this program is for. It is read by ``read`` and not through the mapping for the same reason: a block
that the disk cannot deliver is then an error and not a signal.

The header is written last, so a file whose making was cut short has none.
"""

import fcntl
import mmap
import os
import struct
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from brimline.decide.sequences import RefusedSequence
from brimline.model import BadInput
from brimline.service.durable_files import open_state

_MAGIC, _VERSION = b"BRIMSEQS", 2
_HEADER = struct.Struct("<8sIII44x")
"""Magic, version, bytes of a record, slots."""
_FACTS = struct.Struct("<Q16sqii")
"""Serial number, key, time of the refusal, sequence, epoch. Serial numbers begin at 1: 0 is an empty slot."""
_CHECKSUM = struct.Struct("<I4x")
_RECORD_BYTES = _FACTS.size + _CHECKSUM.size
_NO_SERIAL = bytes(8)


class SequenceRecord(NamedTuple):
    """``serial`` grows with every store, so it tells which of two records is the later one."""

    serial: int
    slot: int
    key: bytes
    entry: RefusedSequence


class SequenceFile:
    """``records`` are those that were found. A file that another process has open is ``BadInput``."""

    def __init__(self, path: Path, slots: int) -> None:
        self.warnings: list[str] = []
        self.records: list[SequenceRecord] = []
        self._path = path
        self._slots = slots
        self._fd: int | None = None
        try:
            self._map = self._open()
        except OSError as error:
            self.close_file()
            self.warnings.append(
                f"{path} cannot be used ({error.strerror}): refused sequences are forgotten when the gateway ends"
            )
            self._map = mmap.mmap(-1, self._size)
            for record in self.records:
                self.store(record)

    def store(self, record: SequenceRecord) -> None:
        """Into a slot that is empty."""
        entry = record.entry
        facts = _FACTS.pack(record.serial, record.key, entry.refused_at, entry.sequence, entry.epoch)
        begin = _begin_of(record.slot)
        self._map[begin : begin + _RECORD_BYTES] = facts + _CHECKSUM.pack(crc32(facts))

    def clear(self, slot: int) -> None:
        begin = _begin_of(slot)
        self._map[begin : begin + len(_NO_SERIAL)] = _NO_SERIAL

    def close(self) -> None:
        self._map.close()
        self.close_file()

    def close_file(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @property
    def _size(self) -> int:
        return _begin_of(self._slots)

    @property
    def _header(self) -> bytes:
        return _HEADER.pack(_MAGIC, _VERSION, _RECORD_BYTES, self._slots)

    def _open(self) -> mmap.mmap:
        self._fd = open_state(self._path, os.O_RDWR | os.O_CREAT)
        self._lock(self._fd)
        content = _read(self._fd, self._size + 1)
        is_usable = len(content) == self._size and content.startswith(self._header)
        if is_usable:
            self._take(content)
        else:
            if content:
                self.warnings.append(f"{self._path} was {_what_it_was(content)} and was recreated")
            os.ftruncate(self._fd, 0)
        self._allocate(self._fd)
        mapped = mmap.mmap(self._fd, self._size)
        mapped[: _HEADER.size] = self._header
        return mapped

    def _lock(self, fd: int) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close_file()
            raise BadInput(f"{self._path} is in use: another gateway of this broker is running") from None

    def _allocate(self, fd: int) -> None:
        """All or nothing: half a file would only take space from a disk that has none."""
        try:
            os.posix_fallocate(fd, 0, self._size)
        except OSError:
            if not self.records:
                os.ftruncate(fd, 0)
            raise

    def _take(self, content: bytes) -> None:
        damaged = 0
        for slot in range(self._slots):
            begin = _begin_of(slot)
            if content.startswith(_NO_SERIAL, begin):
                continue
            facts = content[begin : begin + _FACTS.size]
            if _CHECKSUM.unpack_from(content, begin + _FACTS.size)[0] != crc32(facts):
                damaged += 1
                continue
            serial, key, refused_at, sequence, epoch = _FACTS.unpack(facts)
            self.records.append(SequenceRecord(serial, slot, key, RefusedSequence(epoch, sequence, refused_at)))
        if damaged > 1:  # a kill cuts short one at most
            self.warnings.append(f"{self._path}: {damaged} damaged records ignored")


def _what_it_was(content: bytes) -> str:
    if len(content) >= _HEADER.size:
        magic, version, _, _ = _HEADER.unpack_from(content)
        if magic == _MAGIC and version != _VERSION:
            return f"the memory of refused sequences of another brimline (version {version}, and not {_VERSION})"
    return "no usable memory of refused sequences"


def _begin_of(slot: int) -> int:
    return _HEADER.size + slot * _RECORD_BYTES


def _read(fd: int, size: int) -> bytes:
    parts = []
    while size and (part := os.read(fd, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
