"""Requests as a client would send them, as whole frames. Correlation ids are the sender's to fill in."""

import socket
import struct

from kafka.record.default_records import DefaultRecordBatchBuilder

API_VERSIONS = 18
METADATA = 3
PRODUCE = 0
PRODUCE_VERSION = 9
"""The first with compact fields; what a server does with it is what it does with the newest."""


def frame(api_key: int, version: int, body: bytes, *, flexible: bool = True) -> bytes:
    client_id = b"bench"
    tags = b"\0" if flexible else b""
    header = struct.pack(">hhih", api_key, version, 0, len(client_id)) + client_id + tags
    return struct.pack(">i", len(header) + len(body)) + header + body


def answer(connection: socket.socket, request: bytes) -> bytes:
    """Without its length."""
    connection.sendall(request)
    with connection.makefile("rb") as file:
        (size,) = struct.unpack(">i", file.read(4))
        return file.read(size)


def api_versions() -> bytes:
    """Version 0 has no body and the old header."""
    return frame(API_VERSIONS, 0, b"", flexible=False)


def metadata(topic: str) -> bytes:
    """A question about one topic."""
    name = topic.encode()
    no_id = bytes(16)
    return frame(METADATA, 12, b"\x02" + no_id + uvarint(len(name) + 1) + name + b"\0" + b"\0\0" + b"\0")


def produce(topic: str, partitions: int, value_size: int) -> bytes:
    """One batch of one record for each of the first ``partitions`` partitions, acks=all."""
    batch = record_batch(value_size)
    records = uvarint(len(batch) + 1) + batch
    parts = b"".join(struct.pack(">i", number) + records + b"\0" for number in range(partitions))
    name = topic.encode()
    topics = b"\x02" + uvarint(len(name) + 1) + name + uvarint(partitions + 1) + parts + b"\0"
    transactional_id = b"\0"
    return frame(PRODUCE, PRODUCE_VERSION, transactional_id + struct.pack(">hi", -1, 30_000) + topics + b"\0")


def record_batch(value_size: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=value_size + 1024,
    )
    builder.append(0, timestamp=1_700_000_000_000, key=None, value=b"x" * value_size, headers=[])
    return bytes(builder.build())


def uvarint(value: int) -> bytes:
    encoded = b""
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])
