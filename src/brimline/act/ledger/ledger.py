"""The ledger: an append-only file that everything Brimline does to a cluster's data is written to before it is done.

**Invariant.** When ``append`` returns, its entries are on the disk, whole and in order. So whatever is done after that
is told by the ledger, whoever is killed and whenever. Of an append that did not return, the first of its entries may be
there all the same: nothing was done because of them, and nothing follows from them that was not meant.

**One writer at a time.** The guard, a cycle by hand and ``pause`` may all write. Each append holds the lock of the
ledger, first reads what others have written since, and so continues their numbering. What must not be done twice at the
same time (a device's cycle) has a lock of its own: ``device_lock``.

**The end of the file.** A crash leaves at most one append unfinished, at the end. Whoever writes next finds lines with
a wrong checksum there and cuts them off. Damage further up is never touched: it is not ours to judge what it was. It
may have been a pause, so it is one until a person resumes.

**A pause** of reclaim also stands in a file of its own, and holds although the ledger is damaged or gone: while it is
there nothing is deleted, whatever is in it::

    reclaim-pause-1.json   {"version": 1, "by": "…", "reason": "…", "since": "…Z"}
"""

import fcntl
import gzip
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from brimline.act.ledger.entries import CycleId, Entry, Paused, Recorded
from brimline.act.ledger.files import BadLine, LedgerFiles, read_lines, write_line
from brimline.act.ledger.state import LedgerState, Pause
from brimline.documents.state_files import read_state_file, remove_state_file, write_state_file
from brimline.model import Bytes
from brimline.service.durable_files import NotRecorded, open_state, replace_durably, why_untrusted

_VERSION = 1
_NO_ENTRY = 0
"""Sequence numbers of the ledger begin with 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FiledPause:
    version: int = _VERSION
    by: str
    reason: str
    since: datetime


class PauseFile:
    def __init__(self, folder: Path, node_id: int) -> None:
        self.path = folder / f"reclaim-pause-{node_id}.json"

    def read(self) -> Pause | None:
        try:
            filed = read_state_file(_FiledPause, self.path, _VERSION)
            return Pause(by=filed.by, reason=filed.reason, since=filed.since, sequence=_NO_ENTRY)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            reason = f"{self.path} is there and cannot be read ({error})"
            return Pause(by="somebody", reason=reason, since=datetime.fromtimestamp(0, UTC), sequence=_NO_ENTRY)

    def write(self, *, by: str, reason: str, since: datetime) -> None:
        write_state_file(self.path, _FiledPause(by=by, reason=reason, since=since))

    def remove(self) -> None:
        remove_state_file(self.path, or_else="reclaim stays paused: ")


ROTATE_AT = Bytes(8 << 20)
_FOLDER_MODE = 0o750
_OURSELVES = "brimline"
_LOOK_AT_IT = "they cannot be read; check brimline ledger, then run brimline reclaim resume"
_LOCK_TRIES = 50
_LOCK_WAIT = 0.1


class Ledger:
    """For one thread. ``state`` is as of the last ``append`` or ``refresh``; ``warnings`` are for the log."""

    def __init__(
        self,
        folder: Path,
        node_id: int,
        now: Callable[[], datetime],
        *,
        rotate_at: Bytes = ROTATE_AT,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.files = LedgerFiles(folder, node_id)
        self.pause_file = PauseFile(folder, node_id)
        self.state = LedgerState()
        self.warnings: list[str] = []
        self._now = now
        self._rotate_at = rotate_at
        self._next_rotation: int = rotate_at
        self._sleep = sleep
        # Held open: as long as it is, no other file can have its inode, so a rotation by others is noticed.
        self._fd: int | None = None
        self._position = 0

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def refresh(self) -> None:
        """Read what others have written since. Raises ``NotRecorded`` when the ledger cannot be used."""
        with self._writable() as fd:
            self._catch_up(fd)

    def append(self, *entries: Entry) -> None:
        """Raises ``NotRecorded``: then what was to be done must not be done."""
        with self._writable() as fd:
            self._catch_up(fd)
            self._record(fd, entries)
            if self._position >= self._next_rotation:
                self._rotate(fd)

    @property
    def pause(self) -> Pause | None:
        """``None``: reclaim may go on."""
        return self.state.pause or self.pause_file.read()

    def new_cycle_id(self, device: str) -> CycleId:
        """Never given before, whatever the clock does. Two who plan for one device at a time: see ``device_lock``."""
        return CycleId(f"{device}-{self.state.last_sequence + 1}")

    @contextmanager
    def _writable(self) -> Iterator[int]:
        """The present file, while nobody else writes."""
        try:
            self.files.folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            if (why := why_untrusted(self.files.folder)) is not None:
                raise NotRecorded.since(why)
            lock = open_state(self.files.lock, os.O_RDWR | os.O_CREAT)
            try:
                self._take(lock)
                yield self._opened()
            finally:
                os.close(lock)
        except OSError as error:
            raise NotRecorded.because(self.files.current, error) from error

    def _take(self, lock: int) -> None:
        for _ in range(_LOCK_TRIES):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._sleep(_LOCK_WAIT)
            else:
                return
        raise NotRecorded.since(f"another process holds {self.files.lock}")

    def _opened(self) -> int:
        path = self.files.current
        if not os.path.lexists(path):
            replace_durably(path, b"")
        if self._fd is not None and not os.path.samestat(os.fstat(self._fd), path.lstat()):
            # It was rotated: the new file begins with all that is still under way.
            self.close()
        if self._fd is None:
            self._fd = open_state(path, os.O_RDWR | os.O_APPEND)
            self._position, self.state = 0, LedgerState()
        return self._fd

    def _catch_up(self, fd: int) -> None:
        size = os.fstat(fd).st_size
        if size < self._position:  # somebody has emptied it
            self._position, self.state = 0, LedgerState()
        is_first_look = not self._position
        try:
            lines = read_lines(os.pread(fd, size - self._position, self._position))
        except BadLine as bad:
            raise NotRecorded.since(
                f"{self.files.current} has an entry that is {bad}: use that version, or move the file away "
                "(deletions in progress are then no longer tracked)"
            ) from bad
        if lines.damaged:
            self.warnings.append(f"{self.files.current}: {lines.damaged} damaged lines ignored")
        for number, recorded in enumerate(lines.recorded):
            if lines.damaged and number == lines.entries_before_damage:
                self.state.is_damaged = True
            self.state.apply(recorded)
        if is_first_look:  # what was rotated away counts, too, where numbers are concerned
            self.state.last_sequence = max(self.state.last_sequence, self.files.last_sequence_of_parts())
        self._position += lines.good_bytes
        if size > self._position:
            os.ftruncate(fd, self._position)
            os.fsync(fd)
            self.warnings.append(
                f"{self.files.current}: removed the last {size - self._position} bytes, cut short by a crash; "
                "nothing was done because of them"
            )
        if self.state.is_damaged and self.state.pause is None:
            # As an entry, so that a rotation carries it on
            self._record(fd, [Paused(by=_OURSELVES, reason=f"{self.files.current} has damaged lines: {_LOOK_AT_IT}")])

    def _record(self, fd: int, entries: Sequence[Entry]) -> None:
        first, at = self.state.last_sequence + 1, self._now()
        recorded = [Recorded(sequence=n, at=at, entry=entry) for n, entry in enumerate(entries, start=first)]
        self._write(fd, b"".join(write_line(each) for each in recorded))
        for each in recorded:
            self.state.apply(each)

    def _write(self, fd: int, content: bytes) -> None:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)
        except OSError:
            os.ftruncate(fd, self._position)
            raise
        self._position += len(content)

    def _rotate(self, fd: int) -> None:
        """What cannot be rotated now goes on growing, and is tried again when it has grown by as much again."""
        try:
            content = os.pread(fd, self._position, 0)
            lines = read_lines(content).recorded
            carried = b"".join(write_line(each) for each in lines if self.state.carries(each))
            replace_durably(self.files.part(self.state.last_sequence), gzip.compress(content, mtime=0))
            replace_durably(self.files.current, carried)
            self._next_rotation = len(carried) + self._rotate_at
        except OSError as error:
            self._next_rotation = self._position + self._rotate_at
            self.warnings.append(f"{self.files.current} cannot be rotated ({error.strerror}): it keeps growing")
