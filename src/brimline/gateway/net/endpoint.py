"""One side of a connection: a socket, plain or TLS, and the bytes that it has not taken yet.

And the kernel pipe through which large frames go from one side to the other without coming into this process.
"""

import errno
import fcntl
import os
import select
import socket
import ssl
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from brimline.wire.in_flight import Buffer

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


_MOST_BUFFERS = 512
"""The kernel takes 1,024 at once at most."""
_MOST_DISCARDED = 16
_BUFFER_OVERHEAD = 256
"""What Python takes for a piece of bytes that waits."""


class Endpoint:
    """``read`` and ``send`` never block: they raise ``BlockingIOError``, or take what can be taken."""

    __slots__ = ("_unsent", "at_end", "fd", "mask", "sock", "unsent_bytes")
    can_splice = True

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self._unsent: deque[memoryview] | None = None
        """``None`` unless something waits: an empty one takes 600 bytes, and most connections never need it."""
        self.unsent_bytes = 0
        self.at_end = False
        """The peer has sent everything that it will ever send."""
        self.mask = 0
        """What epoll is told to watch; -1: nothing, not even that the peer has gone."""

    @property
    def kept_bytes(self) -> int:
        """How much memory takes what the peer has not taken yet."""
        return self.unsent_bytes + _BUFFER_OVERHEAD * len(self._unsent or ())

    @property
    def is_ready(self) -> bool:
        """Whether bytes of the conversation may be read and sent."""
        return True

    def get_ready(self) -> int:
        """One more step towards that; returns the mask of what must happen before the next."""
        return 0

    @property
    def has_unread(self) -> bool:
        """Whether bytes wait that epoll does not know of."""
        return False

    def read(self, buffer: memoryview) -> int:
        return self.sock.recv_into(buffer)

    def send(self, buffers: Sequence[Buffer], reused: object) -> None:
        """Send now what the socket takes, keep the rest. ``reused`` is the buffer that the next read overwrites."""
        sent = 0 if self._unsent else self._send_some(buffers)
        for buffer in buffers:
            size = len(buffer)
            if sent >= size:
                sent -= size
                continue
            view = memoryview(buffer)[sent:]
            sent = 0
            self._wait_with(memoryview(bytes(view)) if view.obj is reused or _is_crumb(view) else view)

    def keep(self, buffers: Sequence[Buffer]) -> None:
        """Send these later: something else must go first."""
        for buffer in buffers:
            if len(buffer):
                self._wait_with(memoryview(bytes(buffer)))

    def flush(self) -> None:
        """Send what was kept, as far as the socket takes it."""
        unsent = self._unsent
        while unsent:
            sent = self._send_some(list(islice(unsent, _MOST_BUFFERS)))
            if not sent:
                return
            self.unsent_bytes -= sent
            while unsent and sent >= len(unsent[0]):
                sent -= len(unsent.popleft())
            if sent:
                rest = unsent[0][sent:]
                unsent[0] = memoryview(bytes(rest)) if _is_crumb(rest) else rest
        self._unsent = None

    def forget_unsent(self) -> None:
        self._unsent = None
        self.unsent_bytes = 0

    def no_more(self) -> None:
        """Tell the peer that nothing more will come. One that has gone need not be told: reading shows it."""
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def discard_unread(self, buffer: memoryview) -> None:
        """Before a friendly end: a socket that is closed with bytes unread takes back what the peer has not got yet."""
        with suppress(OSError):
            for _ in range(_MOST_DISCARDED):
                if not self.read(buffer):
                    return

    def close(self) -> None:
        self.forget_unsent()
        self.sock.close()

    def _wait_with(self, view: memoryview) -> None:
        if self._unsent is None:
            self._unsent = deque()
        self._unsent.append(view)
        self.unsent_bytes += len(view)

    def _send_some(self, buffers: Sequence[Buffer]) -> int:
        try:
            if len(buffers) == 1:
                return self.sock.send(buffers[0])
            return self.sock.sendmsg(buffers[:_MOST_BUFFERS])
        except BlockingIOError:
            return 0


def _is_crumb(view: memoryview) -> bool:
    """A small part of something large, which it would keep in memory as a whole."""
    whole = view.obj
    return isinstance(whole, (bytes, bytearray)) and 2 * len(view) < len(whole)


class TlsEndpoint(Endpoint):
    __slots__ = ("_is_ready", "_tls")
    can_splice = False

    def __init__(self, sock: ssl.SSLSocket) -> None:
        """``sock`` was wrapped with ``do_handshake_on_connect=False``."""
        super().__init__(sock)
        self._tls = sock
        self._is_ready = False

    @property
    def is_ready(self) -> bool:
        return self._is_ready

    def get_ready(self) -> int:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return select.EPOLLIN
        except ssl.SSLWantWriteError:
            return select.EPOLLOUT
        self._is_ready = True
        return 0

    @property
    def has_unread(self) -> bool:
        return self._is_ready and self._tls.pending() > 0

    def read(self, buffer: memoryview) -> int:
        try:
            return self._tls.recv_into(buffer)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def no_more(self) -> None:
        """TLS has no half: the peer learns it when the connection is closed."""

    def close(self) -> None:
        """With the farewell that tells an end from a cut wire."""
        if self._is_ready:
            with suppress(OSError, ValueError):
                self._tls.unwrap()
        super().close()

    def _send_some(self, buffers: Sequence[Buffer]) -> int:
        sent = 0
        try:
            for buffer in buffers:
                if len(buffer):
                    taken = self._tls.send(buffer)
                    sent += taken
                    if taken < len(buffer):
                        break
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        return sent
