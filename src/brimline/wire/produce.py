"""Produce requests (key 0), versions 0 to 13: what they hold where, and how to send them on without some partitions.

Nothing of a request is copied to look into it. The index names byte spans, and the spans of one topic lie side by
side: taking partitions out means cutting spans and correcting the counts before them.

A request is read as the broker reads it, however odd: any negative length is null, and bytes behind its end are not
looked at. What the broker would store and we could not read would go past a fence. Only two limits are our own, on
entries and on tagged fields, and no client comes near them.

A request may name a thousand partitions, in one topic or in as many, and the gateway has one thread: both loops
read their few bytes by hand.
"""

from bisect import bisect_left
from collections.abc import Collection
from functools import lru_cache
from struct import Struct
from typing import NamedTuple, TypeAlias
from uuid import UUID

from brimline.wire.primitives import Malformed, Truncated, encoded_count, tags_end, uvarint_at
from brimline.wire.request_header import PRODUCE, body_start, first_flexible_version, is_flexible
from brimline.wire.rewrite import Edit, rewritten_frame

API_KEY = PRODUCE
MIN_VERSION = 0
MAX_VERSION = 13
VERSIONS = range(MIN_VERSION, MAX_VERSION + 1)
FIRST_VERSION_WITH_TOPIC_ID = 13
_FIRST_VERSION_WITH_TRANSACTIONAL_ID = 3
_FIRST_FLEXIBLE_VERSION = first_flexible_version(PRODUCE) or 0

# With one record each that is 1.4 MB, more than clients send at once by default. An entry takes six bytes of a hostile
# sender's, and 300 bytes of memory and six microseconds of ours, in which nobody else is served.
MOST_ENTRIES = 20_000
# Kafka refuses longer strings in every encoding.
_LONGEST_TEXT = 0x7FFF
# One less, which only a length plus one can be, is a very large number to a broker: it does not fit into 32 bits.
_SMALLEST_LENGTH = -(1 << 31)

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_ACKS_AND_TIMEOUT = Struct(">hi")
_UUID_SIZE = 16

# Partition number and length of the records. The flexible length is of variable size; most of it is in its first byte.
_PARTITION_HEAD = Struct(">ii")
_FLEXIBLE_PARTITION_HEAD = Struct(">iB")

# Smallest possible encodings, to check a count before it is believed.
_SMALLEST_TOPIC = 6
_SMALLEST_FLEXIBLE_TOPIC = 3
_SMALLEST_FLEXIBLE_PARTITION = 6

# Of a record batch's header: magic, attributes, producer id, producer epoch, base sequence.
_BATCH_HEADER = Struct(">16xb4xh20xqhi4x")
_unpack_batch_header, _BATCH_HEADER_SIZE = _BATCH_HEADER.unpack_from, _BATCH_HEADER.size
_MAGIC = 2
_TRANSACTIONAL = 0x10
_NO_BATCH = (0, -1, -1, -1)


TopicName: TypeAlias = str | UUID | None


class ProducePart(NamedTuple):
    """One partition of a request. A plain tuple, since a frozen dataclass takes five times as long to make.

    ``start`` and ``end`` hold the whole entry: number, records and tagged fields. The producer's three numbers are -1
    where there is no batch or it comes from a producer that is not idempotent.
    """

    topic: str | None
    topic_id: UUID | None
    partition: int
    start: int
    end: int
    records_bytes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool

    @property
    def where(self) -> tuple[TopicName, int]:
        """The topic as requests and answers name it, by name or by id, and the partition."""
        return self.topic_id if self.topic is None else self.topic, self.partition


class TopicSpan(NamedTuple):
    """One topic's entry: its bytes, the bytes of its partition count, and the range of its parts in the index."""

    start: int
    count_start: int
    count_end: int
    end: int
    first_part: int
    parts_end: int


class ProduceIndex(NamedTuple):
    version: int
    transactional_id: str | None
    acks: int
    timeout_ms: int
    parts: tuple[ProducePart, ...]
    topics: tuple[TopicSpan, ...]
    topic_count_start: int
    topic_count_end: int


def read_acks(prefix: memoryview, version: int) -> int | None:
    """How many acknowledgements are asked for, from a payload's first bytes; ``None`` if they do not reach that far.

    With 0 there will be no answer, so that this must be known of every Produce request.
    """
    flexible = version >= _FIRST_FLEXIBLE_VERSION
    at = body_start(prefix, flexible=flexible)
    if at is None:
        return None
    try:
        if version >= _FIRST_VERSION_WITH_TRANSACTIONAL_ID:
            _, at = _text_at(prefix, at, flexible=flexible)
    except Truncated:
        return None
    if len(prefix) - at < _INT16.size:
        return None
    acks: int = _INT16.unpack_from(prefix, at)[0]
    return acks


def index_produce(payload: memoryview, version: int) -> ProduceIndex:
    if version not in VERSIONS:
        raise Malformed(f"a Produce request of the unknown version {version}")
    flexible = version >= _FIRST_FLEXIBLE_VERSION
    at = body_start(payload, flexible=flexible)
    if at is None:
        raise Malformed("a Produce request that ends within its header")
    transactional_id = None
    if version >= _FIRST_VERSION_WITH_TRANSACTIONAL_ID:
        transactional_id, at = _text_at(payload, at, flexible=flexible)
    if len(payload) - at < _ACKS_AND_TIMEOUT.size:
        raise Truncated(_ACKS_AND_TIMEOUT.size, len(payload) - at)
    acks, timeout_ms = _ACKS_AND_TIMEOUT.unpack_from(payload, at)
    topic_count_start = at + _ACKS_AND_TIMEOUT.size
    smallest = _SMALLEST_FLEXIBLE_TOPIC if flexible else _SMALLEST_TOPIC
    topic_count, topic_count_end = _count_at(payload, topic_count_start, smallest, flexible=flexible)
    if topic_count > MOST_ENTRIES:
        raise Malformed(f"a Produce request for {topic_count} topics")
    parts: list[ProducePart] = []
    topics: list[TopicSpan] = []
    end = _index_topics(payload, topic_count_end, topic_count, version, topics, parts)
    if flexible:
        tags_end(payload, end)
    topics_at = topic_count_start, topic_count_end
    return ProduceIndex(version, transactional_id, acks, timeout_ms, tuple(parts), tuple(topics), *topics_at)


def _index_topics(
    payload: memoryview, at: int, count: int, version: int, topics: list[TopicSpan], parts: list[ProducePart]
) -> int:
    """Appends to both lists; tells where the topics end."""
    size = len(payload)
    flexible = version >= _FIRST_FLEXIBLE_VERSION
    smallest = _SMALLEST_FLEXIBLE_PARTITION if flexible else _PARTITION_HEAD.size
    has_ids = version >= FIRST_VERSION_WITH_TOPIC_ID
    topic, topic_id = None, None
    for _ in range(count):
        start = at
        if has_ids:
            at += _UUID_SIZE
            if at > size:
                raise Truncated(_UUID_SIZE, size - start)
            topic_id = _topic_id(bytes(payload[start:at]))
        else:
            topic, at = _text_at(payload, at, flexible=flexible)
            if topic is None:
                raise Malformed("a topic without a name")
        count_start = at
        partitions, at = _count_at(payload, at, smallest, flexible=flexible)
        count_end, first_part = at, len(parts)
        if first_part + partitions > MOST_ENTRIES:
            raise Malformed(f"a Produce request for more than {MOST_ENTRIES} partitions")
        at = _index_partitions(payload, at, partitions, topic, topic_id, parts, flexible=flexible)
        if flexible:
            at = tags_end(payload, at) if at == size or payload[at] else at + 1  # almost always there are none
        topics.append(TopicSpan(start, count_start, count_end, at, first_part, first_part + partitions))
    return at


def _count_at(payload: memoryview, at: int, smallest: int, *, flexible: bool) -> tuple[int, int]:
    """How many entries of at least ``smallest`` bytes follow, and where they begin."""
    if flexible:
        count, at = uvarint_at(payload, at)
        count -= 1
    elif len(payload) - at < _INT32.size:
        raise Truncated(_INT32.size, len(payload) - at)
    else:
        count = _INT32.unpack_from(payload, at)[0]
        at += _INT32.size
    if count < 0:
        raise Malformed(f"{count} entries")
    if count * smallest > len(payload) - at:
        raise Truncated(count * smallest, len(payload) - at)
    return count, at


def _index_partitions(
    payload: memoryview,
    at: int,
    count: int,
    topic: str | None,
    topic_id: UUID | None,
    parts: list[ProducePart],
    *,
    flexible: bool,
) -> int:
    size = len(payload)
    head = _FLEXIBLE_PARTITION_HEAD if flexible else _PARTITION_HEAD
    unpack_head, head_size = head.unpack_from, head.size
    for _ in range(count):
        start = at
        if size - at < head_size:
            raise Truncated(head_size, size - at)
        partition, length = unpack_head(payload, at)
        at += head_size
        if flexible:
            if length > 0x7F:
                if at < size and payload[at] <= 0x7F:  # records of up to 16 KB
                    length += (payload[at] - 1) << 7
                    at += 1
                else:
                    length, at = uvarint_at(payload, at - 1)
            length -= 1
        if length < 0:
            if length < _SMALLEST_LENGTH:
                raise Malformed(f"records of {length} bytes")
            length = 0
        elif length > size - at:
            raise Truncated(length, size - at)
        magic = attributes = 0
        if length >= _BATCH_HEADER_SIZE:
            magic, attributes, producer_id, epoch, sequence = _unpack_batch_header(payload, at)
        if magic != _MAGIC:
            attributes, producer_id, epoch, sequence = _NO_BATCH
        at += length
        if flexible:
            at = tags_end(payload, at) if at == size or payload[at] else at + 1  # almost always there are none
        transactional = attributes & _TRANSACTIONAL != 0
        parts.append(
            ProducePart(topic, topic_id, partition, start, at, length, producer_id, epoch, sequence, transactional)
        )
    return at


def _text_at(payload: memoryview, at: int, *, flexible: bool) -> tuple[str | None, int]:
    """A string, and where it ends. Bytes that are not UTF-8 are replaced, as the broker does: it may refuse them."""
    if flexible:
        length, at = uvarint_at(payload, at)
        length -= 1
    elif len(payload) - at < _INT16.size:
        raise Truncated(_INT16.size, len(payload) - at)
    else:
        length = _INT16.unpack_from(payload, at)[0]
        at += _INT16.size
    if _SMALLEST_LENGTH <= length < 0:
        return None, at
    if not 0 <= length <= _LONGEST_TEXT:
        raise Malformed(f"a string of {length} bytes")
    end = at + length
    if end > len(payload):
        raise Truncated(length, len(payload) - at)
    return str(payload[at:end], "utf-8", "replace"), end


@lru_cache(maxsize=8192)
def _topic_id(raw: bytes) -> UUID:
    """Producers name the same topics again and again, and making a UUID takes longer than all else about a topic."""
    return UUID(bytes=raw)


def without(payload: memoryview, index: ProduceIndex, refused: Collection[int]) -> list[bytes | memoryview]:
    """The whole frame without some parts, for one ``sendmsg``. A topic left without a partition goes with them.

    ``refused`` holds positions in ``index.parts``. Without all of them it is a request for nothing; brokers answer it.
    """
    positions = sorted(set(refused))
    if positions and not 0 <= positions[0] <= positions[-1] < len(index.parts):
        raise ValueError("a position that the request does not have")
    flexible = is_flexible(PRODUCE, index.version)
    edits: list[Edit] = []
    topics_left = len(index.topics)
    for topic in index.topics:
        first = bisect_left(positions, topic.first_part)
        end = bisect_left(positions, topic.parts_end, first)
        parts_left = topic.parts_end - topic.first_part - (end - first)
        if first == end:
            continue
        if not parts_left:
            topics_left -= 1
            edits.append(Edit(topic.start, topic.end))
            continue
        edits.append(Edit(topic.count_start, topic.count_end, encoded_count(parts_left, flexible=flexible)))
        edits += (Edit(index.parts[position].start, index.parts[position].end) for position in positions[first:end])
    if topics_left < len(index.topics):
        count = encoded_count(topics_left, flexible=flexible)
        edits.insert(0, Edit(index.topic_count_start, index.topic_count_end, count))
    return rewritten_frame(payload, edits)


def emptied(payload: memoryview, index: ProduceIndex, asked: Collection[int]) -> bytes:
    """The whole frame with these parts only, and without their records.

    A broker stores nothing for it, and its answer tells whom it turns away: it looks at rights first, at records then.
    ``asked`` holds positions in ``index.parts``.
    """
    flexible = is_flexible(PRODUCE, index.version)
    no_tags = b"\0" if flexible else b""
    no_records = b"\1\0" if flexible else bytes(_INT32.size)
    topics = bytearray()
    topic_count = 0
    for topic in index.topics:
        parts = [index.parts[position] for position in range(topic.first_part, topic.parts_end) if position in asked]
        if parts:
            topic_count += 1
            topics += payload[topic.start : topic.count_start]
            topics += encoded_count(len(parts), flexible=flexible)
            topics += b"".join(_INT32.pack(part.partition) + no_records for part in parts) + no_tags
    head = bytes(payload[: index.topic_count_start]) + encoded_count(topic_count, flexible=flexible)
    return _INT32.pack(len(head) + len(topics) + len(no_tags)) + head + topics + no_tags
