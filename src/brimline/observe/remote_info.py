"""Fills the remote columns of log-dir descriptions: KIP-1187 from outside.

The order of looking is part of the rule. First the uploads, so that every one of them was complete before the local
sizes were taken; then the local log starts, the log dirs, and the local log starts once more: if a start moved in
between, local segments were deleted while looking, and the only-local size of that partition is not known.

Whatever fails here costs remote figures and their reasons say why; the log dirs are described all the same.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

import numpy as np

from brimline.model import (
    BrokerId,
    BrokerLogDirs,
    Bytes,
    Failure,
    FailureKind,
    LogDirDescription,
    ObservationFailed,
    Reason,
    ReplicaInfo,
    TopicPartition,
)
from brimline.model.kafka_errors import TOPIC_AUTHORIZATION_FAILED
from brimline.observe.configs import describe_broker_config, describe_topic_configs
from brimline.observe.connection import Connection, Deadline
from brimline.observe.log_starts import LogStarts, Offsets, look_at_local_starts, look_at_log_starts
from brimline.observe.remote_log import PartitionKey, RemoteLogs
from brimline.observe.remote_log_follower import Progress, RemoteLogFollower
from brimline.observe.remote_sizes import remote_size
from brimline.observe.topics import Topic, describe_topics
from brimline.wire.remote_log_metadata import TOPIC as METADATA_TOPIC
from brimline.wire.remote_log_metadata import RemoteSegment

_TIERED = "remote.storage.enable"
_METADATA_MANAGER = "remote.log.metadata.manager.class.name"
_TOPIC_BASED_MANAGER = "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"

LogDirsByBroker = Mapping[BrokerId, BrokerLogDirs]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteInfo:
    """The log dirs with their remote columns filled; ``notes`` are sentences about what could not be read."""

    brokers: LogDirsByBroker
    skipped_records: int
    notes: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class RemoteFacts:
    """What is known of every topic that was asked about, before the log dirs are looked at."""

    # A reason that holds for all of a topic's replicas, or KNOWN when its uploads were looked for.
    topics: dict[str, Reason]
    tiered: Mapping[str, Topic] = field(default_factory=dict)
    logs: RemoteLogs = field(default_factory=lambda: RemoteLogs(segments={}, failures={}, skipped_records=0))

    @property
    def leaders(self) -> Mapping[TopicPartition, BrokerId]:
        return {
            TopicPartition(name, partition): leader
            for name, topic in self.tiered.items()
            for partition, leader in topic.leaders.items()
            if leader is not None
        }

    @property
    def uploads(self) -> Mapping[TopicPartition, Iterable[RemoteSegment]]:
        names = {topic.topic_id: name for name, topic in self.tiered.items()}
        return {TopicPartition(names[key[0]], key[1]): found.values() for key, found in self.logs.segments.items()}

    def key(self, partition: TopicPartition) -> PartitionKey:
        return _id(self.tiered[partition.topic]), partition.partition


def describe_with_remote_info(
    connection: Connection,
    topics: frozenset[str] | None,
    timeout: timedelta,
    describe: Callable[[Deadline], LogDirsByBroker],
    progress: Progress | None,
) -> RemoteInfo:
    deadline = Deadline(timeout)
    notes: list[str] = []
    try:
        facts = _look_at_uploads(connection, topics, deadline, progress, notes)
    except ObservationFailed as error:
        notes.append(f"remote information is not known: {error}")
        return _without_remote_info(describe(deadline.renewed()), topics, notes)
    starts = look_at_log_starts(connection, facts.leaders, facts.uploads, deadline)
    brokers = describe(deadline.renewed())
    local_after = look_at_local_starts(connection, facts.leaders, deadline)
    _find_reasons_for_the_rest(connection, brokers, topics, facts, deadline.renewed())
    return RemoteInfo(
        brokers=_filled(brokers, facts, starts, local_after),
        skipped_records=facts.logs.skipped_records,
        notes=tuple(dict.fromkeys(notes)),
    )


def _without_remote_info(brokers: LogDirsByBroker, asked: frozenset[str] | None, notes: list[str]) -> RemoteInfo:
    names = {n for answer in brokers.values() for d in answer.log_dirs.values() for n in d.replicas.topic_names}
    facts = RemoteFacts(topics=dict.fromkeys(names if asked is None else names & asked, Reason.NO_ANSWER))
    starts = LogStarts(earliest={}, local={}, epoch_ends={})
    return RemoteInfo(brokers=_filled(brokers, facts, starts, {}), skipped_records=0, notes=tuple(notes))


def _look_at_uploads(
    connection: Connection,
    names: frozenset[str] | None,
    deadline: Deadline,
    progress: Progress | None,
    notes: list[str],
) -> RemoteFacts:
    described = describe_topics(connection, names, deadline)
    reasons = _tiered_or_why_not(connection, described, deadline.renewed())
    tiered = {name: described[name] for name, reason in reasons.items() if reason is Reason.KNOWN}
    if not tiered:
        return RemoteFacts(topics=reasons)
    metadata_topic = _metadata_topic(connection, deadline.renewed())
    if isinstance(metadata_topic, Reason):
        return RemoteFacts(topics=reasons | dict.fromkeys(tiered, metadata_topic))
    keys = [(_id(topic), partition) for topic in tiered.values() for partition in topic.leaders]
    logs = RemoteLogFollower().follow(connection, keys, metadata_topic.leaders, deadline.renewed(), progress)
    notes += [f"remote log metadata could not be read: {failure}" for failure in logs.failures.values()]
    return RemoteFacts(topics=reasons, tiered=tiered, logs=logs)


def _id(topic: Topic) -> UUID:
    assert topic.topic_id is not None, "a topic without an id is not among the tiered ones"
    return topic.topic_id


def _tiered_or_why_not(connection: Connection, topics: Mapping[str, Topic], deadline: Deadline) -> dict[str, Reason]:
    reasons = {name: _reason_of(topic) for name, topic in topics.items() if topic.error is not None}
    usable = {name: topic for name, topic in topics.items() if topic.error is None}
    configs = describe_topic_configs(connection, usable, [_TIERED], deadline)
    for name, topic in usable.items():
        config = configs.get(name)
        if config is None or isinstance(config, Failure):
            refused = config is not None and config.kind is FailureKind.NOT_AUTHORIZED
            reasons[name] = Reason.NO_PERMISSION if refused else Reason.NO_ANSWER
        elif config.get(_TIERED) != "true":
            # Brokers before 3.6 do not know the key at all: their topics cannot be tiered.
            reasons[name] = Reason.NOT_TIERED
        else:
            reasons[name] = Reason.KNOWN if topic.topic_id is not None else Reason.BROKER_TOO_OLD
    return reasons


def _reason_of(topic: Topic) -> Reason:
    refused = topic.error is not None and topic.error.code == TOPIC_AUTHORIZATION_FAILED
    return Reason.NO_PERMISSION if refused else Reason.CHANGING


def _metadata_topic(connection: Connection, deadline: Deadline) -> Topic | Reason:
    any_broker = next(broker for broker in connection.brokers if broker not in deadline.silent)
    manager = describe_broker_config(connection, any_broker, [_METADATA_MANAGER], deadline)
    # Without the permission to see the broker's configuration, the topic itself must tell.
    if (
        not isinstance(manager, Failure)
        and manager.get(_METADATA_MANAGER, _TOPIC_BASED_MANAGER) != _TOPIC_BASED_MANAGER
    ):
        return Reason.OTHER_METADATA_MANAGER
    topic = describe_topics(connection, [METADATA_TOPIC], deadline.renewed())[METADATA_TOPIC]
    if topic.error is None:
        return topic
    refused = topic.error.code == TOPIC_AUTHORIZATION_FAILED
    return Reason.NO_PERMISSION if refused else Reason.METADATA_TOPIC_ABSENT


def _find_reasons_for_the_rest(
    connection: Connection,
    brokers: LogDirsByBroker,
    asked: frozenset[str] | None,
    facts: RemoteFacts,
    deadline: Deadline,
) -> None:
    """A broker lists replicas of topics that Metadata hid (no permission) or did not have yet (just created)."""
    seen = {
        name
        for answer in brokers.values()
        for log_dir in answer.log_dirs.values()
        for name in log_dir.replicas.topic_names
    }
    unexplained = [name for name in seen - set(facts.topics) if asked is None or name in asked]
    if not unexplained:
        return
    try:
        described = describe_topics(connection, unexplained, deadline)
    except ObservationFailed:
        facts.topics |= dict.fromkeys(unexplained, Reason.NO_ANSWER)
        return
    for name in unexplained:
        refused = name in described and _reason_of(described[name]) is Reason.NO_PERMISSION
        facts.topics[name] = Reason.NO_PERMISSION if refused else Reason.CHANGING


def _filled(
    brokers: LogDirsByBroker, facts: RemoteFacts, starts: LogStarts, local_after: Offsets
) -> Mapping[BrokerId, BrokerLogDirs]:
    return {
        broker: replace(
            answer,
            log_dirs={
                path: _fill(log_dir, broker, facts, starts, local_after) for path, log_dir in answer.log_dirs.items()
            },
        )
        for broker, answer in brokers.items()
    }


def _fill(
    log_dir: LogDirDescription, broker: BrokerId, facts: RemoteFacts, starts: LogStarts, local_after: Offsets
) -> LogDirDescription:
    replicas = log_dir.replicas
    by_topic = np.array([facts.topics.get(name, Reason.NOT_ASKED) for name in replicas.topic_names], dtype=np.uint8)
    remote_reason = by_topic[replicas.topic]
    only_local_reason = remote_reason.copy()
    remote, only_local = replicas.remote_size.copy(), replicas.only_local_size.copy()
    for row in np.flatnonzero(remote_reason == Reason.KNOWN).tolist():
        partition = replicas.topic_partition(row)
        segments = _uploads(partition, facts)
        if isinstance(segments, Reason):
            remote_reason[row] = only_local_reason[row] = segments
            continue
        remote[row] = remote_size(segments)
        figure = _only_local(replicas.replica_info(row), partition, broker, facts, starts, local_after, segments)
        if isinstance(figure, Reason):
            only_local_reason[row] = figure
        else:
            only_local[row] = figure
    return replace(
        log_dir,
        replicas=replace(
            replicas,
            remote_size=remote,
            remote_size_reason=remote_reason,
            only_local_size=only_local,
            only_local_size_reason=only_local_reason,
        ),
    )


def _uploads(partition: TopicPartition, facts: RemoteFacts) -> Iterable[RemoteSegment] | Reason:
    key = facts.key(partition)
    failure = facts.logs.failures.get(key)
    if failure is not None:
        by_kind = {
            FailureKind.NOT_AUTHORIZED: Reason.NO_PERMISSION,
            FailureKind.UNREADABLE: Reason.CODEC_MISSING,
        }
        return by_kind.get(failure.kind, Reason.NO_ANSWER)
    segments = facts.logs.segments.get(key)
    # None: a partition younger than the look at the uploads.
    return Reason.CHANGING if segments is None else segments.values()


def _only_local(
    replica: ReplicaInfo,
    partition: TopicPartition,
    broker: BrokerId,
    facts: RemoteFacts,
    starts: LogStarts,
    local_after: Offsets,
    segments: Iterable[RemoteSegment],
) -> Bytes | Reason:
    leader = facts.tiered[partition.topic].leaders.get(partition.partition)
    if replica.is_future:
        return Reason.FUTURE_REPLICA
    if leader is None:
        return Reason.NO_LEADER
    if leader != broker:
        return Reason.FOLLOWER
    return starts.only_local(partition, replica.size, segments, local_after)
