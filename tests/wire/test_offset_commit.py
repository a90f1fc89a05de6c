"""Commits are read as kafka-python writes them, and refused in the layout that it reads."""

from unittest import mock

import pytest
from kafka.protocol.consumer import OffsetCommitResponse

from brimline.wire import offset_commit as reading
from brimline.wire.offset_commit import OffsetCommit, read_offset_commit, refusing_answer
from brimline.wire.primitives import WireError
from tests.wire.offset_commits import CORRELATION_ID, FIRST_FLEXIBLE, TOPIC_ID, VERSIONS, offset_commit

every_version = pytest.mark.parametrize("version", VERSIONS)


def read(payload: bytes, version: int) -> OffsetCommit:
    return read_offset_commit(memoryview(payload), version)


@every_version
@pytest.mark.parametrize("group", ["group", "grüße", "𝄞", ""])
@pytest.mark.parametrize("metadata", ["why", "", None, "x" * 4000])
def test_whose_offsets_of_which_partitions(version: int, group: str, metadata: str | None) -> None:
    commit = read(offset_commit(version, group, metadata=metadata), version)

    names = [TOPIC_ID.bytes] * 2 if version >= 10 else [b"topic-0", b"topic-1"]
    assert commit == OffsetCommit(version=version, group=group, topics=tuple((name, (0, 1)) for name in names))


@every_version
@pytest.mark.parametrize("topics", [0, 1, 3])
@pytest.mark.parametrize("partitions", [0, 1, 200])
def test_the_refusal_is_of_every_partition_and_ends_where_it_should(version: int, topics: int, partitions: int) -> None:
    commit = read(offset_commit(version, topics=topics, partitions=partitions), version)

    frame = refusing_answer(commit, CORRELATION_ID, 14)

    assert int.from_bytes(frame[:4]) == len(frame) - 4
    answer = OffsetCommitResponse.decode(frame[4:], version=version, header=True)
    codes = [[each.error_code for each in topic.partitions] for topic in answer.topics]
    assert codes == [[14] * partitions] * topics
    assert [[each.partition_index for each in topic.partitions] for topic in answer.topics] == [
        list(range(partitions))
    ] * topics
    if version >= 10:
        assert {topic.topic_id for topic in answer.topics} <= {TOPIC_ID}
    else:
        assert [topic.name for topic in answer.topics] == [f"topic-{number}" for number in range(topics)]
    theirs = OffsetCommitResponse(throttle_time_ms=0, topics=answer.topics, version=version)
    assert frame[8 + (version >= FIRST_FLEXIBLE) :] == bytes(theirs.encode()), "not a byte more"


@every_version
def test_one_that_ends_anywhere_too_early_is_not_read(version: int) -> None:
    payload = offset_commit(version)
    # What ends a flexible request are tagged fields, which must be there, too
    for end in range(len(payload)):
        with pytest.raises(WireError):
            read(payload[:end], version)


@every_version
def test_bytes_behind_its_end_are_not_looked_at(version: int) -> None:
    payload = offset_commit(version)

    assert read(payload + b"\xff" * 9, version) == read(payload, version)


@every_version
def test_any_byte_may_be_another_one(version: int) -> None:
    payload = offset_commit(version)
    for at in range(8, len(payload)):
        for value in (0, 0x7F, 0x80, 0xFF):
            changed = payload[:at] + bytes([value]) + payload[at + 1 :]
            try:
                commit = read(changed, version)
            except WireError:
                continue
            frame = refusing_answer(commit, 1, 14)
            assert int.from_bytes(frame[:4]) == len(frame) - 4


@pytest.mark.parametrize("version", [-1, VERSIONS.stop])
def test_a_version_that_is_not_known_is_not_guessed_at(version: int) -> None:
    with pytest.raises(WireError):
        read(offset_commit(VERSIONS.stop - 1), version)


@every_version
def test_one_of_more_partitions_than_anybody_has_is_not_read(version: int) -> None:
    with mock.patch.object(reading, "MOST_PARTITIONS", 10):
        read(offset_commit(version, topics=2, partitions=4), version)
        with pytest.raises(WireError):
            read(offset_commit(version, topics=3, partitions=3), version)
