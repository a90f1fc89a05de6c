"""DeleteRecords: the one request that takes records away, sent to the leader of each partition.

The leader raises its log start at once and answers when every live replica has followed. After ``timeout`` it answers
with REQUEST_TIMED_OUT, although its own log start is raised: only a look at the log starts tells what became of a
request that was not answered with success. An offset at or below the log start changes nothing and is a success.

The request names topics, not topic ids: whoever sends it makes sure which topic has that name now.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from kafka.protocol.admin import DeleteRecordsRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, Offset, TopicPartition
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.offsets import ask_leaders, by_topic


def delete_records(
    connection: Connection,
    leaders: Mapping[TopicPartition, BrokerId],
    before: Mapping[TopicPartition, Offset],
    timeout: timedelta,
    deadline: Deadline,
) -> Mapping[TopicPartition, Offset | KafkaError | Failure]:
    """The low watermark of every partition after its records below ``before`` are deleted.

    A ``KafkaError`` is the leader's own refusal; after a ``Failure`` it is not known whether the leader has done it.
    """
    timeout_ms = int(timeout.total_seconds() * 1000)
    silence = Failure(kind=FailureKind.KAFKA_ERROR, message="the leader left it out of its answer")
    answers = ask_leaders(
        connection, leaders, lambda topics: _request(topics, before, timeout_ms), _low_watermarks, deadline
    )
    return {partition: answers.get(partition, silence) for partition in leaders}


def _request(
    topics: Mapping[str, list[int]], before: Mapping[TopicPartition, Offset], timeout_ms: int
) -> DeleteRecordsRequest:
    fields = DeleteRecordsRequest.DeleteRecordsTopic

    def fields_of(partition: TopicPartition) -> object:
        return fields.DeleteRecordsPartition(partition_index=partition.partition, offset=int(before[partition]))

    return DeleteRecordsRequest(
        topics=[fields(name=name, partitions=found) for name, found in by_topic(topics, fields_of)],
        timeout_ms=timeout_ms,
    )


def _low_watermarks(answer: Any) -> Iterator[tuple[TopicPartition, Offset | KafkaError]]:
    for topic in answer.topics:
        for partition in topic.partitions:
            error = KafkaError(partition.error_code) if partition.error_code else None
            yield TopicPartition(topic.name, partition.partition_index), error or Offset(partition.low_watermark)
