"""Conversations through a forwarder: every byte arrives once, in order, and memory stays bounded."""

import contextlib
import gc
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from brimline.gateway.net.connection import Connection
from brimline.gateway.net.forwarder import ForwarderSettings
from tests.gateway.peers import (
    BUG,
    BUG_IN_ANSWER,
    BUG_LATER,
    CHANGED,
    CHANGED_LATER,
    COLLECTED,
    HELD,
    LAST,
    OWN,
    PASSES,
    PRODUCE,
    Backend,
    Client,
    Clock,
    GatewayProcess,
    Running,
    answer_everything,
    answer_of,
    assert_idle,
    client_gets,
    converse,
    in_threads,
    request,
    requests_from,
    running,
    wait_until_it_rests,
)
from tests.waiting import PATIENCE_SECONDS, eventually

LARGE = 3 << 20
"""Goes through the pipe, several times over."""

Serve = Callable[[socket.socket], None]

TIMEOUT = 1_000.0
"""For tests with a clock of their own."""
PATIENT = ForwarderSettings(header_timeout=TIMEOUT)


@pytest.fixture(autouse=True)
def _the_late_are_looked_for_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brimline.gateway.net.forwarder._SWEEP_SECONDS", 0.1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """What the forwarder goes by, timers apart."""
    clock = Clock()
    for module in ("forwarder", "connection", "lifetime", "held"):
        monkeypatch.setattr(f"brimline.gateway.net.{module}.time", clock)
    return clock


@pytest.fixture
def backend() -> Iterator[Backend]:
    with contextlib.closing(Backend()) as backend:
        yield backend


@pytest.fixture
def gateway(backend: Backend) -> Iterator[Running]:
    with running(backend.address) as gateway:
        yield gateway


@pytest.fixture
def client(gateway: Running) -> Iterator[Client]:
    with Client(gateway.address) as client:
        yield client


@contextlib.contextmanager
def gateway_to(serve: Serve, settings: ForwarderSettings | None = None) -> Iterator[Running]:
    with contextlib.closing(Backend(serve)) as backend, running(backend.address, settings) as gateway:
        yield gateway


def some_requests(count: int, randomness: random.Random) -> list[bytes]:
    kinds = (PASSES, PASSES, PASSES, PRODUCE, OWN, HELD, CHANGED, CHANGED_LATER, COLLECTED)
    sizes = (0, 1, 50, 50, 1_000, 1_000, 30_000, 70_000, 300_000, LARGE)
    return [
        request(
            randomness.choice(kinds),
            randomness.choice((number, 7, -number)),  # a client may use one twice
            body=randomness.choice(sizes),
            answer=randomness.choice(sizes),
        )
        for number in range(count)
    ]


def kind_of(sent: bytes) -> int:
    return int.from_bytes(sent[4:6])


# Every byte, in order --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_random_conversations_are_the_same_at_both_ends(seed: int) -> None:
    randomness = random.Random(seed)
    requests = some_requests(40, randomness)
    received = bytearray()

    def serve(sock: socket.socket) -> None:
        for asked in requests_from(sock):
            received.extend(asked)
            sock.sendall(answer_of(asked))

    with gateway_to(serve) as gateway, Client(gateway.address) as client:
        converse(client, requests, randomness)
    assert bytes(received) == b"".join(each for each in requests if kind_of(each) not in (OWN, HELD))


@pytest.mark.parametrize("seed", range(3))
def test_so_are_those_of_many_who_get_short_turns_and_little_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request is held until its turn, everybody is read in small pieces, and most must wait for the oldest."""
    monkeypatch.setattr("brimline.gateway.net.turns._AT_ONCE_NS", 1)

    def talk(address: tuple[str, int], number: int) -> None:
        randomness = random.Random(100 * seed + number)
        with Client(address) as client:
            converse(client, some_requests(12, randomness), randomness)

    settings = ForwarderSettings(kept_bytes=1, header_timeout=PATIENCE_SECONDS)
    with contextlib.closing(Backend()) as backend, running(backend.address, settings) as gateway:
        in_threads(*(partial(talk, gateway.address, number) for number in range(8)))
        eventually(lambda: gateway.closed == {"closed": 8})


def test_many_connections_at_once(gateway: Running) -> None:
    def talk(seed: int) -> None:
        randomness = random.Random(seed)
        with Client(gateway.address) as client:
            converse(client, some_requests(6, randomness), randomness)

    in_threads(*(lambda seed=seed: talk(seed) for seed in range(30)))
    eventually(lambda: gateway.closed == {"closed": 30})
    assert gateway.counters.accepted == 30
    assert gateway.counters.requests == 180


def test_ten_thousand_pipelined_requests(client: Client) -> None:
    converse(client, [request(PASSES, number) for number in range(10_000)], random.Random(0))


def test_own_answers_take_their_place_behind_one_that_is_under_way(client: Client) -> None:
    """That one is larger than what sockets and pipe hold: the others are there long before they may leave."""
    requests = [
        request(PASSES, 1, answer=8 << 20),
        request(OWN, 2),
        request(CHANGED, 3, answer=LARGE),
        request(PASSES, 4, answer=LARGE),
        *(request(OWN, number) for number in range(5, 2_000)),
    ]
    client.send(b"".join(requests))
    assert client.read(1_000) == answer_of(requests[0])[:1_000]
    client.send(last := request(OWN, 2_000))
    wanted = b"".join(map(client_gets, [*requests, last]))[1_000:]
    assert client.read(len(wanted)) == wanted


def test_an_answer_that_is_held_back_holds_back_the_rest(backend: Backend) -> None:
    requests = [request(PASSES, 1), request(HELD, 2), *(request(PASSES, number, answer=5_000) for number in range(99))]
    with running(backend.address, held_seconds=0.3) as gateway, Client(gateway.address) as client:
        began = time.monotonic()
        client.send(b"".join(requests))
        assert client.read_frame() == answer_of(requests[0])
        assert client.read_frame() == client_gets(requests[1])
        assert time.monotonic() - began >= 0.3
        wanted = b"".join(map(client_gets, requests[2:]))
        assert client.read(len(wanted)) == wanted


def test_urgent_data_in_a_large_frame_stops_nothing(gateway: Running, client: Client) -> None:
    """A pipe takes nothing from a socket at an urgent byte. The byte itself is lost, as at any server."""
    sent = request(PASSES, 1, body=LARGE)
    client.send(sent[: 1 << 20])
    client.sock.send(b"!", socket.MSG_OOB)
    client.send(sent[1 << 20 :])
    assert client.read_frame() == answer_of(sent)


# Back-pressure ---------------------------------------------------------------------------------------------------


def test_a_client_that_never_reads_costs_one_pipe(gateway: Running) -> None:
    with Client(gateway.address) as idle, Client(gateway.address) as other:
        for number in range(200):
            idle.send(request(PASSES, number, answer=4 << 20))
        for _ in range(50):
            other.ask(answer=1_000)
        assert gateway.forwarder.kept_bytes <= 1 << 20
        other.ask(CHANGED_LATER, body=LARGE, answer=LARGE)


def test_neither_end_can_fill_the_memory() -> None:
    """A client that asks without reading, and one whose broker answers nothing and reads nothing."""
    stop = threading.Event()

    def serve(sock: socket.socket) -> None:
        for asked in requests_from(sock):
            if asked.endswith(b"stall"):
                stop.wait(PATIENCE_SECONDS)
                return
            sock.sendall(answer_of(asked))

    def flood(client: Client, data: bytes) -> None:
        client.sock.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while True:
                client.send(data)

    stalling = request(PASSES, 1, body=5)[:-5] + b"stall"
    with contextlib.ExitStack() as stack:
        backend = stack.enter_context(contextlib.closing(Backend(serve)))
        gateway = stack.enter_context(contextlib.closing(GatewayProcess(backend.address)))
        clients = [stack.enter_context(Client(gateway.address)) for _ in range(6)]
        well_behaved = stack.enter_context(Client(gateway.address))
        well_behaved.ask(CHANGED, answer=LARGE, body=LARGE)
        before = gateway.resident_bytes()
        for client in clients[3:]:
            client.send(stalling)
        asking = b"".join(request(PASSES, number, answer=100_000) for number in range(1_000))
        collected = request(COLLECTED, 2, body=2 << 20)
        in_threads(
            *(lambda client=client: flood(client, asking) for client in clients[:3]),
            *(lambda client=client: flood(client, collected) for client in clients[3:]),
        )
        for _ in range(10):
            well_behaved.ask(answer=1_000)
        assert gateway.resident_bytes() - before < 40 << 20
        stop.set()


def test_the_memory_for_whole_frames_has_a_bound(backend: Backend) -> None:
    """The oldest may go on, so that it ends; then the next. Small frames are not concerned."""
    size, count = 4 << 20, 6
    settings = ForwarderSettings(kept_bytes=6 << 20)
    with running(backend.address, settings) as gateway, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(gateway.address)) for _ in range(count)]
        other = stack.enter_context(Client(gateway.address))
        requests = [request(COLLECTED, number, body=size) for number in range(count)]
        for client, sent in zip(clients, requests, strict=True):
            client.send(sent[: size // 2])
        most = 0

        def send_rest(client: Client, sent: bytes) -> None:
            client.send(sent[size // 2 :])
            assert client.read_frame() == answer_of(sent)

        def watch() -> None:
            nonlocal most
            for _ in range(30):
                other.ask(COLLECTED, body=1_000, answer=1_000)
                most = max(most, gateway.forwarder.kept_bytes)

        in_threads(
            watch,
            *(lambda pair=pair: send_rest(*pair) for pair in zip(clients, requests, strict=True)),
        )
        assert most <= settings.kept_bytes + size + (count << 18)
        eventually(lambda: gateway.forwarder.kept_bytes == 0)


def test_whole_frames_that_a_broker_does_not_take_are_bounded_too() -> None:
    go_on = threading.Event()

    def serve(sock: socket.socket) -> None:
        go_on.wait(PATIENCE_SECONDS)
        for asked in requests_from(sock):
            sock.sendall(answer_of(asked))

    count = 8
    settings = ForwarderSettings(kept_bytes=4 << 20)
    with gateway_to(serve, settings) as gateway, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(gateway.address)) for _ in range(count)]
        requests = [request(COLLECTED, number, body=8 << 20) for number in range(count)]

        def look() -> None:
            eventually(lambda: gateway.forwarder.kept_bytes >= settings.kept_bytes)
            wait_until_it_rests(lambda: gateway.counters.bytes_to_broker)
            assert gateway.rules.judged < count // 2
            go_on.set()

        def ask(client: Client, sent: bytes) -> None:
            client.send(sent)
            assert client.read_frame() == answer_of(sent)

        in_threads(look, *(lambda pair=pair: ask(*pair) for pair in zip(clients, requests, strict=True)))
        assert gateway.rules.judged == count


def test_whoever_does_not_take_a_large_answer_gives_way_to_those_who_wait(backend: Backend, clock: Clock) -> None:
    settings = ForwarderSettings(kept_bytes=4 << 20, header_timeout=TIMEOUT)
    with running(backend.address, settings) as gateway, contextlib.ExitStack() as stack:
        lazy = [stack.enter_context(Client(gateway.address)) for _ in range(2)]
        for client in lazy:
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.send(b"".join(request(CHANGED, number, answer=8 << 20) for number in range(3)))
        waiting = stack.enter_context(Client(gateway.address))
        waiting.ask()
        eventually(lambda: gateway.forwarder.kept_bytes >= settings.kept_bytes)
        is_answered = threading.Event()

        def ask() -> None:
            waiting.ask(CHANGED, answer=LARGE)
            is_answered.set()

        def let_time_pass() -> None:
            while not is_answered.is_set():
                gateway.let_pass(TIMEOUT, clock)

        in_threads(ask, let_time_pass)
        assert gateway.forwarder.kept_bytes < settings.kept_bytes + (10 << 20)
        assert gateway.closed.get("memory-needed", 0) > 0


def test_a_stream_of_others_starves_nobody(gateway: Running) -> None:
    stop = threading.Event()

    def stream() -> None:
        with Client(gateway.address) as client:
            while not stop.is_set():
                client.ask(body=LARGE, answer=LARGE)

    def ping() -> None:
        try:
            with Client(gateway.address) as client:
                for _ in range(200):
                    client.ask()
        finally:
            stop.set()

    in_threads(stream, stream, ping)


# Ends ------------------------------------------------------------------------------------------------------------


def test_a_client_that_sends_no_more_gets_its_answers(gateway: Running, client: Client) -> None:
    requests = [request(PASSES, 1, answer=LARGE), request(OWN, 2), request(PASSES, 3, body=LARGE, answer=8 << 20)]
    client.send(b"".join(requests))
    client.sock.shutdown(socket.SHUT_WR)
    assert client.read_to_end() == b"".join(map(client_gets, requests))
    client.close()
    eventually(lambda: gateway.closed == {"closed": 1})


def test_a_broker_that_sends_no_more_is_still_sent_to() -> None:
    received: list[bytes] = []

    def serve(sock: socket.socket) -> None:
        requests = requests_from(sock)
        sock.sendall(answer_of(next(requests)))
        sock.shutdown(socket.SHUT_WR)
        received.extend(requests)

    with gateway_to(serve) as gateway, Client(gateway.address) as client:
        client.ask(answer=LARGE)
        assert client.read(1) == b""
        client.send(last := request(PASSES, 2, body=LARGE))
        client.close()
        eventually(lambda: gateway.closed == {"closed": 1})
    assert received == [last]


@pytest.mark.parametrize("size", [1_000, 8 << 20])
def test_a_client_gets_what_a_dying_broker_has_said(size: int) -> None:
    """As much of an answer as there was, then the end."""

    def serve(sock: socket.socket) -> None:
        asked = next(requests_from(sock))
        sock.sendall(answer_of(asked)[: size // 2])

    with gateway_to(serve) as gateway, Client(gateway.address) as client:
        client.send(sent := request(PASSES, 1, answer=size))
        assert client.read_to_end() == answer_of(sent)[: size // 2]
        client.close()
        eventually(lambda: gateway.closed == {"closed": 1})


def test_a_client_gets_what_a_broker_said_before_it_hung_up_on_the_next_request() -> None:
    """A broker that closes with requests unread resets the connection: its last answers are still to be had."""

    def serve(sock: socket.socket) -> None:
        sock.sendall(answer_of(next(requests_from(sock))))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with gateway_to(serve) as gateway, Client(gateway.address) as client:
        client.send(first := request(PASSES, 1, answer=1_000))
        wanted = answer_of(first)
        with contextlib.suppress(ConnectionError):
            for number in range(2, 50):
                client.send(request(PASSES, number, body=10_000))
        assert client.read(len(wanted)) == wanted
        client.close()
        eventually(lambda: gateway.forwarder.all_open == 0)


def test_peers_that_vanish_are_found_out(gateway: Running, client: Client) -> None:
    """A machine that loses power says nothing: the kernel must ask."""
    client.ask()

    def options() -> list[int]:
        (connection,) = gateway.forwarder._connections
        socks = (connection.client.sock, connection.broker.sock)
        return [sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) for sock in socks]

    assert gateway.inside(options) == [1, 1]


@pytest.mark.parametrize(("source", "seen"), [("127.0.92.1", "127.0.92.1"), (None, "127.0.0.1")])
def test_the_address_that_a_broker_sees(source: str | None, seen: str) -> None:
    found: list[str] = []

    def serve(connection: socket.socket) -> None:
        found.append(connection.getpeername()[0])
        answer_everything(connection)

    with (
        contextlib.closing(Backend(serve)) as backend,
        running(backend.address, source=source) as gateway,
        Client(gateway.address) as client,
    ):
        converse(client, [request(PASSES, 1)], random.Random(1))

    assert found == [seen]


def test_an_address_that_is_gone_is_a_broker_that_cannot_be_reached(backend: Backend) -> None:
    with running(backend.address, source="192.0.2.1") as lonely, Client(lonely.address) as client:
        assert client.read_to_end() == b""
        eventually(lambda: lonely.closed == {"broker-unreachable": 1})


def test_a_broker_that_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = nobody.getsockname()
    with running(address) as lonely, Client(lonely.address) as client:
        assert client.read_to_end() == b""
        eventually(lambda: lonely.closed == {"broker-unreachable": 1})


def test_a_broker_that_does_not_take_connections_is_waited_for_no_longer_than_a_header() -> None:
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # its queue is full
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)  # noqa: FBT003  the standard library's signature
            waiting.connect_ex(listening.getsockname())
        gateway = stack.enter_context(running(listening.getsockname(), ForwarderSettings(header_timeout=0.2)))
        client = stack.enter_context(Client(gateway.address))
        assert client.read_to_end() == b""
        eventually(lambda: gateway.closed == {"too-slow": 1})


@pytest.mark.parametrize("sent", [3, 100, 100_000, 2 << 20])
@pytest.mark.parametrize("kind", [PASSES, COLLECTED])
def test_a_client_that_is_cut_off_within_a_frame(gateway: Running, backend: Backend, kind: int, sent: int) -> None:
    with Client(gateway.address) as other:
        other.ask()
        client = Client(gateway.address)
        client.ask()
        client.send(request(kind, 1, body=LARGE)[:sent])
        client.reset()
        eventually(lambda: gateway.forwarder.all_open == 1)
        other.ask()
    eventually(lambda: backend.open_connections == 0)


def test_a_client_that_goes_away_within_an_answer(gateway: Running, backend: Backend) -> None:
    client = Client(gateway.address)
    client.send(request(PASSES, 1, answer=8 << 20) + request(OWN, 2))
    client.read(1_000)
    client.reset()
    eventually(lambda: gateway.forwarder.all_open == 0)
    eventually(lambda: backend.open_connections == 0)


def test_what_came_before_a_bad_frame_is_answered(gateway: Running, client: Client) -> None:
    requests = [request(PASSES, 1, answer=LARGE), request(OWN, 2), request(PASSES, 3)]
    client.send(b"".join(requests) + b"\xff" * 100_000)
    assert client.read_to_end() == b"".join(map(client_gets, requests))
    eventually(lambda: gateway.closed == {"malformed": 1})


def test_a_request_without_acks_that_is_refused_ends_the_connection() -> None:
    received: list[bytes] = []

    def serve(sock: socket.socket) -> None:
        for asked in requests_from(sock):
            received.append(asked)
            if kind_of(asked) != LAST:
                sock.sendall(answer_of(asked))

    requests = [request(PASSES, 1, answer=LARGE), request(LAST, 2, body=LARGE)]
    with gateway_to(serve) as gateway, Client(gateway.address) as client:
        client.send(b"".join(requests) + request(PASSES, 3, body=100_000))
        assert client.read_to_end() == answer_of(requests[0])
        eventually(lambda: gateway.closed == {"refused-without-acks": 1})
        eventually(lambda: received == requests)


@pytest.mark.parametrize("kind", [BUG, BUG_IN_ANSWER, BUG_LATER])
def test_a_bug_ends_one_connection(backend: Backend, kind: int) -> None:
    with running(backend.address, expects_bugs=True) as gateway, Client(gateway.address) as other:
        other.ask()
        with Client(gateway.address) as client:
            client.send(request(kind, 1))
            assert client.read_to_end() == b""
        eventually(lambda: gateway.closed == {"bug": 1})
        assert len(gateway.bugs) == 1
        other.ask()


# Limits ----------------------------------------------------------------------------------------------------------


def test_no_more_connections_than_allowed(backend: Backend) -> None:
    with running(backend.address, ForwarderSettings(max_connections=3)) as gateway, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(gateway.address)) for _ in range(3)]
        for client in clients:
            client.ask()
        with Client(gateway.address) as refused:
            assert refused.read_to_end() == b""
        eventually(lambda: gateway.closed == {"too-many-connections": 1})
        clients[0].close()
        eventually(lambda: gateway.forwarder.all_open == 2)
        with Client(gateway.address) as accepted:
            accepted.ask()
        clients[1].ask()


def test_without_descriptors_the_connections_that_are_there_go_on(backend: Backend) -> None:
    with (
        contextlib.closing(GatewayProcess(backend.address, descriptors=40)) as gateway,
        contextlib.ExitStack() as stack,
    ):
        clients = [stack.enter_context(Client(gateway.address)) for _ in range(5)]
        for client in clients:
            client.ask()
        excess = [stack.enter_context(Client(gateway.address)) for _ in range(40)]
        eventually(lambda: gateway.descriptors() >= 39)
        for client in clients:
            client.ask(body=LARGE, answer=LARGE)  # with no descriptor left for a pipe
        assert_idle(gateway.rounds)
        for client in excess:
            client.close()
        eventually(lambda: gateway.descriptors() < 30)
        with Client(gateway.address) as client:
            client.ask()


def test_an_idle_connection_takes_little_memory(backend: Backend) -> None:
    count = 300
    with contextlib.closing(GatewayProcess(backend.address)) as gateway, contextlib.ExitStack() as stack:
        warm_up = stack.enter_context(Client(gateway.address))
        warm_up.ask(COLLECTED, body=LARGE, answer=LARGE)
        before = gateway.resident_bytes()
        for _ in range(count):
            client = stack.enter_context(Client(gateway.address))
            client.ask(CHANGED)
        assert (gateway.resident_bytes() - before) / count < 30_000


# Slowness --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PASSES, COLLECTED])
def test_a_header_must_come_in_time(backend: Backend, clock: Clock, kind: int) -> None:
    with running(backend.address, PATIENT) as gateway, Client(gateway.address) as other:
        other.ask()
        with Client(gateway.address) as slow:
            slow.ask()
            slow.send(request(kind, 1)[:6])
            eventually(lambda: closed_after(TIMEOUT, gateway, clock) == {"too-slow": 1})
            assert slow.read_to_end() == b""
        other.ask()  # idle all the while, which is no fault


def test_a_collected_frame_must_come_in_time(backend: Backend) -> None:
    with running(backend.address, ForwarderSettings(header_timeout=0.2)) as gateway, Client(gateway.address) as slow:
        slow.send(request(COLLECTED, 1, body=1_000)[:500])
        assert slow.read_to_end() == b""
        eventually(lambda: gateway.closed == {"too-slow": 1})


def closed_after(seconds: float, gateway: Running, clock: Clock) -> dict[str, int]:
    gateway.let_pass(seconds, clock)
    return gateway.closed


def test_a_frame_that_passes_may_take_its_time(backend: Backend, clock: Clock) -> None:
    with running(backend.address, PATIENT) as gateway, Client(gateway.address) as slow:
        sent = request(PASSES, 1, body=1_000)
        slow.send(sent[:500])
        eventually(lambda: gateway.counters.bytes_to_broker == 500)
        assert closed_after(2 * TIMEOUT, gateway, clock) == {}
        slow.send(sent[500:])
        assert slow.read_frame() == answer_of(sent)


def test_a_busy_client_is_not_taken_for_a_slow_one(backend: Backend, clock: Clock) -> None:
    """A read that completes one frame brings the beginning of the next: there is always one that is kept."""
    with running(backend.address, PATIENT) as gateway, Client(gateway.address) as busy:
        sent = request(COLLECTED, 1, body=30_000)
        busy.send(sent[:20_000])
        for _ in range(5):
            assert closed_after(0.6 * TIMEOUT, gateway, clock) == {}
            busy.send(sent[20_000:] + sent[:20_000])
            assert busy.read_frame() == answer_of(sent)


def test_a_client_is_not_late_while_its_broker_is(clock: Clock) -> None:
    """Its next request has begun to come in, but is not read because the broker does not take the one before."""
    go_on = threading.Event()

    def serve(sock: socket.socket) -> None:
        go_on.wait(PATIENCE_SECONDS)
        for asked in requests_from(sock):
            sock.sendall(answer_of(asked))

    with gateway_to(serve, PATIENT) as gateway, Client(gateway.address) as client:
        requests = [request(COLLECTED, number, body=8 << 20) for number in range(2)]
        client.send(requests[0] + requests[1][:100])
        eventually(lambda: gateway.rules.judged == 1)
        for _ in range(2):
            assert closed_after(TIMEOUT, gateway, clock) == {}
        go_on.set()
        client.send(requests[1][100:])
        for sent in requests:
            assert client.read_frame() == answer_of(sent)


def test_a_client_that_does_not_take_a_dead_brokers_last_words_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brimline.gateway.net.lifetime._LAST_WORDS_SECONDS", 0.2)

    def serve(sock: socket.socket) -> None:
        sock.sendall(answer_of(next(requests_from(sock))))

    with gateway_to(serve) as gateway, Client(gateway.address) as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(request(CHANGED, 1, answer=8 << 20))
        eventually(lambda: gateway.closed == {"too-slow": 1})


# Draining --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def drained(gateway: Running, seconds: float) -> Iterator[list[None]]:
    """Has an element when draining is over."""
    done: list[None] = []
    gateway.inside(lambda: gateway.forwarder.drain(seconds, lambda: done.append(None)))
    yield done
    eventually(lambda: bool(done))
    assert len(done) == 1


def test_draining_ends_idle_connections_at_once(gateway: Running) -> None:
    with Client(gateway.address) as client, Client(gateway.address) as other:
        client.ask()
        other.ask()
        with drained(gateway, PATIENCE_SECONDS):
            assert client.read_to_end() == b""
            assert other.read_to_end() == b""
        with pytest.raises(ConnectionRefusedError):
            Client(gateway.address)
        eventually(lambda: gateway.closed == {"closed": 2})


def test_clients_that_go_back_to_the_broker_are_let_go_some_at_a_time(gateway: Running) -> None:
    with Client(gateway.address) as first, Client(gateway.address) as second:
        first.ask()
        second.ask()
        gateway.inside(lambda: gateway.forwarder.let_go(1))
        assert first.read_to_end() == b""
        second.ask()
        gateway.inside(lambda: gateway.forwarder.let_go(1))
        assert second.read_to_end() == b""


def test_draining_lets_what_is_under_way_come_to_its_end() -> None:
    go_on = threading.Event()

    def serve(sock: socket.socket) -> None:
        for asked in requests_from(sock):
            if len(asked) > 1_000:
                go_on.wait(PATIENCE_SECONDS)
            sock.sendall(answer_of(asked))

    with gateway_to(serve) as gateway, contextlib.ExitStack() as stack:
        waiting, sending, held = (stack.enter_context(Client(gateway.address)) for _ in range(3))
        waiting.send(slow := request(PASSES, 1, body=2_000, answer=8 << 20))
        sending.send((half := request(COLLECTED, 2, body=2_000, answer=LARGE))[:1_000])
        held.send(own := request(HELD, 3))
        for client in (waiting, sending, held):
            client.send(b"")
        eventually(lambda: gateway.counters.requests == 3)
        with drained(gateway, PATIENCE_SECONDS) as done:
            # A request that comes too late is not read, and costs the answer before it nothing.
            waiting.send(request(PASSES, 4, body=100_000))
            assert held.read_to_end() == client_gets(own)
            assert not done
            sending.send(half[1_000:])
            go_on.set()
            assert waiting.read_to_end() == answer_of(slow)
            assert sending.read_to_end() == answer_of(half)
        eventually(lambda: gateway.closed == {"closed": 3})


def test_draining_does_not_wait_for_ever(backend: Backend) -> None:
    with running(backend.address) as gateway, Client(gateway.address) as client:
        client.ask()
        client.send(request(PASSES, 1, body=LARGE)[:LARGE])
        with drained(gateway, 0.1):
            assert client.read_to_end() == b""
        eventually(lambda: gateway.closed == {"gateway-stopped": 1})


# Nothing to do ---------------------------------------------------------------------------------------------------


def test_connections_in_odd_states_cost_no_time() -> None:
    stop = threading.Event()

    def serve(sock: socket.socket) -> None:
        """Does what the body says."""
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        asked = next(requests_from(sock), b"")
        if asked.endswith(b"answer"):
            sock.sendall(answer_of(asked))
        elif asked.endswith(b"reset"):
            sock.sendall(answer_of(asked))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        elif asked.endswith(b"half"):
            sock.sendall(answer_of(asked))
            sock.shutdown(socket.SHUT_WR)
        stop.wait(PATIENCE_SECONDS)

    def saying(word: bytes, answer: int = 0) -> bytes:
        return request(PASSES, 1, body=len(word), answer=answer)[: -len(word)] + word

    def unread(client: Client) -> None:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    def stuffed(client: Client) -> None:
        """Sends to a broker that does not read until nothing more goes."""
        client.send(saying(b"stall"))
        client.sock.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            while True:
                client.send(request(PASSES, 2, body=300_000))

    with gateway_to(serve) as gateway, contextlib.ExitStack() as stack:

        def new() -> Client:
            return stack.enter_context(Client(gateway.address))

        new()  # says nothing
        new().send(saying(b"stall"))  # waits for an answer
        new().sock.shutdown(socket.SHUT_WR)
        client = new()
        client.send(saying(b"stall"))
        client.sock.shutdown(socket.SHUT_WR)  # waits, and will say no more
        client = new()
        unread(client)
        client.send(saying(b"answer", 8 << 20))  # does not read
        client = new()
        unread(client)
        client.send(saying(b"answer", 8 << 20))
        client.sock.shutdown(socket.SHUT_WR)  # … nor say more
        client = new()
        unread(client)
        client.send(saying(b"reset", 8 << 20))  # its broker has gone, with answers that it does not read
        client = new()
        unread(client)
        client.send(saying(b"half", 8 << 20))
        client.sock.shutdown(socket.SHUT_WR)
        new().send(saying(b"half"))  # its broker says no more
        new().send(request(COLLECTED, 1, body=1_000)[:500])
        stuffed(new())
        client = new()
        stuffed(client)
        client.sock.shutdown(socket.SHUT_WR)
        resetting = new()
        stuffed(resetting)
        resetting.reset()  # has gone, and its broker does not read
        resetting = new()
        resetting.send(request(HELD, 1) + saying(b"answer"))
        resetting.reset()
        assert_idle(gateway.rounds)
        gateway.inside(lambda: gateway.forwarder.drain(PATIENCE_SECONDS, lambda: None))
        assert_idle(gateway.rounds)
        stop.set()


def test_a_reset_while_the_broker_is_not_connected_yet_costs_no_time() -> None:
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # its queue is full
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)  # noqa: FBT003  the standard library's signature
            waiting.connect_ex(listening.getsockname())
        gateway = stack.enter_context(running(listening.getsockname()))
        client = Client(gateway.address)
        client.reset()
        eventually(lambda: gateway.counters.accepted == 1)
        assert_idle(gateway.rounds)
        eventually(lambda: gateway.closed == {"reset": 1})


def test_urgent_data_costs_no_time(gateway: Running, client: Client) -> None:
    client.send(request(PASSES, 1, body=LARGE)[: 1 << 20])
    client.sock.send(b"!", socket.MSG_OOB)
    client.send(b"more")
    assert_idle(gateway.rounds)


def test_a_closed_connection_is_forgotten_before_its_held_answers_are_due(backend: Backend) -> None:
    with running(backend.address, held_seconds=1_000.0) as gateway:
        client = Client(gateway.address)
        client.send(b"".join(request(HELD, number) for number in range(1_000)))
        eventually(lambda: gateway.counters.requests == 1_000)
        client.reset()
        eventually(lambda: gateway.forwarder.all_open == 0)
        gc.collect()
        assert not [each for each in gc.get_objects() if isinstance(each, Connection)]
