"""One cycle at a time for each physical device, though two brokers of a host share it, and a guard beside each of them.

**The lock is on the volume itself**: ``flock`` on the folder at the root of its file system, which is one and the same
for everybody who has a log dir on it. So it needs no file, no permission to write, and no place that all guards must
agree on: their state dirs and users may differ, and a service that may write nowhere else can take it. The kernel drops
it when its holder dies. It holds within one host. Containers that each see only a sub-folder of the volume (a bind
mount) do not meet at its root and are kept apart by chance only; a network file system that locks no folders is told by
``CannotLock``.

**Turns.** Whoever waits for the lock says so, by a second kind of lock on the same folder that many may have at a time
(``fcntl``, of the open file: it dies with its owner, too). Who has the lock asks for that before planning anew, lets
what is under way come to its end, and gives way. Otherwise the broker that came first would lose all that it may before
its neighbour loses anything, for cycles overlap as long as the volume is written to.

**Chance.** A trim shrinks every replica, and the disks of replicas fill together. Guards that waited for different
times see what the first one has trimmed, and leave it out. So nobody plans before a delay of its own is over.
"""

import fcntl
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from brimline.model import BrimlineError

_ASK_AGAIN = 1.0
_RANGE = struct.Struct("hhqqi4x")
"""``struct flock``: type, whence, start, length, owner."""


class CannotLock(BrimlineError):
    """The volume cannot be locked at all; that somebody else has it is not an error."""


class DeviceLock:
    """For one thread."""

    def __init__(self, log_dir: str) -> None:
        self._log_dir = log_dir
        self._fd: int | None = None
        self._is_ours = False

    @property
    def is_held(self) -> bool:
        return self._is_ours

    @property
    def is_wanted_by_others(self) -> bool:
        """Somebody waits for us to release it."""
        if self._fd is None or not self._is_ours:
            return False
        with suppress(OSError):  # a file system that does not tell: then they are kept apart by chance
            found = fcntl.fcntl(self._fd, fcntl.F_OFD_GETLK, _range(fcntl.F_WRLCK))
            return bool(_RANGE.unpack(found)[0] != fcntl.F_UNLCK)
        return False

    def take(self) -> bool:
        """Whether it is ours now; if not, it is known that we wait for it, until ``release``. Never waits."""
        if self._is_ours:
            return True
        fd = self._opened()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._mark(fd, fcntl.F_RDLCK)
            return False
        except OSError as error:
            self.release()
            raise CannotLock(f"the volume of {self._log_dir} cannot be locked: {error.strerror}") from error
        self._mark(fd, fcntl.F_UNLCK)
        self._is_ours = True
        return True

    def release(self) -> None:
        fd, self._fd, self._is_ours = self._fd, None, False
        if fd is not None:
            os.close(fd)

    def _opened(self) -> int:
        if self._fd is None:
            try:
                root = volume_root(self._log_dir)
                self._fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                raise CannotLock(f"the volume under {self._log_dir} cannot be locked: {error.strerror}") from error
        return self._fd

    def _mark(self, fd: int, kind: int) -> None:
        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _range(kind))


def _range(kind: int) -> bytes:
    """All of the file."""
    return _RANGE.pack(kind, os.SEEK_SET, 0, 0, 0)


class DeviceTurn:
    """Our turn with a device: after a delay, drawn once for each turn, and when nobody else has the lock."""

    def __init__(self, lock: DeviceLock, delay: Callable[[], float], seconds: Callable[[], float]) -> None:
        self._lock = lock
        self._delay = delay
        self._seconds = seconds
        self._not_before: float | None = None

    def wait(self) -> float:
        """Seconds to wait before asking again; 0: it is our turn, until ``end``. Raises ``CannotLock``."""
        if self._lock.is_held:
            return 0.0
        if self._not_before is None:
            self._not_before = self._seconds() + self._delay()
        left = self._not_before - self._seconds()
        if left > 0:
            return left
        return 0.0 if self._lock.take() else _ASK_AGAIN

    def end(self) -> None:
        """Ours or not: the next turn has a delay of its own."""
        self._lock.release()
        self._not_before = None


def volume_root(path: str) -> Path:
    """The topmost folder above ``path`` on the same file system."""
    root = Path(path).resolve(strict=True)
    device = root.stat().st_dev
    while root.parent != root and root.parent.stat().st_dev == device:
        root = root.parent
    return root
