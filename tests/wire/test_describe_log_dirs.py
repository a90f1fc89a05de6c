"""kafka-python's own encoder is the oracle for answers."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from brimline.model import KafkaError, LogDirDescription, TopicPartition
from brimline.wire import describe_log_dirs as wire
from brimline.wire.describe_log_dirs import AnsweredTopics, decode_response
from brimline.wire.describe_log_dirs_request import MAX_VERSION, MIN_VERSION, Layout
from brimline.wire.primitives import Reader, WireError, Writer
from tests.wire.log_dirs_answers import INT64_MAX, Dir, Row, dirs, encoded

VERSIONS = range(MIN_VERSION, MAX_VERSION + 1)


def seen_rows(log_dir: LogDirDescription) -> set[Row]:
    return {
        Row(tp.topic, tp.partition, info.size, info.offset_lag, info.is_future)
        for tp, info in log_dir.replica_infos.items()
    }


@pytest.mark.parametrize("version", VERSIONS)
@given(log_dirs=st.lists(dirs, max_size=3, unique_by=lambda log_dir: log_dir.path))
@example(log_dirs=[Dir("/larger-than-can-be-said", 0, [], INT64_MAX, INT64_MAX, cordoned=False)])
def test_every_field_of_an_answer_arrives(version: int, log_dirs: list[Dir]) -> None:
    decoded = decode_response(encoded(log_dirs, version), version)

    assert decoded.throttle_time_ms == 7
    assert [log_dir.path for log_dir in decoded.log_dirs] == [log_dir.path for log_dir in log_dirs]
    for log_dir, given_dir in zip(decoded.log_dirs, log_dirs, strict=True):
        assert seen_rows(log_dir) == set(given_dir.rows)
        assert log_dir.error == (KafkaError(given_dir.error_code) if given_dir.error_code else None)
        knows_volume = version >= 4
        assert log_dir.total_bytes == (given_dir.total if knows_volume and given_dir.total >= 0 else None)
        assert log_dir.usable_bytes == (given_dir.usable if knows_volume and given_dir.usable >= 0 else None)
        assert log_dir.is_cordoned == (given_dir.cordoned if version >= 5 else None)


@pytest.mark.parametrize(("version", "error"), [(2, None), (3, KafkaError(31)), (5, KafkaError(31))])
def test_the_error_of_the_whole_answer_exists_from_version_3(version: int, error: KafkaError | None) -> None:
    assert decode_response(encoded([], version, error_code=31), version).error == error


@pytest.mark.parametrize("count", [126, 127, 128, 16_383, 16_384])
def test_counts_that_need_more_bytes_on_the_wire(count: int) -> None:
    log_dir = Dir("/d", 0, [Row("t" * 249, p, p, 0, is_future=False) for p in range(count)], 1, 1, cordoned=False)

    replicas = decode_response(encoded([log_dir], 4), 4).log_dirs[0].replicas

    assert len(replicas) == count
    assert replicas.topic_partition(count - 1) == TopicPartition("t" * 249, count - 1)
    assert replicas.size.tolist() == list(range(count))


def with_tags(*, on_partition: bool, on_topic: bool) -> bytes:
    """A legal answer of a future broker: an unknown tagged field after a partition or a topic."""
    writer = Writer(flexible=True)
    writer.int32(0)
    writer.int16(0)
    writer.count(1)
    writer.int16(0)
    writer.string("/d")
    writer.count(1)
    writer.string("t")
    writer.count(2)
    for partition in (0, 1):
        writer.int32(partition)
        writer.int64(100 + partition)
        writer.int64(0)
        writer.int8(0)
        _tag(writer, present=on_partition)
    _tag(writer, present=on_topic)
    writer.int64(1000)
    writer.int64(400)
    writer.no_tags()
    writer.no_tags()
    return writer.finish()


def _tag(writer: Writer, *, present: bool) -> None:
    if present:
        writer.uvarint(1)
        writer.uvarint(9)
        writer.uvarint(3)
        writer.raw(b"abc")
    else:
        writer.no_tags()


@pytest.mark.parametrize(("on_partition", "on_topic"), [(True, False), (False, True), (True, True)])
def test_unknown_tagged_fields_change_nothing(on_partition: bool, on_topic: bool) -> None:  # noqa: FBT001
    plain = decode_response(with_tags(on_partition=False, on_topic=False), 4).log_dirs[0]

    tagged = decode_response(with_tags(on_partition=on_partition, on_topic=on_topic), 4).log_dirs[0]

    assert tagged.replica_infos == plain.replica_infos
    assert len(tagged.replica_infos) == 2
    assert (tagged.total_bytes, tagged.usable_bytes) == (1000, 400)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_shortened_answer_is_refused(version: int) -> None:
    whole = encoded([Dir("/d", 0, [Row("t", 0, 5, 0, is_future=False)], 9, 3, cordoned=False)], version)

    for length in range(len(whole)):
        with pytest.raises(WireError):
            decode_response(whole[:length], version)


def outcome(message: bytes, version: int, *, carefully: bool = False) -> object:
    """All facts in an answer, or ``None`` when it is refused. Any other error is a bug and shows as one."""
    quick = wire._read_topics_quickly
    if carefully:
        wire._read_topics_quickly = _never
    try:
        decoded = decode_response(message, version)
    except WireError:
        return None
    finally:
        wire._read_topics_quickly = quick
    return [
        (log_dir.path, log_dir.error, log_dir.total_bytes, log_dir.usable_bytes, list(log_dir.replicas.each()))
        for log_dir in decoded.log_dirs
    ]


def _never(reader: Reader, layout: Layout, body: bytes, text: str) -> AnsweredTopics:
    raise wire._NotPlain


def test_numbers_written_with_too_many_bytes_mean_the_same() -> None:
    """Legal, if nobody sends it: 0x80 0x00 is a null array, 0x81 0x00 an empty one."""
    begun = with_tags(on_partition=False, on_topic=False)
    count_at = begun.index(b"\x02t") + 2

    for number in (b"\x80\x00", b"\x81\x00"):
        message = begun[:count_at] + number + b"\x00" + begun[-18:]
        assert outcome(message, 4) == outcome(message, 4, carefully=True)
        assert outcome(message, 4) == [("/d", None, 1000, 400, [])]


@pytest.mark.parametrize("version", VERSIONS)
@given(garbage=st.binary(max_size=300))
def test_the_quick_way_and_the_careful_way_agree_on_garbage(version: int, garbage: bytes) -> None:
    assert outcome(garbage, version) == outcome(garbage, version, carefully=True)


@given(position=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_the_quick_way_and_the_careful_way_agree_on_a_damaged_answer(position: int, byte: int) -> None:
    rows = [Row(f"topic-{p % 3}", p, p, 0, is_future=False) for p in range(140)]
    damaged = bytearray(encoded([Dir("/d", 0, rows, 9, 3, cordoned=False)], 4))
    damaged[position % len(damaged)] = byte

    assert outcome(bytes(damaged), 4) == outcome(bytes(damaged), 4, carefully=True)
