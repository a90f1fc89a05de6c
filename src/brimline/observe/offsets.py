"""Where a partition log begins and ends: ListOffsets with its special timestamps.

An answer of -1 means that there is no such offset (nothing tiered, say); it is ``None`` here.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import partial
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, Offset, TopicPartition
from brimline.observe.connection import Connection, Deadline
from brimline.observe.leaders import ask_leaders


class OffsetSpec(IntEnum):
    """The special timestamps that Brimline asks for."""

    LATEST = -1
    EARLIEST = -2
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


# The first version of ListOffsets that knows a timestamp: an older broker would take it for an ordinary time.
_FIRST_VERSION = {
    OffsetSpec.LATEST: 1,
    OffsetSpec.EARLIEST: 1,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
}


# A consumer is told the high watermark for the latest offset; who debugs a replica, where its log ends.
_CONSUMER, _DEBUGGING = -1, -2


def list_offsets(
    connection: Connection, leaders: Mapping[TopicPartition, BrokerId], spec: OffsetSpec, deadline: Deadline
) -> Mapping[TopicPartition, Offset | Failure | None]:
    """The offset of every partition, asked of its leader. The latest one is the high watermark."""
    return ask_leaders(connection, leaders, lambda topics: _request(topics, spec, _CONSUMER), _offsets, deadline)


def list_log_ends(
    connection: Connection, leaders: Mapping[TopicPartition, BrokerId], deadline: Deadline
) -> Mapping[TopicPartition, Offset | Failure | None]:
    """Where every leader's log ends: with what not all replicas have yet."""
    request = partial(_request, spec=OffsetSpec.LATEST, replica=_DEBUGGING)
    return ask_leaders(connection, leaders, request, _offsets, deadline)


def _offsets(answer: Any) -> Iterator[tuple[TopicPartition, Offset | Failure | None]]:
    for topic in answer.topics:
        for partition in topic.partitions:
            yield (
                TopicPartition(topic.name, partition.partition_index),
                _offset(partition.error_code, partition.offset),
            )


def _request(topics: Mapping[str, list[int]], spec: OffsetSpec, replica: int) -> ListOffsetsRequest:
    topic_fields = ListOffsetsRequest.ListOffsetsTopic
    partition_fields = topic_fields.ListOffsetsPartition
    return ListOffsetsRequest(
        replica_id=replica,
        isolation_level=0,
        timeout_ms=30000,
        topics=[
            topic_fields(
                name=name,
                partitions=[
                    partition_fields(partition_index=partition, current_leader_epoch=-1, timestamp=int(spec))
                    for partition in partitions
                ],
            )
            for name, partitions in topics.items()
        ],
        min_version=_FIRST_VERSION[spec],
    )


def _offset(error_code: int, offset: int) -> Offset | Failure | None:
    if error_code:
        error = KafkaError(error_code)
        return Failure(kind=FailureKind.KAFKA_ERROR, message=f"the offset is not known: {error}")
    return None if offset < 0 else Offset(offset)
