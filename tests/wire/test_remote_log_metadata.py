from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.model import Bytes, Offset
from brimline.wire.primitives import WireError, Writer
from brimline.wire.remote_log_metadata import (
    RemoteSegment,
    RemoteSegmentUpdate,
    SegmentState,
    decode_record,
    metadata_partition,
)

TOPIC_ID = UUID("2f0d4c1e-7a52-4a1d-9f39-0c9a6f3f8a11")
SEGMENT_ID = UUID("9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d")


def segment_record(
    *, size: int = 1_037_120, state: int = 0, custom: bytes | None = None, tagged: bool = False
) -> bytes:
    writer = _begun(kind=0)
    writer.int64(1024)
    writer.int64(2047)
    writer.int32(1)
    writer.int64(1_700_000_000_000)
    writer.int64(1_700_000_000_001)
    writer.count(2)
    for epoch, epoch_start in ((4, 0), (7, 1500)):
        writer.int32(epoch)
        writer.int64(epoch_start)
        writer.no_tags()
    writer.int32(size)
    _custom(writer, custom)
    writer.int8(state)
    if tagged:
        # Tag 0, TxnIndexEmpty, since Kafka 4.0; and one that nobody knows yet.
        writer.uvarint(2)
        for tag, content in ((0, b"\1"), (77, b"later")):
            writer.uvarint(tag)
            writer.uvarint(len(content))
            writer.raw(content)
    else:
        writer.no_tags()
    return writer.finish()


def update_record(state: int) -> bytes:
    writer = _begun(kind=1)
    writer.int32(1)
    writer.int64(1_700_000_000_002)
    _custom(writer, None)
    writer.int8(state)
    writer.no_tags()
    return writer.finish()


def _begun(kind: int, frame_version: int = 1, record_version: int = 0) -> Writer:
    writer = Writer(flexible=True)
    for number in (frame_version, kind, record_version):
        writer.uvarint(number)
    writer.string("orders")
    writer.raw(TOPIC_ID.bytes)
    writer.int32(3)
    writer.no_tags()
    writer.raw(SEGMENT_ID.bytes)
    writer.no_tags()
    return writer


def _custom(writer: Writer, custom: bytes | None) -> None:
    writer.uvarint(0 if custom is None else len(custom) + 1)
    writer.raw(custom or b"")


@pytest.mark.parametrize("custom", [None, b"", b"where the bytes are"])
@pytest.mark.parametrize("tagged", [False, True], ids=["plain", "tagged"])
def test_a_segment(custom: bytes | None, tagged: bool) -> None:  # noqa: FBT001
    assert decode_record(segment_record(custom=custom, tagged=tagged)) == RemoteSegment(
        topic_id=TOPIC_ID,
        partition=3,
        segment_id=SEGMENT_ID,
        start_offset=Offset(1024),
        end_offset=Offset(2047),
        size=Bytes(1_037_120),
        state=SegmentState.COPY_STARTED,
        last_leader_epoch=7,
    )


@pytest.mark.parametrize("state", SegmentState)
def test_an_update(state: SegmentState) -> None:
    assert decode_record(update_record(state)) == RemoteSegmentUpdate(
        topic_id=TOPIC_ID, partition=3, segment_id=SEGMENT_ID, state=state
    )


@pytest.mark.parametrize("kind", [2, 3], ids=["partition delete", "snapshot"])
def test_kinds_that_say_nothing_about_a_segment(kind: int) -> None:
    assert decode_record(_begun(kind=kind).finish()) is None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"garbage",
        segment_record() + b"\0",
        segment_record(size=-5),
        segment_record(state=9),
        _begun(kind=0, frame_version=0).finish(),
        _begun(kind=0, record_version=1).finish(),
        _begun(kind=55).finish(),
        b"\xff" * 40,
    ],
)
def test_what_is_not_a_record_is_refused(value: bytes) -> None:
    with pytest.raises(WireError):
        decode_record(value)


@pytest.mark.parametrize("record", [segment_record(tagged=True), update_record(1)], ids=["segment", "update"])
def test_every_shortened_record_is_refused(record: bytes) -> None:
    for length in range(len(record)):
        with pytest.raises(WireError):
            decode_record(record[:length])


@given(st.binary(max_size=200))
def test_garbage_never_breaks_the_reader(value: bytes) -> None:
    with suppress(WireError):
        record = decode_record(value)
        assert record is None or isinstance(record.state, SegmentState)


@given(st.uuids(), st.integers(0, 1000), st.integers(1, 50))
def test_the_metadata_partition_exists(topic_id: UUID, partition: int, metadata_partitions: int) -> None:
    assert 0 <= metadata_partition(topic_id, partition, metadata_partitions) < metadata_partitions
