"""Remote columns: what was seen of the uploads, put to every replica of the log dirs. Pure: facts in, columns out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np

from brimline.model import (
    BrokerId,
    BrokerLogDirs,
    Bytes,
    FailureKind,
    LogDirDescription,
    Reason,
    ReplicaInfo,
    TopicPartition,
)
from brimline.observe.cluster.topics import Topic
from brimline.observe.remote.remote_log import PartitionKey, RemoteLogs
from brimline.observe.remote.sizes import LogStarts, Offsets, remote_size
from brimline.wire.remote_log_metadata import RemoteSegment

LogDirsByBroker = Mapping[BrokerId, BrokerLogDirs]

OnDisk = Callable[[str, TopicPartition, Bytes, Iterable[RemoteSegment]], Bytes | Reason]
"""Log dir, partition, its size, its uploads → its only-local size by its files. For whoever stands beside the disk."""


def unseen(_log_dir: str, _partition: TopicPartition, _size: Bytes, _uploads: Iterable[RemoteSegment]) -> Reason:
    """For whoever does not."""
    return Reason.NO_PERMISSION


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
        return id_of(self.tiered[partition.topic]), partition.partition


def id_of(topic: Topic) -> UUID:
    assert topic.topic_id is not None, "a topic without an id is not among the tiered ones"
    return topic.topic_id


def filled(
    brokers: LogDirsByBroker, facts: RemoteFacts, starts: LogStarts, local_after: Offsets, on_disk: OnDisk = unseen
) -> LogDirsByBroker:
    """The remote columns of every log dir; where a size is not known, its reason is.

    ``on_disk`` is asked only for what cannot be known from outside: listing every folder takes time.
    """
    return {
        broker: replace(
            answer,
            log_dirs={
                path: _fill(log_dir, broker, facts, starts, local_after, on_disk)
                for path, log_dir in answer.log_dirs.items()
            },
        )
        for broker, answer in brokers.items()
    }


def _fill(
    log_dir: LogDirDescription,
    broker: BrokerId,
    facts: RemoteFacts,
    starts: LogStarts,
    local_after: Offsets,
    on_disk: OnDisk,
) -> LogDirDescription:
    replicas = log_dir.replicas
    by_topic = np.array([facts.topics.get(name, Reason.NOT_ASKED) for name in replicas.topic_names], dtype=np.uint8)
    remote_reason = by_topic[replicas.topic]
    only_local_reason = remote_reason.copy()
    remote, only_local = replicas.remote_size.copy(), replicas.only_local_size.copy()
    # What is in no remote store is on this disk alone.
    is_plain = (remote_reason == Reason.NOT_TIERED) & ~replicas.is_future
    only_local[is_plain], only_local_reason[is_plain] = replicas.size[is_plain], Reason.KNOWN
    for row in np.flatnonzero(remote_reason == Reason.KNOWN).tolist():
        partition = replicas.topic_partition(row)
        segments = _uploads(partition, facts)
        if isinstance(segments, Reason):
            remote_reason[row] = only_local_reason[row] = segments
            continue
        remote[row] = remote_size(segments)
        replica = replicas.replica_info(row)
        figure = _only_local(replica, partition, broker, facts, starts, local_after, segments)
        if isinstance(figure, Reason) and figure is not Reason.FUTURE_REPLICA:
            by_files = on_disk(log_dir.path, partition, replica.size, segments)
            figure = figure if isinstance(by_files, Reason) else by_files
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
