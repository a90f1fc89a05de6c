"""ListOffsets by hand is what kafka-python would send, and its answer is read as kafka-python writes it."""

import socket
import threading
from collections.abc import Iterator

import pytest
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from brimline.torture.read_back import LOG_END, LogOffset, log_offsets

_Topic = ListOffsetsRequest.ListOffsetsTopic
_Answered = ListOffsetsResponse.ListOffsetsTopicResponse


class Answers:
    """Takes as many frames as it has answers."""

    def __init__(self, *answers: bytes) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.asked: list[bytes] = []
        self._answers = answers
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with self._listening, self._listening.accept()[0] as client, client.makefile("rwb") as stream:
            for answer in self._answers:
                self.asked.append(stream.read(int.from_bytes(stream.read(4))))
                stream.write(answer)
                stream.flush()

    def end(self) -> None:
        self._thread.join()


def told(*partitions: tuple[int, int, int]) -> bytes:
    """Partition, error and offset."""
    answered = [
        _Answered.ListOffsetsPartitionResponse(
            partition_index=partition, error_code=error, timestamp=-1, offset=offset, leader_epoch=7
        )
        for partition, error, offset in partitions
    ]
    answer = ListOffsetsResponse(throttle_time_ms=0, topics=[_Answered(name="kept", partitions=answered)])
    answer.API_VERSION = 4
    answer.with_header(correlation_id=0)
    return bytes(answer.encode(header=True, framed=True))


@pytest.fixture
def broker() -> Iterator[Answers]:
    """Leads partition 1, up to whose offset 40 all replicas are; follows partition 0."""
    broker = Answers(told((1, 0, 40), (0, 6, -1)), told((1, 0, 42), (0, 0, 17)))
    yield broker
    broker.end()


def test_it_asks_and_reads_as_the_library_does(broker: Answers) -> None:
    found = log_offsets(broker.port, [("plain", 0), ("kept", 1), ("kept", 0)], LOG_END)
    broker.end()

    assert found == [LogOffset("kept", 1, 42, 7)]
    assert broker.asked == [_as_the_library(replica) for replica in (-1, -2)]


def _as_the_library(replica: int) -> bytes:
    def partitions(*numbers: int) -> list[object]:
        fields = _Topic.ListOffsetsPartition
        return [fields(partition_index=each, current_leader_epoch=-1, timestamp=-1) for each in numbers]

    topics = [_Topic(name="kept", partitions=partitions(0, 1)), _Topic(name="plain", partitions=partitions(0))]
    request = ListOffsetsRequest(replica_id=replica, isolation_level=0, topics=topics)
    request.with_header(correlation_id=0, client_id="torture")
    return bytes(request.encode(version=4, header=True))


def test_a_broker_that_is_not_there_answers_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]

    assert log_offsets(port, [("kept", 0)], LOG_END) is None
    assert log_offsets(port, [], LOG_END) == []
