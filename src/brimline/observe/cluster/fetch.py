"""Records of a few partitions, fetched from their leaders.

Not by a consumer: that asks for metadata wherever it likes, and a broker that hangs holds up what others could answer.
Here every question goes to a leader that is known, under a deadline, like all others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.errors import KafkaError as ClientError
from kafka.errors import UnsupportedCodecError
from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, TopicPartition
from brimline.model.failures import TOPIC_AUTHORIZATION_FAILED
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.offsets import ask_leaders, by_topic

# Topics go by their ids from version 13 on; names serve every broker.
_LAST_VERSION_WITH_NAMES = 12
_WAIT_MS = 100
_MOST_BYTES = 16 << 20
_MOST_BYTES_OF_A_PARTITION = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Offsets and values in order; ``next_offset`` is where to go on, also past offsets that hold no record."""

    records: tuple[tuple[int, bytes | None], ...]
    next_offset: int


def fetch(
    connection: Connection,
    leaders: Mapping[TopicPartition, BrokerId],
    positions: Mapping[TopicPartition, int],
    deadline: Deadline,
) -> dict[TopicPartition, Fetched | Failure]:
    """Something from each position on, as much as one answer holds; nothing only where there is nothing."""

    def read(answer: Any) -> Iterator[tuple[TopicPartition, Fetched | Failure]]:
        for topic in answer.responses:
            for found in topic.partitions:
                partition = TopicPartition(topic.topic, found.partition_index)
                yield partition, _fetched(partition, found, positions[partition])

    asked = {partition: leaders[partition] for partition in positions}
    return ask_leaders(connection, asked, lambda topics: _request(topics, positions), read, deadline)


def _request(topics: Mapping[str, list[int]], positions: Mapping[TopicPartition, int]) -> FetchRequest:
    fields = FetchRequest.FetchTopic

    def fields_of(partition: TopicPartition) -> object:
        return fields.FetchPartition(
            partition=partition.partition,
            current_leader_epoch=-1,
            fetch_offset=positions[partition],
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=_MOST_BYTES_OF_A_PARTITION,
        )

    return FetchRequest(
        replica_id=-1,
        max_wait_ms=_WAIT_MS,
        min_bytes=1,
        max_bytes=_MOST_BYTES,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[fields(topic=name, partitions=found) for name, found in by_topic(topics, fields_of)],
        forgotten_topics_data=[],
        rack_id="",
        max_version=_LAST_VERSION_WITH_NAMES,
    )


def _fetched(partition: TopicPartition, found: Any, position: int) -> Fetched | Failure:
    if found.error_code:
        error = KafkaError(found.error_code)
        refused = found.error_code == TOPIC_AUTHORIZATION_FAILED
        kind = FailureKind.NOT_AUTHORIZED if refused else FailureKind.KAFKA_ERROR
        return Failure(kind=kind, message=f"{partition} cannot be read: {error}")
    try:
        return _decoded(MemoryRecords(bytes(found.records or b"")), position, found.high_watermark)
    except UnsupportedCodecError as error:
        return Failure(kind=FailureKind.UNREADABLE, message=f"{partition.topic} cannot be decompressed: {error}")
    except ClientError as error:
        return Failure(kind=FailureKind.KAFKA_ERROR, message=f"{partition} holds an invalid batch: {error}")


def _decoded(batches: MemoryRecords, position: int, high_watermark: int) -> Fetched:
    records = []
    # A broker that has anything sends at least one batch: an empty answer means that no record is left.
    next_offset = position if batches.has_next() else max(position, high_watermark)
    while (batch := batches.next_batch()) is not None:
        # Whole batches come, the first of which may begin before the position.
        records += [(record.offset, record.value) for record in batch if record.offset >= position]
        next_offset = max(next_offset, batch.next_offset)
    return Fetched(records=tuple(records), next_offset=next_offset)
