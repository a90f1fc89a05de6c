"""KIP-1257's figures for everything that a broker holds: facts in, columns of percentages out. Pure.

Plain and tiered figures have their own rhythms, so they are two results. The rows of each stay the same object while
the set of partitions stays the same: whoever renders 100,000 of them keeps what it derived from the names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from brimline.decide.retention_percent import percent_of, plain_percents, stock_is_right, tiered_percents
from brimline.guard.percent.topic_sizes import TopicSize
from brimline.metrics.metric import LabelValues
from brimline.model import Bytes, Failure, Reason, TopicPartition
from brimline.model.log_dirs import Int64Column, ReplicaColumns
from brimline.model.partitions import TopicRetention
from brimline.observe.cluster.partition_facts import PartitionFacts

TierSizes = Mapping[TopicPartition, tuple[Bytes, Bytes] | Reason]
"""Remote size and only-local size of every tiered replica of this broker, led or not, or why they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PercentColumn:
    """A percentage for each row; a row is (topic, partition)."""

    rows: LabelValues = ()
    values: Int64Column

    def __len__(self) -> int:
        return len(self.rows)


def empty_column() -> PercentColumn:
    return PercentColumn(values=np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainFigures:
    """``kafka.log:type=Log`` of every replica, and of every future replica."""

    seconds: float
    current: PercentColumn
    future: PercentColumn
    unknown: Mapping[str, Failure]
    """Topics whose limits the broker did not tell: they have no figures."""
    topics: tuple[TopicSize, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TieredFigures:
    """``kafka.log.remote:type=RemoteLogManager`` of every tiered partition that this broker leads.

    ``unknown``: partitions whose total is not known; the local figure of these is known all the same.
    """

    seconds: float
    total: PercentColumn
    local: PercentColumn
    stock_is_right: frozenset[str]
    """Topics that a broker with gauges of its own shows rightly."""
    unknown: Mapping[TopicPartition, Reason]
    sizes: TierSizes = field(default_factory=dict)


def plain_figures(facts: PartitionFacts, seconds: float, before: PlainFigures | None) -> PlainFigures:
    current: list[tuple[list[tuple[str, str]], Int64Column]] = []
    future: list[tuple[list[tuple[str, str]], Int64Column]] = []
    for log_dir in facts.log_dirs.values():
        replicas = log_dir.replicas
        if not len(replicas):
            continue
        limits = [_retention(facts, name) for name in replicas.topic_names]
        percents = plain_percents(replicas.size, replicas.topic, [limit or _NO_LIMIT for limit in limits])
        known = np.array([limit is not None for limit in limits], dtype=np.bool_)[replicas.topic]
        current.append(_chosen(replicas, percents, known & ~replicas.is_future))
        future.append(_chosen(replicas, percents, known & replicas.is_future))
    return PlainFigures(
        seconds=seconds,
        current=_column(current, before.current if before else None),
        future=_column(future, before.future if before else None),
        unknown=facts.unknown,
    )


def tiered_figures(
    facts: PartitionFacts, sizes: TierSizes, seconds: float, before: TieredFigures | None
) -> TieredFigures:
    totals: list[tuple[tuple[str, str], int]] = []
    locals_: list[tuple[tuple[str, str], int]] = []
    unknown: dict[TopicPartition, Reason] = {}
    for partition, size in tiered_partitions(facts).items():
        if partition.partition not in facts.topics[partition.topic].led_partitions:
            continue
        retention = facts.topics[partition.topic].retention
        row = (partition.topic, str(partition.partition))
        remote = sizes[partition]
        if isinstance(remote, Reason):
            unknown[partition] = remote
            if retention.retention_bytes <= 0:  # what has no limit is 0, whatever its size
                totals.append((row, 0))
            locals_.append((row, percent_of(size, retention.effective_local_bytes)))
            continue
        figures = tiered_percents(local_size=size, remote_size=remote[0], only_local_size=remote[1], topic=retention)
        totals.append((row, figures.total))
        locals_.append((row, figures.local))
    return TieredFigures(
        seconds=seconds,
        total=_listed(totals, before.total if before else None),
        local=_listed(locals_, before.local if before else None),
        stock_is_right=frozenset(name for name, topic in facts.topics.items() if stock_is_right(topic.retention)),
        unknown=unknown,
        sizes=sizes,
    )


def tiered_partitions(facts: PartitionFacts) -> Mapping[TopicPartition, Bytes]:
    """Partition → local size, of every tiered replica, led or not. Only the led ones have tiered beans."""
    held = {}
    for log_dir in facts.log_dirs.values():
        replicas = log_dir.replicas
        tiered = [
            position
            for position, name in enumerate(replicas.topic_names)
            if name in facts.topics and facts.topics[name].retention.is_tiered
        ]
        for row in np.flatnonzero(np.isin(replicas.topic, tiered) & ~replicas.is_future).tolist():
            held[replicas.topic_partition(row)] = Bytes(int(replicas.size[row]))
    return held


_NO_LIMIT = TopicRetention(retention_bytes=-1)


def _retention(facts: PartitionFacts, topic: str) -> TopicRetention | None:
    held = facts.topics.get(topic)
    return None if held is None else held.retention


def _chosen(
    replicas: ReplicaColumns, percents: Int64Column, wanted: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
) -> tuple[list[tuple[str, str]], Int64Column]:
    names = replicas.topic_names
    pairs = zip(replicas.topic[wanted].tolist(), replicas.partition[wanted].tolist(), strict=True)
    return [(names[topic], str(partition)) for topic, partition in pairs], percents[wanted]


def _column(parts: list[tuple[list[tuple[str, str]], Int64Column]], before: PercentColumn | None) -> PercentColumn:
    rows = tuple(row for part, _ in parts for row in part)
    if not rows:
        return empty_column()
    values = np.concatenate([part for _, part in parts])
    return PercentColumn(rows=before.rows if before and before.rows == rows else rows, values=values)


def _listed(figures: list[tuple[tuple[str, str], int]], before: PercentColumn | None) -> PercentColumn:
    rows = tuple(row for row, _ in figures)
    values = np.array([value for _, value in figures], dtype=np.int64)
    return PercentColumn(rows=before.rows if before and before.rows == rows else rows, values=values)
