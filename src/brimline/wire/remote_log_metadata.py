"""Records of ``__remote_log_metadata``, as the topic-based RemoteLogMetadataManager writes them.

A value is three variable-length numbers (frame version, record kind, record version) and one flexible message.
Kinds that carry no segment are legal and say nothing about sizes. A later record version may only add tagged
fields or is announced by its number: an unknown number is refused, never guessed at.
"""

from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from brimline.model import Bytes, Offset
from brimline.wire.primitives import Malformed, Reader

TOPIC = "__remote_log_metadata"

_FRAME_VERSION = 1
_RECORD_VERSION = 0
_SEGMENT, _SEGMENT_UPDATE, _PARTITION_DELETE, _SEGMENT_SNAPSHOT = range(4)
_SMALLEST_EPOCH = 13


class SegmentState(IntEnum):
    COPY_STARTED = 0
    COPY_FINISHED = 1
    DELETE_STARTED = 2
    DELETE_FINISHED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSegment:
    """A segment as announced when its upload began. ``end_offset`` is inclusive.

    ``last_leader_epoch`` is the epoch of its last batch: after an unclean election the present leader may hold other
    records at the same offsets, and only the epoch tells.
    """

    topic_id: UUID
    partition: int
    segment_id: UUID
    start_offset: Offset
    end_offset: Offset
    size: Bytes
    state: SegmentState
    last_leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSegmentUpdate:
    topic_id: UUID
    partition: int
    segment_id: UUID
    state: SegmentState


def decode_record(value: bytes | memoryview) -> RemoteSegment | RemoteSegmentUpdate | None:
    """One record's value. ``None`` for a kind that says nothing about a segment."""
    reader = Reader(value, flexible=True)
    frame_version, kind, record_version = reader.uvarint(), reader.uvarint(), reader.uvarint()
    if frame_version != _FRAME_VERSION or record_version != _RECORD_VERSION:
        raise Malformed(f"remote log metadata of frame version {frame_version}, record version {record_version}")
    record: RemoteSegment | RemoteSegmentUpdate
    if kind == _SEGMENT:
        record = _segment(reader)
    elif kind == _SEGMENT_UPDATE:
        record = _segment_update(reader)
    elif kind in (_PARTITION_DELETE, _SEGMENT_SNAPSHOT):
        return None
    else:
        raise Malformed(f"remote log metadata of the unknown kind {kind}")
    reader.skip_tags()
    if reader.remaining:
        raise Malformed(f"remote log metadata with {reader.remaining} bytes too many")
    return record


def _segment(reader: Reader) -> RemoteSegment:
    topic_id, partition, segment_id = _segment_id(reader)
    start_offset, end_offset = Offset(reader.int64()), Offset(reader.int64())
    reader.int32()  # the broker that wrote it
    reader.int64()  # newest timestamp in the segment
    reader.int64()  # time of the event
    epochs = []
    for _ in range(reader.count(smallest_element=_SMALLEST_EPOCH) or 0):
        epochs.append(reader.int32())
        reader.int64()  # where the epoch begins
        reader.skip_tags()
    size = reader.int32()
    reader.nullable_bytes()
    state = _state(reader)
    if not epochs:
        raise Malformed("a remote segment without a leader epoch")
    if size < 0 or start_offset < 0 or end_offset < start_offset:
        raise Malformed(f"a remote segment of {size} bytes from offset {start_offset} to {end_offset}")
    return RemoteSegment(
        topic_id=topic_id,
        partition=partition,
        segment_id=segment_id,
        start_offset=start_offset,
        end_offset=end_offset,
        size=Bytes(size),
        state=state,
        last_leader_epoch=max(epochs),
    )


def _segment_update(reader: Reader) -> RemoteSegmentUpdate:
    topic_id, partition, segment_id = _segment_id(reader)
    reader.int32()  # the broker that wrote it
    reader.int64()  # time of the event
    reader.nullable_bytes()
    return RemoteSegmentUpdate(topic_id=topic_id, partition=partition, segment_id=segment_id, state=_state(reader))


def _segment_id(reader: Reader) -> tuple[UUID, int, UUID]:
    reader.string()  # the topic's name: the id is the key, since a name can be used again
    topic_id, partition = reader.uuid(), reader.int32()
    reader.skip_tags()
    segment_id = reader.uuid()
    reader.skip_tags()
    return topic_id, partition, segment_id


def _state(reader: Reader) -> SegmentState:
    number = reader.int8()
    try:
        return SegmentState(number)
    except ValueError:
        raise Malformed(f"a remote segment in the unknown state {number}") from None


def metadata_partition(topic_id: UUID, partition: int, metadata_partitions: int) -> int:
    """Which partition of the topic holds a user partition's records.

    Java: ``toPositive(murmur2(int32(Objects.hash(leastSignificantBits, mostSignificantBits, partition)))) % n``.
    """
    most, least = topic_id.int >> 64, topic_id.int & 0xFFFFFFFFFFFFFFFF
    mixed = 1
    for part in ((least >> 32) ^ (least & 0xFFFFFFFF), (most >> 32) ^ (most & 0xFFFFFFFF), partition):
        mixed = (31 * mixed + part) & 0xFFFFFFFF
    return (_murmur2_of_int32(mixed) & 0x7FFFFFFF) % metadata_partitions


def _murmur2_of_int32(number: int) -> int:
    """Kafka's murmur2 of the four big-endian bytes of a number; it reads them as one little-endian word."""
    multiplier, seed, length = 0x5BD1E995, 0x9747B28C, 4
    word = int.from_bytes(number.to_bytes(4, "big"), "little")
    word = (word * multiplier) & 0xFFFFFFFF
    word ^= word >> 24
    word = (word * multiplier) & 0xFFFFFFFF
    mixed = ((seed ^ length) * multiplier) & 0xFFFFFFFF
    mixed ^= word
    mixed ^= mixed >> 13
    mixed = (mixed * multiplier) & 0xFFFFFFFF
    return mixed ^ (mixed >> 15)
