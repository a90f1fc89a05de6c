"""Where clients come in: sockets of our own, and those that outlive the process."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator

import pytest

from brimline.gateway.net.listening import listening_sockets, passed_sockets, resolved
from tests.gateway.peers import Backend, Client, GatewayProcess, in_threads
from tests.waiting import PATIENCE_SECONDS


@pytest.fixture
def backend() -> Iterator[Backend]:
    with contextlib.closing(Backend()) as backend:
        yield backend


def can_connect(family: socket.AddressFamily, address: tuple[str, int]) -> bool:
    with socket.socket(family) as client:
        client.settimeout(PATIENCE_SECONDS)
        return client.connect_ex(address) == 0


@contextlib.contextmanager
def listening(host: str, port: int = 0) -> Iterator[tuple[socket.socket, ...]]:
    with contextlib.ExitStack() as stack:
        yield tuple(stack.enter_context(sock) for sock in listening_sockets(host, port))


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "[::]"])
def test_a_wildcard_is_every_address(host: str) -> None:
    with listening(host) as (sock,):
        port = sock.getsockname()[1]
        assert can_connect(socket.AF_INET, ("127.0.0.1", port))
        assert can_connect(socket.AF_INET, ("127.0.0.2", port))
        if socket.has_dualstack_ipv6():
            assert can_connect(socket.AF_INET6, ("::1", port))


def test_an_address_is_that_address() -> None:
    with listening("127.0.0.2") as (sock,):
        port = sock.getsockname()[1]
        assert can_connect(socket.AF_INET, ("127.0.0.2", port))
        assert not can_connect(socket.AF_INET, ("127.0.0.1", port))


def test_an_address_that_is_taken_is_an_error_and_leaves_nothing_behind() -> None:
    with listening("127.0.0.1") as (sock,), pytest.raises(OSError, match="in use"):
        listening_sockets("127.0.0.1", sock.getsockname()[1])


def test_a_name_may_have_addresses_of_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    here = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))
    elsewhere = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("192.0.2.1", 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [elsewhere, here])
    with listening("broker7") as sockets:
        assert [sock.getsockname()[0] for sock in sockets] == ["127.0.0.1"]

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [elsewhere])
    with pytest.raises(OSError, match="assign"):
        listening_sockets("broker7", 0)


def test_a_host_is_resolved_once() -> None:
    assert resolved("127.0.0.1", 9092) == (socket.AF_INET, ("127.0.0.1", 9092))
    assert resolved("::1", 9092)[0] == socket.AF_INET6


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"LISTEN_PID": "1", "LISTEN_FDS": "1"},
        {"LISTEN_PID": str(os.getpid())},
        {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "-1"},
        {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "many"},
        {"LISTEN_PID": "", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "client"},
    ],
)
def test_sockets_that_are_for_somebody_else_are_not_taken(environment: dict[str, str]) -> None:
    assert passed_sockets(environment) == {}
    assert environment == {}


def test_a_restart_refuses_no_connection(backend: Backend) -> None:
    """The listening socket is held open as by systemd: who comes in between waits."""
    with listening("127.0.0.1") as (sock,):
        address = sock.getsockname()
        first = GatewayProcess(backend.address, sock)
        assert first.address == address
        with Client(address) as before:
            before.ask()
            first.close()
            assert before.read_to_end() == b""
        with Client(address) as between, Client(address) as another:
            second = GatewayProcess(backend.address, sock)
            with contextlib.closing(second):
                between.ask()
                another.ask()
                with Client(address) as after:
                    after.ask()


def test_clients_that_come_all_the_time_are_not_refused_by_restarts(backend: Backend) -> None:
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            # Connecting never fails. One that is ended while it asks has met the end of a process.
            with Client(address) as client, contextlib.suppress(ConnectionError, AssertionError):
                client.ask()

    def restart() -> None:
        try:
            for _ in range(3):
                GatewayProcess(backend.address, sock).close()
        finally:
            stop.set()
            stack.enter_context(contextlib.closing(GatewayProcess(backend.address, sock)))

    with listening("127.0.0.1") as (sock,), contextlib.ExitStack() as stack:
        address = sock.getsockname()
        in_threads(restart, come_and_go, come_and_go)
