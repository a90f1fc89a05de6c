"""The gateway's listeners and all its connections: accepts, limits, gives up the hopeless ones, drains at the end."""

import errno
import logging
import select
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brimline.gateway.connection import Connection, Judge
from brimline.gateway.counters import Counters
from brimline.gateway.endpoint import Endpoint, TlsEndpoint
from brimline.gateway.listening import Address
from brimline.gateway.loop import EventLoop, Timer
from brimline.gateway.pipe import PipePool

_LOG = logging.getLogger("brimline.gateway")
_BUFFER = 1 << 18
_ACCEPTED_AT_ONCE = 64
_SWEEP_SECONDS = 1.0
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Where clients come in, and where the broker waits for them. The contexts are asked for at every connection,
    because certificates are renewed; ``None``: no TLS on that side."""

    name: str
    sockets: tuple[socket.socket, ...]
    upstream_family: socket.AddressFamily
    upstream: Address
    client_tls: Callable[[], ssl.SSLContext] | None = None
    broker_tls: Callable[[], ssl.SSLContext] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwarderSettings:
    largest_request: int = 100 << 20
    max_connections: int = 10_000
    header_timeout: float = 10.0
    kept_bytes: int = 256 << 20
    """How much memory all requests that are kept whole may take together."""


class Forwarder:
    """Everything here runs in the loop's thread."""

    def __init__(self, loop: EventLoop, settings: ForwarderSettings, judge: Judge, counters: Counters) -> None:
        self.loop = loop
        self.settings = settings
        self.judge = judge
        self.counters = counters
        self.buffer = memoryview(bytearray(_BUFFER))
        self.pipes = PipePool()
        self.is_draining = False
        self.listeners: tuple[Listener, ...] = ()
        self._connections: dict[Connection, None] = {}
        self._keeping: dict[Connection, int] = {}
        self._kept_bytes = 0
        self._waiting: dict[Connection, None] = {}
        self._drained: Callable[[], None] | None = None
        self._was_over_limit = False
        self._sweeper: Timer = loop.later(_SWEEP_SECONDS, self._sweep)

    def listen(self, listeners: Sequence[Listener]) -> None:
        self.listeners = tuple(listeners)
        for listener in listeners:
            for sock in listener.sockets:
                sock.setblocking(False)  # noqa: FBT003  the standard library's signature
                self._watch(sock, listener)

    def open_connections(self, listener: str) -> int:
        return sum(connection.listener == listener for connection in list(self._connections))

    @property
    def all_open(self) -> int:
        return len(self._connections)

    def drain(self, seconds: float, done: Callable[[], None]) -> None:
        """Accept no more; end every connection between two requests, and the rest when the time is up."""
        self.is_draining = True
        self._drained = done
        for listener in self.listeners:
            for sock in listener.sockets:
                self.loop.unwatch(sock.fileno())
                sock.close()
        for connection in list(self._connections):
            connection.look_again()
        if self._connections:
            self.loop.later(seconds, self._give_up_draining)
        else:
            done()

    def close(self) -> None:
        for connection in list(self._connections):
            connection.close("gateway-stopped")
        self._sweeper.cancel()
        self.pipes.close()

    # What connections tell ---------------------------------------------------------------------------------------

    def sent_to_broker(self, size: int) -> None:
        counters = self.counters
        counters.bytes_to_broker += size
        counters.latency.add(time.monotonic_ns() - self.loop.woke_ns)

    def sent_to_client(self, size: int) -> None:
        counters = self.counters
        counters.bytes_to_clients += size
        counters.latency.add(time.monotonic_ns() - self.loop.woke_ns)

    def keeps(self, connection: Connection, kept: int) -> None:
        was = self._keeping.pop(connection, 0) if not kept else self._keeping.get(connection, 0)
        if kept:
            self._keeping[connection] = kept  # keeps its place: the oldest stays first
        self._kept_bytes += kept - was
        if kept < was and self._waiting:
            waiting, self._waiting = self._waiting, {}
            for each in waiting:
                self.loop.later(0.0, each.look_again)

    def must_wait(self, connection: Connection) -> bool:
        """Whether memory for kept requests is used up. The oldest that keeps one may always go on, so that it ends."""
        if self._kept_bytes < self.settings.kept_bytes:
            return False
        if next(iter(self._keeping), connection) is connection:
            return False
        self._waiting[connection] = None
        return True

    def ended(self, connection: Connection, reason: str) -> None:
        self._connections.pop(connection, None)
        self._waiting.pop(connection, None)
        self.keeps(connection, 0)
        self.counters.closed[reason] += 1
        if self.is_draining and not self._connections:
            self._finish_draining()

    # Inside ------------------------------------------------------------------------------------------------------

    def _watch(self, sock: socket.socket, listener: Listener) -> None:
        self.loop.watch(sock.fileno(), select.EPOLLIN, lambda _mask: self._accept(sock, listener))

    def _accept(self, sock: socket.socket, listener: Listener) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, _ = sock.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                self._pause_accepting(sock, listener, error)
                return
            self.counters.accepted += 1
            if len(self._connections) >= self.settings.max_connections:
                self._refuse(accepted)
            else:
                self._connect(accepted, listener)

    def _refuse(self, accepted: socket.socket) -> None:
        accepted.close()
        self.counters.closed["too-many-connections"] += 1
        if not self._was_over_limit:
            self._was_over_limit = True
            _LOG.warning(
                "there are %d connections, the most allowed: new ones are closed at once",
                self.settings.max_connections,
                extra={"event": "too-many-connections"},
            )

    def _pause_accepting(self, sock: socket.socket, listener: Listener, error: OSError) -> None:
        _LOG.error("no connection is accepted for a second: %s", error.strerror, extra={"event": "accept-failed"})
        self.loop.unwatch(sock.fileno())
        self.loop.later(1.0, lambda: None if self.is_draining else self._watch(sock, listener))

    def _connect(self, accepted: socket.socket, listener: Listener) -> None:
        upstream = socket.socket(listener.upstream_family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            for sock in (accepted, upstream):
                sock.setblocking(False)  # noqa: FBT003  the standard library's signature
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for option, value in _KEEP_ALIVE:
                    sock.setsockopt(socket.IPPROTO_TCP, option, value)
            failure = upstream.connect_ex(listener.upstream)
            if failure not in (0, errno.EINPROGRESS):
                raise OSError(failure, "the broker does not answer")
            client = _endpoint(accepted, listener.client_tls, server_side=True)
            broker = _endpoint(upstream, listener.broker_tls, server_side=False)
        except OSError:
            accepted.close()
            upstream.close()
            self.counters.closed["broker-unreachable"] += 1
            return
        connection = Connection(self, listener.name, client, broker)
        self._connections[connection] = None
        connection.start()

    def _sweep(self) -> None:
        now = time.monotonic()
        late = [each for each in self._connections if each.deadline is not None and each.deadline <= now]
        for connection in late:
            connection.close("too-slow")
        if len(self._connections) < self.settings.max_connections:
            self._was_over_limit = False
        self._sweeper = self.loop.later(_SWEEP_SECONDS, self._sweep)

    def _give_up_draining(self) -> None:
        for connection in list(self._connections):
            connection.close("gateway-stopped")

    def _finish_draining(self) -> None:
        done, self._drained = self._drained, None
        if done is not None:
            done()


def _endpoint(sock: socket.socket, context: Callable[[], ssl.SSLContext] | None, *, server_side: bool) -> Endpoint:
    if context is None:
        return Endpoint(sock)
    return TlsEndpoint(context().wrap_socket(sock, server_side=server_side, do_handshake_on_connect=False))
