"""The guard's own client of its broker: connects when needed, and anew after a failure."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from brimline.model import BrokerId, Bytes, FailureKind, Reason, TopicPartition
from brimline.model.blast_radius import GroupsSeen
from brimline.model.failures import TOPIC_AUTHORIZATION_FAILED
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Deadline, Reconnecting
from brimline.observe.cluster.configs import broker_release
from brimline.observe.cluster.group_notes import Note, read_notes
from brimline.observe.cluster.group_offsets import committed_offsets
from brimline.observe.cluster.partition_facts import PartitionFacts, look_at_partitions
from brimline.observe.cluster.replica_facts import (
    Offsets,
    ReplicaFacts,
    leaders_of,
    look_at_present_starts,
    look_at_replicas,
)
from brimline.observe.cluster.second_clock import controllers_time_ms
from brimline.observe.cluster.topics import describe_topics
from brimline.observe.cluster.transactions import Started, open_transactions
from brimline.observe.remote.only_local import only_local_from_outside, only_local_in_files
from brimline.observe.remote.remote_log import PartitionKey, RemoteLogFollower, RemoteLogs
from brimline.service.clock import Clock
from brimline.wire.remote_log_metadata import TOPIC as METADATA_TOPIC
from brimline.wire.remote_log_metadata import RemoteSegment, SegmentState

_TIMEOUT = timedelta(seconds=30)
_LONGEST_STALL = timedelta(seconds=10)
_PATIENCE_FOR_NOTES = timedelta(seconds=5)

_REASONS = {
    FailureKind.NOT_AUTHORIZED: Reason.NO_PERMISSION,
    FailureKind.UNREADABLE: Reason.CODEC_MISSING,
}

Uploads = Mapping[UUID, RemoteSegment]
RemoteSizes = Mapping[TopicPartition, tuple[Bytes, Bytes] | Reason]


class BrokerClient(Reconnecting):
    """Every method raises ``ObservationFailed`` when the broker gives no answer."""

    def __init__(
        self,
        config: ClientConfig,
        broker: BrokerId,
        clock: Clock,
        may_read: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """``may_read`` tells whether a log dir can be listed without fear of hanging on it."""
        super().__init__(config)
        self._broker = broker
        self._clock = clock
        self._may_read = may_read
        self._follower = RemoteLogFollower()

    @property
    def skipped_records(self) -> int:
        return self._follower.skipped_records

    def partition_facts(self) -> PartitionFacts:
        with self.connected() as connection:
            return look_at_partitions(connection, self._broker, self._timeout, self._clock.now)

    def replica_facts(self, partitions: Collection[TopicPartition]) -> ReplicaFacts:
        """What the cluster says of these partitions, which this broker holds."""
        with self.connected() as connection:
            return look_at_replicas(connection, self._broker, partitions, self._timeout, self._clock.now)

    def second_clock_ms(self) -> int | None:
        """The time of day by another machine; ``None`` where none tells it."""
        with self.connected() as connection:
            return controllers_time_ms(connection, Deadline(_PATIENCE_FOR_NOTES))

    def with_plain_topics(self, facts: ReplicaFacts) -> ReplicaFacts:
        """The same, but what uploads no more and has nothing in the remote store is not called tiered any more."""
        silent = {
            name: facts.topics[name]
            for name, rules in facts.rules.items()
            if rules.is_tiered and rules.is_copy_disabled and name in facts.topics
        }
        keys = {
            name: [(topic.topic_id, partition) for partition in topic.leaders]
            for name, topic in silent.items()
            if topic.topic_id is not None
        }
        logs = self._remote_logs([key for some in keys.values() for key in some]) if keys else None
        if logs is None or isinstance(logs, Reason) or logs.skipped_records:
            return facts
        empty = [name for name, some in keys.items() if some and all(logs.segments.get(key) == {} for key in some)]
        plain = {name: replace(facts.rules[name], is_tiered=False) for name in empty}
        return replace(facts, rules={**facts.rules, **plain})

    def present_starts(self, facts: ReplicaFacts, partitions: Collection[TopicPartition]) -> Offsets:
        """Where the logs of these partitions begin now; what a leader does not tell is missing."""
        leaders = leaders_of(partitions, facts.topics)
        tiered = frozenset(name for name, rules in facts.rules.items() if rules.is_tiered)
        with self.connected() as connection:
            return look_at_present_starts(connection, leaders, tiered, Deadline(self._timeout))

    def group_offsets(self, partitions: Collection[TopicPartition], patience: timedelta) -> GroupsSeen:
        """What consumer groups have committed for these partitions, as far as it is told within so much time."""
        with self.connected() as connection:
            return committed_offsets(connection, partitions, patience=patience)

    def open_transactions(self, facts: ReplicaFacts, partitions: Collection[TopicPartition]) -> Started:
        """Since when the first open transaction of each is open, as far as a coordinator knows it."""
        with self.connected() as connection:
            return open_transactions(connection, leaders_of(partitions, facts.topics), Deadline(self._timeout))

    def replica_holders(self) -> Mapping[BrokerId, str]:
        """The other brokers that hold a replica of a partition that this one holds, and that anybody may trim, with
        their hosts; empty where the broker is not there now."""
        with self.connected() as connection:
            topics, deadline = describe_topics(connection, None, Deadline(self._timeout)), Deadline(self._timeout)
            connection.refresh_brokers(deadline)
            hosts = {broker: each.host for broker, each in connection.brokers.items()}
        replicas = {each for topic in topics.values() if not topic.is_internal for each in topic.replicas.values()}
        found = frozenset[BrokerId]().union(*(each for each in replicas if self._broker in each)) - {self._broker}
        return {broker: hosts.get(broker, "") for broker in sorted(found)}

    def guard_notes(self, brokers: Collection[BrokerId]) -> Mapping[BrokerId, Note]:
        """What the guards of these brokers, of a version before, have left for others."""
        names = {f"brimline-guard-{broker}": broker for broker in brokers}
        with self.connected() as connection:
            found = read_notes(connection, list(names), Deadline(_PATIENCE_FOR_NOTES))
        return {broker: found[name] for name, broker in names.items()}

    def release(self) -> str:
        with self.connected() as connection:
            return broker_release(connection, self._broker, Deadline(self._timeout))

    def remote_sizes(self, facts: PartitionFacts, partitions: Mapping[TopicPartition, Bytes]) -> RemoteSizes:
        """Remote and only-local size of each of these replicas of the broker, or why they are not known."""
        segments = self._remote_segments(facts)
        if isinstance(segments, Reason):
            return dict.fromkeys(partitions, segments)
        places = _places(facts)
        only_local: dict[TopicPartition, Bytes | Reason] = {}
        for partition, size in partitions.items():
            found = segments.get(partition, Reason.CHANGING)
            if isinstance(found, Reason):
                only_local[partition] = found
            elif self._may_read(places[partition]):
                folder = f"{places[partition]}/{partition}"
                only_local[partition] = only_local_in_files(folder, size, found.values())
            else:
                only_local[partition] = Reason.NO_PERMISSION
        unread = []
        for partition, figure in only_local.items():
            if figure is Reason.NO_PERMISSION:
                is_led = partition.partition in facts.topics[partition.topic].led_partitions
                only_local[partition] = Reason.NO_PERMISSION if is_led else Reason.FOLLOWER
                unread += [partition] * is_led
        if unread:
            with self.connected() as connection:
                only_local.update(
                    only_local_from_outside(connection, self._broker, unread, self._timeout, self._clock.now)
                )
        sizes: dict[TopicPartition, tuple[Bytes, Bytes] | Reason] = {}
        for partition, figure in only_local.items():
            found = segments.get(partition, Reason.CHANGING)
            if isinstance(figure, Reason):
                sizes[partition] = figure
            else:
                sizes[partition] = found if isinstance(found, Reason) else (_finished(found), figure)
        return sizes

    def _remote_segments(self, facts: PartitionFacts) -> Mapping[TopicPartition, Uploads | Reason] | Reason:
        """Of every tiered replica that the broker holds, led or not: leadership may come at any time."""
        ids = {
            name: topic.topic_id
            for name, topic in facts.topics.items()
            if topic.retention.is_tiered and topic.topic_id is not None
        }
        held = {
            partition: (ids[partition.topic], partition.partition)
            for partition in _places(facts)
            if partition.topic in ids
        }
        logs = self._remote_logs(held.values())
        if isinstance(logs, Reason):
            return logs
        return {
            partition: logs.segments[key]
            if key in logs.segments
            else _REASONS.get(logs.failures[key].kind, Reason.NO_ANSWER)
            for partition, key in held.items()
        }

    def _remote_logs(self, held: Collection[PartitionKey]) -> RemoteLogs | Reason:
        with self.connected() as connection:
            described = describe_topics(connection, [METADATA_TOPIC], Deadline(self._timeout))[METADATA_TOPIC]
            if described.error is not None:
                refused = described.error.code == TOPIC_AUTHORIZATION_FAILED
                return Reason.NO_PERMISSION if refused else Reason.METADATA_TOPIC_ABSENT
            return self._follower.follow(connection, held, described.leaders, Deadline(self._stall_timeout))

    @property
    def _timeout(self) -> timedelta:
        return self.config.api_timeout or _TIMEOUT

    @property
    def _stall_timeout(self) -> timedelta:
        """A silent metadata topic must not hold up the plain figures for long."""
        return min(self._timeout, _LONGEST_STALL)


def _places(facts: PartitionFacts) -> dict[TopicPartition, str]:
    """Partition → log dir, of the tiered replicas that are not future ones."""
    places = {}
    for path, log_dir in facts.log_dirs.items():
        for row, is_future in enumerate(log_dir.replicas.is_future.tolist()):
            name = log_dir.replicas.topic_names[log_dir.replicas.topic[row]]
            if not is_future and name in facts.topics and facts.topics[name].retention.is_tiered:
                places[log_dir.replicas.topic_partition(row)] = path
    return places


def _finished(segments: Mapping[UUID, RemoteSegment]) -> Bytes:
    """Retention, unlike the size metric, leaves out what is being deleted."""
    return Bytes(sum(each.size for each in segments.values() if each.state is SegmentState.COPY_FINISHED))
