"""TLS towards clients, towards the broker, and both: the same bytes, the same bounds, and handshakes that never end."""

import contextlib
import random
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from brimline.gateway.net.forwarder import ForwarderSettings
from brimline.observe.properties.pem_stores import load_key
from tests.gateway.peers import (
    CHANGED,
    CHANGED_LATER,
    COLLECTED,
    HELD,
    OWN,
    PASSES,
    PRODUCE,
    Backend,
    Client,
    Running,
    answer_everything,
    answer_of,
    assert_idle,
    client_gets,
    converse,
    exchange,
    in_threads,
    request,
    requests_from,
    running,
)
from tests.observe.properties.key_store_files import issue, pem
from tests.waiting import PATIENCE_SECONDS, eventually

ROOT = issue("root", is_authority=True)
BROKER = issue("broker7", by=ROOT)
LARGE = 3 << 20


@pytest.fixture(autouse=True)
def _the_late_are_looked_for_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brimline.gateway.net.forwarder._SWEEP_SECONDS", 0.1)


def server_side() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_key(context, private_key=BROKER.private_key(), chain=BROKER.chain, password=None)
    return context


def client_side() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=pem(ROOT.certificate))
    return context


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Which sides have TLS."""

    client: bool
    broker: bool

    @contextlib.contextmanager
    def gateway(
        self,
        serve: Callable[[socket.socket], None] = answer_everything,
        settings: ForwarderSettings | None = None,
    ) -> Iterator[Running]:
        with (
            contextlib.closing(Backend(serve, server_side() if self.broker else None)) as backend,
            running(
                backend.address,
                settings,
                client_tls=server_side() if self.client else None,
                broker_tls=client_side() if self.broker else None,
            ) as gateway,
        ):
            yield gateway

    def connect(self, gateway: Running) -> Client:
        return Client(gateway.address, client_side() if self.client else None)


TLS_TO_CLIENTS = Sides(client=True, broker=False)
TLS_TO_BROKER = Sides(client=False, broker=True)
TLS_ON_BOTH = Sides(client=True, broker=True)

every_side = pytest.mark.parametrize(
    "sides", [TLS_TO_CLIENTS, TLS_TO_BROKER, TLS_ON_BOTH], ids=["to clients", "to the broker", "both"]
)


@every_side
def test_random_conversations(sides: Sides) -> None:
    kinds = (PASSES, PASSES, PRODUCE, OWN, HELD, CHANGED, CHANGED_LATER, COLLECTED)
    sizes = (0, 50, 1_000, 16_384, 70_000, LARGE)

    def talk(seed: int) -> None:
        randomness = random.Random(seed)
        requests = [
            request(randomness.choice(kinds), number, body=randomness.choice(sizes), answer=randomness.choice(sizes))
            for number in range(25)
        ]
        with sides.connect(gateway) as client:
            converse(client, requests, randomness)

    with sides.gateway() as gateway:
        in_threads(*(lambda seed=seed: talk(seed) for seed in range(3)))


@every_side
def test_many_small_frames_in_few_records(sides: Sides) -> None:
    """What TLS has taken out of the socket but not been asked for, epoll does not know of."""
    requests = [request(PASSES, number, answer=number % 50) for number in range(10_000)]
    wanted = b"".join(map(client_gets, requests))
    with sides.gateway() as gateway, sides.connect(gateway) as client:
        assert exchange(client, b"".join(requests), len(wanted)) == wanted


@every_side
def test_a_client_that_reads_late_gets_every_byte(sides: Sides) -> None:
    """Whatever did not fit into the socket is sent again from where it stopped."""
    requests = [request(PASSES, number, answer=8 << 20) for number in range(3)]
    with sides.gateway() as gateway, sides.connect(gateway) as client, sides.connect(gateway) as other:
        client.send(b"".join(requests))
        for _ in range(20):
            other.ask(answer=1_000)
        for sent in requests:
            assert client.read_frame() == answer_of(sent)


@every_side
def test_a_broker_that_reads_late_gets_every_byte(sides: Sides) -> None:
    go_on = threading.Event()

    def serve(sock: socket.socket) -> None:
        go_on.wait(PATIENCE_SECONDS)
        answer_everything(sock)

    sent = [request(PASSES, 1, body=8 << 20), request(COLLECTED, 2, body=8 << 20)]
    with sides.gateway(serve) as gateway, sides.connect(gateway) as client:
        wanted = b"".join(map(answer_of, sent))

        def ask() -> None:
            assert exchange(client, b"".join(sent), len(wanted)) == wanted

        def let_go() -> None:
            eventually(lambda: gateway.counters.bytes_to_broker > 1 << 20)
            go_on.set()

        in_threads(ask, let_go)


@every_side
def test_a_client_gets_what_a_dying_broker_has_said(sides: Sides) -> None:
    def serve(sock: socket.socket) -> None:
        sock.sendall(answer_of(next(requests_from(sock)))[:LARGE])

    with sides.gateway(serve) as gateway, sides.connect(gateway) as client:
        client.send(sent := request(PASSES, 1, answer=2 * LARGE))
        assert client.read_to_end() == answer_of(sent)[:LARGE]
        client.close()
        eventually(lambda: gateway.forwarder.all_open == 0)


def test_an_end_is_not_a_cut_wire() -> None:
    """A client tells them apart by the farewell that TLS has for it."""

    def serve(sock: socket.socket) -> None:
        sock.sendall(answer_of(next(requests_from(sock))))

    with TLS_TO_CLIENTS.gateway(serve) as gateway, socket.create_connection(gateway.address) as plain:
        plain.settimeout(PATIENCE_SECONDS)
        with client_side().wrap_socket(plain, suppress_ragged_eofs=False) as client:
            client.sendall(sent := request(PASSES, 1))
            wanted = answer_of(sent)
            assert client.recv(len(wanted)) == wanted
            assert client.recv(1) == b""


@every_side
def test_draining(sides: Sides) -> None:
    go_on = threading.Event()

    def serve(sock: socket.socket) -> None:
        for asked in requests_from(sock):
            if len(asked) > 1_000:
                go_on.wait(PATIENCE_SECONDS)
            sock.sendall(answer_of(asked))

    done = threading.Event()
    with sides.gateway(serve) as gateway, sides.connect(gateway) as idle, sides.connect(gateway) as busy:
        idle.ask()
        busy.send(sent := request(PASSES, 1, body=2_000, answer=8 << 20))
        eventually(lambda: gateway.counters.requests == 2)
        gateway.inside(lambda: gateway.forwarder.drain(PATIENCE_SECONDS, done.set))
        assert idle.read_to_end() == b""
        go_on.set()
        assert busy.read_to_end() == answer_of(sent)
        assert done.wait(PATIENCE_SECONDS)


# Handshakes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 1_000,
        b"\x16\x03\x01\xff\xff" + b"\xff" * 70_000,
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
        request(PASSES, 1),
    ],
)
def test_garbage_for_a_handshake(said: bytes) -> None:
    with TLS_TO_CLIENTS.gateway() as gateway, TLS_TO_CLIENTS.connect(gateway) as other:
        with Client(gateway.address) as client:
            with contextlib.suppress(ConnectionError):
                client.send(said)
            client.read_to_end()  # an alert, perhaps
        eventually(lambda: gateway.forwarder.all_open == 1)
        other.ask()


@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_a_handshake_that_is_cut_off_anywhere() -> None:
    """By an end, or by a reset: even before ``ssl`` has made its socket, which it then leaves to the collector."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    handshake = client_side().wrap_bio(incoming, outgoing)
    with contextlib.suppress(ssl.SSLWantReadError):
        handshake.do_handshake()
    hello = outgoing.read()
    with TLS_TO_CLIENTS.gateway() as gateway, TLS_TO_CLIENTS.connect(gateway) as other:
        for size in range(0, len(hello) + 1, 20):
            for end in (Client.close, Client.reset):
                client = Client(gateway.address)
                client.send(hello[:size])
                end(client)
        eventually(lambda: gateway.forwarder.all_open == 1)
        other.ask()


def test_a_handshake_must_end_in_time() -> None:
    settings = ForwarderSettings(header_timeout=0.3)
    with TLS_TO_CLIENTS.gateway(settings=settings) as gateway, Client(gateway.address) as silent:
        assert silent.read_to_end() == b""
        eventually(lambda: gateway.closed == {"too-slow": 1})


def test_a_handshake_of_the_broker_must_end_in_time() -> None:
    stop = threading.Event()

    def say_nothing(_sock: socket.socket) -> None:
        stop.wait(PATIENCE_SECONDS)

    with (
        contextlib.closing(Backend(say_nothing)) as backend,
        running(backend.address, ForwarderSettings(header_timeout=0.3), broker_tls=client_side()) as gateway,
        Client(gateway.address) as client,
    ):
        assert client.read_to_end() == b""
        eventually(lambda: gateway.closed == {"too-slow": 1})
        stop.set()


def test_a_broker_without_tls_is_none() -> None:
    def speak_at_once(sock: socket.socket) -> None:
        sock.sendall(b"not TLS")
        answer_everything(sock)

    with (
        contextlib.closing(Backend(speak_at_once)) as backend,
        running(backend.address, broker_tls=client_side()) as gateway,
        Client(gateway.address) as client,
    ):
        assert client.read_to_end() == b""
        eventually(lambda: gateway.closed == {"broker-unreachable": 1})


def test_a_broker_that_nobody_vouches_for_is_none() -> None:
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger.check_hostname = False
    with (
        contextlib.closing(Backend(tls=server_side())) as backend,
        running(backend.address, broker_tls=stranger) as gateway,
        Client(gateway.address) as client,
    ):
        assert client.read_to_end() == b""
        eventually(lambda: gateway.closed == {"broker-unreachable": 1})


def test_a_broker_whose_queue_is_full_is_waited_for() -> None:
    """The connection to it is made after a while: only then can there be a handshake."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        waiting = [stack.enter_context(socket.socket()) for _ in range(4)]
        for each in waiting:
            each.setblocking(False)  # noqa: FBT003  the standard library's signature
            each.connect_ex(listening.getsockname())
        gateway = stack.enter_context(running(listening.getsockname(), broker_tls=client_side()))
        client = stack.enter_context(Client(gateway.address))
        eventually(lambda: gateway.forwarder.all_open == 1)
        for each in waiting:
            each.close()
        served = threading.Event()

        def serve() -> None:
            """Whoever gave up before is in the queue too."""
            while not served.is_set():
                accepted, _ = listening.accept()
                accepted.settimeout(PATIENCE_SECONDS)
                with contextlib.suppress(OSError), server_side().wrap_socket(accepted, server_side=True) as sock:
                    answer_everything(sock)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client.ask()
        served.set()
        client.close()
        thread.join(PATIENCE_SECONDS)


def test_tls_connections_in_odd_states_cost_no_time() -> None:
    stop = threading.Event()

    def serve(sock: socket.socket) -> None:
        for asked in requests_from(sock):
            sock.sendall(answer_of(asked))
            break
        stop.wait(PATIENCE_SECONDS)

    with TLS_ON_BOTH.gateway(serve) as gateway, contextlib.ExitStack() as stack:

        def new() -> Client:
            return stack.enter_context(TLS_ON_BOTH.connect(gateway))

        new()
        stack.enter_context(Client(gateway.address))  # shakes no hands
        new().send(request(PASSES, 1, answer=8 << 20))  # does not read
        new().send(request(COLLECTED, 1, body=1_000)[:500])
        client = new()
        client.send(request(PASSES, 1, answer=8 << 20))
        client.sock.shutdown(socket.SHUT_WR)
        client = new()
        client.send(request(PASSES, 1) + request(PASSES, 2))
        client.sock.shutdown(socket.SHUT_WR)
        assert_idle(gateway.rounds)
        stop.set()
