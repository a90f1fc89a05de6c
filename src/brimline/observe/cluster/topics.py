"""Which topics there are, under which id, and who leads their partitions.

What this principal may do to topics, as the cluster itself says: asked with Metadata, so nothing is tried out.

A cluster without an authorizer allows everything, and says so. A topic that may not even be described is missing.

Which cluster is it? Two that happen to have a broker 1 must not be taken for one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest

from brimline.model import BadInput, BrokerId, Failure, FailureKind, KafkaError, ObservationFailed
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.properties.java_properties import load_properties
from brimline.observe.volumes import META_PROPERTIES

TOPICS_AT_ONCE = 500
"""An answer about this many topics is decoded in a few milliseconds; other tasks get their turn."""
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
    replicas: Mapping[int, frozenset[BrokerId]] = field(default_factory=dict)
    in_sync: Mapping[int, frozenset[BrokerId]] = field(default_factory=dict)
    is_internal: bool = False
    may_delete: bool | None = None
    """Whether this principal may delete its records; ``None`` where that was not asked."""


def some_at_a_time(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), TOPICS_AT_ONCE):
        yield names[start : start + TOPICS_AT_ONCE]


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
        replicas={
            partition.partition_index: frozenset(BrokerId(each) for each in partition.replica_nodes)
            for partition in answer.partitions
        },
        in_sync={
            partition.partition_index: frozenset(BrokerId(each) for each in partition.isr_nodes)
            for partition in answer.partitions
        },
        is_internal=bool(answer.is_internal),
        may_delete=_DELETE in answer.authorized_operations if with_rights else None,
    )


def may_delete_records(connection: Connection, names: Iterable[str], timeout: timedelta) -> Mapping[str, bool]:
    """Of every topic that may be described. Raises ``ObservationFailed``."""
    found: dict[str, bool] = {}
    deadline = Deadline(timeout)
    for some in some_at_a_time(sorted(names)):
        described = describe_topics(connection, some, deadline.renewed(), with_rights=True)
        found |= {name: topic.may_delete is True for name, topic in described.items() if topic.error is None}
    return found


def cluster_id(connection: Connection, deadline: Deadline) -> str:
    """Raises ``ObservationFailed``: when nobody answers, and when nobody knows (before Kafka 0.10.1)."""
    answer = connection.ask_any(lambda: MetadataRequest(topics=[], allow_auto_topic_creation=False), deadline)
    if not answer.cluster_id:
        raise ObservationFailed(
            Failure(kind=FailureKind.KAFKA_ERROR, message="the cluster has no id: Kafka before 0.10.1")
        )
    return str(answer.cluster_id)


def written_cluster_id(log_dirs: Iterable[str]) -> str | None:
    """As the broker wrote it into its log dirs; ``None`` where none of them can be read, or none is formatted yet."""
    for log_dir in log_dirs:
        try:
            written = load_properties(Path(log_dir, META_PROPERTIES))
        except BadInput:
            continue  # not formatted yet, or not ours to read: the next one may tell
        if written.get("cluster.id"):
            return written["cluster.id"]
    return None
