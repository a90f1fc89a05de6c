"""OffsetCommit (key 8), versions 0 to 10: whose offsets they are, and the answer that refuses all of them.

Bytes behind its end are not looked at, as brokers do.
"""

from dataclasses import dataclass
from struct import Struct

from brimline.wire.primitives import Malformed, Reader, Writer
from brimline.wire.request_header import OFFSET_COMMIT, body_start, is_flexible

MIN_VERSION, MAX_VERSION = 0, 10
MOST_PARTITIONS = 20_000
"""Each costs its sender a few bytes, and us a microsecond in which nobody else is served."""
_FIRST_WITH_MEMBER = 1
_WITH_TIMESTAMP = 1
_WITH_RETENTION = range(2, 5)
_FIRST_WITH_THROTTLE = 3
_FIRST_WITH_EPOCH = 6
_FIRST_WITH_INSTANCE = 7
_FIRST_WITH_TOPIC_ID = 10
_UUID_SIZE = 16
_SMALLEST = 5
"""Bytes of a topic or of a partition, to check a count before it is believed; most are longer."""
_LENGTH = Struct(">i")
_OFFSET, _OFFSET_AND_EPOCH, _OFFSET_AND_TIMESTAMP = Struct(">iq"), Struct(">iqi"), Struct(">iqq")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """``topics``: name or id as it stands there, with the partitions."""

    version: int
    group: str
    topics: tuple[tuple[bytes, tuple[int, ...]], ...]


def read_offset_commit(payload: memoryview, version: int) -> OffsetCommit:
    """Raises ``WireError``."""
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise Malformed(f"an OffsetCommit request of the unknown version {version}")
    flexible = is_flexible(OFFSET_COMMIT, version)
    at = body_start(payload, flexible=flexible)
    if at is None:
        raise Malformed("an OffsetCommit request that ends within its header")
    reader = Reader(payload, flexible=flexible, position=at)
    group = reader.string()
    if version >= _FIRST_WITH_MEMBER:
        reader.int32()  # generation
        reader.string_bytes()
    if version >= _FIRST_WITH_INSTANCE:
        reader.nullable_string_bytes()
    if version in _WITH_RETENTION:
        reader.int64()
    left, topics = MOST_PARTITIONS, []
    for _ in range(_count(reader, left)):
        name = bytes(reader.take(_UUID_SIZE) if version >= _FIRST_WITH_TOPIC_ID else reader.string_bytes())
        partitions = _partitions(reader, version, left)
        left -= len(partitions) + 1
        reader.skip_tags()
        topics.append((name, partitions))
    reader.skip_tags()
    return OffsetCommit(version=version, group=group, topics=tuple(topics))


def _partitions(reader: Reader, version: int, most: int) -> tuple[int, ...]:
    head = _OFFSET
    if version >= _FIRST_WITH_EPOCH:
        head = _OFFSET_AND_EPOCH
    elif version == _WITH_TIMESTAMP:
        head = _OFFSET_AND_TIMESTAMP
    partitions = []
    for _ in range(_count(reader, most)):
        partitions.append(head.unpack(reader.take(head.size))[0])
        reader.nullable_string_bytes()  # metadata
        reader.skip_tags()
    return tuple(partitions)


def _count(reader: Reader, most: int) -> int:
    count = reader.count_not_null(smallest_element=_SMALLEST)
    if count > most:
        raise Malformed(f"more than {MOST_PARTITIONS} topics and partitions in one OffsetCommit request")
    return count


def refusing_answer(commit: OffsetCommit, correlation_id: int, code: int) -> bytes:
    """The frame that says so of each partition."""
    version = commit.version
    writer = Writer(flexible=is_flexible(OFFSET_COMMIT, version))
    writer.int32(correlation_id)
    writer.no_tags()
    if version >= _FIRST_WITH_THROTTLE:
        writer.int32(0)
    writer.count(len(commit.topics))
    for name, partitions in commit.topics:
        if version >= _FIRST_WITH_TOPIC_ID:
            writer.raw(name)
        else:
            writer.string_bytes(name)
        writer.count(len(partitions))
        for partition in partitions:
            writer.int32(partition)
            writer.int16(code)
            writer.no_tags()
        writer.no_tags()
    writer.no_tags()
    payload = writer.finish()
    return _LENGTH.pack(len(payload)) + payload
