"""The assignment of partitions to brokers: as it is, whether it is being changed, and changing it.

All is asked of one broker, which passes on to the controller what is the controller's.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kafka.protocol.admin import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, ObservationFailed, TopicPartition
from brimline.model.failures import CLUSTER_AUTHORIZATION_FAILED
from brimline.observe.client.connection import Connection, Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """``replicas`` in the order of the assignment."""

    replicas: tuple[BrokerId, ...]
    in_sync: frozenset[BrokerId]
    leader: BrokerId | None
    is_internal: bool


def assigned(
    connection: Connection, broker: BrokerId, topics: Collection[str], deadline: Deadline
) -> Mapping[TopicPartition, Assigned]:
    """Of these topics; one that is gone, or may not be described, is missing. Raises ``ObservationFailed``."""
    names = [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(topics)]
    answer = connection.ask(broker, MetadataRequest(topics=names, allow_auto_topic_creation=False), deadline)
    return {
        TopicPartition(topic.name, each.partition_index): Assigned(
            replicas=tuple(map(BrokerId, each.replica_nodes)),
            in_sync=frozenset(map(BrokerId, each.isr_nodes)),
            leader=BrokerId(each.leader_id) if each.leader_id >= 0 else None,
            is_internal=bool(topic.is_internal),
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def being_reassigned(connection: Connection, broker: BrokerId, deadline: Deadline) -> frozenset[TopicPartition]:
    """Of all topics. Raises ``ObservationFailed``."""
    answer = connection.ask(broker, ListPartitionReassignmentsRequest(topics=None), deadline)
    _fail_if(answer.error_code, answer.error_message)
    return frozenset(
        TopicPartition(topic.name, each.partition_index) for topic in answer.topics for each in topic.partitions
    )


def reassign(
    connection: Connection, broker: BrokerId, wanted: Mapping[TopicPartition, Sequence[BrokerId]], deadline: Deadline
) -> Mapping[TopicPartition, str]:
    """Which of them were refused, and why. Raises ``ObservationFailed``: then it may have been done or not."""
    by_topic: dict[str, list[object]] = {}
    topic_type = AlterPartitionReassignmentsRequest.ReassignableTopic
    for partition, replicas in wanted.items():
        row = topic_type.ReassignablePartition(partition_index=partition.partition, replicas=list(replicas))
        by_topic.setdefault(partition.topic, []).append(row)
    topics = [topic_type(name=name, partitions=rows) for name, rows in by_topic.items()]
    answer = connection.ask(broker, AlterPartitionReassignmentsRequest(topics=topics), deadline)
    _fail_if(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): str(each.error_message or KafkaError(each.error_code))
        for topic in answer.responses
        for each in topic.partitions
        if each.error_code
    }


def _fail_if(error_code: int, message: str | None) -> None:
    if not error_code:
        return
    refused = error_code == CLUSTER_AUTHORIZATION_FAILED
    needs = "this principal needs ALTER and DESCRIBE on the cluster" if refused else message or KafkaError(error_code)
    raise ObservationFailed(
        Failure(
            kind=FailureKind.NOT_AUTHORIZED if refused else FailureKind.KAFKA_ERROR,
            message=f"the assignment of partitions cannot be changed: {needs}",
        )
    )
