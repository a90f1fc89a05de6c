"""One side of a connection: a socket, plain or TLS, and the bytes that it has not taken yet."""

import socket
import ssl
from collections import deque
from collections.abc import Sequence

from brimline.wire.in_flight import Buffer

_MOST_BUFFERS = 512
"""The kernel takes 1,024 at once at most."""


class Endpoint:
    """``read`` and ``send`` never block: they raise ``BlockingIOError``, or take what can be taken."""

    __slots__ = ("_unsent", "at_end", "fd", "mask", "sock")
    can_splice = True

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self._unsent: deque[memoryview] = deque()
        self.at_end = False
        """The peer has sent everything that it will ever send."""
        self.mask = 0
        """What epoll is told to watch."""

    @property
    def is_ready(self) -> bool:
        """Whether bytes of the conversation may be read and sent."""
        return True

    def get_ready(self) -> None:
        """One more step towards that."""

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

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
            self._unsent.append(memoryview(bytes(view)) if view.obj is reused else view)

    def keep(self, buffers: Sequence[Buffer]) -> None:
        """Send these later: something else must go first."""
        self._unsent.extend(memoryview(bytes(buffer)) for buffer in buffers)

    def flush(self) -> None:
        """Send what was kept, as far as the socket takes it."""
        while self._unsent:
            sent = self._send_some(list(self._unsent)[:_MOST_BUFFERS])
            if not sent:
                return
            while self._unsent and sent >= len(self._unsent[0]):
                sent -= len(self._unsent.popleft())
            if sent:
                self._unsent[0] = self._unsent[0][sent:]

    def no_more(self) -> None:
        """Tell the peer that nothing more will come."""
        self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._unsent.clear()
        self.sock.close()

    def _send_some(self, buffers: Sequence[Buffer]) -> int:
        try:
            if len(buffers) == 1:
                return self.sock.send(buffers[0])
            return self.sock.sendmsg(buffers[:_MOST_BUFFERS])
        except BlockingIOError:
            return 0


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

    def get_ready(self) -> None:
        try:
            self._tls.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        self._is_ready = True

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
