"""Offsets, asked of leaders: where logs begin and end, and where an epoch ends.

Begin and end: ListOffsets with its special timestamps. An answer of -1 means that there is no such offset (nothing
tiered, say); it is ``None`` here.

Where a leader's log leaves an epoch: OffsetForLeaderEpoch. After an unclean election the new leader's log ends an old
epoch earlier than the old leader's did. What the old leader uploaded beyond that point is not what the new leader holds
at those offsets.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from functools import partial
from itertools import zip_longest
from typing import Any, TypeVar

from kafka.protocol.consumer import ListOffsetsRequest, OffsetForLeaderEpochRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, Offset, TopicPartition
from brimline.observe.client.connection import Connection, Deadline

Fact = TypeVar("Fact")


def ask_leaders(
    connection: Connection,
    leaders: Mapping[TopicPartition, BrokerId],
    make_request: Callable[[Mapping[str, list[int]]], object],
    read_answer: Callable[[Any], Iterable[tuple[TopicPartition, Fact]]],
    deadline: Deadline,
) -> dict[TopicPartition, Fact | Failure]:
    """What each leader says; the failure of a leader is that of all its partitions."""
    by_leader: dict[BrokerId, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for partition, leader in leaders.items():
        by_leader[leader][partition.topic].append(partition.partition)
    answers = connection.ask_each(
        {leader: (leader, make_request(topics)) for leader, topics in by_leader.items()}, deadline
    )
    facts: dict[TopicPartition, Fact | Failure] = {}
    for leader, answer in answers.items():
        if isinstance(answer, Failure):
            for topic, partitions in by_leader[leader].items():
                facts.update((TopicPartition(topic, partition), answer) for partition in partitions)
        else:
            facts.update(read_answer(answer))
    return facts


def by_topic(
    topics: Mapping[str, list[int]], fields_of: Callable[[TopicPartition], object]
) -> Iterator[tuple[str, list[object]]]:
    """Every topic's name, and what a request says of each of its partitions."""
    for name, partitions in topics.items():
        yield name, [fields_of(TopicPartition(name, partition)) for partition in partitions]


class OffsetSpec(IntEnum):
    """The special timestamps that Brimline asks for."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


# The first version of ListOffsets that knows a timestamp: an older broker would take it for an ordinary time.
_FIRST_VERSION = {
    OffsetSpec.LATEST: 1,
    OffsetSpec.EARLIEST: 1,
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
}


# A consumer is told the high watermark for the latest offset; who debugs a replica, where its log ends.
_CONSUMER, _DEBUGGING = -1, -2
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_FIRST_WITH_ISOLATION = 2


def list_offsets(
    connection: Connection, leaders: Mapping[TopicPartition, BrokerId], spec: OffsetSpec, deadline: Deadline
) -> Mapping[TopicPartition, Offset | Failure | None]:
    """The offset of every partition, asked of its leader. The latest one is the high watermark."""
    return ask_leaders(connection, leaders, lambda topics: _request(topics, spec, _CONSUMER), _offsets, deadline)


def list_last_stable(
    connection: Connection, leaders: Mapping[TopicPartition, BrokerId], deadline: Deadline
) -> Mapping[TopicPartition, Offset | Failure | None]:
    """Where the first open transaction of every partition begins, else its high watermark."""
    request = partial(_request, spec=OffsetSpec.LATEST, replica=_CONSUMER, isolation=_READ_COMMITTED)
    return ask_leaders(connection, leaders, request, _offsets, deadline)


def list_log_ends(
    connection: Connection, leaders: Mapping[TopicPartition, BrokerId], deadline: Deadline
) -> Mapping[TopicPartition, Offset | Failure | None]:
    """Where every leader's log ends: with what not all replicas have yet."""
    request = partial(_request, spec=OffsetSpec.LATEST, replica=_DEBUGGING)
    return ask_leaders(connection, leaders, request, _offsets, deadline)


def list_records_at(
    connection: Connection, leaders: Mapping[TopicPartition, BrokerId], at_ms: int, deadline: Deadline
) -> Mapping[TopicPartition, tuple[Offset, int] | Failure | None]:
    """Offset and timestamp of the first record at or after a time, or of the one with ``OffsetSpec.MAX_TIMESTAMP``.

    ``None``: there is no such record.
    """

    def read(answer: Any) -> Iterator[tuple[TopicPartition, tuple[Offset, int] | Failure | None]]:
        for topic in answer.topics:
            for found in topic.partitions:
                where = TopicPartition(topic.name, found.partition_index)
                offset = _offset(found.error_code, found.offset)
                if offset is None or isinstance(offset, Failure):
                    yield where, offset
                else:
                    yield where, (offset, int(found.timestamp))

    request = partial(_request, spec=at_ms, replica=_CONSUMER)
    return ask_leaders(connection, leaders, request, read, deadline)


def _offsets(answer: Any) -> Iterator[tuple[TopicPartition, Offset | Failure | None]]:
    for topic in answer.topics:
        for partition in topic.partitions:
            yield (
                TopicPartition(topic.name, partition.partition_index),
                _offset(partition.error_code, partition.offset),
            )


def _request(
    topics: Mapping[str, list[int]], spec: int, replica: int, isolation: int = _READ_UNCOMMITTED
) -> ListOffsetsRequest:
    """``spec``: an ``OffsetSpec`` or an ordinary time in milliseconds."""
    first_version = 1 if spec >= 0 else _FIRST_VERSION[OffsetSpec(spec)]
    topic_fields = ListOffsetsRequest.ListOffsetsTopic
    partition_fields = topic_fields.ListOffsetsPartition
    return ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
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
        min_version=max(first_version, _FIRST_WITH_ISOLATION if isolation else 0),
    )


def _offset(error_code: int, offset: int) -> Offset | Failure | None:
    if error_code:
        error = KafkaError(error_code)
        return Failure(kind=FailureKind.KAFKA_ERROR, message=f"offset unknown: {error}")
    return None if offset < 0 else Offset(offset)


_CONSUMER = -1


def epoch_ends(
    connection: Connection,
    leaders: Mapping[TopicPartition, BrokerId],
    epochs: Mapping[TopicPartition, Collection[int]],
    deadline: Deadline,
) -> Mapping[TopicPartition, Mapping[int, Offset | None] | Failure]:
    """For each epoch of each partition the first offset after it; ``None`` when the leader's log never had it.

    A request may name a partition once, so that several epochs take several rounds; there are rarely two.
    """
    known: dict[TopicPartition, dict[int, Offset | None]] = {partition: {} for partition in epochs}
    failed: dict[TopicPartition, Failure] = {}
    for round_epochs in zip_longest(*(_one_each(partition, epochs[partition]) for partition in epochs)):
        asked = dict(pair for pair in round_epochs if pair is not None and pair[0] not in failed)
        for partition, end in _ask(connection, leaders, asked, deadline).items():
            if isinstance(end, Failure):
                failed[partition] = end
            else:
                known[partition][asked[partition]] = end
        deadline = deadline.renewed()
    return {partition: failed.get(partition, ends) for partition, ends in known.items()}


def _one_each(partition: TopicPartition, epochs: Collection[int]) -> list[tuple[TopicPartition, int]]:
    return [(partition, epoch) for epoch in sorted(epochs)]


def _ask(
    connection: Connection,
    leaders: Mapping[TopicPartition, BrokerId],
    epochs: Mapping[TopicPartition, int],
    deadline: Deadline,
) -> Mapping[TopicPartition, Offset | Failure | None]:
    def read(answer: Any) -> Iterator[tuple[TopicPartition, Offset | Failure | None]]:
        for topic in answer.topics:
            for found in topic.partitions:
                partition = TopicPartition(topic.topic, found.partition)
                yield partition, _end(found.error_code, found.leader_epoch, found.end_offset, epochs[partition])

    asked = {partition: leaders[partition] for partition in epochs}
    return ask_leaders(connection, asked, lambda topics: _epoch_request(topics, epochs), read, deadline)


def _epoch_request(
    topics: Mapping[str, list[int]], epochs: Mapping[TopicPartition, int]
) -> OffsetForLeaderEpochRequest:
    fields = OffsetForLeaderEpochRequest.OffsetForLeaderTopic

    def fields_of(partition: TopicPartition) -> object:
        return fields.OffsetForLeaderPartition(
            partition=partition.partition, current_leader_epoch=-1, leader_epoch=epochs[partition]
        )

    return OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=[fields(topic=name, partitions=found) for name, found in by_topic(topics, fields_of)],
    )


def _end(error_code: int, found_epoch: int, end_offset: int, asked_epoch: int) -> Offset | Failure | None:
    if error_code:
        error = KafkaError(error_code)
        return Failure(kind=FailureKind.KAFKA_ERROR, message=f"end of a leader epoch unknown: {error}")
    return Offset(end_offset) if found_epoch == asked_epoch and end_offset >= 0 else None
