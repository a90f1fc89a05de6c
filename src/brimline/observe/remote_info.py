"""Fills the remote columns of log-dir descriptions: KIP-1187 from outside.

The order of looking is part of the rule. First the uploads, so that every one of them was complete before the local
sizes were taken; then the local log starts, the log dirs, and the local log starts once more: if a start moved in
between, local segments were deleted while looking, and the only-local size of that partition is not known.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
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
    Offset,
    Reason,
    ReplicaInfo,
    TopicPartition,
)
from brimline.model.kafka_errors import TOPIC_AUTHORIZATION_FAILED
from brimline.observe.configs import describe_broker_config, describe_topic_configs
from brimline.observe.connection import Connection, Deadline
from brimline.observe.offsets import OffsetSpec, list_offsets
from brimline.observe.remote_log import Progress, RemoteLogs, read_remote_logs
from brimline.observe.remote_sizes import only_local_size, remote_size
from brimline.observe.topics import Topic, describe_topics
from brimline.wire.remote_log_metadata import TOPIC as METADATA_TOPIC
from brimline.wire.remote_log_metadata import RemoteSegment

_TIERED = "remote.storage.enable"
_METADATA_MANAGER = "remote.log.metadata.manager.class.name"
_TOPIC_BASED_MANAGER = "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"

LogDirsByBroker = Mapping[BrokerId, BrokerLogDirs]
Offsets = Mapping[TopicPartition, Offset | Failure | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFacts:
    """What is known of every topic that was asked about, before the log dirs are looked at."""

    # A reason that holds for all of a topic's replicas, or KNOWN when its uploads were read.
    topics: Mapping[str, Reason]
    ids: Mapping[str, UUID]
    leaders: Mapping[TopicPartition, BrokerId]
    logs: RemoteLogs


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStarts:
    """Where the leaders' logs begin, with two looks at the local start: before and after the log dirs were read."""

    earliest: Offsets
    local_before: Offsets
    local_after: Offsets

    def of(self, partition: TopicPartition) -> tuple[Offset, Offset] | Reason:
        """Log start and local log start, or why they cannot be used."""
        earliest = self.earliest.get(partition)
        before, after = self.local_before.get(partition), self.local_after.get(partition)
        for look in (earliest, before, after):
            if isinstance(look, Failure):
                return Reason.BROKER_TOO_OLD if look.kind is FailureKind.UNSUPPORTED else Reason.NO_ANSWER
        if earliest is None or before is None or isinstance(earliest, Failure) or isinstance(before, Failure):
            return Reason.NO_LEADER
        return (earliest, before) if before == after else Reason.CHANGING


def describe_with_remote_info(
    connection: Connection,
    topics: frozenset[str] | None,
    timeout: timedelta,
    describe: Callable[[], LogDirsByBroker],
    progress: Progress | None,
) -> tuple[LogDirsByBroker, int]:
    """``describe``'s answer with the remote columns filled, and how many metadata records made no sense."""
    facts = _look_at_uploads(connection, topics, timeout, progress)
    earliest = list_offsets(connection, facts.leaders, OffsetSpec.EARLIEST, Deadline(timeout))
    local_before = list_offsets(connection, facts.leaders, OffsetSpec.EARLIEST_LOCAL, Deadline(timeout))
    brokers = describe()
    local_after = list_offsets(connection, facts.leaders, OffsetSpec.EARLIEST_LOCAL, Deadline(timeout))
    starts = LogStarts(earliest=earliest, local_before=local_before, local_after=local_after)
    filled = {
        broker: replace(
            answer,
            log_dirs={path: _fill(log_dir, broker, facts, starts) for path, log_dir in answer.log_dirs.items()},
        )
        for broker, answer in brokers.items()
    }
    return filled, facts.logs.skipped_records


def _look_at_uploads(
    connection: Connection, names: frozenset[str] | None, timeout: timedelta, progress: Progress | None
) -> RemoteFacts:
    described = describe_topics(connection, names, Deadline(timeout))
    reasons = _tiered_or_why_not(connection, described, timeout)
    tiered = {name: described[name] for name, reason in reasons.items() if reason is Reason.KNOWN}
    logs = _read_uploads(connection, tiered, timeout, progress) if tiered else _no_logs()
    if isinstance(logs, Reason):
        reasons.update(dict.fromkeys(tiered, logs))
        tiered, logs = {}, _no_logs()
    return RemoteFacts(
        topics=reasons,
        ids={name: topic.topic_id for name, topic in tiered.items() if topic.topic_id is not None},
        leaders={
            TopicPartition(name, partition): leader
            for name, topic in tiered.items()
            for partition, leader in topic.leaders.items()
            if leader is not None
        },
        logs=logs,
    )


def _no_logs() -> RemoteLogs:
    return RemoteLogs(segments={}, skipped_records=0)


def _tiered_or_why_not(connection: Connection, topics: Mapping[str, Topic], timeout: timedelta) -> dict[str, Reason]:
    usable = {name: topic for name, topic in topics.items() if topic.error is None}
    reasons = {
        name: Reason.NO_PERMISSION if topic.error.code == TOPIC_AUTHORIZATION_FAILED else Reason.NO_ANSWER
        for name, topic in topics.items()
        if topic.error is not None
    }
    configs = describe_topic_configs(connection, usable, [_TIERED], Deadline(timeout))
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


def _read_uploads(
    connection: Connection, tiered: Mapping[str, Topic], timeout: timedelta, progress: Progress | None
) -> RemoteLogs | Reason:
    any_broker = next(iter(connection.brokers))
    manager = describe_broker_config(connection, any_broker, [_METADATA_MANAGER], Deadline(timeout))
    # Without the permission to see the broker's configuration, the topic itself must tell.
    if (
        not isinstance(manager, Failure)
        and manager.get(_METADATA_MANAGER, _TOPIC_BASED_MANAGER) != _TOPIC_BASED_MANAGER
    ):
        return Reason.OTHER_METADATA_MANAGER
    metadata_topic = describe_topics(connection, [METADATA_TOPIC], Deadline(timeout))[METADATA_TOPIC]
    if metadata_topic.error is not None:
        refused = metadata_topic.error.code == TOPIC_AUTHORIZATION_FAILED
        return Reason.NO_PERMISSION if refused else Reason.METADATA_TOPIC_ABSENT
    keys = [
        (topic.topic_id, partition)
        for topic in tiered.values()
        for partition in topic.leaders
        if topic.topic_id is not None
    ]
    logs = read_remote_logs(connection.config, keys, len(metadata_topic.leaders), timeout, progress)
    if not isinstance(logs, Failure):
        return logs
    return Reason.NO_PERMISSION if logs.kind is FailureKind.NOT_AUTHORIZED else Reason.NO_ANSWER


def _fill(log_dir: LogDirDescription, broker: BrokerId, facts: RemoteFacts, starts: LogStarts) -> LogDirDescription:
    replicas = log_dir.replicas
    by_topic = np.array([facts.topics.get(name, Reason.NOT_ASKED) for name in replicas.topic_names], dtype=np.uint8)
    remote_reason = by_topic[replicas.topic]
    only_local_reason = remote_reason.copy()
    remote, only_local = replicas.remote_size.copy(), replicas.only_local_size.copy()
    for row in np.flatnonzero(remote_reason == Reason.KNOWN).tolist():
        partition = replicas.topic_partition(row)
        segments = facts.logs.segments.get((facts.ids[partition.topic], partition.partition))
        if segments is None:
            # A partition younger than the look at the uploads.
            remote_reason[row] = only_local_reason[row] = Reason.CHANGING
            continue
        remote[row] = remote_size(segments.values())
        figure = _only_local(replicas.replica_info(row), partition, broker, facts, starts, segments.values())
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


def _only_local(
    replica: ReplicaInfo,
    partition: TopicPartition,
    broker: BrokerId,
    facts: RemoteFacts,
    starts: LogStarts,
    segments: Iterable[RemoteSegment],
) -> Bytes | Reason:
    leader = facts.leaders.get(partition)
    if replica.is_future:
        return Reason.FUTURE_REPLICA
    if leader is None:
        return Reason.NO_LEADER
    if leader != broker:
        return Reason.FOLLOWER
    start = starts.of(partition)
    return start if isinstance(start, Reason) else only_local_size(replica.size, *start, segments)
