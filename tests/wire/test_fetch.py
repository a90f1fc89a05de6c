"""Followers' fetches: read as kafka-python reads them, and changed in nothing but what was asked for."""

import contextlib
from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from brimline.wire.fetch import MOST_ENTRIES, FetchIndex, index_fetch, rewritten_fetch
from brimline.wire.primitives import Malformed, WireError
from tests.wire.fetch_messages import (
    VERSIONS,
    Forgotten,
    Partition,
    Request,
    Topic,
    encoded_request,
    key_in,
    request_in,
    request_read_by_oracle,
    requests,
)
from tests.wire.produce_messages import framed, int32

versions = st.sampled_from(VERSIONS)
TOPIC_ID = UUID("5e3c1f0a-7d0b-4a87-b4d4-c70616313919")
OTHER_TOPIC_ID = UUID("11111111-7d0b-4a87-b4d4-c70616313919")
RICH = Request(
    topics=[
        Topic(
            "first",
            TOPIC_ID,
            [Partition(0, 12, tags={90: b"partition"}), Partition(1, 2**40), Partition(7, 5, 3)],
            {91: b"topic"},
        ),
        Topic("second", OTHER_TOPIC_ID, [Partition(5, tags={0: bytes(16), 1: bytes(8)})]),
    ],
    forgotten=[Forgotten("third", OTHER_TOPIC_ID, [3, 4], {92: b"forgotten"})],
    session_id=99,
    session_epoch=4,
    rack="rack",
    header_tags={93: b"header"},
    tags={94: b"request"},
)


def index_of(request: Request, version: int) -> FetchIndex:
    return index_fetch(memoryview(encoded_request(request, version)), version)


def changed(request: Request, version: int, **changes: object) -> Request:
    """What kafka-python reads after the changes."""
    payload = memoryview(encoded_request(request, version))
    buffers = rewritten_fetch(payload, index_fetch(payload, version), **changes)  # type: ignore[arg-type]
    return request_read_by_oracle(b"".join(buffers), version)


@given(requests, versions)
@example(RICH, 12)
@example(RICH, 18)
def test_these_tests_write_what_the_oracle_reads(request: Request, version: int) -> None:
    read = request_read_by_oracle(framed(encoded_request(request, version)), version)

    # From version 17 and 18 on kafka-python knows two of the tags.
    assert _without_partition_tags(read) == _without_partition_tags(request_in(version, request))


@given(requests, versions)
@example(RICH, 12)
@example(RICH, 18)
def test_a_request_is_read_as_the_oracle_reads_it(request: Request, version: int) -> None:
    index = index_of(request, version)

    assert (index.replica_id, index.session_id, index.session_epoch) == (
        request.replica_id,
        request.session_id,
        request.session_epoch,
    )
    assert [(part.topic, part.partition, part.fetch_offset) for part in index.parts] == [
        (key_in(version, topic), partition.index, partition.fetch_offset)
        for topic in request.topics
        for partition in topic.partitions
    ]
    assert list(index.forgotten) == [
        (key_in(version, topic), number) for topic in request.forgotten for number in topic.partitions
    ]


@given(requests, versions)
def test_without_changes_every_byte_stays(request: Request, version: int) -> None:
    payload = encoded_request(request, version)

    assert b"".join(rewritten_fetch(memoryview(payload), index_of(request, version))) == framed(payload)


@given(requests, versions, st.data())
def test_only_what_is_asked_for_is_changed(request: Request, version: int, data: st.DataObject) -> None:
    count = sum(len(topic.partitions) for topic in request.topics)
    positions = st.sets(st.integers(0, count - 1)) if count else st.just(set())
    dropped, of_one_byte = data.draw(positions), data.draw(positions)
    epoch = data.draw(st.none() | int32)
    forgotten = data.draw(st.lists(st.tuples(st.sampled_from([TOPIC_ID, OTHER_TOPIC_ID]), int32), max_size=3))
    named = [Forgotten(f"t{topic}", topic, [number]) for topic, number in forgotten]

    after = changed(
        request,
        version,
        dropped=dropped,
        of_one_byte=of_one_byte,
        forgotten=[(key_in(version, each), each.partitions[0]) for each in named],
        session_epoch=epoch,
    )

    wanted = _as_asked(request_in(version, request), dropped, of_one_byte, epoch)
    assert _without_partition_tags(replace(after, forgotten=[])) == _without_partition_tags(wanted)
    assert after.forgotten[: len(request.forgotten)] == request_in(version, request).forgotten
    added = [(key_in(version, topic), each) for topic in after.forgotten for each in topic.partitions]
    already = sum(len(topic.partitions) for topic in request.forgotten)
    assert sorted(added[already:]) == sorted((key_in(version, each), each.partitions[0]) for each in named)


def _as_asked(request: Request, dropped: Collection[int], of_one_byte: Collection[int], epoch: int | None) -> Request:
    topics, position = [], 0
    for topic in request.topics:
        left = []
        for partition in topic.partitions:
            if position not in dropped:
                left.append(replace(partition, max_bytes=1) if position in of_one_byte else partition)
            position += 1
        if left or not topic.partitions:
            topics.append(replace(topic, partitions=left))
    request = replace(request, topics=topics, forgotten=[])
    return request if epoch is None else replace(request, session_epoch=epoch)


def _without_partition_tags(request: Request) -> Request:
    return replace(
        request,
        topics=[
            replace(
                topic,
                partitions=[
                    replace(each, tags={tag: value for tag, value in each.tags.items() if tag > 1})
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_tags_stay(version: int) -> None:
    payload = encoded_request(RICH, version)
    left = replace(RICH, topics=[RICH.topics[1]])

    buffers = rewritten_fetch(memoryview(payload), index_of(RICH, version), dropped=[0, 1, 2])

    assert b"".join(buffers) == framed(encoded_request(left, version))


def test_a_large_request_is_not_copied() -> None:
    request = Request(topics=[Topic("t", TOPIC_ID, [Partition(number) for number in range(1000)])])
    payload = memoryview(encoded_request(request, 18))

    buffers = rewritten_fetch(payload, index_fetch(payload, 18), of_one_byte=[500])

    assert sum(len(each) for each in buffers if isinstance(each, bytes)) < 200


def test_a_consumer_is_no_replica() -> None:
    assert {index_of(replace(RICH, replica_id=-1), version).replica_id for version in VERSIONS} == {-1}


def test_a_position_that_is_not_there_is_a_bug() -> None:
    payload = memoryview(encoded_request(RICH, 18))
    with pytest.raises(ValueError, match="position"):
        rewritten_fetch(payload, index_fetch(payload, 18), dropped=[4])


@pytest.mark.parametrize("version", [0, 11, 19])
def test_other_versions_are_not_for_here(version: int) -> None:
    with pytest.raises(Malformed, match="unknown version"):
        index_fetch(memoryview(encoded_request(RICH, 18)), version)


def test_more_partitions_than_any_broker_has_are_refused() -> None:
    partitions = [Partition(0)] * (MOST_ENTRIES + 1)
    with pytest.raises(Malformed, match="more than"):
        index_of(Request(topics=[Topic("t", TOPIC_ID, partitions)]), 18)


@given(requests, versions, st.data())
def test_what_is_cut_off_or_goes_on_is_not_read(request: Request, version: int, data: st.DataObject) -> None:
    payload = encoded_request(request, version)
    with pytest.raises(WireError):
        index_fetch(memoryview(payload[: data.draw(st.integers(0, len(payload) - 1))]), version)
    with pytest.raises(WireError):
        index_fetch(memoryview(payload + b"\0"), version)


@given(requests, versions, st.data())
def test_damage_is_noticed_or_harmless(request: Request, version: int, data: st.DataObject) -> None:
    """Whatever is read in damaged bytes, spans are within them: taking everything out gives a readable request."""
    payload = bytearray(encoded_request(request, version))
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(8, len(payload) - 1))] = data.draw(st.integers(0, 255))
    view = memoryview(payload)
    try:
        index = index_fetch(view, version)
    except WireError:
        return
    frame = b"".join(rewritten_fetch(view, index, dropped=range(len(index.parts))))
    again = index_fetch(memoryview(frame)[4:], version)
    assert again.parts == ()
    assert (again.replica_id, again.forgotten) == (index.replica_id, index.forgotten)


@given(st.binary(max_size=200), versions)
def test_garbage_is_an_error_of_ours(garbage: bytes, version: int) -> None:
    with contextlib.suppress(WireError):
        index_fetch(memoryview(garbage), version)
