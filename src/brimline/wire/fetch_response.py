"""Answers to Fetch (key 1), versions 12 to 18: partitions put into the broker's answer, and records taken out of it.

A follower believes an answer to a full fetch only if it has exactly the partitions that were asked for, and any other
only if it has no partition that is not in its session. So what is put in must be what was left out of the request.

Everything that the broker says stays as it is, byte for byte, but for what is asked here. Records are not copied.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from brimline.wire.fetch import (
    FIRST_VERSION_WITH_TOPIC_ID,
    MAX_VERSION,
    MIN_VERSION,
    Partition,
    by_topic,
    read_topic_key,
    write_topic_key,
)
from brimline.wire.primitives import Malformed, Reader, Writer, encoded_count
from brimline.wire.rewrite import Edit, rewritten_frame

_INT64 = Struct(">q")
_UNKNOWN = -1
# Number, error, high watermark, last stable offset, log start offset.
_PARTITION = Struct(">ihqqq")
_LOG_START_AT = _PARTITION.size - _INT64.size
_PREFERRED_REPLICA = 4
# Aborted transactions, preferred replica, records, tagged fields: at least.
_SMALLEST_REST = 1 + _PREFERRED_REPLICA + 1 + 1
_ABORTED_TRANSACTION = 16
_SMALLEST_TOPIC = 3
_NO_RECORDS = b"\x01"
"""The length of records that are there and are none: followers are never sent a null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenAnswer:
    """``frame`` is in as many buffers as go without copying records."""

    frame: tuple[bytes | memoryview, ...]
    records_bytes: int
    """How many bytes of records were taken out."""


class _AnsweredPartition(NamedTuple):
    """Where things are; the record span includes its length."""

    number: int
    error_code: int
    log_start_offset: int
    start: int
    records_start: int
    records_end: int
    records_bytes: int
    end: int


def rewritten_answer(
    payload: memoryview,
    version: int,
    *,
    refused: Collection[Partition] = (),
    error_code: int,
    emptied: Mapping[Partition, int] | None = None,
) -> RewrittenAnswer:
    """The whole frame of the broker's answer, changed in two ways.

    ``refused`` are answered with ``error_code``, whatever the broker says of them. ``emptied`` lose their records, and
    their log start offset is at most the offset that they were fetched from, which is given; an error in such a
    partition stays as it is. An answer that is an error as a whole is not changed.
    """
    has_ids = version >= FIRST_VERSION_WITH_TOPIC_ID
    reader = Reader(payload, flexible=True)
    if _read_head(reader, version):
        return RewrittenAnswer(frame=tuple(rewritten_frame(payload, [])), records_bytes=0)
    count_start = reader.position
    count = reader.count_not_null(smallest_element=_SMALLEST_TOPIC)
    count_end = reader.position
    pending = by_topic(dict.fromkeys(refused))
    edits: list[Edit] = []
    taken_out = 0
    for _ in range(count):
        topic = read_topic_key(reader, has_ids=has_ids)
        topic_edits, records_bytes = _rewritten_topic(reader, topic, pending.pop(topic, []), error_code, emptied or {})
        edits += topic_edits
        taken_out += records_bytes
    topics_end = reader.position
    reader.skip_tags()
    if reader.remaining:
        raise Malformed(f"an answer to Fetch with {reader.remaining} bytes too many")
    if pending:
        edits.insert(0, Edit(count_start, count_end, encoded_count(count + len(pending), flexible=True)))
        edits.append(Edit(topics_end, topics_end, _refusing_topics(pending, error_code, has_ids=has_ids)))
    return RewrittenAnswer(frame=tuple(rewritten_frame(payload, edits)), records_bytes=taken_out)


def _read_head(reader: Reader, version: int) -> int:
    """Up to the topics; the error of the answer as a whole."""
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise Malformed(f"an answer to Fetch of the unknown version {version}")
    reader.int32()  # correlation id
    reader.skip_tags()
    reader.int32()  # throttle time
    error_code = reader.int16()
    if not error_code:
        reader.int32()  # session id
    return error_code


def _rewritten_topic(
    reader: Reader, topic: bytes, refused: list[int], error_code: int, emptied: Mapping[Partition, int]
) -> tuple[list[Edit], int]:
    """The edits of one topic's entry, which is read to its end, and how many bytes of records they take out."""
    count_start = reader.position
    count = reader.count_not_null(smallest_element=_PARTITION.size + _SMALLEST_REST)
    count_end = reader.position
    edits: list[Edit] = []
    gone = taken_out = 0
    numbers = frozenset(refused)
    for _ in range(count):
        answered = _read_partition(reader)
        if answered.number in numbers:
            gone += 1
            edits.append(Edit(answered.start, answered.end))
        elif not answered.error_code and (topic, answered.number) in emptied:
            edits += _emptying(answered, emptied[topic, answered.number])
            taken_out += answered.records_bytes
    partitions_end = reader.position
    reader.skip_tags()
    if refused:
        added = b"".join(_refusing_partition(number, error_code) for number in refused)
        edits.insert(0, Edit(count_start, count_end, encoded_count(count - gone + len(refused), flexible=True)))
        edits.append(Edit(partitions_end, partitions_end, added))
    return edits, taken_out


def _read_partition(reader: Reader) -> _AnsweredPartition:
    start = reader.position
    number, error_code, _, _, log_start_offset = _PARTITION.unpack(reader.take(_PARTITION.size))
    for _ in range(reader.count(smallest_element=_ABORTED_TRANSACTION + 1) or 0):
        reader.take(_ABORTED_TRANSACTION)
        reader.skip_tags()
    reader.take(_PREFERRED_REPLICA)
    records_start = reader.position
    records = reader.nullable_bytes()
    records_end = reader.position
    reader.skip_tags()
    return _AnsweredPartition(
        number,
        error_code,
        log_start_offset,
        start,
        records_start,
        records_end,
        0 if records is None else len(records),
        reader.position,
    )


def _emptying(answered: _AnsweredPartition, fetch_offset: int) -> list[Edit]:
    edits = []
    if answered.log_start_offset > fetch_offset:
        at = answered.start + _LOG_START_AT
        edits.append(Edit(at, at + _INT64.size, _INT64.pack(fetch_offset)))
    if answered.records_bytes:
        edits.append(Edit(answered.records_start, answered.records_end, _NO_RECORDS))
    return edits


def _refusing_topics(topics: Mapping[bytes, list[int]], error_code: int, *, has_ids: bool) -> bytes:
    writer = Writer(flexible=True)
    for topic, partitions in topics.items():
        write_topic_key(writer, topic, has_ids=has_ids)
        writer.count(len(partitions))
        writer.raw(b"".join(_refusing_partition(number, error_code) for number in partitions))
        writer.no_tags()
    return writer.finish()


def _refusing_partition(number: int, error_code: int) -> bytes:
    """As a broker writes a partition that it has nothing to say of but the error."""
    writer = Writer(flexible=True)
    writer.raw(_PARTITION.pack(number, error_code, _UNKNOWN, _UNKNOWN, _UNKNOWN))
    writer.count(0)  # aborted transactions
    writer.int32(_UNKNOWN)  # preferred replica
    writer.raw(_NO_RECORDS)
    writer.no_tags()
    return writer.finish()
