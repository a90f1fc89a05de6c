import struct
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceResponse

from brimline.wire.primitives import Malformed, WireError
from brimline.wire.produce import ProducePart
from brimline.wire.produce_response import Refusal, RefusedPart, error_codes, refusing_response
from tests.wire.produce_messages import (
    VERSIONS,
    Answer,
    AnsweredPartition,
    AnsweredTopic,
    answer_in,
    answer_read_by_oracle,
    answers,
    encoded_answer,
    framed,
    int32,
    topic_names,
)

versions = st.sampled_from(VERSIONS)
FIRST_ID, SECOND_ID, THIRD_ID = (UUID(int=number) for number in (1, 2, 3))
SENTENCE = "NOT_ENOUGH_SPACE: /data/a is 97.2 % full, the limit is 95 %"

BROKERS = Answer(
    topics=[
        AnsweredTopic(
            "first",
            FIRST_ID,
            [
                AnsweredPartition(0, base_offset=10, log_append_time=11, log_start_offset=12),
                AnsweredPartition(
                    1,
                    error_code=87,
                    record_errors=[(3, "bad"), (4, None)],
                    message="a batch at fault",
                    leader=(5, 6),
                    tags={90: b"partition"},
                ),
            ],
            {91: b"topic"},
        ),
        AnsweredTopic("second", SECOND_ID, [AnsweredPartition(7, base_offset=70)]),
    ],
    throttle_time_ms=123,
    header_tags={92: b"header"},
    endpoints=[(5, "broker-5", 9092)],
    tags={93: b"answer"},
)


def refusal(topic: str, topic_id: UUID, partition: int, code: int = 56, message: str | None = SENTENCE) -> Refusal:
    part = ProducePart(
        topic=topic,
        topic_id=topic_id,
        partition=partition,
        start=0,
        end=0,
        records_bytes=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        is_transactional=False,
    )
    return Refusal(part, code, message)


def refused(partition: int, code: int = 56, message: str | None = SENTENCE) -> AnsweredPartition:
    return AnsweredPartition(partition, error_code=code, message=message)


def merged(answer: Answer, version: int, refusals: Sequence[Refusal]) -> Answer:
    frame = RefusedPart(version, refusals).merged_into(memoryview(encoded_answer(answer, version)))
    assert struct.unpack_from(">ii", frame) == (len(frame) - 4, 7)
    return answer_read_by_oracle(frame, version)


def test_kafka_python_would_write_the_answers_of_these_tests_alike() -> None:
    topic_class = ProduceResponse.TopicProduceResponse
    partition_class = topic_class.PartitionProduceResponse
    for version in VERSIONS:
        topics = [
            topic_class(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    partition_class(
                        index=partition.index,
                        error_code=partition.error_code,
                        base_offset=partition.base_offset,
                        log_append_time_ms=partition.log_append_time,
                        log_start_offset=partition.log_start_offset,
                        record_errors=[
                            partition_class.BatchIndexAndErrorMessage(
                                batch_index=batch_index, batch_index_error_message=message
                            )
                            for batch_index, message in partition.record_errors
                        ],
                        error_message=partition.message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in BROKERS.topics
        ]
        theirs = ProduceResponse(responses=topics, throttle_time_ms=BROKERS.throttle_time_ms)
        theirs.API_VERSION = version
        body = theirs.encode()
        header = struct.pack(">i", 7) + (b"\0" if version >= 9 else b"")

        ours = Answer(
            topics=[
                replace(
                    topic,
                    tags={},
                    partitions=[replace(partition, tags={}, leader=None) for partition in topic.partitions],
                )
                for topic in BROKERS.topics
            ],
            throttle_time_ms=BROKERS.throttle_time_ms,
        )
        assert encoded_answer(ours, version) == header + bytes(body)


# --- answers without the broker


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refusing_answer_says_no_offset_and_the_reason_once_for_each_partition(version: int) -> None:
    refusals = [
        refusal("first", FIRST_ID, 3),
        refusal("second", SECOND_ID, 0, code=19, message=None),
        refusal("first", FIRST_ID, 1, message="ein anderer Grund: zu voll für alles"),
        refusal("first", FIRST_ID, 3, code=44),
    ]

    frame = refusing_response(version, 99, refusals)

    assert struct.unpack_from(">ii", frame) == (len(frame) - 4, 99)
    expected = Answer(
        topics=[
            AnsweredTopic("first", FIRST_ID, [refused(3), refused(1, message="ein anderer Grund: zu voll für alles")]),
            AnsweredTopic("second", SECOND_ID, [refused(0, code=19, message=None)]),
        ]
    )
    assert answer_read_by_oracle(frame, version) == answer_in(version, expected)
    assert frame[4:] == encoded_answer(expected, version, correlation_id=99)


@given(
    version=versions,
    topics=st.dictionaries(topic_names, st.lists(int32, min_size=1, max_size=200, unique=True), max_size=5),
    code=st.integers(-1, 200),
    message=st.none() | st.text(max_size=300),
)
def test_any_refusals_read_back(version: int, topics: dict[str, list[int]], code: int, message: str | None) -> None:
    ids = {name: UUID(int=number) for number, name in enumerate(topics, start=1)}
    refusals = [
        refusal(name, ids[name], partition, code, message) for name, listed in topics.items() for partition in listed
    ]

    frame = refusing_response(version, 7, refusals)

    expected = Answer(
        topics=[
            AnsweredTopic(name, ids[name], [refused(partition, code, message) for partition in listed])
            for name, listed in topics.items()
        ]
    )
    assert frame == framed(encoded_answer(expected, version))
    assert answer_read_by_oracle(frame, version) == answer_in(version, expected)


@pytest.mark.parametrize("version", [8, 9])
def test_a_message_of_any_length_and_of_any_characters_can_be_sent(version: int) -> None:
    frame = refusing_response(version, 7, [refusal("t", FIRST_ID, 0, message="\ud800" + "\U0001f4a3" * 40_000)])

    message = answer_read_by_oracle(frame, version).topics[0].partitions[0].message
    assert message == "?" + "\U0001f4a3" * 999


# --- refusals in the broker's answer


@pytest.mark.parametrize("version", VERSIONS)
def test_refusals_join_their_topic_or_follow_the_others(version: int) -> None:
    refusals = [
        refusal("third", THIRD_ID, 9),
        refusal("first", FIRST_ID, 4),
        refusal("first", FIRST_ID, 2, code=19, message=None),
        refusal("third", THIRD_ID, 8),
    ]

    answer = merged(BROKERS, version, refusals)

    first, second = BROKERS.topics
    expected = replace(
        BROKERS,
        topics=[
            replace(first, partitions=[*first.partitions, refused(4), refused(2, code=19, message=None)]),
            second,
            AnsweredTopic("third", THIRD_ID, [refused(9), refused(8)]),
        ],
    )
    assert answer == answer_in(version, expected)


@given(version=versions, answer=answers, data=st.data())
def test_every_partition_is_answered_once_and_the_broker_s_words_stay(
    version: int, answer: Answer, data: st.DataObject
) -> None:
    known = {topic.name: topic for topic in answer.topics}
    own_topics = [AnsweredTopic(f"own topic {number}", UUID(int=number), []) for number in (1, 2)]
    refusals: list[Refusal] = []
    expected = []
    for topic in [*answer.topics, *own_topics]:
        taken = {partition.index for partition in topic.partitions}
        chosen = data.draw(st.lists(int32.filter(lambda index: index not in taken), max_size=3, unique=True))  # noqa: B023
        assert topic.topic_id is not None
        refusals += [refusal(topic.name, topic.topic_id, partition) for partition in chosen]
        if topic.name in known or chosen:
            both = [*topic.partitions, *(refused(partition) for partition in chosen)]
            expected.append(replace(topic, partitions=both))

    frame = RefusedPart(version, refusals).merged_into(memoryview(encoded_answer(answer, version)))

    assert frame == framed(encoded_answer(replace(answer, topics=expected), version))
    assert answer_read_by_oracle(frame, version) == answer_in(version, replace(answer, topics=expected))


@given(version=versions, answer=answers)
def test_without_refusals_an_answer_stays_as_it_is(version: int, answer: Answer) -> None:
    payload = encoded_answer(answer, version)

    assert RefusedPart(version, []).merged_into(memoryview(payload)) == framed(payload)


@pytest.mark.parametrize("version", VERSIONS)
def test_of_a_partition_named_twice_the_refusal_counts(version: int) -> None:
    answer = merged(BROKERS, version, [refusal("first", FIRST_ID, 0), refusal("first", FIRST_ID, 0, code=44)])

    first, second = BROKERS.topics
    expected = replace(BROKERS, topics=[replace(first, partitions=[first.partitions[1], refused(0)]), second])
    assert answer == answer_in(version, expected)


@pytest.mark.parametrize("version", [8, 9, 13])
@pytest.mark.parametrize("count", [126, 127, 16_382])
def test_a_partition_count_that_needs_more_bytes_afterwards(version: int, count: int) -> None:
    partitions = [AnsweredPartition(index, base_offset=index) for index in range(count)]

    answer = merged(Answer(topics=[AnsweredTopic("t", FIRST_ID, partitions)]), version, [refusal("t", FIRST_ID, count)])

    expected = Answer(topics=[AnsweredTopic("t", FIRST_ID, [*partitions, refused(count)])])
    assert answer == answer_in(version, expected)


@pytest.mark.parametrize("version", [8, 9, 13])
@pytest.mark.parametrize("count", [126, 127])
def test_a_topic_count_that_needs_more_bytes_afterwards(version: int, count: int) -> None:
    topics = [
        AnsweredTopic(f"t-{index}", UUID(int=index + 10), [AnsweredPartition(0, base_offset=1)])
        for index in range(count)
    ]

    answer = merged(Answer(topics=topics), version, [refusal("own", FIRST_ID, 0)])

    expected = Answer(topics=[*topics, AnsweredTopic("own", FIRST_ID, [refused(0)])])
    assert answer == answer_in(version, expected)


# --- what is no answer


@pytest.mark.parametrize("version", VERSIONS)
def test_every_shortened_answer_is_refused(version: int) -> None:
    whole = encoded_answer(BROKERS, version)

    for length in range(len(whole)):
        with pytest.raises(WireError):
            RefusedPart(version, [refusal("first", FIRST_ID, 4)]).merged_into(memoryview(whole[:length]))


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_behind_the_answer_are_refused(version: int) -> None:
    with pytest.raises(Malformed, match="1 bytes too many"):
        RefusedPart(version, []).merged_into(memoryview(encoded_answer(BROKERS, version) + b"\0"))


@given(version=versions, answer=answers, damages=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4))
def test_a_damaged_answer_is_refused_or_merged(version: int, answer: Answer, damages: list[tuple[int, int]]) -> None:
    payload = bytearray(encoded_answer(answer, version))
    for position, byte in damages:
        payload[position % len(payload)] = byte
    own = refusal("own topic", FIRST_ID, 4)

    try:
        frame = RefusedPart(version, [own]).merged_into(memoryview(payload))
    except WireError:
        return
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    RefusedPart(version, []).merged_into(memoryview(frame)[4:])


@pytest.mark.parametrize("version", [-1, 14])
def test_an_unknown_version_is_refused(version: int) -> None:
    with pytest.raises(Malformed, match="unknown version"):
        refusing_response(version, 7, [])
    with pytest.raises(Malformed, match="unknown version"):
        RefusedPart(version, []).merged_into(memoryview(encoded_answer(BROKERS, 13)))


@pytest.mark.parametrize(("version", "word"), [(12, "name"), (13, "id")])
def test_a_part_must_name_its_topic_as_its_version_does(version: int, word: str) -> None:
    nameless = Refusal(refusal("t", FIRST_ID, 0).part._replace(topic=None, topic_id=None), 56, None)

    with pytest.raises(ValueError, match=word):
        refusing_response(version, 7, [nameless])


@given(answers, versions)
def test_the_codes_of_an_answer(answer: Answer, version: int) -> None:
    payload = memoryview(encoded_answer(answer, version))

    codes = error_codes(payload, version)

    assert codes == {
        (topic.name if topic.topic_id is None else topic.topic_id, partition.index): partition.error_code
        for topic in answer_in(version, answer).topics
        for partition in topic.partitions
    }
