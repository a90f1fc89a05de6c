"""Limits by address, and for strangers: what a broker cannot do behind a gateway, or leaves to its idle time-out."""

import contextlib
from collections.abc import Iterator

import pytest

from brimline.gateway.net import addresses
from brimline.gateway.net.addresses import Addresses, AddressLimits, AddressRefusal, address_of
from brimline.gateway.net.forwarder import ForwarderSettings
from tests.gateway.peers import PASSES, Backend, Client, Clock, Running, answer_of, frame, request, running
from tests.waiting import eventually

ONE, OTHER = "127.0.0.1", "127.0.0.2"
TOKEN = 36
HANDSHAKE = 17
LOGIN_BYTES = 10_000
LARGE = 500_000
TIMEOUT = 1_000.0


@pytest.fixture
def backend() -> Iterator[Backend]:
    with contextlib.closing(Backend()) as backend:
        yield backend


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """What the forwarder goes by, timers apart."""
    clock = Clock()
    monkeypatch.setattr("brimline.gateway.net.forwarder._SWEEP_SECONDS", 0.1)
    for module in ("addresses", "forwarder", "connection", "lifetime", "held"):
        monkeypatch.setattr(f"brimline.gateway.net.{module}.time", clock)
    return clock


@contextlib.contextmanager
def limited(backend: Backend, limits: AddressLimits) -> Iterator[Running]:
    with running(backend.address, ForwarderSettings(addresses=limits)) as gateway:
        yield gateway


# By address ------------------------------------------------------------------------------------------------------


def test_an_address_has_so_many_connections_and_no_more(backend: Backend) -> None:
    with limited(backend, AddressLimits(connections=2)) as gateway, contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(Client(gateway.address, source=ONE)) for _ in range(2))
        first.ask()
        second.ask()
        with Client(gateway.address, source=ONE) as third:
            eventually(third.is_ended)
        with Client(gateway.address, source=OTHER) as elsewhere:
            elsewhere.ask(answer=1_000)
        assert gateway.closed["address-limit"] == 1
        first.close()
        eventually(lambda: gateway.forwarder.all_open == 1)
        with Client(gateway.address, source=ONE) as next_one:
            next_one.ask()
        second.ask()


def test_an_address_may_have_a_limit_of_its_own(backend: Backend) -> None:
    with limited(backend, AddressLimits(connections=0, connections_of={OTHER: 1})) as gateway:
        with Client(gateway.address, source=OTHER) as excepted:
            excepted.ask()
        with Client(gateway.address, source=ONE) as client:
            eventually(client.is_ended)


def test_an_address_may_come_so_often(backend: Backend, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seldom enough that no machine is too slow."""
    most, seconds = 10, 10_000.0
    monkeypatch.setattr(addresses, "_BURST_SECONDS", seconds)
    with limited(backend, AddressLimits(per_second_of={ONE: most / seconds})) as gateway:

        def is_let_in(source: str) -> bool:
            before = gateway.closed.get("address-rate", 0)
            with Client(gateway.address, source=source) as client, contextlib.suppress(OSError):
                client.send(request(PASSES, 1))
                client.read_frame()
            return gateway.closed.get("address-rate", 0) == before

        let_in = [is_let_in(ONE) for _ in range(2 * most)]
        assert let_in == [True] * most + [False] * most
        assert all(is_let_in(OTHER) for _ in range(2 * most))
        clock.ahead += seconds
        assert is_let_in(ONE)


def test_a_rate_of_nothing_lets_nobody_in() -> None:
    assert Addresses(AddressLimits(per_second=0.0)).refusal(ONE) is AddressRefusal.TOO_FAST


def test_rates_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(addresses, "_MOST_REMEMBERED", 10)
    known = Addresses(AddressLimits(per_second=100.0))
    for number in range(100):
        assert known.refusal(f"10.0.0.{number}") is None
        clock.ahead += 20.0
    assert len(known._paid_until) <= 10


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        (("10.1.2.3", 9), "10.1.2.3"),
        (("::ffff:10.1.2.3", 9, 0, 0), "10.1.2.3"),
        (("fe80::1%eth0", 9, 0, 2), "fe80::1"),
        (("2001:db8::1", 9, 0, 0), "2001:db8::1"),
    ],
)
def test_an_address_is_written_in_one_way(peer: object, address: str) -> None:
    assert address_of(peer) == address


# Strangers -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def needing_login(backend: Backend) -> Iterator[Running]:
    settings = ForwarderSettings(largest_login=LOGIN_BYTES, login_timeout=TIMEOUT, header_timeout=100 * TIMEOUT)
    with running(backend.address, settings, needs_login=True) as gateway:
        yield gateway


@pytest.mark.parametrize("sent", [14, 5])
def test_a_stranger_may_not_announce_much(backend: Backend, sent: int) -> None:
    with needing_login(backend) as gateway, Client(gateway.address) as client:
        client.ask(body=LOGIN_BYTES // 2)
        client.send(request(PASSES, 1, body=LOGIN_BYTES)[:sent])
        eventually(client.is_ended)
        eventually(lambda: gateway.closed == {"malformed": 1})


def test_whoever_was_answered_a_token_may(backend: Backend) -> None:
    with needing_login(backend) as gateway, Client(gateway.address) as client:
        client.ask(HANDSHAKE)
        client.ask(TOKEN)
        client.ask(body=LARGE)


def test_so_may_whoever_was_answered_one_without_a_header(backend: Backend) -> None:
    with needing_login(backend) as gateway, Client(gateway.address) as client:
        handshake = request(HANDSHAKE, 1, version=0)
        client.send(handshake)
        assert client.read_frame() == answer_of(handshake)
        token = frame(b"\xff\xff" + request(PASSES, 2)[6:])  # no request: its first bytes are no API key
        client.send(token)
        assert client.read_frame() == answer_of(token)
        client.ask(body=LARGE)


def test_a_stranger_has_only_so_long(backend: Backend, clock: Clock) -> None:
    with needing_login(backend) as gateway, contextlib.ExitStack() as stack:
        silent, asking, logged_in = (stack.enter_context(Client(gateway.address)) for _ in range(3))
        asking.ask()
        logged_in.ask(TOKEN)
        eventually(lambda: gateway.forwarder.all_open == 3)
        gateway.let_pass(TIMEOUT + 1, clock)
        eventually(lambda: gateway.closed == {"not-logged-in": 2})
        assert silent.is_ended()
        assert asking.is_ended()
        logged_in.ask()


def test_without_logins_whoever_says_nothing_has_only_so_long(backend: Backend, clock: Clock) -> None:
    settings = ForwarderSettings(login_timeout=TIMEOUT, header_timeout=100 * TIMEOUT)
    with running(backend.address, settings) as gateway, contextlib.ExitStack() as stack:
        silent, asked_once = (stack.enter_context(Client(gateway.address)) for _ in range(2))
        asked_once.ask()
        eventually(lambda: gateway.forwarder.all_open == 2)
        gateway.let_pass(TIMEOUT + 1, clock)
        eventually(lambda: gateway.closed == {"silent": 1})
        assert silent.is_ended()
        asked_once.ask()
