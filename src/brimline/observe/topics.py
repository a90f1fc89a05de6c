"""Which topics there are, under which id, and who leads their partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest

from brimline.model import BrokerId, KafkaError
from brimline.observe.connection import Connection, Deadline

_NO_ID = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """``topic_id`` is ``None`` before Kafka 2.8; a leader is ``None`` while a partition has none."""

    name: str
    topic_id: UUID | None
    leaders: Mapping[int, BrokerId | None]
    error: KafkaError | None


def describe_topics(connection: Connection, names: Iterable[str] | None, deadline: Deadline) -> Mapping[str, Topic]:
    """The named topics, or all that this principal may describe. Asking never creates a topic."""
    wanted = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    answer = connection.ask_any(lambda: MetadataRequest(topics=wanted, allow_auto_topic_creation=False), deadline)
    return {topic.name: _topic(topic) for topic in answer.topics}


def _topic(answer: "MetadataRequest") -> Topic:
    topic_id = getattr(answer, "topic_id", None)
    return Topic(
        name=answer.name,
        topic_id=topic_id if topic_id not in (None, _NO_ID) else None,
        leaders={
            partition.partition_index: BrokerId(partition.leader_id) if partition.leader_id >= 0 else None
            for partition in answer.partitions
        },
        error=KafkaError(answer.error_code) if answer.error_code else None,
    )
