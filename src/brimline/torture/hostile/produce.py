"""Produce requests of every version as plain values, and their bytes, tagged fields included."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kafka.record.default_records import DefaultRecordBatchBuilder

from brimline.wire.primitives import Writer

VERSIONS = range(14)
FIRST_FLEXIBLE_VERSION = 9
FIRST_VERSION_WITH_TOPIC_ID = 13

Tags = Mapping[int, bytes]
NO_TAGS: Tags = {}


@dataclass(frozen=True)
class Partition:
    index: int
    records: bytes | None
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class Topic:
    """A version carries either the name or the id; what kafka-python finds missing it reads as "" or ``None``."""

    name: str
    topic_id: UUID | None
    partitions: Sequence[Partition]
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    topics: Sequence[Topic]
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


def encoded_request(request: Request, version: int) -> bytes:
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
        _write_topic_key(writer, topic, version)
        writer.count(len(topic.partitions))
        for partition in topic.partitions:
            writer.int32(partition.index)
            writer.count(None if partition.records is None else len(partition.records))
            writer.raw(partition.records or b"")
            write_tags(writer, partition.tags)
        write_tags(writer, topic.tags)
    write_tags(writer, request.tags)
    return writer.finish()


def _write_topic_key(writer: Writer, topic: Topic, version: int) -> None:
    if version >= FIRST_VERSION_WITH_TOPIC_ID:
        assert topic.topic_id is not None
        writer.raw(topic.topic_id.bytes)
    else:
        writer.string(topic.name)


def write_tags(writer: Writer, tags: Tags) -> None:
    if not writer.flexible:
        return
    writer.uvarint(len(tags))
    for tag, value in tags.items():
        writer.uvarint(tag)
        writer.uvarint(len(value))
        writer.raw(value)
