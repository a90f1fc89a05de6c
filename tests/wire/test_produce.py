import struct
from collections.abc import Collection, Sequence
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest
from kafka.record.default_records import DefaultRecordBatch

from brimline.torture.hostile.produce import Odd, odd_requests
from brimline.wire.primitives import Malformed, WireError
from brimline.wire.produce import MOST_ENTRIES, ProduceIndex, emptied, index_produce, read_acks, without
from tests.wire.produce_messages import (
    FIRST_VERSION_WITH_TOPIC_ID,
    VERSIONS,
    Partition,
    PlainRequest,
    PlainTopic,
    batch,
    encoded_request,
    framed,
    int16,
    request_in,
    request_read_by_oracle,
    requests,
    topics_with_partitions,
)

versions = st.sampled_from(VERSIONS)
TOPIC_ID = UUID("5e3c1f0a-7d0b-4a87-b4d4-c70616313919")
OTHER_TOPIC_ID = UUID("11111111-7d0b-4a87-b4d4-c70616313919")

RICH = PlainRequest(
    topics=[
        PlainTopic(
            "first",
            TOPIC_ID,
            [
                Partition(0, batch(producer_id=77, producer_epoch=3, base_sequence=12), {90: b"partition"}),
                Partition(1, None),
                Partition(2, b""),
            ],
            {91: b"topic"},
        ),
        PlainTopic("second", OTHER_TOPIC_ID, [Partition(5, batch(value=b"x" * 300))]),
    ],
    header_tags={92: b"header"},
    transactional_id="transaction",
    tags={93: b"request"},
)


def index_of(request: PlainRequest, version: int) -> ProduceIndex:
    return index_produce(memoryview(encoded_request(request, version)), version)


def one_partition(records: bytes | None) -> PlainRequest:
    return PlainRequest(topics=[PlainTopic("t", TOPIC_ID, [Partition(0, records)])])


def test_kafka_python_would_write_the_requests_of_these_tests_alike() -> None:
    for version in VERSIONS:
        untagged = request_in(0, RICH)
        topics = [
            ProduceRequest.TopicProduceData(
                name=topic.name,
                topic_id=rich_topic.topic_id,
                partition_data=[
                    ProduceRequest.TopicProduceData.PartitionProduceData(
                        index=partition.index, records=partition.records
                    )
                    for partition in topic.partitions
                ],
            )
            for topic, rich_topic in zip(untagged.topics, RICH.topics, strict=True)
        ]
        theirs = ProduceRequest(
            transactional_id="transaction", acks=RICH.acks, timeout_ms=RICH.timeout_ms, topic_data=topics
        )
        theirs.API_VERSION = version
        theirs.with_header(correlation_id=7, client_id=RICH.client_id)

        ours = replace(
            untagged,
            transactional_id="transaction",
            topics=[
                replace(topic, topic_id=rich_topic.topic_id)
                for topic, rich_topic in zip(untagged.topics, RICH.topics, strict=True)
            ],
        )
        assert encoded_request(ours, version) == bytes(theirs.encode(version=version, header=True))


# --- the index


@given(version=versions, request=requests)
def test_the_index_holds_what_was_sent(version: int, request: PlainRequest) -> None:
    payload = encoded_request(request, version)

    index = index_produce(memoryview(payload), version)

    sent = request_in(version, request)
    assert (index.transactional_id, index.acks, index.timeout_ms) == (
        sent.transactional_id,
        sent.acks,
        sent.timeout_ms,
    )
    assert [(part.topic or "", part.topic_id, part.partition, part.records_bytes) for part in index.parts] == [
        (topic.name, topic.topic_id, partition.index, len(partition.records or b""))
        for topic in sent.topics
        for partition in topic.partitions
    ]
    sent_records = [partition.records or b"" for topic in sent.topics for partition in topic.partitions]
    for part, records in zip(index.parts, sent_records, strict=True):
        assert records in payload[part.start : part.end]


@given(version=versions, request=requests)
def test_the_producer_is_read_from_the_batch_as_kafka_python_reads_it(version: int, request: PlainRequest) -> None:
    parts = index_of(request, version).parts

    sent_records = [partition.records or b"" for topic in request.topics for partition in topic.partitions]
    for part, records in zip(parts, sent_records, strict=True):
        seen = (
            part.producer_id,
            part.producer_epoch,
            part.base_sequence,
            part.is_transactional,
        )
        if len(records) < 61 or records[16] != 2:
            assert seen == (-1, -1, -1, False)
        else:
            read = DefaultRecordBatch(records)
            assert seen == (
                read.producer_id,
                read.producer_epoch,
                read.base_sequence,
                read.is_transactional,
            )


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize(("length", "producer_id"), [(60, -1), (61, 77), (62, 77)])
def test_a_batch_must_have_its_whole_header(version: int, length: int, producer_id: int) -> None:
    records = batch(producer_id=77, producer_epoch=0, base_sequence=0)[:length]

    assert index_of(one_partition(records), version).parts[0].producer_id == producer_id


@pytest.mark.parametrize("version", VERSIONS)
def test_a_partition_named_twice_is_there_twice(version: int) -> None:
    twice = PlainRequest(topics=[PlainTopic("t", TOPIC_ID, [Partition(4, b"one"), Partition(4, b"other")])])

    parts = index_of(twice, version).parts

    assert [(part.partition, part.records_bytes) for part in parts] == [(4, 3), (4, 5)]


@pytest.mark.parametrize("version", [7, 9])
def test_a_name_that_is_not_utf_8_is_left_to_the_broker(version: int) -> None:
    request = PlainRequest(topics=[PlainTopic("TOPIC", TOPIC_ID, [Partition(0, b"")])], transactional_id="TRANSACTION")
    payload = encoded_request(request, version).replace(b"TOP", b"TO\xff").replace(b"TRA", b"TR\xff")

    index = index_produce(memoryview(payload), version)

    assert index.transactional_id == "TR\ufffdNSACTION"
    assert index.parts[0].topic == "TO\ufffdIC"


@pytest.mark.parametrize("count", [126, 127, 128, 1000])
@pytest.mark.parametrize("version", [7, 9, 13])
def test_many_partitions_in_one_topic_and_in_as_many(version: int, count: int) -> None:
    records = batch()
    one_topic = PlainRequest(topics=[PlainTopic("t", TOPIC_ID, [Partition(index, records) for index in range(count)])])
    many_topics = PlainRequest(
        topics=[PlainTopic(f"t-{index}", UUID(int=index + 1), [Partition(index, records)]) for index in range(count)]
    )

    assert [part.partition for part in index_of(one_topic, version).parts] == list(range(count))
    assert [part.partition for part in index_of(many_topics, version).parts] == list(range(count))


# --- what is no Produce request


@pytest.mark.parametrize("version", VERSIONS)
def test_every_shortened_request_is_refused(version: int) -> None:
    whole = encoded_request(RICH, version)

    for length in range(len(whole)):
        with pytest.raises(WireError):
            index_produce(memoryview(whole[:length]), version)


@pytest.mark.parametrize("odd", list(odd_requests("orders", TOPIC_ID, batch())), ids=str)
def test_what_only_a_broker_would_take_is_read_as_it_reads_it(odd: Odd) -> None:
    """That brokers take them: ``tests/integration/test_gateway_hostile.py``."""
    index = index_produce(memoryview(odd.payload), odd.version)

    named = [part for part in index.parts if part.partition == 0]
    assert named
    assert all(part.records_bytes == len(batch()) for part in named)
    assert {part.topic if odd.version < 13 else part.topic_id for part in named} <= {"orders", TOPIC_ID}
    assert read_acks(memoryview(odd.payload), odd.version) == -1


@pytest.mark.parametrize(("version", "null", "less"), [(8, "ffffffff", "fffffffe"), (9, "00", "ffffffff0f")])
def test_records_of_less_than_no_bytes_are_none(version: int, null: str, less: str) -> None:
    behind = 3 if version == 9 else 0
    whole = encoded_request(one_partition(None), version)
    head = whole[: len(whole) - behind - len(bytes.fromhex(null))]
    odd = head + bytes.fromhex(less) + bytes(behind)

    (part,) = index_produce(memoryview(odd), version).parts

    assert part.records_bytes == 0


@pytest.mark.parametrize("version", [-1, 14, 32767])
def test_an_unknown_version_is_refused(version: int) -> None:
    with pytest.raises(Malformed, match="unknown version"):
        index_produce(memoryview(encoded_request(RICH, 13)), version)


NO_TOPICS = PlainRequest(topics=[])
NO_PARTITIONS = PlainRequest(topics=[PlainTopic("t", TOPIC_ID, [])])


@pytest.mark.parametrize(
    ("version", "request_", "ending", "replacement"),
    [
        pytest.param(8, NO_TOPICS, "00000000", "ffffffff", id="null topics"),
        pytest.param(9, NO_TOPICS, "01 00", "00 00", id="null topics, flexible"),
        pytest.param(8, NO_TOPICS, "00000000", "fffffffe", id="-2 topics"),
        pytest.param(8, NO_TOPICS, "00000000", "7fffffff", id="more topics than bytes"),
        pytest.param(9, NO_TOPICS, "01 00", "ffffffff0f 00", id="more topics than bytes, flexible"),
        pytest.param(8, NO_PARTITIONS, "0001 74 00000000", "ffff 00000000", id="a topic without a name"),
        pytest.param(9, NO_PARTITIONS, "02 74 01 00 00", "00 01 00 00", id="a topic without a name, flexible"),
        pytest.param(8, NO_PARTITIONS, "0001 74 00000000", "fffe 00000000", id="a name of -2 bytes"),
        pytest.param(8, NO_PARTITIONS, "00000000", "ffffffff", id="null partitions"),
        pytest.param(9, NO_PARTITIONS, "01 00 00", "00 00 00", id="null partitions, flexible"),
        pytest.param(8, NO_PARTITIONS, "00000000", "7fffffff", id="more partitions than bytes"),
        pytest.param(9, NO_PARTITIONS, "01 00 00", "ffffffff0f 00 00", id="more partitions than bytes, flexible"),
        pytest.param(8, one_partition(b""), "00000000", "7fffffff", id="more records than bytes"),
        pytest.param(9, one_partition(b""), "01 00 00 00", "ffffffff07 00 00 00", id="more records, flexible"),
        pytest.param(9, one_partition(b""), "01 00 00 00", "8080808008 00 00 00", id="records of 2 GiB, flexible"),
        pytest.param(9, one_partition(b""), "01 00 00 00", "8080808080 00 00 00 00", id="an endless number"),
        pytest.param(9, one_partition(b""), "00 00 00", "10 00 00", id="more tagged fields than bytes"),
        pytest.param(9, one_partition(b""), "00 00 00", "01 00 ff7f 00 00", id="a tagged field beyond the end"),
        pytest.param(9, one_partition(b""), "00 00 00", "01 00 ffffffff0f 00 00", id="a tagged field of -1 bytes"),
    ],
)
def test_lengths_that_cannot_be(version: int, request_: PlainRequest, ending: str, replacement: str) -> None:
    payload = encoded_request(request_, version)
    assert payload.endswith(bytes.fromhex(ending))
    damaged = payload[: -len(bytes.fromhex(ending))] + bytes.fromhex(replacement)

    with pytest.raises(WireError):
        index_produce(memoryview(damaged), version)


@pytest.mark.parametrize("version", [8, 9])
def test_more_entries_than_anybody_needs_are_refused_before_they_are_read(version: int) -> None:
    topics = PlainRequest(topics=[PlainTopic("t", TOPIC_ID, [])] * (MOST_ENTRIES + 1))
    partitions = PlainRequest(
        topics=[
            PlainTopic("t", TOPIC_ID, [Partition(0, None)]),
            PlainTopic("u", TOPIC_ID, [Partition(0, None)] * MOST_ENTRIES),
        ]
    )

    with pytest.raises(Malformed, match="topics"):
        index_of(topics, version)
    with pytest.raises(Malformed, match="partitions"):
        index_of(partitions, version)


def test_a_transactional_id_too_long_for_kafka_is_not_waited_for() -> None:
    begun = encoded_request(PlainRequest(topics=[], transactional_id="x" * 0x8000), 9)[:100]

    with pytest.raises(Malformed, match="32768 bytes"):
        read_acks(memoryview(begun), 9)


def outcome(payload: bytes, version: int) -> ProduceIndex | None:
    """``None`` when it is refused. Any other error is a bug and shows as one."""
    try:
        return index_produce(memoryview(payload), version)
    except WireError:
        return None


@given(version=versions, request=requests, damages=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4))
def test_a_damaged_request_is_refused_or_indexed_within_its_bounds(
    version: int, request: PlainRequest, damages: list[tuple[int, int]]
) -> None:
    payload = bytearray(encoded_request(request, version))
    for position, byte in damages:
        payload[position % len(payload)] = byte

    index = outcome(bytes(payload), version)

    if index is not None and index.parts:
        ends = [0, *(end for part in index.parts for end in (part.start, part.end)), len(payload)]
        assert ends == sorted(ends)


@given(version=versions, garbage=st.binary(max_size=200))
def test_garbage_is_refused_or_indexed(version: int, garbage: bytes) -> None:
    outcome(struct.pack(">hhih", 0, version, 1, -1) + garbage, version)


# --- how many acknowledgements


@given(version=versions, request=requests, acks=int16)
def test_acks_are_read_from_every_prefix_that_holds_them(version: int, request: PlainRequest, acks: int) -> None:
    payload = memoryview(encoded_request(replace(request, acks=acks), version))

    seen = [read_acks(payload[:length], version) for length in range(len(payload) + 1)]

    needed = seen.index(acks)
    assert seen == [None] * needed + [acks] * (len(payload) + 1 - needed)


@given(version=versions, garbage=st.binary(max_size=50))
@example(version=9, garbage=b"\0" + b"\xff" * 6)
def test_acks_of_garbage_are_a_number_or_unknown_or_refused(version: int, garbage: bytes) -> None:
    prefix = struct.pack(">hhih", 0, version, 1, -1) + garbage
    try:
        acks = read_acks(memoryview(prefix), version)
    except WireError:
        return
    assert acks is None or -(2**15) <= acks < 2**15


def test_acks_behind_an_impossible_transactional_id() -> None:
    with pytest.raises(Malformed):
        read_acks(memoryview(struct.pack(">hhih", 0, 9, 1, -1) + b"\0" + b"\x80\x80\x80\x80\x08"), 9)


# --- taking partitions out


def rest_of(request: PlainRequest, refused: Collection[int]) -> PlainRequest:
    """What must be left: no refused partition, and no topic that lost its last one."""
    position = 0
    topics = []
    for topic in request.topics:
        positions = range(position, position + len(topic.partitions))
        position += len(topic.partitions)
        kept = [partition for at, partition in zip(positions, topic.partitions, strict=True) if at not in refused]
        if kept or not topic.partitions:
            topics.append(replace(topic, partitions=kept))
    return replace(request, topics=topics)


def frame_without(request: PlainRequest, version: int, refused: Collection[int]) -> bytes:
    payload = memoryview(encoded_request(request, version))
    return b"".join(without(payload, index_produce(payload, version), refused))


@given(version=versions, request=requests, last_topic=topics_with_partitions, data=st.data())
def test_what_is_left_is_the_request_without_the_refused_partitions(
    version: int, request: PlainRequest, last_topic: PlainTopic, data: st.DataObject
) -> None:
    request = replace(request, topics=[*request.topics, last_topic])
    count = sum(len(topic.partitions) for topic in request.topics)
    refused = data.draw(st.sets(st.integers(0, count - 1), max_size=count - 1))

    frame = frame_without(request, version, refused)

    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    assert request_read_by_oracle(frame, version) == request_in(version, rest_of(request, refused))
    assert frame == framed(encoded_request(rest_of(request, refused), version))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("refused", [{0}, {1}, {2}, {3}, {0, 2}, {0, 1, 2}, {1, 3}])
def test_each_version_without_some_partitions(version: int, refused: set[int]) -> None:
    frame = frame_without(RICH, version, refused)

    assert request_read_by_oracle(frame, version) == request_in(version, rest_of(RICH, refused))


@pytest.mark.parametrize("version", [8, 9, FIRST_VERSION_WITH_TOPIC_ID])
@pytest.mark.parametrize("count", [127, 128, 129, 16_384])
def test_a_partition_count_that_needs_fewer_bytes_afterwards(version: int, count: int) -> None:
    request = PlainRequest(topics=[PlainTopic("t", TOPIC_ID, [Partition(index, b"") for index in range(count)])])

    assert frame_without(request, version, {1, 2}) == framed(encoded_request(rest_of(request, {1, 2}), version))


@pytest.mark.parametrize("version", [8, 9, FIRST_VERSION_WITH_TOPIC_ID])
@pytest.mark.parametrize("count", [127, 128, 129])
def test_a_topic_count_that_needs_fewer_bytes_afterwards(version: int, count: int) -> None:
    request = PlainRequest(
        topics=[PlainTopic(f"t-{index}", UUID(int=index + 1), [Partition(0, b"")]) for index in range(count)]
    )

    assert frame_without(request, version, {1, 2}) == framed(encoded_request(rest_of(request, {1, 2}), version))


@pytest.mark.parametrize("version", [8, 9, FIRST_VERSION_WITH_TOPIC_ID])
def test_one_refused_partition_costs_a_handful_of_buffers_and_no_copy_of_records(version: int) -> None:
    records = batch(value=b"x" * 2000)
    payload = memoryview(
        encoded_request(
            PlainRequest(topics=[PlainTopic("t", TOPIC_ID, [Partition(index, records) for index in range(1000)])]),
            version,
        )
    )

    buffers = without(payload, index_produce(payload, version), [500])

    assert len(buffers) <= 4
    copied = [buffer for buffer in buffers if isinstance(buffer, bytes)]
    assert sum(map(len, copied)) < 100
    assert all(buffer.obj is payload.obj for buffer in buffers if isinstance(buffer, memoryview))


@pytest.mark.parametrize("refused", [range(4), [0, 1, 2, 3, 3]])
def test_without_all_of_them_it_is_a_request_for_nothing(refused: Sequence[int]) -> None:
    left = index_produce(memoryview(frame_without(RICH, 9, refused)[4:]), 9)

    assert (left.parts, left.topics) == ((), ())
    assert left.acks == index_produce(memoryview(encoded_request(RICH, 9)), 9).acks


@pytest.mark.parametrize("refused", [[4], [-1], [0, 99]])
def test_a_position_beyond_the_request_is_a_mistake(refused: list[int]) -> None:
    with pytest.raises(ValueError, match="position"):
        frame_without(RICH, 9, refused)


@given(requests, versions, st.data())
def test_emptied_is_the_same_request_for_some_partitions_without_their_records(
    request: PlainRequest, version: int, data: st.DataObject
) -> None:
    payload = memoryview(encoded_request(request, version))
    index = index_produce(payload, version)
    asked = data.draw(st.sets(st.integers(0, len(index.parts) - 1))) if index.parts else set()

    read = request_read_by_oracle(emptied(payload, index, asked), version)

    numbers = iter(range(len(index.parts)))
    left = [
        replace(topic, partitions=[Partition(each.index, b"") for each in topic.partitions if next(numbers) in asked])
        for topic in request_in(version, request).topics
    ]
    assert read.topics == [replace(topic, tags={}) for topic in left if topic.partitions]
    assert (read.client_id, read.acks, read.timeout_ms) == (request.client_id, request.acks, request.timeout_ms)
