"""Following remote log metadata: what was read once is not read again, and nothing that is needed is passed over."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest
from kafka import TopicPartition as ClientPartition
from kafka.errors import KafkaConnectionError

from brimline.model import Failure
from brimline.observe import remote_log_follower
from brimline.observe.client_config import ClientConfig
from brimline.observe.remote_log_follower import RemoteLogFollower, Segments
from tests.wire.test_remote_log_metadata import SEGMENT_ID, TOPIC_ID, segment_record, update_record

ONE_METADATA_PARTITION = 1
SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Record:
    value: bytes


class FakeConsumer:
    """One metadata partition; ``seeks`` are where reading began, ``broken`` is what the next poll raises."""

    log: list[bytes]
    seeks: list[int]
    broken: Exception | None

    def __init__(self, **_options: object) -> None:
        self._at = 0

    def assign(self, _sources: Sequence[ClientPartition]) -> None:
        pass

    def beginning_offsets(self, sources: Sequence[ClientPartition]) -> dict[ClientPartition, int]:
        return dict.fromkeys(sources, 0)

    def end_offsets(self, sources: Sequence[ClientPartition]) -> dict[ClientPartition, int]:
        return dict.fromkeys(sources, len(self.log))

    def seek(self, _source: ClientPartition, offset: int) -> None:
        self.seeks.append(offset)
        self._at = offset

    def position(self, _source: ClientPartition) -> int:
        return self._at

    def poll(self, timeout_ms: int) -> dict[ClientPartition, list[Record]]:
        assert timeout_ms == 1000
        if FakeConsumer.broken is not None:
            error, FakeConsumer.broken = FakeConsumer.broken, None
            raise error
        found = [Record(value) for value in self.log[self._at :]]
        self._at = len(self.log)
        return {ClientPartition("__remote_log_metadata", 0): found}

    def close(self) -> None:
        pass


@pytest.fixture
def follower(monkeypatch: pytest.MonkeyPatch) -> RemoteLogFollower:
    monkeypatch.setattr(remote_log_follower, "KafkaConsumer", FakeConsumer)
    FakeConsumer.log, FakeConsumer.seeks, FakeConsumer.broken = [segment_record(), update_record(1)], [], None
    return RemoteLogFollower(ClientConfig.from_properties("localhost:9092"))


def followed(follower: RemoteLogFollower, *keys: tuple[UUID, int], leaderless: Sequence[int] = ()) -> Segments:
    found = follower.follow(keys, ONE_METADATA_PARTITION, SECOND, leaderless)
    assert not isinstance(found, Failure)
    return found


THIS, OTHER = (TOPIC_ID, 3), (UUID(int=5), 0)


def test_the_first_time_everything_is_read(follower: RemoteLogFollower) -> None:
    assert list(followed(follower, THIS)[THIS]) == [SEGMENT_ID]


def test_the_second_time_only_what_is_new(follower: RemoteLogFollower) -> None:
    followed(follower, THIS)
    FakeConsumer.log += [update_record(2), update_record(3)]

    segments = followed(follower, THIS)

    assert FakeConsumer.seeks == [0, 2]
    assert segments[THIS] == {}


def test_a_new_partition_has_its_metadata_read_from_the_beginning(follower: RemoteLogFollower) -> None:
    followed(follower, OTHER)

    segments = followed(follower, OTHER, THIS)

    assert FakeConsumer.seeks == [0, 0]
    assert list(segments[THIS]) == [SEGMENT_ID]


def test_what_is_not_asked_for_any_more_is_forgotten(follower: RemoteLogFollower) -> None:
    followed(follower, THIS, OTHER)

    assert set(followed(follower, OTHER)) == {OTHER}


def test_a_topic_that_was_made_anew_is_read_from_its_beginning(follower: RemoteLogFollower) -> None:
    followed(follower, THIS)
    FakeConsumer.log = []

    assert followed(follower, THIS) == {THIS: {}}


def test_a_broken_connection_keeps_what_was_read(follower: RemoteLogFollower) -> None:
    followed(follower, THIS)
    FakeConsumer.log += [update_record(2)]
    FakeConsumer.broken = KafkaConnectionError("gone")

    failed = follower.follow([THIS], ONE_METADATA_PARTITION, SECOND)
    segments = followed(follower, THIS)

    assert isinstance(failed, Failure)
    assert FakeConsumer.seeks == [0, 2, 2]
    assert list(segments[THIS]) == [SEGMENT_ID]


def test_what_has_no_leader_is_left_out_and_not_forgotten(follower: RemoteLogFollower) -> None:
    followed(follower, THIS)

    without = followed(follower, THIS, leaderless=[0])
    again = followed(follower, THIS)

    assert without == {}
    assert list(again[THIS]) == [SEGMENT_ID]
    assert FakeConsumer.seeks == [0, 2]
