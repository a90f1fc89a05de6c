"""A broker's answers, made by hand."""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID

import numpy as np

from brimline.guard.broker_client import RemoteSizes
from brimline.model import (
    BrokerId,
    BrokerLogDirs,
    Bytes,
    Failure,
    LogDirDescription,
    ObservationFailed,
    Reason,
    ReplicaColumns,
    TopicPartition,
)
from brimline.model.partitions import TopicRetention
from brimline.observe.cluster.partition_facts import HeldTopic, PartitionFacts

Row = tuple[str, int, int, bool]
"""Topic, partition, size, is future."""


def log_dir(path: str, rows: list[Row]) -> LogDirDescription:
    names = sorted({topic for topic, _, _, _ in rows})
    return LogDirDescription(
        path=path,
        error=None,
        total_bytes=Bytes(1000),
        usable_bytes=Bytes(500),
        is_cordoned=None,
        replicas=ReplicaColumns.of(
            topic_names=names,
            topic=np.array([names.index(topic) for topic, _, _, _ in rows], dtype=np.int32),
            partition=np.array([partition for _, partition, _, _ in rows], dtype=np.int32),
            size=np.array([size for _, _, size, _ in rows], dtype=np.int64),
            offset_lag=np.zeros(len(rows), dtype=np.int64),
            is_future=np.array([is_future for _, _, _, is_future in rows], dtype=np.bool_),
        ),
    )


def held(retention: TopicRetention, *led: int) -> HeldTopic:
    return HeldTopic(topic_id=UUID(int=1), led_partitions=frozenset(led), retention=retention)


def facts(
    rows: list[Row],
    topics: Mapping[str, HeldTopic],
    *,
    publishes_percentages: bool = False,
    unknown: Mapping[str, Failure] | None = None,
) -> PartitionFacts:
    answer = BrokerLogDirs(
        broker=BrokerId(1),
        address="localhost:9092",
        observed_at=datetime(2026, 1, 1, tzinfo=UTC),
        log_dirs={"/data/a": log_dir("/data/a", rows)},
    )
    return PartitionFacts(
        answer=answer, topics=topics, unknown=unknown or {}, publishes_percentages=publishes_percentages
    )


class FakeBroker:
    """Answers with what ``facts`` holds, or fails with ``failure``."""

    def __init__(self, answer: PartitionFacts) -> None:
        self.facts = answer
        self.failure: Failure | None = None
        self.remote: dict[TopicPartition, tuple[Bytes, Bytes] | Reason] = {}
        self.asked = 0

    def partition_facts(self) -> PartitionFacts:
        self.asked += 1
        if self.failure is not None:
            raise ObservationFailed(self.failure)
        return self.facts

    def release(self) -> str:
        if self.failure is not None:
            raise ObservationFailed(self.failure)
        return "4.3"

    def remote_sizes(self, _facts: PartitionFacts, partitions: Mapping[TopicPartition, Bytes]) -> RemoteSizes:
        return {partition: self.remote.get(partition, Reason.CHANGING) for partition in partitions}
