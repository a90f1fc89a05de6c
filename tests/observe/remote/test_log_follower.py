"""Following remote log metadata: what was read once is not read again, and nothing that is needed is passed over."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from brimline.model import BrokerId, Failure, FailureKind, Offset, TopicPartition
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.fetch import Fetched
from brimline.observe.cluster.offsets import OffsetSpec
from brimline.observe.remote import remote_log as remote_log_follower
from brimline.observe.remote.remote_log import RemoteLogFollower, RemoteLogs
from tests.wire.test_remote_log_metadata import SEGMENT_ID, TOPIC_ID, segment_record, update_record

THIS, OTHER = (TOPIC_ID, 3), (UUID(int=5), 0)
SILENCE = Failure(kind=FailureKind.TIMED_OUT, message="the broker is silent")


class FakeTopic:
    """One metadata partition, led by broker 1; ``read_from`` are the offsets that were fetched."""

    def __init__(self) -> None:
        self.log = [segment_record(), update_record(1)]
        self.begin = 0
        self.read_from: list[int] = []
        self.is_silent = False

    def list_offsets(
        self, _connection: object, leaders: Mapping[TopicPartition, BrokerId], spec: OffsetSpec, _deadline: object
    ) -> dict[TopicPartition, Offset]:
        return dict.fromkeys(leaders, Offset(self.begin if spec is OffsetSpec.EARLIEST else len(self.log)))

    def fetch(
        self, _connection: object, _leaders: object, positions: Mapping[TopicPartition, int], _deadline: object
    ) -> dict[TopicPartition, Fetched | Failure]:
        ((partition, position),) = positions.items()
        if self.is_silent:
            return {partition: SILENCE}
        self.read_from.append(position)
        # One record an answer: reading must go on until the end.
        return {partition: Fetched(records=((position, self.log[position]),), next_offset=position + 1)}

    @contextmanager
    def silent(self) -> Iterator[None]:
        self.is_silent = True
        yield
        self.is_silent = False


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> FakeTopic:
    fake = FakeTopic()
    monkeypatch.setattr(remote_log_follower, "list_offsets", fake.list_offsets)
    monkeypatch.setattr(remote_log_follower, "fetch", fake.fetch)
    return fake


def follow(follower: RemoteLogFollower, *keys: tuple[UUID, int], leader: int | None = 1, **options: Any) -> RemoteLogs:
    leaders = {0: None if leader is None else BrokerId(leader)}
    return follower.follow(cast(Connection, None), keys, leaders, Deadline(timedelta(seconds=1)), **options)


def test_the_first_time_everything_is_read(topic: FakeTopic) -> None:
    assert list(follow(RemoteLogFollower(), THIS).segments[THIS]) == [SEGMENT_ID]
    assert topic.read_from == [0, 1]


def test_the_second_time_only_what_is_new(topic: FakeTopic) -> None:
    follower = RemoteLogFollower()
    follow(follower, THIS)
    topic.log += [update_record(2), update_record(3)]

    assert follow(follower, THIS).segments[THIS] == {}
    assert topic.read_from == [0, 1, 2, 3]


def test_a_new_partition_has_its_metadata_read_from_the_beginning(topic: FakeTopic) -> None:
    follower = RemoteLogFollower()
    follow(follower, OTHER)

    assert list(follow(follower, OTHER, THIS).segments[THIS]) == [SEGMENT_ID]
    assert topic.read_from == [0, 1, 0, 1]


def test_what_is_not_asked_for_any_more_is_forgotten(topic: FakeTopic) -> None:
    follower = RemoteLogFollower()
    follow(follower, THIS, OTHER)

    assert set(follow(follower, OTHER).segments) == {OTHER}
    assert topic.read_from == [0, 1]


@pytest.mark.parametrize(("log", "begin"), [([], 0), ([b""] * 9, 5)], ids=["made anew", "trimmed"])
def test_a_topic_that_does_not_hold_the_position_is_read_from_its_beginning(
    topic: FakeTopic, log: list[bytes], begin: int
) -> None:
    follower = RemoteLogFollower()
    follow(follower, THIS)
    topic.log, topic.begin = log, begin

    assert follow(follower, THIS).segments == {THIS: {}}
    assert topic.read_from[2:] == list(range(begin, len(log)))


def test_a_silent_broker_costs_its_answer_and_nothing_that_was_read(topic: FakeTopic) -> None:
    follower = RemoteLogFollower()
    follow(follower, THIS)
    topic.log += [update_record(2)]
    with topic.silent():
        failed = follow(follower, THIS)

    assert (failed.segments, failed.failures) == ({}, {THIS: SILENCE})
    assert list(follow(follower, THIS).segments[THIS]) == [SEGMENT_ID]
    assert topic.read_from == [0, 1, 2]


def test_what_has_no_leader_is_a_failure_and_not_forgotten(topic: FakeTopic) -> None:
    follower = RemoteLogFollower()
    follow(follower, THIS)

    without = follow(follower, THIS, leader=None)

    assert without.segments == {}
    assert without.failures[THIS].kind is FailureKind.UNREACHABLE
    assert list(follow(follower, THIS).segments[THIS]) == [SEGMENT_ID]
    assert topic.read_from == [0, 1]


def test_progress_is_told_after_every_answer(topic: FakeTopic) -> None:
    told: list[tuple[int, int]] = []
    follow(RemoteLogFollower(), THIS, progress=lambda read, total: told.append((read, total)))

    assert told == [(1, 2), (2, 2)]
    assert topic.read_from == [0, 1]


def test_whoever_gives_up_in_the_middle_goes_on_from_there_the_next_time(topic: FakeTopic) -> None:
    follower = RemoteLogFollower()

    def give_up(_read: int, _total: int) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        follow(follower, THIS, progress=give_up)

    assert list(follow(follower, THIS).segments[THIS]) == [SEGMENT_ID]
    assert topic.read_from == [0, 1]


def test_what_cannot_be_decoded_is_counted_once_however_often_it_is_read(topic: FakeTopic) -> None:
    topic.log.append(b"garbage")
    follower = RemoteLogFollower()

    counts = [follow(follower, *keys).skipped_records for keys in ((OTHER,), (OTHER, THIS), (OTHER, THIS), ())]

    assert counts == [1, 1, 1, 0]
    assert topic.read_from == [0, 1, 2, 0, 1, 2]
