"""What a made-up broker holds: its disks, and the replicas on them.

The disks of one broker, made up: how large they are, what else lies on them, and when they were made larger.

Sizes are those one can buy. A disk is as large as its logs ever needed, with more or less room, so that some fleets'
disks are nearly full and others half empty.

The replicas of one broker, made up, and how far their logs reach at any moment.

A partition's segments all have one size, so that a log is an arithmetic progression: where it starts, how many segments
are closed and how much is in the active one follow from what was written until now and what retention has removed until
its last pass. All replicas of a partition have the same offsets; a follower that lags has a shorter active segment.
"""

from dataclasses import dataclass, fields

import numpy as np

from brimline.fleet.synth.cluster import NEVER_MS, Cluster, FailingLogDir, TopicKind
from brimline.fleet.synth.spec import FleetSpec
from brimline.fleet.synth.traffic import A_DAY_MS, Floats
from brimline.model.scan import BoolColumn, Int64Column

_GIB = 1 << 30
_LADDER = np.array([step << power for power in range(44) for step in (2, 3)], dtype=np.int64) * (_GIB // 64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Disks:
    """Devices by number; ``device`` gives each log dir's."""

    device: Int64Column
    total_bytes: Int64Column
    resized_ms: Int64Column
    """Before it, the device was half as large."""
    reserved_bytes: Int64Column
    """What the file system and others have always used."""
    foreign_bytes: Int64Column
    """A large file that has nothing to do with Kafka, there for a while."""
    foreign_from_ms: Int64Column
    foreign_until_ms: Int64Column
    failing: tuple[FailingLogDir, ...]

    def total_at(self, ms: int) -> Int64Column:
        return np.where(ms < self.resized_ms, self.total_bytes // 2, self.total_bytes)

    def used_at(self, ms: int, held: Int64Column) -> Int64Column:
        """``held`` are the bytes in each log dir. More than everything cannot be used."""
        in_logs = np.zeros(len(self.total_bytes), dtype=np.int64)
        np.add.at(in_logs, self.device, held)
        is_foreign = (self.foreign_from_ms <= ms) & (ms < self.foreign_until_ms)
        used: Int64Column = in_logs + self.reserved_bytes + is_foreign * self.foreign_bytes
        return np.asarray(np.minimum(used, self.total_at(ms)), dtype=np.int64)

    def failure(self, log_dir: int, ms: int) -> FailingLogDir | None:
        return next((each for each in self.failing if each.log_dir == log_dir and each.since_ms <= ms), None)


def make_disks(
    spec: FleetSpec, generator: np.random.Generator, cluster: Cluster, broker: int, most_held: Floats
) -> Disks:
    """``most_held``: the largest size that each log dir ever had."""
    failing = tuple(each for each in cluster.failing if each.broker == broker)
    device = np.arange(spec.log_dirs, dtype=np.int64)
    if spec.log_dirs > 1 and broker % 8 == 5 and not failing:
        device[1] = 0  # two log dirs on one device
        device = np.unique(device, return_inverse=True)[1].astype(np.int64)
    count = int(device.max()) + 1
    needed = np.bincount(device, weights=most_held, minlength=count)
    room = generator.uniform(0.5, 0.96, count)
    total = _LADDER[np.minimum(np.searchsorted(_LADDER, needed / room), len(_LADDER) - 1)]
    span_ms = max(spec.days, 1) * A_DAY_MS
    resized_ms = spec.until_ms - (generator.uniform(0.1, 0.9, count) * span_ms).astype(np.int64)
    is_resized = (generator.random(count) < 0.1) & (needed < 0.45 * total)
    begins = spec.until_ms - (generator.random(count) * span_ms).astype(np.int64)
    is_foreign = generator.random(count) < 0.12
    return Disks(
        device=device,
        total_bytes=total,
        resized_ms=np.where(is_resized, resized_ms, 0),
        reserved_bytes=(total * generator.uniform(0.002, 0.02, count)).astype(np.int64),
        foreign_bytes=(total * generator.uniform(0.02, 0.12, count)).astype(np.int64),
        foreign_from_ms=np.where(is_foreign, begins, NEVER_MS),
        foreign_until_ms=begins + (generator.exponential(4.0, count) * A_DAY_MS).astype(np.int64),
        failing=failing,
    )


RETENTION_PASS_MS = 5 * 60_000
_BLOCK = 4096


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replicas:
    """A row each, by log dir, topic and partition."""

    topic: Int64Column
    partition: Int64Column
    log_dir: Int64Column
    is_leader: BoolColumn
    lag: Int64Column
    """Records that are missing at the end of a follower."""
    bytes_a_day: Floats
    segment_bytes: Int64Column
    record_bytes: Int64Column

    def __len__(self) -> int:
        return len(self.topic)

    def only(self, rows: Int64Column) -> "Replicas":
        return Replicas(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Extents:
    """Of each replica, in bytes since its partition was created."""

    is_there: BoolColumn
    start: Int64Column
    end: Int64Column
    """Of the leader."""
    own_end: Int64Column
    closed: Int64Column
    """How many segments are closed. One more is active."""
    uploaded: Int64Column
    """Up to where the remote store has it; 0 of plain topics."""
    remote_start: Int64Column

    def size(self) -> Int64Column:
        return np.where(self.is_there, self.own_end - self.start, 0)


def replicas_of(generator: np.random.Generator, cluster: Cluster, broker: int, log_dirs: int) -> Replicas:
    partitions = cluster.partitions
    row, place = np.nonzero(partitions.brokers == broker)
    log_dir = generator.integers(0, log_dirs, len(row))
    order = np.lexsort((partitions.number[row], partitions.topic[row], log_dir))
    row, place, log_dir = row[order], place[order], log_dir[order]
    topic = partitions.topic[row]
    chance = generator.random(len(row))
    far_behind = generator.integers(1_000, 200_000, len(row))
    lag = np.where(chance < 0.01, far_behind, np.where(chance < 0.2, generator.integers(1, 500, len(row)), 0))
    return Replicas(
        topic=topic,
        partition=partitions.number[row],
        log_dir=log_dir,
        is_leader=place == 0,
        lag=np.where(place == 0, 0, lag),
        bytes_a_day=partitions.bytes_a_day[row],
        segment_bytes=partitions.segment_bytes[row],
        record_bytes=cluster.topics.record_bytes[topic],
    )


def extents_of(cluster: Cluster, replicas: Replicas, ms: int | Int64Column, last_pass_ms: int | Int64Column) -> Extents:
    """At one moment, or for each replica at one of its own; ``last_pass_ms`` is when retention last came by."""
    topics, topic = cluster.topics, replicas.topic
    at = _of_each(replicas, ms)
    end = _written(cluster, replicas, at)
    is_tiered = topics.is_tiered[topic]
    uploaded = np.where(is_tiered, _whole(replicas, _written(cluster, replicas, at - topics.upload_delay_ms[topic])), 0)
    start = _start(cluster, replicas, last_pass_ms)
    is_copying = is_tiered & ~topics.is_copy_disabled[topic]
    start = np.where(is_copying, np.minimum(start, uploaded), start)
    last_closed = start + (end - start) // replicas.segment_bytes * replicas.segment_bytes
    retention = np.where(is_tiered, topics.retention_ms[topic], 0)
    return Extents(
        is_there=np.asarray((topics.created_ms[topic] <= at) & (at < topics.deleted_ms[topic])),
        start=start,
        end=end,
        own_end=np.maximum(end - replicas.lag * replicas.record_bytes, last_closed),
        closed=(end - start) // replicas.segment_bytes,
        uploaded=uploaded,
        remote_start=np.minimum(_whole(replicas, _written(cluster, replicas, at - retention)), uploaded),
    )


def removed_by_pass(cluster: Cluster, replicas: Replicas, last_pass_ms: int) -> Int64Column:
    """Bytes that the last pass took from the head of each log."""
    before = _start(cluster, replicas, last_pass_ms - RETENTION_PASS_MS)
    is_plain = ~cluster.topics.is_tiered[replicas.topic] & (cluster.topics.kind[replicas.topic] != TopicKind.COMPACTED)
    return np.where(is_plain, _start(cluster, replicas, last_pass_ms) - before, 0)


def allocated(log_bytes: Int64Column) -> Int64Column:
    """What a segment takes of the disk: its log, its indexes (a little of its log) and a producer snapshot."""
    return (-(-log_bytes // _BLOCK) + -(-log_bytes // (1 << 22)) + 2) * _BLOCK


def allocated_of(replicas: Replicas, extents: Extents) -> Int64Column:
    active = extents.own_end - extents.start - extents.closed * replicas.segment_bytes
    together = extents.closed * allocated(replicas.segment_bytes) + allocated(active)
    return np.where(extents.is_there, together, 0)


def _of_each(replicas: Replicas, ms: int | Int64Column) -> Int64Column:
    return np.broadcast_to(np.asarray(ms, dtype=np.int64), len(replicas))


def _start(cluster: Cluster, replicas: Replicas, pass_ms: int | Int64Column) -> Int64Column:
    """Where retention lets each log start: whole segments go."""
    topics, topic = cluster.topics, replicas.topic
    at = _of_each(replicas, pass_ms)
    kept_ms, kept_bytes = topics.kept_ms[topic], topics.kept_bytes[topic]
    by_time = np.where(kept_ms >= 0, _written(cluster, replicas, at - np.maximum(kept_ms, 0)), 0)
    by_size = np.where(kept_bytes >= 0, _written(cluster, replicas, at) - kept_bytes, 0)
    return _whole(replicas, np.maximum(np.maximum(by_time, by_size), 0))


def _written(cluster: Cluster, replicas: Replicas, ms: Int64Column) -> Int64Column:
    progress = cluster.topics.courses.progress(replicas.topic, ms)
    return np.asarray(progress * replicas.bytes_a_day).astype(np.int64)


def _whole(replicas: Replicas, position: Int64Column) -> Int64Column:
    return position // replicas.segment_bytes * replicas.segment_bytes
