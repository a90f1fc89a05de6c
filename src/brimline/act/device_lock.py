"""One cycle at a time for each physical device, though two brokers of a host share it, and a guard beside each of them.

**The lock is on the volume itself**: ``flock`` on the folder at the root of its file system, which is one and the same
for everybody who has a log dir on it. So it needs no file, no permission to write, and no place that all guards must
agree on: their state dirs and users may differ, and a service that may write nowhere else can take it. The kernel drops
it when its holder dies. It holds within one host. Containers that each see only a sub-folder of the volume (a bind
mount) do not meet at its root and are kept apart by chance only; a network file system that locks no folders is told by
``CannotLock``.

**Chance.** A trim shrinks every replica, and the disks of replicas fill together. Guards that waited for different
times see what the first one has trimmed, and leave it out. So nobody plans before a delay of its own is over.
"""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from brimline.model import BrimlineError

_ASK_AGAIN = 1.0


class CannotLock(BrimlineError):
    """The volume cannot be locked at all; that somebody else has it is not an error."""


class DeviceLock:
    """For one thread."""

    def __init__(self, log_dir: str) -> None:
        self._log_dir = log_dir
        self._fd: int | None = None

    @property
    def is_held(self) -> bool:
        return self._fd is not None

    def take(self) -> bool:
        """Whether it is ours now. Never waits."""
        if self._fd is not None:
            return True
        try:
            root = volume_root(self._log_dir)
            fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise CannotLock(f"the volume under {self._log_dir} cannot be locked: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        except OSError as error:
            os.close(fd)
            raise CannotLock(f"{root}, the root of the volume, cannot be locked: {error.strerror}") from error
        self._fd = fd
        return True

    def release(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


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
