"""Which topics there are, under which id, and who leads their partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest

from brimline.model import BrokerId, KafkaError
from brimline.observe.connection import Connection, Deadline

_NO_ID = UUID(int=0)
_DELETE = 6
"""``AclOperation.DELETE``: what DeleteRecords takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """``topic_id`` is ``None`` before Kafka 2.8; a leader is ``None`` while a partition has none."""

    name: str
    topic_id: UUID | None
    leaders: Mapping[int, BrokerId | None]
    error: KafkaError | None
    is_internal: bool = False
    may_delete: bool | None = None
    """Whether this principal may delete its records; ``None`` where that was not asked."""


def describe_topics(
    connection: Connection, names: Iterable[str] | None, deadline: Deadline, *, with_rights: bool = False
) -> Mapping[str, Topic]:
    """The named topics, or all that this principal may describe. Asking never creates a topic."""
    wanted = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    request = partial(
        MetadataRequest,
        topics=wanted,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=with_rights,
    )
    answer = connection.ask_any(request, deadline)
    return {topic.name: _topic(topic, with_rights=with_rights) for topic in answer.topics}


def _topic(answer: "MetadataRequest", *, with_rights: bool) -> Topic:
    topic_id = getattr(answer, "topic_id", None)
    return Topic(
        name=answer.name,
        topic_id=topic_id if topic_id not in (None, _NO_ID) else None,
        leaders={
            partition.partition_index: BrokerId(partition.leader_id) if partition.leader_id >= 0 else None
            for partition in answer.partitions
        },
        error=KafkaError(answer.error_code) if answer.error_code else None,
        is_internal=bool(answer.is_internal),
        may_delete=_DELETE in answer.authorized_operations if with_rights else None,
    )
