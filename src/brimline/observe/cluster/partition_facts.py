"""What one broker says about the partitions it holds: sizes, limits, who leads. The facts of KIP-1257.

Everything is asked of that broker itself where the answer depends on who answers: a topic that sets no
``retention.bytes`` has the default of the broker that holds the replica, and defaults may differ between brokers.
Only the topics that the broker holds are asked about: its cluster may have a hundred times as many.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from brimline.model import BrokerId, BrokerLogDirs, Failure, FailureKind, LogDirDescription
from brimline.model.failures import TOPIC_AUTHORIZATION_FAILED
from brimline.model.partitions import USE_RETENTION_BYTES, TopicRetention
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.configs import Config, describe_topic_configs
from brimline.observe.cluster.log_dirs import Clock, describe_log_dirs
from brimline.observe.cluster.topics import Topic, describe_topics, some_at_a_time

_RETENTION = "retention.bytes"
_LOCAL_RETENTION = "local.retention.bytes"
_TIERED = "remote.storage.enable"
_COPY_DISABLED = "remote.log.copy.disable"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTopic:
    """A topic that the broker holds replicas of. Id and led partitions are asked for tiered topics only."""

    topic_id: UUID | None
    led_partitions: frozenset[int]
    retention: TopicRetention


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """``topics`` are those whose limits are known; ``unknown`` are the others, with the reason.

    ``publishes_percentages``: the broker is of 4.3 or later, which DescribeLogDirs version 5 gives away, and has
    KIP-1257's gauges of its own.
    """

    answer: BrokerLogDirs
    topics: Mapping[str, HeldTopic]
    unknown: Mapping[str, Failure]
    publishes_percentages: bool

    @property
    def log_dirs(self) -> Mapping[str, LogDirDescription]:
        return self.answer.log_dirs


def look_at_partitions(connection: Connection, broker: BrokerId, timeout: timedelta, now: Clock) -> PartitionFacts:
    """Raises ``ObservationFailed`` when the broker does not answer, or refuses to describe its log dirs."""
    answer = describe_log_dirs(connection, [broker], Deadline(timeout), now)[broker]
    log_dirs = answer.answer()
    names = sorted({name for log_dir in log_dirs.values() for name in log_dir.replicas.topic_names})
    topics: dict[str, HeldTopic] = {}
    unknown: dict[str, Failure] = {}
    for some in some_at_a_time(names):
        limits = _limits(connection, some, broker, timeout)
        # Who leads matters for tiered topics only, and Metadata is the longest of these answers.
        tiered = [name for name, retention in limits.items() if _is_tiered(retention)]
        described = describe_topics(connection, tiered, Deadline(timeout)) if tiered else {}
        for name, retention in limits.items():
            held = _held(name, broker, described.get(name), retention)
            if isinstance(held, Failure):
                unknown[name] = held
            else:
                topics[name] = held
    return PartitionFacts(
        answer=answer,
        topics=topics,
        unknown=unknown,
        publishes_percentages=any(log_dir.is_cordoned is not None for log_dir in log_dirs.values()),
    )


def _limits(
    connection: Connection, names: Sequence[str], broker: BrokerId, timeout: timedelta
) -> dict[str, TopicRetention | Failure]:
    keys = [_RETENTION, _LOCAL_RETENTION, _TIERED, _COPY_DISABLED]
    configs = describe_topic_configs(connection, names, keys, Deadline(timeout), broker)
    silence = Failure(kind=FailureKind.KAFKA_ERROR, message="the broker left it out of its answer")
    return {name: _retention(name, configs.get(name, silence)) for name in names}


def _is_tiered(retention: TopicRetention | Failure) -> bool:
    return not isinstance(retention, Failure) and retention.is_tiered


def _held(name: str, broker: BrokerId, topic: Topic | None, retention: TopicRetention | Failure) -> HeldTopic | Failure:
    if isinstance(retention, Failure):
        return retention
    if topic is not None and topic.error is not None and topic.error.code == TOPIC_AUTHORIZATION_FAILED:
        return Failure(kind=FailureKind.NOT_AUTHORIZED, message=f"this principal needs DESCRIBE on the topic {name}")
    leaders = topic.leaders if topic is not None and topic.error is None else {}
    return HeldTopic(
        topic_id=topic.topic_id if topic is not None else None,
        led_partitions=frozenset(partition for partition, leader in leaders.items() if leader == broker),
        retention=retention,
    )


def _retention(name: str, config: Config | Failure) -> TopicRetention | Failure:
    """Brokers before 3.6 do not know the keys of tiered storage: their topics cannot be tiered."""
    if isinstance(config, Failure):
        return config
    total, local = config.get(_RETENTION), config.get(_LOCAL_RETENTION)
    try:
        return TopicRetention(
            retention_bytes=int(total or ""),
            local_retention_bytes=USE_RETENTION_BYTES if local is None else int(local),
            is_tiered=config.get(_TIERED) == "true",
            is_copy_disabled=config.get(_COPY_DISABLED) == "true",
        )
    except ValueError:
        message = f"the topic {name} has {_RETENTION}={total} and {_LOCAL_RETENTION}={local}: not numbers of bytes"
        return Failure(kind=FailureKind.KAFKA_ERROR, message=message)
