"""Fetch requests (key 1), versions 12 to 18: who asks for what, and how to send them on with some partitions changed.

These are the versions in which followers ask (12 is the oldest that a broker without ZooKeeper speaks). Older ones are
consumers' alone and newer ones are not known: neither is for here, and both pass as they are.

Nothing is copied to look into a request, and what is not changed stays as it came, unknown tagged fields included. A
request is indexed to its last byte or not at all: one that we would read differently from the broker must not be
changed.

A topic is called by the bytes that stand for it on the wire: its name in UTF-8 in version 12, its id from 13 on.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from brimline.wire.primitives import Malformed, Reader, Truncated, Writer, encoded_count, tags_end, uvarint_at
from brimline.wire.request_header import body_start
from brimline.wire.rewrite import Edit, rewritten_frame

API_KEY = 1
MIN_VERSION = 12
MAX_VERSION = 18
FIRST_VERSION_WITH_TOPIC_ID = 13
_FIRST_VERSION_WITH_REPLICA_STATE = 15

CONSUMER = -1
"""The replica id of whoever is no replica."""

MOST_ENTRIES = 200_000
"""More replicas than any broker has. An entry takes 33 bytes of a hostile sender's, and 300 of our memory."""

_INT32 = Struct(">i")
# Number, leader epoch, fetch offset, last fetched epoch, log start offset, most bytes. Tagged fields follow.
_PARTITION = Struct(">iiqiqi")
_MAX_BYTES_AT = _PARTITION.size - _INT32.size
_SMALLEST_TOPIC = 3
_REPLICA_STATE_TAG = 1
UUID_SIZE = 16

Partition = tuple[bytes, int]
"""Topic and number."""


class FetchPart(NamedTuple):
    """One partition that is asked for; ``start`` and ``end`` hold its whole entry."""

    topic: bytes
    partition: int
    fetch_offset: int
    start: int
    end: int

    @property
    def key(self) -> Partition:
        return self.topic, self.partition


class _TopicSpan(NamedTuple):
    """One topic's entry: its bytes, the bytes of its partition count, and the range of its parts in the index."""

    start: int
    count_start: int
    count_end: int
    end: int
    first_part: int
    parts_end: int


class _ArraySpan(NamedTuple):
    count_start: int
    count_end: int
    end: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchIndex:
    version: int
    replica_id: int
    session_id: int
    session_epoch: int
    parts: tuple[FetchPart, ...]
    forgotten: tuple[Partition, ...]
    session_epoch_at: int
    topics: tuple[_TopicSpan, ...]
    topics_span: _ArraySpan
    forgotten_span: _ArraySpan


def index_fetch(payload: memoryview, version: int) -> FetchIndex:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise Malformed(f"a Fetch request of the unknown version {version}")
    at = body_start(payload, flexible=True)
    if at is None:
        raise Malformed("a Fetch request that ends within its header")
    reader = Reader(payload, flexible=True, position=at)
    replica_id = reader.int32() if version < _FIRST_VERSION_WITH_REPLICA_STATE else CONSUMER
    reader.take(3 * _INT32.size + 1)  # longest wait, fewest and most bytes, isolation level
    session_id = reader.int32()
    session_epoch_at = reader.position
    session_epoch = reader.int32()
    has_ids = version >= FIRST_VERSION_WITH_TOPIC_ID
    topics: list[_TopicSpan] = []
    parts: list[FetchPart] = []
    topics_span = _index_topics(payload, reader, topics, parts, has_ids=has_ids)
    forgotten: list[Partition] = []
    forgotten_span = _index_forgotten(reader, forgotten, has_ids=has_ids)
    reader.string_bytes()  # rack
    if version >= _FIRST_VERSION_WITH_REPLICA_STATE:
        replica_id = _replica_id_in_tags(payload, reader.position)
    reader.skip_tags()
    if reader.remaining:
        raise Malformed(f"a Fetch request with {reader.remaining} bytes too many")
    return FetchIndex(
        version=version,
        replica_id=replica_id,
        session_id=session_id,
        session_epoch=session_epoch,
        parts=tuple(parts),
        forgotten=tuple(forgotten),
        session_epoch_at=session_epoch_at,
        topics=tuple(topics),
        topics_span=topics_span,
        forgotten_span=forgotten_span,
    )


def read_topic_key(reader: Reader, *, has_ids: bool) -> bytes:
    return bytes(reader.take(UUID_SIZE) if has_ids else reader.string_bytes())


def write_topic_key(writer: Writer, topic: bytes, *, has_ids: bool) -> None:
    if not has_ids:
        writer.string_bytes(topic)
    elif len(topic) == UUID_SIZE:
        writer.raw(topic)
    else:
        raise ValueError("this version names topics by their id")


def by_topic(partitions: Iterable[Partition]) -> dict[bytes, list[int]]:
    topics: dict[bytes, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def _index_topics(
    payload: memoryview, reader: Reader, topics: list[_TopicSpan], parts: list[FetchPart], *, has_ids: bool
) -> _ArraySpan:
    """Appends to both lists."""
    count_start = reader.position
    count = reader.count_not_null(smallest_element=_SMALLEST_TOPIC)
    count_end = reader.position
    for _ in range(count):
        start = reader.position
        topic = read_topic_key(reader, has_ids=has_ids)
        partitions_start = reader.position
        partitions = reader.count_not_null(smallest_element=_PARTITION.size + 1)
        partitions_at, first_part = reader.position, len(parts)
        if first_part + partitions > MOST_ENTRIES:
            raise Malformed(f"a Fetch request for more than {MOST_ENTRIES} partitions")
        reader.position = _index_partitions(payload, partitions_at, partitions, topic, parts)
        reader.skip_tags()
        topics.append(_TopicSpan(start, partitions_start, partitions_at, reader.position, first_part, len(parts)))
    return _ArraySpan(count_start, count_end, reader.position, count)


def _index_partitions(payload: memoryview, at: int, count: int, topic: bytes, parts: list[FetchPart]) -> int:
    """By hand, because a follower may ask for thousands; tells where they end."""
    size, unpack, fixed = len(payload), _PARTITION.unpack_from, _PARTITION.size
    for _ in range(count):
        start = at
        at += fixed
        if at >= size:
            raise Truncated(fixed + 1, size - start)
        partition, _, fetch_offset, _, _, _ = unpack(payload, start)
        at = tags_end(payload, at) if payload[at] else at + 1
        parts.append(FetchPart(topic, partition, fetch_offset, start, at))
    return at


def _index_forgotten(reader: Reader, forgotten: list[Partition], *, has_ids: bool) -> _ArraySpan:
    count_start = reader.position
    count = reader.count_not_null(smallest_element=_SMALLEST_TOPIC)
    count_end = reader.position
    for _ in range(count):
        topic = read_topic_key(reader, has_ids=has_ids)
        partitions = reader.count_not_null(smallest_element=_INT32.size)
        if len(forgotten) + partitions > MOST_ENTRIES:
            raise Malformed(f"a Fetch request that forgets more than {MOST_ENTRIES} partitions")
        numbers = reader.take(partitions * _INT32.size)
        forgotten += ((topic, number) for (number,) in _INT32.iter_unpack(numbers))
        reader.skip_tags()
    return _ArraySpan(count_start, count_end, reader.position, count)


def _replica_id_in_tags(payload: memoryview, at: int) -> int:
    """From the tagged field that says which replica asks; without it, a consumer does."""
    end = tags_end(payload, at)  # whatever is wrong shows here
    count, at = uvarint_at(payload, at)
    for _ in range(count):
        tag, at = uvarint_at(payload, at)
        size, at = uvarint_at(payload, at)
        if tag == _REPLICA_STATE_TAG:
            return Reader(payload[at : min(at + size, end)], flexible=True).int32()
        at += size
    return CONSUMER


def rewritten_fetch(
    payload: memoryview,
    index: FetchIndex,
    *,
    dropped: Collection[int] = (),
    of_one_byte: Collection[int] = (),
    forgotten: Iterable[Partition] = (),
    session_epoch: int | None = None,
) -> list[bytes | memoryview]:
    """The whole frame with these changes, for one ``sendmsg``. The first two are positions in ``index.parts``.

    ``dropped`` are not asked for, ``of_one_byte`` with that limit; ``forgotten`` are taken out of the broker's session.
    """
    changed = {*dropped, *of_one_byte}
    if changed and not 0 <= min(changed) <= max(changed) < len(index.parts):
        raise ValueError("a position that the request does not have")
    edits: list[Edit] = []
    if session_epoch is not None:
        edits.append(Edit(index.session_epoch_at, index.session_epoch_at + _INT32.size, _INT32.pack(session_epoch)))
    edits += _topic_edits(index, frozenset(dropped), changed)
    edits += _forgotten_edits(index, by_topic(forgotten))
    return rewritten_frame(payload, edits)


def _topic_edits(index: FetchIndex, dropped: Collection[int], changed: Collection[int]) -> list[Edit]:
    edits: list[Edit] = []
    topics_left = len(index.topics)
    if not changed:
        return edits
    for topic in index.topics:
        positions = range(topic.first_part, topic.parts_end)
        here = [position for position in positions if position in changed]
        gone = sum(position in dropped for position in here)
        if gone and gone == len(positions):
            topics_left -= 1
            edits.append(Edit(topic.start, topic.end))
            continue
        if gone:
            count = encoded_count(len(positions) - gone, flexible=True)
            edits.append(Edit(topic.count_start, topic.count_end, count))
        for position in here:
            part = index.parts[position]
            if position in dropped:
                edits.append(Edit(part.start, part.end))
            else:
                at = part.start + _MAX_BYTES_AT
                edits.append(Edit(at, at + _INT32.size, _INT32.pack(1)))
    if topics_left < len(index.topics):
        span = index.topics_span
        edits.insert(0, Edit(span.count_start, span.count_end, encoded_count(topics_left, flexible=True)))
    return edits


def _forgotten_edits(index: FetchIndex, forgotten: dict[bytes, list[int]]) -> list[Edit]:
    """Entries of their own, behind those that are there: a topic may have several."""
    if not forgotten:
        return []
    span = index.forgotten_span
    writer = Writer(flexible=True)
    for topic, partitions in forgotten.items():
        write_topic_key(writer, topic, has_ids=index.version >= FIRST_VERSION_WITH_TOPIC_ID)
        writer.count(len(partitions))
        writer.raw(Struct(f">{len(partitions)}i").pack(*partitions))
        writer.no_tags()
    count = encoded_count(span.length + len(forgotten), flexible=True)
    return [Edit(span.count_start, span.count_end, count), Edit(span.end, span.end, writer.finish())]
