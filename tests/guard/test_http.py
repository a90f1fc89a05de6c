"""The server on a real socket: what it answers, and what no client can do to it."""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from urllib.request import urlopen

import pytest

from brimline.guard import http
from brimline.guard.http import HttpRequest, HttpResponse, HttpServer, parse_request
from brimline.model import BadInput
from tests.waiting import PATIENCE_SECONDS, eventually

LARGE = b"x" * 20_000_000


def respond(request: HttpRequest) -> HttpResponse:
    if request.path == "/large":
        return HttpResponse(body=LARGE)
    return HttpResponse(body=json.dumps([request.method, request.path, request.headers.get("accept")]).encode())


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a server that cuts nobody off because the machine is slow."""
    for name in ("READ_TIMEOUT", "WRITE_TIMEOUT", "LINGER"):
        monkeypatch.setattr(http, name, PATIENCE_SECONDS)
    server = HttpServer("127.0.0.1", 0, respond, small=["/healthz"])
    yield server.start()
    server.stop()


def talk(port: int, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as connection:
        connection.sendall(sent)
        received = b""
        while part := connection.recv(65536):
            received += part
    return received


def test_a_get_is_answered(port: int) -> None:
    with urlopen(f"http://127.0.0.1:{port}/a?b=c", timeout=PATIENCE_SECONDS) as answer:
        assert json.load(answer)[:2] == ["GET", "/a"]


def test_a_head_has_the_length_and_no_body(port: int) -> None:
    answer = talk(port, b"HEAD /a HTTP/1.1\r\n\r\n")

    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Length: 20" in head
    assert body == b""


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_but_reading_is_allowed(method: str) -> None:
    refused = parse_request(f"{method} /v1/state HTTP/1.1\r\n\r\n".encode())

    assert isinstance(refused, HttpResponse)
    assert refused.status is HTTPStatus.METHOD_NOT_ALLOWED


@pytest.mark.parametrize(
    "head", [b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n", b"GET / SPDY/1\r\n\r\n", b"GET http HTTP/1.1\r\n\r\n"]
)
def test_what_is_not_http_is_a_bad_request(port: int, head: bytes) -> None:
    assert talk(port, head).startswith(b"HTTP/1.1 400 ")


def test_headers_are_bounded(port: int) -> None:
    assert talk(port, b"GET / HTTP/1.1\r\nX: " + b"x" * 8000 + b"\r\nY: " + b"y" * 8000 + b"\r\n\r\n").startswith(
        b"HTTP/1.1 431 "
    )


def test_a_client_that_goes_away_in_the_middle_harms_nobody(port: int) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as connection:
            connection.sendall(b"GET /large HTTP/1.1\r\n\r\n")

    with urlopen(f"http://127.0.0.1:{port}/a", timeout=PATIENCE_SECONDS) as answer:
        assert answer.status == 200


def test_clients_that_never_finish_do_not_keep_others_out(port: int) -> None:
    slow = [socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) for _ in range(http.MAX_UNFINISHED - 1)]
    try:
        for connection in slow:
            connection.sendall(b"GET / HT")
        with urlopen(f"http://127.0.0.1:{port}/a", timeout=PATIENCE_SECONDS) as answer:
            assert answer.status == 200
    finally:
        for connection in slow:
            connection.close()


def test_however_many_ask_nothing_others_are_answered(port: int) -> None:
    """Who came first and still says nothing goes first."""
    silent = [socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) for _ in range(http.MAX_UNFINISHED + 40)]
    try:
        assert b'"/a"' in talk(port, b"GET /a HTTP/1.1\r\n\r\n")
        with suppress(ConnectionResetError):
            assert silent[0].recv(1) == b""
    finally:
        for connection in silent:
            connection.close()


def test_readers_that_stop_reading_keep_nobody_from_learning_that_the_guard_lives(port: int) -> None:
    slow = [socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) for _ in range(http.MAX_ANSWERS)]
    try:
        for connection in slow:
            connection.sendall(b"GET /large HTTP/1.1\r\n\r\n")
            assert connection.recv(1) == b"H"
        assert talk(port, b"GET /a HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 503 ")
        assert talk(port, b"GET /healthz HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    finally:
        for connection in slow:
            connection.close()


def test_a_reader_that_stops_reading_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "WRITE_TIMEOUT", 0.1)
    asked: list[str] = []

    def respond_and_tell(request: HttpRequest) -> HttpResponse:
        asked.append(request.path)
        return respond(request)

    server = HttpServer("127.0.0.1", 0, respond_and_tell)
    port = server.start()
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        eventually(lambda: asked == ["/large"] and server._answers == 0)
        received = 0
        with suppress(ConnectionResetError):
            while part := connection.recv(65536):
                received += len(part)
    server.stop()

    assert received < 20_000_000


def test_a_request_that_never_comes_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "READ_TIMEOUT", 0.1)
    server = HttpServer("127.0.0.1", 0, respond)
    port = server.start()

    answer = b""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as connection:
        try:
            answer = connection.recv(10)
        except ConnectionResetError:
            answer = b""
    server.stop()

    assert answer == b""


def test_a_taken_port_is_one_sentence(port: int) -> None:
    with pytest.raises(BadInput, match=f"brimline.metrics.port={port}"):
        HttpServer("127.0.0.1", port, respond).start()
