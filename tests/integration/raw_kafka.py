"""Kafka's protocol byte by byte: requests as frames, and whatever comes back, be it an answer or the end."""

import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka.protocol.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest

from tests.waiting import PATIENCE_SECONDS

CORRELATION_ID = 7
CLIENT_ID = "raw"
_LENGTH = struct.Struct(">i")


class RawConnection:
    """A conversation with one broker, or with the gateway before it."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._stream = connection.makefile("rb")

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytes | None:
        """The next frame, with its length; ``None`` if the peer closed the connection, in whatever way."""
        try:
            length = self._stream.read(_LENGTH.size)
            if len(length) < _LENGTH.size:
                return None
            frame = length + self._stream.read(_LENGTH.unpack(length)[0])
        except ConnectionError:
            return None
        return frame

    def ask(self, frame: bytes) -> bytes | None:
        try:
            self.send(frame)
        except ConnectionError:
            return None
        return self.receive()

    def answers(self, frame: bytes) -> bytes:
        """The answer to a request that must have one, without its length."""
        answer = self.ask(frame)
        assert answer is not None, "the connection was closed instead of an answer"
        return answer[_LENGTH.size :]

    def half_close(self) -> None:
        """Say that nothing more will come."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


@contextmanager
def raw_connection(address: str) -> Iterator[RawConnection]:
    host, _, port = address.rpartition(":")
    connection = RawConnection(socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS))
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def logged_in(address: str, user: str, password: str) -> Iterator[RawConnection]:
    """Over SASL_PLAINTEXT, by the mechanism PLAIN."""
    with raw_connection(address) as connection:
        connection.answers(request(SaslHandshakeRequest(mechanism="PLAIN"), 1))
        token = f"\0{user}\0{password}".encode()
        answer = connection.answers(request(SaslAuthenticateRequest(auth_bytes=token), 2))
        assert SaslAuthenticateResponse.decode(answer, version=2, header=True).error_code == 0
        yield connection


def request(message: Any, version: int, correlation_id: int = CORRELATION_ID) -> bytes:  # kafka-python is not typed
    """A frame of one of kafka-python's messages."""
    message.with_header(correlation_id=correlation_id, client_id=CLIENT_ID)
    return bytes(message.encode(version=version, header=True, framed=True))


def framed(payload: bytes) -> bytes:
    return _LENGTH.pack(len(payload)) + payload


def header(api_key: int, version: int, *, flexible: bool) -> bytes:
    """What every request begins with, behind its length."""
    client_id = CLIENT_ID.encode()
    head = struct.pack(">hhih", api_key, version, CORRELATION_ID, len(client_id)) + client_id
    return head + b"\0" if flexible else head


def byte_by_byte(data: bytes) -> Iterable[bytes]:
    return (data[at : at + 1] for at in range(len(data)))
