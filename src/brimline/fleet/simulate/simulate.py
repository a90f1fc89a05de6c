"""What if? The newest snapshots under other rules, day by day: what would be deleted and refused, when, and of what.

A broker is simulated by itself (``state``), so a fleet is many small pieces of work; here they come together
by topic and by device. Of a partition the replicas are held together as Kafka holds them: when one guard trims it, the
records are gone for all, so the oldest record of a partition is that of the replica that keeps least.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from brimline.fleet.planner.tasks import BrokerRows
from brimline.fleet.simulate.broker import SIMULATED_ROWS, failure_row, simulated_rows
from brimline.fleet.simulate.replicas import Trims, trims_of_today
from brimline.fleet.simulate.what_if import WhatIf

_TOPIC = ["cluster_id", "topic", "topic_id"]
_DEVICE = ["cluster_id", "broker_id", "device", "device_log_dirs"]
_SUMS = ("bytes", "bytes_a_day", "by_retention_bytes", "by_ceiling_bytes", "by_ceiling_today_bytes", "refused_bytes")
_FIRST = ("ceiling_on_day", "refused_on_day")
_OLDEST = ("oldest_ms", "oldest_ms_at_end")
_OF_DEVICE = tuple(name for name in SIMULATED_ROWS.names if name.startswith("device_") and name not in _DEVICE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOutcome:
    """Bytes are of all replicas, over all days; days count from today, which is 0; ``None`` is never, or unknown."""

    cluster_id: str
    topic: str
    topic_id: str | None
    partitions: int
    replicas: int
    bytes: int
    bytes_a_day: int
    by_retention_bytes: int
    by_ceiling_bytes: int
    by_ceiling_today_bytes: int
    """The part of it that a ceiling would take at once."""
    refused_bytes: int
    ceiling_on_day: int | None
    refused_on_day: int | None
    oldest_ms: int | None
    oldest_ms_at_end: int | None
    """About when the oldest surviving record was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDevice:
    cluster_id: str
    broker_id: int
    device: str
    log_dirs: str
    total_bytes: int | None
    used_bytes: int | None
    used_bytes_at_end: int | None
    by_retention_bytes: int
    by_ceiling_bytes: int
    refused_bytes: int
    ceiling_percent: int
    fence_bytes: int | None
    full_on_day: int | None
    ceiling_missed_on_day: int | None
    """From when on the ceiling cannot be held, whatever is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableSnapshot:
    cluster_id: str
    broker_id: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    what_if: WhatIf
    brokers: int
    now_ms: int | None
    """When the newest of the snapshots was taken: day 0. ``None`` for a fleet without any."""
    topics: tuple[TopicOutcome, ...]
    """Those that lose most by the ceiling and by refusal first, then by retention."""
    devices: tuple[SimulatedDevice, ...]
    unusable: tuple[UnusableSnapshot, ...]
    trims: Trims = field(default_factory=dict)
    """What the ceilings would trim at once."""
    freed_today_bytes: int = 0
    """What that frees on all replicas; ``by_ceiling_today_bytes`` is what each broker would delete for itself."""


def rows_of(what_if: WhatIf) -> BrokerRows:
    """For ``planner_tasks.rows_locally`` or ``planner.rows_on_spark``."""
    return BrokerRows(of_broker=partial(simulated_rows, what_if), of_failure=failure_row)


def simulation(what_if: WhatIf, batches: Iterable[pa.RecordBatch]) -> Simulation:
    rows = pa.Table.from_batches(batches, schema=SIMULATED_ROWS)
    unusable = rows.filter(pc.is_valid(rows.column("failure")))
    rows = rows.filter(pc.is_null(rows.column("failure")))
    return Simulation(
        what_if=what_if,
        brokers=len(rows.group_by(["cluster_id", "broker_id"]).aggregate([])),
        now_ms=pc.max(rows.column("now_ms")).as_py(),
        topics=_topics(rows.filter(pc.is_valid(rows.column("topic")))),
        trims=trims_of_today(rows),
        devices=_devices(rows),
        unusable=tuple(
            UnusableSnapshot(cluster_id=row["cluster_id"], broker_id=row["broker_id"], why=row["failure"])
            for row in unusable.select(["cluster_id", "broker_id", "failure"]).to_pylist()
        ),
    )


def together(several: Sequence[Simulation]) -> Simulation:
    """Of several clusters, all asked the same; at least one."""
    moments = [each.now_ms for each in several if each.now_ms is not None]
    return Simulation(
        what_if=several[0].what_if,
        brokers=sum(each.brokers for each in several),
        now_ms=max(moments, default=None),
        topics=tuple(sorted((topic for each in several for topic in each.topics), key=_most_lost_first)),
        devices=tuple(device for each in several for device in each.devices),
        unusable=tuple(broker for each in several for broker in each.unusable),
    )


def _topics(rows: pa.Table) -> tuple[TopicOutcome, ...]:
    sums, first, oldest = _each("sum", _SUMS), _each("min", _FIRST), _each("max", _OLDEST)
    partitions = _grouped(rows, [*_TOPIC, "partition"], [_count("replicas"), *sums, *first, *oldest])
    sums, least = _each("sum", ("replicas", *_SUMS)), _each("min", (*_FIRST, *_OLDEST))
    topics = _grouped(partitions, _TOPIC, [_count("partitions"), *sums, *least])
    found = [TopicOutcome(**row) for row in topics.to_pylist()]
    return tuple(sorted(found, key=_most_lost_first))


def _most_lost_first(topic: TopicOutcome) -> tuple[int, int, str, str]:
    return (
        -(topic.by_ceiling_bytes + topic.refused_bytes),
        -topic.by_retention_bytes,
        topic.cluster_id,
        topic.topic,
    )


def _devices(rows: pa.Table) -> tuple[SimulatedDevice, ...]:
    found = _grouped(rows, _DEVICE, _each("max", _OF_DEVICE))
    devices = [
        SimulatedDevice(**{name.removeprefix("device_"): value for name, value in row.items()})
        for row in found.to_pylist()
    ]
    return tuple(sorted(devices, key=lambda each: (each.cluster_id, each.broker_id, each.log_dirs)))


def _grouped(rows: pa.Table, keys: list[str], figures: "Sequence[_Figure]") -> pa.Table:
    grouped = rows.group_by(keys, use_threads=False).aggregate([(column, function) for column, function, _ in figures])
    return grouped.rename_columns([*keys, *(name for _, _, name in figures)])


_Figure: TypeAlias = tuple[str | list[str], str, str]
"""Of a column, by a function, under a name."""


def _count(name: str) -> _Figure:
    return [], "count_all", name


def _each(function: str, names: Iterable[str]) -> list[_Figure]:
    return [(name, function, name) for name in names]
