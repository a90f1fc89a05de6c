"""What the cluster says about the replicas in a broker's log dirs: the second of the two views that a trim needs.

Everything is asked for all partitions at once: one request to the broker that holds them, one for the topics, one for
their configurations, and for each kind of offset one to every leader. What somebody does not tell about a partition is
missing here, and whoever needs it leaves the partition out.

Size and place are the broker's own word, and so are the topics' rules: what a topic does not set itself is the default
of the broker that applies it. Offsets are the leaders'.

The rules of clean-up of many brokers' topics, each as the broker that holds them computes it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from brimline.model import BrokerId, BrokerLogDirs, Failure, FailureKind, Offset, TopicPartition
from brimline.model.reclaim import USE_RETENTION, CleanupRules
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.configs import TopicConfig, describe_topic_configs, describe_topic_configs_of_each
from brimline.observe.cluster.log_dirs import Clock, describe_log_dirs, numbers_by_topic
from brimline.observe.cluster.offsets import OffsetSpec, list_last_stable, list_log_ends, list_offsets
from brimline.observe.cluster.topics import TOPICS_AT_ONCE, Topic, describe_topics, some_at_a_time

_POLICY = "cleanup.policy"
_RETENTION_MS, _RETENTION_BYTES = "retention.ms", "retention.bytes"
_LOCAL_MS, _LOCAL_BYTES = "local.retention.ms", "local.retention.bytes"
_TIERED, _COPY_DISABLED = "remote.storage.enable", "remote.log.copy.disable"
CLEANUP_KEYS = (_POLICY, _RETENTION_MS, _RETENTION_BYTES, _LOCAL_MS, _LOCAL_BYTES, _TIERED, _COPY_DISABLED)

Offsets: TypeAlias = Mapping[TopicPartition, Offset]
Asked: TypeAlias = Mapping[TopicPartition, Offset | Failure | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFacts:
    """``rules`` and ``topics`` of every topic that is known; ``unknown`` says why another one is not."""

    answer: BrokerLogDirs
    topics: Mapping[str, Topic]
    rules: Mapping[str, CleanupRules]
    unknown: Mapping[str, Failure]
    log_starts: Offsets
    """Of tiered topics: where the local log begins."""
    high_watermarks: Offsets
    log_ends: Offsets
    highest_remote: Offsets
    last_stable: Offsets = field(default_factory=dict)


def look_at_replicas(
    connection: Connection,
    broker: BrokerId,
    partitions: Collection[TopicPartition],
    timeout: timedelta,
    now: Clock,
) -> ReplicaFacts:
    """Raises ``ObservationFailed`` when the broker does not answer, or refuses to describe its log dirs."""
    deadline = Deadline(timeout)
    answer = describe_log_dirs(connection, [broker], deadline, now, numbers_by_topic(sorted(partitions)))[broker]
    answer.answer()
    topics, rules, unknown = _topics(connection, broker, sorted({each.topic for each in partitions}), deadline)
    leaders = leaders_of(partitions, topics)
    tiered = frozenset(name for name, each in rules.items() if each.is_tiered)
    # In this order: an end that is asked for later is never below the watermark that was asked for before.
    log_starts = look_at_present_starts(connection, leaders, tiered, deadline)
    high_watermarks = known_offsets(list_offsets(connection, leaders, OffsetSpec.LATEST, deadline.renewed()))
    last_stable = known_offsets(list_last_stable(connection, leaders, deadline.renewed()))
    log_ends = known_offsets(list_log_ends(connection, leaders, deadline.renewed()))
    uploading = {partition: leader for partition, leader in leaders.items() if partition.topic in tiered}
    remote = list_offsets(connection, uploading, OffsetSpec.LATEST_TIERED, deadline.renewed()) if uploading else {}
    return ReplicaFacts(
        answer=answer,
        topics=topics,
        rules=rules,
        unknown=unknown,
        log_starts=log_starts,
        high_watermarks=high_watermarks,
        log_ends=log_ends,
        highest_remote=known_offsets(remote),
        last_stable=last_stable,
    )


def look_at_present_starts(
    connection: Connection, leaders: Mapping[TopicPartition, BrokerId], tiered: Collection[str], deadline: Deadline
) -> Offsets:
    """Where the logs begin now, whoever moved their starts; of ``tiered`` topics the local logs."""
    plain = {partition: leader for partition, leader in leaders.items() if partition.topic not in tiered}
    local = {partition: leader for partition, leader in leaders.items() if partition.topic in tiered}
    starts = known_offsets(list_offsets(connection, plain, OffsetSpec.EARLIEST, deadline.renewed())) if plain else {}
    if not local:
        return starts
    return {**starts, **known_offsets(list_offsets(connection, local, OffsetSpec.EARLIEST_LOCAL, deadline.renewed()))}


def leaders_of(
    partitions: Collection[TopicPartition], topics: Mapping[str, Topic]
) -> Mapping[TopicPartition, BrokerId]:
    found = {}
    for partition in partitions:
        topic = topics.get(partition.topic)
        leader = None if topic is None else topic.leaders.get(partition.partition)
        if leader is not None:
            found[partition] = leader
    return found


def _topics(
    connection: Connection, broker: BrokerId, names: Sequence[str], deadline: Deadline
) -> tuple[dict[str, Topic], dict[str, CleanupRules], dict[str, Failure]]:
    topics: dict[str, Topic] = {}
    rules: dict[str, CleanupRules] = {}
    unknown: dict[str, Failure] = {}
    silence = Failure(kind=FailureKind.KAFKA_ERROR, message="the broker left it out of its answer")
    for some in some_at_a_time(names):
        described = describe_topics(connection, some, deadline.renewed(), with_rights=True)
        configs = describe_topic_configs(connection, some, CLEANUP_KEYS, deadline.renewed(), broker)
        for name in some:
            topic = described.get(name)
            if topic is None or topic.error is not None:
                why = "no broker described it" if topic is None else f"the cluster answers {topic.error}"
                unknown[name] = Failure(kind=FailureKind.KAFKA_ERROR, message=f"topic {name} unknown: {why}")
                continue
            topics[name] = topic
            found = cleanup_rules(name, configs.get(name, silence), is_internal=topic.is_internal)
            if isinstance(found, Failure):
                unknown[name] = found
            else:
                rules[name] = found
    return topics, rules, unknown


def cleanup_rules(name: str, config: TopicConfig | Failure, *, is_internal: bool) -> CleanupRules | Failure:
    """Brokers before 3.6 do not know the keys of tiered storage: their topics cannot be tiered."""
    if isinstance(config, Failure):
        return config
    policies = {word.strip() for word in (config.get(_POLICY) or "").split(",")}
    try:
        return CleanupRules(
            deletes="delete" in policies,
            compacts="compact" in policies,
            retention_ms=int(config.get(_RETENTION_MS) or ""),
            retention_bytes=int(config.get(_RETENTION_BYTES) or ""),
            local_retention_ms=int(config.get(_LOCAL_MS) or USE_RETENTION),
            local_retention_bytes=int(config.get(_LOCAL_BYTES) or USE_RETENTION),
            is_tiered=config.get(_TIERED) == "true",
            is_copy_disabled=config.get(_COPY_DISABLED) == "true",
            is_internal=is_internal,
            is_for_ever=_is_for_ever(config),
        )
    except ValueError:
        message = f"the topic {name} has retention limits that are not numbers"
        return Failure(kind=FailureKind.KAFKA_ERROR, message=message)


def _is_for_ever(config: TopicConfig) -> bool:
    """By the topic's own word: what a broker's default says is said of all topics, and of none."""
    has_limit = _RETENTION_BYTES in config.own and int(config.get(_RETENTION_BYTES) or "") >= 0
    return _RETENTION_MS in config.own and int(config.get(_RETENTION_MS) or "") < 0 and not has_limit


def known_offsets(asked: Asked) -> Offsets:
    """Without what a leader did not tell."""
    return {
        partition: offset
        for partition, offset in asked.items()
        if offset is not None and not isinstance(offset, Failure)
    }


Rules = Mapping[str, CleanupRules | Failure]


def look_at_cleanup_rules(
    connection: Connection, held: Mapping[BrokerId, Sequence[str]], deadline: Deadline
) -> Mapping[BrokerId, Rules]:
    """``held`` are the topics to ask each broker about. Whether a topic is internal is not asked here.

    Some of each at a time: a busy broker need not hold a large answer for everybody at once.
    """
    rules: dict[BrokerId, dict[str, CleanupRules | Failure]] = {broker: {} for broker in held}
    for start in range(0, max(map(len, held.values()), default=0), TOPICS_AT_ONCE):
        some = {broker: names[start : start + TOPICS_AT_ONCE] for broker, names in held.items()}
        answers = describe_topic_configs_of_each(connection, some, CLEANUP_KEYS, deadline.renewed())
        for broker, names in some.items():
            answer = answers[broker]
            rules[broker].update({name: _rules(name, answer) for name in names})
    return rules


def _rules(name: str, answer: "Mapping[str, TopicConfig | Failure] | Failure") -> CleanupRules | Failure:
    if isinstance(answer, Failure):
        return answer
    silence = Failure(kind=FailureKind.KAFKA_ERROR, message="the broker left it out of its answer")
    return cleanup_rules(name, answer.get(name, silence), is_internal=False)
