"""Answers to followers: what is put in and taken out shows, and nothing else."""

import contextlib
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from brimline.wire.fetch_response import RewrittenAnswer, rewritten_answer
from brimline.wire.primitives import Malformed, WireError
from tests.wire.fetch_messages import (
    VERSIONS,
    Answer,
    AnsweredPartition,
    AnsweredTopic,
    answer_in,
    answer_read_by_oracle,
    answers,
    encoded_answer,
    key_in,
)
from tests.wire.produce_messages import framed, int64

versions = st.sampled_from(VERSIONS)
SKIPPED = 75
TOPIC_ID = UUID("5e3c1f0a-7d0b-4a87-b4d4-c70616313919")
OTHER_TOPIC_ID = UUID("11111111-7d0b-4a87-b4d4-c70616313919")
RICH = Answer(
    topics=[
        AnsweredTopic(
            "first",
            TOPIC_ID,
            [
                AnsweredPartition(0, 0, 50, 49, 20, records=b"r" * 5000, tags={90: b"partition"}),
                AnsweredPartition(1, 6, leader=(3, 9)),
                AnsweredPartition(2, 0, 7, diverging=(1, 2), aborted=[(5, 6)], records=None),
            ],
            {91: b"topic"},
        )
    ],
    session_id=99,
    throttle_time_ms=3,
    endpoints=[(3, "host", 9092)],
    header_tags={92: b"header"},
    tags={93: b"answer"},
)
REFUSED = AnsweredPartition(4, SKIPPED, aborted=[])


def rewritten(
    answer: Answer, version: int, refused: object = (), emptied: dict[tuple[bytes, int], int] | None = None
) -> RewrittenAnswer:
    payload = memoryview(encoded_answer(answer, version))
    return rewritten_answer(payload, version, refused=refused, error_code=SKIPPED, emptied=emptied)  # type: ignore[arg-type]


def read(rewritten: RewrittenAnswer, version: int) -> Answer:
    return answer_read_by_oracle(b"".join(rewritten.frame), version)


@given(answers, versions)
@example(RICH, 12)
@example(RICH, 18)
def test_these_tests_write_what_the_oracle_reads(answer: Answer, version: int) -> None:
    assert answer_read_by_oracle(framed(encoded_answer(answer, version)), version) == answer_in(version, answer)


@given(answers, versions)
def test_without_changes_every_byte_stays(answer: Answer, version: int) -> None:
    unchanged = rewritten(answer, version)

    assert b"".join(unchanged.frame) == framed(encoded_answer(answer, version))
    assert unchanged.records_bytes == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refused_partition_joins_its_topic(version: int) -> None:
    topic = RICH.topics[0]
    wanted = replace(RICH, topics=[replace(topic, partitions=[*topic.partitions, REFUSED])])

    assert read(rewritten(RICH, version, [(key_in(version, topic), 4)]), version) == answer_in(version, wanted)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_that_the_broker_does_not_mention_is_added(version: int) -> None:
    added = AnsweredTopic("second", OTHER_TOPIC_ID, [REFUSED, replace(REFUSED, index=9)])
    key = key_in(version, added)

    after = read(rewritten(RICH, version, [(key, 4), (key, 9), (key, 4)]), version)

    assert after == answer_in(version, replace(RICH, topics=[*RICH.topics, added]))


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_refused_is_refused_whatever_the_broker_says(version: int) -> None:
    topic = RICH.topics[0]
    wanted = [*topic.partitions[1:], replace(REFUSED, index=0)]

    after = read(rewritten(RICH, version, [(key_in(version, topic), 0)]), version)

    assert after.topics[0].partitions == wanted


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("fetch_offset", "log_start"), [(30, 20), (20, 20), (19, 19)])
def test_records_are_taken_out_and_the_log_start_ends_where_the_follower_does(
    version: int, fetch_offset: int, log_start: int
) -> None:
    topic = RICH.topics[0]
    after = rewritten(RICH, version, emptied={(key_in(version, topic), 0): fetch_offset})

    emptied = replace(topic.partitions[0], records=b"", log_start_offset=log_start)
    wanted = replace(RICH, topics=[replace(topic, partitions=[emptied, *topic.partitions[1:]])])
    assert read(after, version) == answer_in(version, wanted)
    assert after.records_bytes == 5000


@pytest.mark.parametrize("partition", [1, 2])
def test_an_error_and_a_divergence_are_passed_on(partition: int) -> None:
    after = rewritten(RICH, 18, emptied={(TOPIC_ID.bytes, partition): 100})

    assert b"".join(after.frame) == framed(encoded_answer(RICH, 18))


def test_an_answer_that_is_an_error_stays() -> None:
    answer = Answer(error_code=71)

    after = rewritten(answer, 18, [(TOPIC_ID.bytes, 4)], {(TOPIC_ID.bytes, 0): 1})

    assert b"".join(after.frame) == framed(encoded_answer(answer, 18))


def test_other_partitions_records_are_not_copied() -> None:
    large = AnsweredPartition(3, 0, 1, records=bytes(1 << 20))
    answer = replace(RICH, topics=[replace(RICH.topics[0], partitions=[*RICH.topics[0].partitions, large])])

    after = rewritten(answer, 18, [(OTHER_TOPIC_ID.bytes, 1)], {(TOPIC_ID.bytes, 0): 1})

    assert sum(len(each) for each in after.frame if isinstance(each, bytes)) < 2000
    assert read(after, 18).topics[0].partitions[3] == large


@given(answers, versions, st.data())
def test_random_changes_are_the_ones_that_were_asked_for(answer: Answer, version: int, data: st.DataObject) -> None:
    keys = [(key_in(version, topic), each.index) for topic in answer.topics for each in topic.partitions]
    some = st.lists(st.sampled_from(keys), unique=True) if keys else st.just([])
    foreign = [(b"new topic at all", 1), (b"new topic at all", 2)]
    refused = data.draw(some) + data.draw(st.sampled_from([[], foreign[:1], foreign]))
    emptied = data.draw(st.dictionaries(st.sampled_from(keys), int64)) if keys else {}

    after = read(rewritten(answer, version, refused, emptied), version)

    found = {(key_in(version, topic), each.index): each for topic in after.topics for each in topic.partitions}
    before = {
        (key_in(version, topic), each.index): each
        for topic in answer_in(version, answer).topics
        for each in topic.partitions
    }
    assert found.keys() == {*before, *refused}
    for key, partition in found.items():
        if key in refused:
            assert partition == AnsweredPartition(key[1], SKIPPED, aborted=[])
        elif key in emptied and not partition.error_code:
            start = min(before[key].log_start_offset, emptied[key])
            assert partition == replace(before[key], records=before[key].records and b"", log_start_offset=start)
        else:
            assert partition == before[key]


@pytest.mark.parametrize("version", [11, 19])
def test_other_versions_are_not_for_here(version: int) -> None:
    with pytest.raises(Malformed, match="unknown version"):
        rewritten_answer(memoryview(encoded_answer(RICH, 18)), version, error_code=SKIPPED)


def test_a_name_cannot_stand_for_an_id() -> None:
    with pytest.raises(ValueError, match="by their id"):
        rewritten(RICH, 18, [(b"name", 1)])


@given(answers, versions, st.data())
def test_what_is_cut_off_or_goes_on_is_not_changed(answer: Answer, version: int, data: st.DataObject) -> None:
    payload = encoded_answer(answer, version)
    with pytest.raises(WireError):
        rewritten_answer(
            memoryview(payload[: data.draw(st.integers(0, len(payload) - 1))]), version, error_code=SKIPPED
        )
    with pytest.raises(WireError):
        rewritten_answer(memoryview(payload + b"\0"), version, error_code=SKIPPED)


@given(answers, versions, st.data())
def test_damage_is_an_error_of_ours_or_none(answer: Answer, version: int, data: st.DataObject) -> None:
    payload = bytearray(encoded_answer(answer, version))
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(4, len(payload) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(WireError):
        rewritten_answer(memoryview(payload), version, refused=[(b"new topic at all", 1)], error_code=SKIPPED)
