"""Produce requests of every version as plain values, and their bytes, tagged fields included.

And odd ones that nobody writes and every broker takes: what a reader that is stricter than Kafka would miss.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kafka.record.default_records import DefaultRecordBatchBuilder

from brimline.wire.primitives import Writer

VERSIONS = range(14)
FIRST_FLEXIBLE_VERSION = 9
FIRST_VERSION_WITH_TOPIC_ID = 13
"""Of Produce, and of Fetch too."""

Tags = Mapping[int, bytes]
NO_TAGS: Tags = {}


@dataclass(frozen=True)
class Partition:
    index: int
    records: bytes | None
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class PlainTopic:
    """A version carries either the name or the id; what kafka-python finds missing it reads as "" or ``None``."""

    name: str
    topic_id: UUID | None
    partitions: Sequence[Partition]
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class PlainRequest:
    topics: Sequence[PlainTopic]
    client_id: str | None = "client"
    header_tags: Tags = field(default_factory=dict)
    transactional_id: str | None = None
    acks: int = -1
    timeout_ms: int = 30_000
    tags: Tags = field(default_factory=dict)


def batch(
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    value: bytes = b"value",
) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=transactional,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        batch_size=1 << 20,
    )
    builder.append(0, timestamp=1, key=None, value=value, headers=[])
    built = bytearray(builder.build())
    if control:
        built[22] |= 0x20  # only brokers make control batches, so the builder cannot
    return bytes(built)


def is_flexible(version: int) -> bool:
    return version >= FIRST_FLEXIBLE_VERSION


def encoded_request(request: PlainRequest, version: int) -> bytes:
    """A payload. Whatever a version does not have is left out."""
    writer = Writer(flexible=is_flexible(version))
    writer.raw(struct.pack(">hhi", 0, version, 7))
    client_id = None if request.client_id is None else request.client_id.encode()
    writer.raw(struct.pack(">h", -1 if client_id is None else len(client_id)) + (client_id or b""))
    write_tags(writer, request.header_tags)
    if version >= 3:
        writer.string_bytes(None if request.transactional_id is None else request.transactional_id.encode())
    writer.int16(request.acks)
    writer.int32(request.timeout_ms)
    writer.count(len(request.topics))
    for topic in request.topics:
        write_topic_key(writer, topic.name, topic.topic_id, version)
        writer.count(len(topic.partitions))
        for partition in topic.partitions:
            writer.int32(partition.index)
            writer.count(None if partition.records is None else len(partition.records))
            writer.raw(partition.records or b"")
            write_tags(writer, partition.tags)
        write_tags(writer, topic.tags)
    write_tags(writer, request.tags)
    return writer.finish()


def write_topic_key(writer: Writer, name: str, topic_id: UUID | None, version: int) -> None:
    if version >= FIRST_VERSION_WITH_TOPIC_ID:
        assert topic_id is not None
        writer.raw(topic_id.bytes)
    else:
        writer.string(name)


def write_tags(writer: Writer, tags: Tags) -> None:
    if not writer.flexible:
        return
    writer.uvarint(len(tags))
    for tag, value in tags.items():
        writer.uvarint(tag)
        writer.uvarint(len(value))
        writer.raw(value)


MINUS_ONE = bytes.fromhex("ffffffff0f")
"""A variable-length number: Kafka's unsigned ones have a sign after all."""
SMALLEST = bytes.fromhex("8080808008")


@dataclass(frozen=True)
class Odd:
    name: str
    version: int
    payload: bytes

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"


def odd_requests(
    topic: str, topic_id: UUID, records: bytes, versions: range = VERSIONS, *, acks: int = -1
) -> Iterator[Odd]:
    """Each with these records for partition 0 of the topic."""
    for version in versions:
        for name, payload in _odd(_Writer(version, topic, topic_id, records, acks)):
            yield Odd(name, version, payload)


def _odd(writer: "_Writer") -> Iterator[tuple[str, bytes]]:
    yield "one byte behind it", writer.request() + b"\0"
    yield "a thousand bytes behind it", writer.request() + b"\xff" * 1000
    for length in (-2, -32768):
        yield f"a client id of {length} bytes", writer.request(client_id=struct.pack(">h", length))
    yield "the partition twice", writer.request(topics=[writer.topic([writer.partition(), writer.partition()])])
    yield "the topic twice", writer.request(topics=[writer.topic([writer.partition()])] * 2)
    if writer.version >= 3 and not writer.flexible:
        yield "a transactional id of -2 bytes", writer.request(transactional_id=b"\xff\xfe")
    if writer.flexible:
        yield "a transactional id of -2 bytes", writer.request(transactional_id=MINUS_ONE)
        yield "lengths in five bytes", writer.request(count=_five_bytes(2))
        yield "a length with lost bits", writer.request(count=_five_bytes(2, lost=0x70))
        for tags in (MINUS_ONE, SMALLEST, b"\x02\x05\x01x\x05\x00"):
            yield f"tagged fields {tags.hex()} in the header", writer.request(header_tags=tags)
            yield f"tagged fields {tags.hex()} at the end", writer.request(tags=tags)
        yield "-1 tags of the topic", writer.request(topics=[writer.topic([writer.partition()], tags=MINUS_ONE)])
        yield "-1 tags of the partition", writer.request(topics=[writer.topic([writer.partition(tags=MINUS_ONE)])])


def _five_bytes(number: int, lost: int = 0) -> bytes:
    """``lost``: bits of the fifth byte that do not fit into 32."""
    return bytes([number | 0x80, 0x80, 0x80, 0x80, lost])


class _Writer:
    def __init__(self, version: int, topic: str, topic_id: UUID, records: bytes, acks: int) -> None:
        self.version = version
        self.flexible = is_flexible(version)
        self._key = topic_id.bytes if version >= FIRST_VERSION_WITH_TOPIC_ID else self._text(topic)
        self._records = records
        self._acks = acks

    def request(
        self,
        *,
        client_id: bytes = b"\0\1c",
        header_tags: bytes = b"\0",
        transactional_id: bytes | None = None,
        count: bytes | None = None,
        topics: list[bytes] | None = None,
        tags: bytes = b"\0",
    ) -> bytes:
        named = [self.topic([self.partition()])] if topics is None else topics
        null = b"\0" if self.flexible else b"\xff\xff"
        return b"".join(
            (
                struct.pack(">hhi", 0, self.version, 7),
                client_id,
                header_tags if self.flexible else b"",
                (null if transactional_id is None else transactional_id) if self.version >= 3 else b"",
                struct.pack(">hi", self._acks, 30_000),
                self._count(len(named)) if count is None else count,
                *named,
                tags if self.flexible else b"",
            )
        )

    def topic(self, partitions: list[bytes], tags: bytes = b"\0") -> bytes:
        return self._key + self._count(len(partitions)) + b"".join(partitions) + (tags if self.flexible else b"")

    def partition(self, tags: bytes = b"\0") -> bytes:
        records = self._count(len(self._records)) + self._records
        return struct.pack(">i", 0) + records + (tags if self.flexible else b"")

    def _count(self, number: int) -> bytes:
        return _varint(number + 1) if self.flexible else struct.pack(">i", number)

    def _text(self, text: str) -> bytes:
        encoded = text.encode()
        return (_varint(len(encoded) + 1) if self.flexible else struct.pack(">h", len(encoded))) + encoded


def _varint(number: int) -> bytes:
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])
