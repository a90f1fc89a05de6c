"""Where a leader's log leaves an epoch: OffsetForLeaderEpoch.

After an unclean election the new leader's log ends an old epoch earlier than the old leader's did. What the old leader
uploaded beyond that point is not what the new leader holds at those offsets.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, Offset, TopicPartition
from brimline.observe.connection import Connection, Deadline
from brimline.observe.leaders import ask_leaders

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
    return ask_leaders(connection, asked, lambda topics: _request(topics, epochs), read, deadline)


def _request(topics: Mapping[str, list[int]], epochs: Mapping[TopicPartition, int]) -> OffsetForLeaderEpochRequest:
    topic_fields = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    partition_fields = topic_fields.OffsetForLeaderPartition
    return OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=[
            topic_fields(
                topic=name,
                partitions=[
                    partition_fields(
                        partition=partition,
                        current_leader_epoch=-1,
                        leader_epoch=epochs[TopicPartition(name, partition)],
                    )
                    for partition in partitions
                ],
            )
            for name, partitions in topics.items()
        ],
    )


def _end(error_code: int, found_epoch: int, end_offset: int, asked_epoch: int) -> Offset | Failure | None:
    if error_code:
        error = KafkaError(error_code)
        return Failure(kind=FailureKind.KAFKA_ERROR, message=f"the end of a leader epoch is not known: {error}")
    return Offset(end_offset) if found_epoch == asked_epoch and end_offset >= 0 else None
