"""Does a broker answer, and whom does it know? One Metadata request, by hand.

Seven short fields each way: not worth a client library whose import takes longer than the answer.
"""

import socket
import struct

_METADATA = 3
_VERSION = 4
"""Understood by every Kafka from 0.11 to 4.x, and the newest without tagged fields in a header we would parse."""


class NotAnswering(Exception):
    """Nobody there yet, or not ready to speak."""


def known_brokers(port: int, timeout: float) -> set[int]:
    """The ids of the brokers that this one would tell a client about: the registered and unfenced."""
    # header: key, version, correlation id, client id; body: no topics, no auto-creation
    request = struct.pack(">hhih8sib", _METADATA, _VERSION, 0, 8, b"brimline", 0, 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", _read(connection, 4))
            return brokers_in(_read(connection, size))
    except OSError as error:
        raise NotAnswering(str(error)) from error


def brokers_in(answer: bytes) -> set[int]:
    """Metadata v4: correlation id, throttle time, then an array of (id, host, port, rack)."""
    (count,) = struct.unpack_from(">i", answer, 8)
    at = 12
    brokers = set()
    for _ in range(count):
        broker_id, host_length = struct.unpack_from(">ih", answer, at)
        at += 6 + host_length + 4
        (rack_length,) = struct.unpack_from(">h", answer, at)
        at += 2 + max(rack_length, 0)
        brokers.add(broker_id)
    return brokers


def _read(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise NotAnswering("the connection was closed")
        received += piece
    return received
