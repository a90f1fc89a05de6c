"""The control socket: what is asked is answered, whatever else comes is no trouble."""

import contextlib
import errno
import json
import os
import random
import socket
import socketserver
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from brimline.gateway.control import LONGEST_LINE, MOST_CLIENTS, ControlServer
from brimline.model import BadInput
from tests.gateway.peers import in_threads
from tests.waiting import PATIENCE_SECONDS, eventually


def echo(request: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"asked": dict(request)}


def refuse(_request: Mapping[str, Any]) -> Mapping[str, Any]:
    raise BadInput("that cannot be")


def large(_request: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"text": "x" * 1_000_000}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("control") / "gateway-1.sock"


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[ControlServer]:
    server = ControlServer(path, {"echo": echo, "refuse": refuse, "large": large})
    server.start()
    with contextlib.closing(server):
        yield server


class Asking:
    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(path))
        self.sock.settimeout(PATIENCE_SECONDS)
        self._file = self.sock.makefile("rb")

    def __enter__(self) -> "Asking":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def read(self) -> Any:
        """``None`` at the end."""
        line = self._file.readline()
        return json.loads(line) if line else None

    def ask(self, line: bytes) -> Any:
        self.send(line + b"\n")
        return self.read()


def test_only_its_owner_may_open_it(server: ControlServer, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_socket_of_a_dead_gateway_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "gateway-2.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    server = ControlServer(path, {"echo": echo})
    server.start()
    with contextlib.closing(server), Asking(path) as client:
        assert client.ask(b'{"op": "echo"}')["ok"]
    assert not path.exists()


def test_requests_are_answered_in_order(server: ControlServer, path: Path) -> None:
    with Asking(path) as client:
        client.send(b"".join(b'{"op": "echo", "number": %d}\n' % number for number in range(100)))
        for number in range(100):
            assert client.read() == {"v": 1, "ok": True, "asked": {"op": "echo", "number": number}}


def test_a_line_may_come_in_pieces(server: ControlServer, path: Path) -> None:
    with Asking(path) as client, Asking(path) as other:
        for piece in (b'{"op"', b": ", b'"echo', b'"}', b'\n{"op": "ec'):
            client.send(piece)
            assert other.ask(b'{"op": "echo"}')["ok"]
        assert client.read()["ok"]
        client.send(b'ho"}\n')
        assert client.read()["ok"]


def test_an_error_is_an_answer(server: ControlServer, path: Path) -> None:
    with Asking(path) as client:
        assert client.ask(b'{"op": "refuse"}') == {"v": 1, "ok": False, "error": "that cannot be"}
        assert client.ask(b'{"op": "echo"}')["ok"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"op"',
        b'{"op": null}',
        b'{"op": []}',
        b'{"op": {}}',
        b'{"op": "destroy"}',
        b"\xff\xfe\0",
        b"[" * 100_000,
        b"1" * 10_000,
    ],
)
def test_what_is_not_understood_is_answered_so(server: ControlServer, path: Path, line: bytes) -> None:
    with Asking(path) as client:
        assert client.ask(line)["ok"] is False
        assert client.ask(b'{"op": "echo"}')["ok"]


def test_garbage_ends_nothing_but_itself(server: ControlServer, path: Path) -> None:
    randomness = random.Random(1)
    with Asking(path) as other:
        for _ in range(50):
            with Asking(path) as client, contextlib.suppress(ConnectionError):
                client.send(randomness.randbytes(randomness.randrange(2_000)))
        assert other.ask(b'{"op": "echo"}')["ok"]


def test_orders_for_thousands_of_partitions_with_long_names_fit(server: ControlServer, path: Path) -> None:
    followers = [[f"{number:0>249}", list(range(8))] for number in range(10_000)]
    with Asking(path) as client:
        answer = client.ask(json.dumps({"op": "echo", "followers": followers}).encode())

    assert answer["asked"]["followers"] == followers


def test_a_line_without_end_is_not_read_for_ever(server: ControlServer, path: Path) -> None:
    with Asking(path) as client:
        with contextlib.suppress(ConnectionError):
            client.send(b" " * (LONGEST_LINE + 1))
        with contextlib.suppress(ConnectionError):
            assert client.read() is None


def test_whoever_does_not_read_keeps_nobody_waiting(server: ControlServer, path: Path) -> None:
    with Asking(path) as lazy, Asking(path) as other:
        lazy.send(b'{"op": "large"}\n' * 1_000)
        for _ in range(20):
            assert other.ask(b'{"op": "echo"}')["ok"]


def test_several_at_once(server: ControlServer, path: Path) -> None:
    def ask() -> None:
        with Asking(path) as client:
            for _ in range(50):
                assert client.ask(b'{"op": "echo"}')["ok"]

    in_threads(*[ask] * 8)


def test_seats_are_limited_and_given_back(tmp_path: Path) -> None:
    path = tmp_path / "gateway-3.sock"
    server = ControlServer(path, {"echo": echo})
    server.start()

    def is_served() -> bool:
        with Asking(path) as client:
            try:
                return client.ask(b'{"op": "echo"}') is not None
            except ConnectionError:
                return False

    with contextlib.closing(server):
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Asking(path)) for _ in range(MOST_CLIENTS)]
            for client in clients:
                assert client.ask(b'{"op": "echo"}')["ok"]
            assert not is_served()
            assert clients[0].ask(b'{"op": "echo"}')["ok"]
        eventually(is_served)


def test_without_descriptors_it_waits_and_does_not_spin(
    server: ControlServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = socketserver.TCPServer.get_request
    tried: list[float] = []

    def out_of_descriptors(self: socketserver.TCPServer) -> tuple[socket.socket, Any]:
        tried.append(time.monotonic())
        if len(tried) < 4:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return accept(self)

    monkeypatch.setattr(socketserver.TCPServer, "get_request", out_of_descriptors)
    monkeypatch.setattr("brimline.gateway.control._PAUSE_SECONDS", 0.1)
    with Asking(path) as client:
        assert client.ask(b'{"op": "echo"}')["ok"]

    assert tried[3] - tried[0] >= 0.3
