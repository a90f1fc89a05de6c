"""A kernel pipe through which large frames go from one socket to the other without coming into this process."""

import errno
import fcntl
import os

_SIZE = 1 << 20
_FLAGS = os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK
_KEPT = 64
"""Idle pipes are kept for the next frame, but not more than this: each may hold a megabyte of the kernel's memory."""


class Pipe:
    __slots__ = ("_read_fd", "_size", "_write_fd", "filled")

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._size = fcntl.fcntl(self._write_fd, fcntl.F_SETPIPE_SZ, _SIZE)
        except OSError:  # over this user's limit of pipe memory, or there is none: the default size serves too
            self._size = fcntl.fcntl(self._write_fd, fcntl.F_GETPIPE_SZ)
        self.filled = 0

    def take_in(self, fd: int, most: int) -> int:
        """Bytes from a socket into the pipe; 0 at the socket's end. ``BlockingIOError`` when there are none."""
        moved = os.splice(fd, self._write_fd, min(most, self._size), flags=_FLAGS)
        self.filled += moved
        return moved

    def let_out(self, fd: int) -> None:
        """As many bytes as the other socket takes."""
        while self.filled:
            try:
                self.filled -= os.splice(self._read_fd, fd, self.filled, flags=_FLAGS)
            except BlockingIOError:
                return

    def close(self) -> None:
        os.close(self._read_fd)
        os.close(self._write_fd)


class PipePool:
    def __init__(self) -> None:
        self._idle: list[Pipe] = []

    def take(self) -> Pipe | None:
        """``None``: there is no descriptor left for one, and the bytes must go another way."""
        if self._idle:
            return self._idle.pop()
        try:
            return Pipe()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            return None

    def give_back(self, pipe: Pipe) -> None:
        """A pipe with bytes in it belongs to a dead connection: those bytes must never reach another one."""
        if pipe.filled or len(self._idle) >= _KEPT:
            pipe.close()
        else:
            self._idle.append(pipe)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
