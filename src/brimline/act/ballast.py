"""The ballast's file: really allocated, in the root of a log dir, where a broker ignores plain files.

**Ledger first, with one exception.** On a full disk the ledger may not be writable either, and releasing the ballast is
what makes it so: then it is released first, and its entry, written as soon as that is possible, says so. A release
destroys nothing, and it is the one act that must not wait.
"""

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from brimline.act.ledger.entries import BallastAct, BallastEntry
from brimline.act.ledger.ledger import Ledger
from brimline.decide.ballast import BallastDecision, BallastRule, decide_ballast
from brimline.decide.disk_state import Space
from brimline.model import BrimlineError, Bytes, human_bytes
from brimline.observe.scan.names import BALLAST
from brimline.observe.volumes import META_PROPERTIES
from brimline.service.durable_files import NotRecorded

NAME = BALLAST
_BLOCK = 512
_MODE = 0o600


class BallastFailed(BrimlineError):
    """The file could not be made or removed; what is there is as it was, or is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BallastReport:
    """After a step. ``unrecorded``: acts whose entries are not in the ledger yet, because it cannot be written."""

    path: str
    size: Bytes
    decision: BallastDecision
    unrecorded: int


class Ballast:
    """Of one volume, in the first of its log dirs or wherever one lies already. For one thread.

    The ledger has been read (``refresh``): it tells whether an earlier guard released a ballast, and this is another.
    """

    def __init__(self, log_dirs: Sequence[str], device: str, ledger: Ledger) -> None:
        self._log_dirs = tuple(log_dirs)
        self._device = device
        self._ledger = ledger
        self._unrecorded: list[BallastEntry] = []

    def step(self, space: Space | None, rule: BallastRule) -> BallastReport:
        """Do what is due, if anything. Raises ``BallastFailed``. Afterwards ``space`` is no longer true."""
        self._record_what_is_late()
        path = self._path()
        decision = decide_ballast(_size(path), space, rule)
        if space is not None:
            self._release_others(path, space)
        if decision.releases and space is not None:
            self._release(path, space, _why_released(space, decision, rule))
        elif decision is BallastDecision.ALLOCATE and space is not None:
            self._allocate(path, space, rule)
        elif space is not None:
            self._record_what_is_found(path, space)
        return BallastReport(path=str(path), size=_size(path), decision=decision, unrecorded=len(self._unrecorded))

    def _path(self) -> Path:
        """One that was made before ``log.dirs`` changed counts, until it is released."""
        paths = [Path(log_dir, NAME) for log_dir in self._log_dirs]
        return next((path for path in paths if _size(path)), paths[0])

    def _release_others(self, path: Path, space: Space) -> None:
        """Log dirs that had a volume each, or were not all to be seen when a ballast was made, may have one each."""
        for log_dir in self._log_dirs:
            other = Path(log_dir, NAME)
            if other != path and _size(other):
                self._release(other, space, f"the volume has another one: {path}")

    def _release(self, path: Path, space: Space, why: str) -> None:
        entry = self._entry(BallastAct.RELEASED, path, _size(path), space, why)
        try:
            if not self._was_released(path):  # or it was put on record, and then could not be done
                self._ledger.append(entry)
        except NotRecorded:
            _remove(path)
            self._unrecorded.append(replace(entry, was_late=True))
            self._record_what_is_late()
        else:
            _remove(path)

    def _allocate(self, path: Path, space: Space, rule: BallastRule) -> None:
        _refuse_elsewhere(path.parent)
        act = BallastAct.RESTORED if self._was_released(path) else BallastAct.ALLOCATED
        why = f"{human_bytes(space.usable)} of the volume were usable"
        _allocate(path, rule.size)
        self._unrecorded.append(self._entry(act, path, rule.size, space, why))
        self._record_what_is_late()

    def _record_what_is_found(self, path: Path, space: Space) -> None:
        """Whoever was killed between an act and its entry left the two in disagreement.

        A release is on record before it is done, and once: one that was not done must not hide the next.
        """
        last = self._ledger.state.ballast.get(str(path))
        if not _size(path) or self._unrecorded or (last is not None and last.act is not BallastAct.RELEASED):
            return
        act = BallastAct.ALLOCATED if last is None else BallastAct.RESTORED
        self._unrecorded.append(self._entry(act, path, _size(path), space, "it was already there"))
        self._record_what_is_late()

    def _was_released(self, path: Path) -> bool:
        """By the last word of the ledger, which may be older than this process."""
        last = self._ledger.state.ballast.get(str(path))
        return last is not None and last.act is BallastAct.RELEASED and not self._unrecorded

    def _entry(self, act: BallastAct, path: Path, size: Bytes, space: Space, why: str) -> BallastEntry:
        return BallastEntry(act=act, path=str(path), device=self._device, size=size, usable_bytes=space.usable, why=why)

    def _record_what_is_late(self) -> None:
        if not self._unrecorded:
            return
        try:
            self._ledger.append(*self._unrecorded)
        except NotRecorded:
            return  # the report counts them, and the next step tries again
        self._unrecorded = []


def _why_released(space: Space, decision: BallastDecision, rule: BallastRule) -> str:
    if decision is BallastDecision.RELEASE_RUNNING_OUT:
        return f"only {human_bytes(space.usable)} of the volume usable, less than {human_bytes(rule.release_below)}"
    return f"brimline.ballast.bytes is {rule.size}"


def _size(path: Path) -> Bytes:
    """As far as it is really allocated."""
    try:
        facts = path.lstat()
    except OSError:
        return Bytes(0)
    return Bytes(min(facts.st_size, facts.st_blocks * _BLOCK))


def _refuse_elsewhere(log_dir: Path) -> None:
    """A log dir whose volume is not mounted is an empty folder on another disk, which must not be filled.

    Whoever formats a log dir puts this file there, and no broker uses a folder without it.
    """
    if not (log_dir / META_PROPERTIES).is_file():
        raise BallastFailed(
            f"no ballast in {log_dir}: it has no {META_PROPERTIES}, so it is not a broker's; is its volume mounted?"
        )


def _allocate(path: Path, size: Bytes) -> None:
    """All of it or nothing."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE)
    except OSError as error:
        raise BallastFailed(f"no ballast in {path.parent}: {error.strerror}") from error
    try:
        os.posix_fallocate(fd, 0, size)
        os.fsync(fd)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise BallastFailed(f"no ballast of {human_bytes(size)} in {path.parent}: {error.strerror}") from error
    finally:
        os.close(fd)
    allocated = _size(path)
    if allocated < size:
        path.unlink(missing_ok=True)
        raise BallastFailed(
            f"no ballast in {path.parent}: its file system gives {human_bytes(allocated)} to a file of "
            f"{human_bytes(size)}, which frees nothing when removed"
        )


def _remove(path: Path) -> None:
    try:
        _unlink(path)
    except OSError as error:
        raise BallastFailed(f"{path} cannot be removed: {error.strerror}") from error


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        # A file system that copies on write may need space to unlink a file, and less of it to cut the file short.
        os.truncate(path, 0)
        path.unlink(missing_ok=True)
