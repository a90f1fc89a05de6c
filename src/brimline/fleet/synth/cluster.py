"""A cluster, made up: its topics, what their partitions write, which brokers hold them, and what goes wrong.

Popularity is Zipf's: a few topics carry most of the traffic, and have more partitions for it. What keeps a log from
growing differs by topic (``Kind``): time, size, both, the remote store, compaction, or nothing.
"""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from uuid import UUID

import numpy as np

from brimline.fleet.synth.spec import MOST_REPLICATION, Draw, FleetSpec
from brimline.fleet.synth.traffic import A_DAY_MS, AN_HOUR_MS, Courses, Floats, make_shapes
from brimline.model.reclaim import USE_RETENTION
from brimline.model.scan import BoolColumn, Int64Column

NEVER_MS = 1 << 60
UNLIMITED = -1
LARGEST_SEGMENT = 1 << 30
SMALLEST_SEGMENT = 1 << 16
_SHAPES = 48
_LEAD_DAYS = 31
"""How long before the history the clocks are kept in detail: longer than most retention."""
_ZIPF = 0.9
_PARTITIONS_OF_A_TOPIC = 12
_COMPACTED_DAYS = 20
_OF_OWN_TOPICS = 0.01
"""Of the least that any other topic writes: Kafka's own topics are small, and nothing is deleted from one of them."""
_UPLOAD_DELAY_MS = 5 * 60_000
_AREAS = ("billing", "clicks", "fleet", "fraud", "iot", "logs", "orders", "payments", "search", "users")
_NOUNS = ("audit", "changes", "commands", "enriched", "errors", "events", "raw", "snapshots", "state", "views")


class TopicKind(IntEnum):
    """What holds a topic's logs."""

    TIME = 0
    SIZE = 1
    BOTH = 2
    TIERED = 3
    COMPACTED = 4
    NOTHING = 5
    INTERNAL = 6
    UPLOADS = 7
    """``__remote_log_metadata``."""


_SHARES = {
    TopicKind.TIME: 0.46,
    TopicKind.SIZE: 0.2,
    TopicKind.BOTH: 0.08,
    TopicKind.TIERED: 0.14,
    TopicKind.COMPACTED: 0.08,
    TopicKind.NOTHING: 0.04,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Topics:
    """A row per topic, in the order of names."""

    names: tuple[str, ...]
    ids: tuple[str, ...]
    kind: Int64Column
    courses: Courses
    created_ms: Int64Column
    deleted_ms: Int64Column
    """``NEVER_MS`` for most."""
    is_known: BoolColumn
    retention_ms: Int64Column
    retention_bytes: Int64Column
    local_retention_ms: Int64Column
    local_retention_bytes: Int64Column
    is_copy_disabled: BoolColumn
    record_bytes: Int64Column
    upload_delay_ms: Int64Column
    kept_ms: Int64Column
    """How long a record stays on the local disk; ``UNLIMITED``."""
    kept_bytes: Int64Column

    @property
    def is_tiered(self) -> BoolColumn:
        return np.asarray(self.kind == TopicKind.TIERED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partitions:
    topic: Int64Column
    number: Int64Column
    bytes_a_day: Floats
    """Of the topic's clock."""
    segment_bytes: Int64Column
    brokers: Int64Column
    """A row per partition, its leader first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingLogDir:
    broker: int
    log_dir: int
    since_ms: int
    is_offline: bool
    """The broker has given it up; else only the guard's look fails."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cluster:
    number: int
    cluster_id: str
    brokers: int
    topics: Topics
    partitions: Partitions
    failing: tuple[FailingLogDir, ...]


@lru_cache(maxsize=2)
def make_cluster(spec: FleetSpec, number: int) -> Cluster:
    generator = spec.generator(Draw.CLUSTER, number)
    brokers = spec.brokers_of_clusters[number]
    cluster_id = urlsafe_b64encode(generator.bytes(16)).decode().rstrip("=")
    partitions = max(brokers * spec.replicas // min(MOST_REPLICATION, brokers), 1)
    counts, weights = _popularity(generator, partitions)
    topics = _topics(spec, generator, len(counts))
    weights = np.where(topics.kind >= TopicKind.INTERNAL, weights.min() * _OF_OWN_TOPICS, weights)
    return Cluster(
        number=number,
        cluster_id=cluster_id,
        brokers=brokers,
        topics=topics,
        partitions=_partitions(spec, generator, topics, counts, weights, brokers),
        failing=_failing(spec, generator, brokers, is_first=number == 0),
    )


def _popularity(generator: np.random.Generator, partitions: int) -> tuple[Int64Column, Floats]:
    """Of every topic: how many partitions it has, and its share of the traffic."""
    topics = min(max(partitions // _PARTITIONS_OF_A_TOPIC, min(partitions, 12)), partitions)
    weights = 1.0 / np.arange(1, topics + 1) ** _ZIPF
    wish = np.sqrt(weights)
    counts = 1 + np.floor(wish / wish.sum() * (partitions - topics)).astype(np.int64)
    counts[: partitions - int(counts.sum())] += 1
    mixed = generator.permutation(topics)
    return counts[mixed], (weights / weights.sum())[mixed]


def _topics(spec: FleetSpec, generator: np.random.Generator, count: int) -> Topics:
    kind = _kinds(generator, count)
    retention_days = generator.choice([1, 2, 3, 7, 14], size=count, p=[0.15, 0.15, 0.2, 0.4, 0.1])
    is_tiered, by_time = kind == TopicKind.TIERED, np.isin(kind, (TopicKind.TIME, TopicKind.BOTH))
    retention_ms = np.where(by_time, retention_days * A_DAY_MS, np.where(is_tiered, 30 * A_DAY_MS, UNLIMITED))
    local_ms = generator.choice([6, 12, 24, 48], size=count) * AN_HOUR_MS
    is_copy_disabled = is_tiered & (generator.random(count) < 0.05)
    is_held_by_copy = is_tiered & ~is_copy_disabled
    is_stalled = is_held_by_copy & (generator.random(count) < 0.06)
    begin_ms = spec.until_ms - (spec.days + _LEAD_DAYS) * A_DAY_MS
    courses, created_ms = _courses(spec, generator, kind, begin_ms)
    deleted = (generator.random(count) < 0.02) & (kind < TopicKind.INTERNAL) & (spec.days > 0)
    deleted_ms = spec.until_ms - (generator.random(count) * spec.days * A_DAY_MS).astype(np.int64)
    names = _names(generator, kind)
    return Topics(
        names=names,
        ids=tuple(str(UUID(bytes=generator.bytes(16), version=4)) for _ in names),
        kind=kind,
        courses=courses,
        created_ms=created_ms,
        deleted_ms=np.where(deleted, np.maximum(deleted_ms, created_ms + AN_HOUR_MS), NEVER_MS),
        is_known=np.asarray((generator.random(count) >= 0.004) | (kind >= TopicKind.INTERNAL)),
        retention_ms=retention_ms,
        retention_bytes=np.full(count, UNLIMITED, dtype=np.int64),
        local_retention_ms=np.where(is_held_by_copy, local_ms, USE_RETENTION),
        local_retention_bytes=np.full(count, USE_RETENTION, dtype=np.int64),
        is_copy_disabled=is_copy_disabled,
        record_bytes=generator.integers(120, 2_000, count),
        upload_delay_ms=np.where(is_stalled, generator.integers(3, 60, count) * AN_HOUR_MS, _UPLOAD_DELAY_MS),
        kept_ms=np.where(
            is_held_by_copy,
            local_ms,
            np.where(
                np.isin(kind, (TopicKind.COMPACTED, TopicKind.INTERNAL)), _COMPACTED_DAYS * A_DAY_MS, retention_ms
            ),
        ),
        kept_bytes=np.full(count, UNLIMITED, dtype=np.int64),
    )


def _kinds(generator: np.random.Generator, count: int) -> Int64Column:
    """In fixed shares, so that a small fleet has some of each; the first two are Kafka's own topics."""
    ends = np.round(np.cumsum(list(_SHARES.values())) * count).astype(np.int64)
    kinds = np.array(list(_SHARES), dtype=np.int64)[np.searchsorted(ends, np.arange(count), side="right")]
    kinds = generator.permutation(kinds)
    if count > 2:
        kinds[:2] = TopicKind.INTERNAL, TopicKind.UPLOADS
    return kinds


def _names(generator: np.random.Generator, kind: Int64Column) -> tuple[str, ...]:
    """Kafka's own topics first, as they sort."""
    own = {TopicKind.INTERNAL: "__consumer_offsets", TopicKind.UPLOADS: "__remote_log_metadata"}
    first = [own[TopicKind(each)] for each in kind[:2].tolist() if each in own]
    count = len(kind) - len(first)
    areas, nouns = generator.choice(_AREAS, count).tolist(), generator.choice(_NOUNS, count).tolist()
    return (
        *first,
        *sorted(f"{area}.{noun}-{row:05d}" for row, (area, noun) in enumerate(zip(areas, nouns, strict=True))),
    )


def _courses(
    spec: FleetSpec, generator: np.random.Generator, kind: Int64Column, begin_ms: int
) -> tuple[Courses, Int64Column]:
    count = len(kind)
    shapes = make_shapes(generator, _SHAPES, begin_ms, (spec.days + _LEAD_DAYS) * 24)
    shape = generator.integers(0, _SHAPES, count)
    recent_days = max(spec.days, 7)
    age_days = np.where(kind == TopicKind.NOTHING, generator.uniform(20, 120, count), generator.uniform(60, 600, count))
    is_new = (generator.random(count) < 0.08) & (kind < TopicKind.INTERNAL)
    age_days = np.where(is_new, generator.uniform(0.2, recent_days, count), age_days)
    created_ms = spec.until_ms - (age_days * A_DAY_MS).astype(np.int64)
    turns = generator.random(count) < 0.1
    turn_ms = spec.until_ms - (generator.random(count) * recent_days * A_DAY_MS).astype(np.int64)
    courses = Courses(
        shapes=shapes,
        shape=shape,
        born=shapes.at(shape, created_ms),
        turn=np.where(turns & (turn_ms > created_ms), shapes.at(shape, turn_ms), np.inf),
        factor=np.exp(generator.uniform(-1.2, 1.1, count)),
    )
    return courses, created_ms


def _partitions(
    spec: FleetSpec,
    generator: np.random.Generator,
    topics: Topics,
    counts: Int64Column,
    weights: Floats,
    brokers: int,
) -> Partitions:
    topic = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(topic)) - np.repeat(np.cumsum(counts) - counts, counts)
    weight = (weights / counts)[topic] * generator.lognormal(0, 0.3, len(topic))
    held_days, size_days = _held_days(spec, generator, topics)
    held = weight * held_days[topic]
    segments = _at_least_one((held / held.mean()) ** 0.4, max(spec.segments - 1, 1))
    scale = LARGEST_SEGMENT / np.quantile(held / segments, 0.99)
    mean_rate = np.bincount(topic, weights=weight) / counts * scale
    # The limits of size follow from what their topics write.
    is_sized = np.isin(topics.kind, (TopicKind.SIZE, TopicKind.BOTH))
    topics.retention_bytes[is_sized] = topics.kept_bytes[is_sized] = (mean_rate * size_days).astype(np.int64)[is_sized]
    return Partitions(
        topic=topic,
        number=number,
        bytes_a_day=weight * scale,
        segment_bytes=np.clip(held * scale / segments, SMALLEST_SEGMENT, LARGEST_SEGMENT).astype(np.int64),
        brokers=_assigned(generator, topic, number, brokers),
    )


def _at_least_one(shape: Floats, mean: float) -> Floats:
    """Scaled so that the mean is right although none is below 1."""
    low, high = 0.0, mean / float(shape.mean())
    for _ in range(30):
        middle = (low + high) / 2
        is_too_much = float(np.maximum(shape * middle, 1.0).mean()) > mean
        low, high = (low, middle) if is_too_much else (middle, high)
    return np.maximum(shape * high, 1.0)


def _held_days(spec: FleetSpec, generator: np.random.Generator, topics: Topics) -> tuple[Floats, Floats]:
    """Of every topic: how many days of traffic are on the disk, and how many a limit of size allows."""
    size_days = generator.uniform(0.5, 6.0, len(topics.kind))
    limit = np.where(topics.kept_ms >= 0, topics.kept_ms / A_DAY_MS, np.inf)
    limit = np.where(np.isin(topics.kind, (TopicKind.SIZE, TopicKind.BOTH)), np.minimum(limit, size_days), limit)
    every = np.arange(len(topics.kind))
    written = topics.courses.progress(every, np.full(len(every), spec.until_ms))
    return np.minimum(limit, np.maximum(written, 0.05)), size_days


def _assigned(generator: np.random.Generator, topic: Int64Column, number: Int64Column, brokers: int) -> Int64Column:
    """As Kafka assigns: leaders round robin from a random broker, followers at a shift that differs."""
    topics = int(topic[-1]) + 1
    start, shift = generator.integers(0, brokers, topics)[topic], generator.integers(0, brokers, topics)[topic]
    first = (start + number) % brokers
    columns = [first]
    for follower in range(min(MOST_REPLICATION, brokers) - 1):
        columns.append((first + 1 + (shift + number // brokers + follower) % (brokers - 1)) % brokers)
    return np.stack(columns, axis=1)


def _failing(
    spec: FleetSpec, generator: np.random.Generator, brokers: int, *, is_first: bool
) -> tuple[FailingLogDir, ...]:
    """One log dir in a hundred; in a fleet of more than two brokers at least one."""
    log_dirs = brokers * spec.log_dirs
    count = max(round(log_dirs / 100), int(is_first and brokers > 2 and spec.log_dirs > 1))
    chosen = generator.choice(log_dirs, size=count, replace=False)
    since = spec.until_ms - (generator.random(count) * min(max(spec.days, 1), 2) * A_DAY_MS).astype(np.int64)
    return tuple(
        FailingLogDir(
            broker=int(place) // spec.log_dirs,
            log_dir=int(place) % spec.log_dirs,
            since_ms=int(moment),
            is_offline=row % 2 == 1,
        )
        for row, (place, moment) in enumerate(zip(chosen, since, strict=True))
    )
