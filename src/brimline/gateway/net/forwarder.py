"""The gateway's listeners and all its connections: accepts, limits, gives up the hopeless ones, drains at the end."""

import errno
import logging
import select
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from brimline.gateway.counters import Counters
from brimline.gateway.net.account import Account
from brimline.gateway.net.addresses import Addresses, AddressLimits, AddressRefusal, address_of
from brimline.gateway.net.connection import OWN_FETCHES, Connection, Judge
from brimline.gateway.net.endpoint import Endpoint, PipePool, TlsEndpoint
from brimline.gateway.net.listening import BEGUN, BIND_ADDRESS_NO_PORT, Address
from brimline.gateway.net.loop import EventLoop, Timer
from brimline.gateway.net.transparent import Client, dial_as, dial_leader, upstream_for
from brimline.gateway.net.turns import Turns

_LOG = logging.getLogger("brimline.gateway")
_ACCEPTED_AT_ONCE = 64
_SWEEP_SECONDS = 1.0
_SILENCE_SECONDS = 10.0
"""Between two lines about addresses that may not have one more connection."""
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenListener:
    """Where clients come in, and where the broker waits for them. The contexts are asked for at every connection,
    because certificates are renewed; ``None``: no TLS on that side."""

    name: str
    sockets: tuple[socket.socket, ...]
    upstream_family: socket.AddressFamily
    upstream: Address
    source: str | None = None
    """The address to connect from; ``None``: as the system chooses."""
    mark: int | None = None
    """Of sockets whose connections were turned aside (``transparent``); the broker sees each client's own address."""
    needs_login: bool = False
    """Whether clients authenticate with SASL: until the broker has answered them, they get little time and room."""
    judge: Callable[[], Judge] | None = None
    """Makes the rules of one connection, where they have to remember something of it; ``None``: those of everybody."""
    client_tls: Callable[[], ssl.SSLContext] | None = None
    broker_tls: Callable[[], ssl.SSLContext] | None = None

    @property
    def is_outward(self) -> bool:
        """This broker's own fetches come in here, and go on to the leader that they were meant for."""
        return self.name == OWN_FETCHES


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwarderSettings:
    largest_request: int = 100 << 20
    max_connections: int = 10_000
    header_timeout: float = 10.0
    kept_bytes: int = 256 << 20
    """How much memory all connections may hold together (``account``)."""
    login_timeout: float = 30.0
    """How long a client may take to send its first request or, where clients authenticate, its first token."""
    largest_login: int = 512 << 10
    """The largest request of a client to whom the broker has not answered a token yet."""
    addresses: AddressLimits = field(default_factory=AddressLimits)


class Forwarder:
    """Everything here runs in the loop's thread."""

    def __init__(
        self,
        loop: EventLoop,
        settings: ForwarderSettings,
        judge: Judge,
        counters: Counters,
        on_burst: Callable[[], None] = lambda: None,
    ) -> None:
        self.loop = loop
        self.settings = settings
        self.judge = judge
        self.counters = counters
        self.burst_at: int | None = None
        """``on_burst`` is called, once, when so many bytes have gone to the broker. Set by another thread."""
        self._on_burst = on_burst
        self.account = Account(loop, settings.kept_bytes)
        self.turns = Turns(loop)
        self.addresses = Addresses(settings.addresses)
        self.pipes = PipePool()
        self.is_draining = False
        self.listeners: tuple[OpenListener, ...] = ()
        self._connections: dict[Connection, Client] = {}
        self._drained: Callable[[], None] | None = None
        self._was_over_limit = False
        self._silent_until = 0.0
        self._sweeper: Timer = loop.later(_SWEEP_SECONDS, self._sweep)

    def listen(self, listeners: Sequence[OpenListener]) -> None:
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

    @property
    def kept_bytes(self) -> int:
        return self.account.used

    def drain(self, seconds: float, done: Callable[[], None]) -> None:
        """Accept no more; end every connection between two requests, and the rest when the time is up."""
        self.is_draining = True
        self._drained = done
        for listener in self.listeners:
            for sock in listener.sockets:
                self.loop.unwatch(sock.fileno())
                sock.close()
        self.let_go()
        if self._connections:
            self.loop.later(seconds, self._give_up_draining)
        else:
            self._finish_draining()

    def let_go(self, most: int | None = None) -> None:
        """End the connections that there are now, each between two requests; ``most``: only so many of them."""
        for connection in list(islice((each for each in self._connections if not each.is_draining), most)):
            connection.is_draining = True
            connection.look_again()

    def close(self) -> None:
        for connection in list(self._connections):
            connection.close("gateway-stopped")
        self._sweeper.cancel()
        self.pipes.close()

    # What connections tell ---------------------------------------------------------------------------------------

    def sent_to_broker(self, size: int) -> None:
        counters = self.counters
        counters.bytes_to_broker += size
        if self.burst_at is not None and counters.bytes_to_broker >= self.burst_at:
            self.burst_at = None
            self._on_burst()
        counters.latency.add(time.monotonic_ns() - self.loop.woke_ns)

    def sent_to_client(self, size: int) -> None:
        counters = self.counters
        counters.bytes_to_clients += size
        counters.latency.add(time.monotonic_ns() - self.loop.woke_ns)

    def ended(self, connection: Connection, reason: str) -> None:
        self._connections.pop(connection, None)
        self.addresses.went(connection.address)
        self.account.forget(connection)
        self.turns.forget(connection)
        self.counters.closed[reason] += 1
        if self.is_draining and not self._connections:
            self._finish_draining()

    # Inside ------------------------------------------------------------------------------------------------------

    def _watch(self, sock: socket.socket, listener: OpenListener) -> None:
        self.loop.watch(sock.fileno(), select.EPOLLIN, lambda _mask: self._accept(sock, listener))

    def _accept(self, sock: socket.socket, listener: OpenListener) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, peer = sock.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                self._pause_accepting(sock, listener, error)
                return
            self.counters.accepted += 1
            client: Client = (address_of(peer), peer[1])
            if len(self._connections) >= self.settings.max_connections:
                self._refuse(accepted, "the most allowed")
            elif (refusal := self.addresses.refusal(client[0])) is not None:
                self._refuse_address(accepted, client[0], refusal)
            else:
                self._connect(accepted, client, listener)

    def _refuse_address(self, accepted: socket.socket, address: str, refusal: AddressRefusal) -> None:
        """As a broker does."""
        self.counters.closed[refusal.value] += 1
        accepted.close()
        now = time.monotonic()
        if now >= self._silent_until:
            self._silent_until = now + _SILENCE_SECONDS
            _LOG.warning(
                "%s reached its connection limit (%s of the broker): connection closed, counted as %s",
                address,
                "max.connections.per.ip" if refusal is AddressRefusal.TOO_MANY else "a quota connection_creation_rate",
                refusal.value,
                extra={"event": refusal.value},
            )

    def _refuse(self, accepted: socket.socket, why: str) -> None:
        accepted.close()
        self.counters.closed["too-many-connections"] += 1
        if not self._was_over_limit:
            self._was_over_limit = True
            _LOG.warning(
                "%d connections open, %s: new ones are closed",
                len(self._connections),
                why,
                extra={"event": "too-many-connections"},
            )

    def _pause_accepting(self, sock: socket.socket, listener: OpenListener, error: OSError) -> None:
        _LOG.error("cannot accept connections, retrying in 1 s: %s", error.strerror, extra={"event": "accept-failed"})
        self.loop.unwatch(sock.fileno())
        self.loop.later(1.0, lambda: None if self.is_draining else self._watch(sock, listener))

    def _connect(self, accepted: socket.socket, peer: Client, listener: OpenListener) -> None:
        family = listener.upstream_family if listener.mark is None else accepted.family
        try:
            client = _endpoint(accepted, listener.client_tls, server_side=True)
        except OSError:  # it has gone already
            accepted.close()
            self.counters.closed["reset"] += 1
            return
        try:
            upstream = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            self._refuse(client.sock, f"no more possible ({error.strerror})")
            return
        # Before it is connected: TLS cannot be put on a socket that is just about to be.
        broker = _endpoint(upstream, listener.broker_tls, server_side=False)
        if not self._begins_to_connect(broker.sock, listener, peer, client.sock):
            client.close()
            broker.close()
            self.counters.closed["leader-unreachable" if listener.is_outward else "broker-unreachable"] += 1
            return
        judge = self.judge if listener.judge is None else listener.judge()
        connection = Connection(
            self, listener.name, client, broker, judge, needs_login=listener.needs_login, address=peer[0]
        )
        self._connections[connection] = peer
        self.addresses.came(peer[0])
        connection.start()

    def _begins_to_connect(
        self, sock: socket.socket, listener: OpenListener, peer: Client, accepted: socket.socket
    ) -> bool:
        try:
            if listener.is_outward:
                return dial_leader(sock, accepted)
            if listener.mark is not None:
                others = self._connections.values()
                return dial_as(sock, peer, upstream_for(sock.family, listener.upstream), listener.mark, others)
            if listener.source is not None:
                sock.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
                sock.bind((listener.source, 0))
        except OSError:
            return False
        return sock.connect_ex(listener.upstream) in BEGUN

    def _sweep(self) -> None:
        self._sweeper = self.loop.later(_SWEEP_SECONDS, self._sweep)
        now = time.monotonic()
        self._make_room(now)
        late = [(each, reason) for each in self._connections if (reason := each.late_for(now)) is not None]
        for connection, reason in late:
            connection.close(reason)
        if len(self._connections) < self.settings.max_connections:
            self._was_over_limit = False

    def _make_room(self, now: float) -> None:
        most = self.account.too_long(now, self.settings.header_timeout)
        if most is None:
            return
        _LOG.warning(
            "connection memory is used up (%d bytes): closing the connection that has held most of it for %.0f s, "
            "counted as memory-needed",
            self.account.used,
            self.settings.header_timeout,
            extra={"event": "memory-needed"},
        )
        most.close("memory-needed")

    def _give_up_draining(self) -> None:
        for connection in list(self._connections):
            connection.close("gateway-stopped")

    def _finish_draining(self) -> None:
        done, self._drained = self._drained, None
        if done is not None:
            done()


def _endpoint(sock: socket.socket, context: Callable[[], ssl.SSLContext] | None, *, server_side: bool) -> Endpoint:
    sock.setblocking(False)  # noqa: FBT003  the standard library's signature
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    if context is None:
        return Endpoint(sock)
    return TlsEndpoint(context().wrap_socket(sock, server_side=server_side, do_handshake_on_connect=False))
