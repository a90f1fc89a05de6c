"""Surveys of a small disk that is written down here instead of looked at.

Every segment takes a megabyte and holds 100 offsets, the disk has 100 of them, and a log's last segment is active.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID, uuid5

import numpy as np

from brimline.decide.reclaim import plan as reclaim
from brimline.decide.reclaim.tables import BrokerTables
from brimline.guard.reclaim.survey import ReclaimSurvey
from brimline.model import BrokerId, BrokerLogDirs, Bytes
from brimline.model.reclaim import (
    CleanupRules,
    DeviceFacts,
    LogTable,
    ReclaimPolicy,
    ReclaimTables,
    SegmentTable,
    TopicFacts,
    Views,
)
from brimline.model.scan import FolderKind, Int64Column
from brimline.observe.cluster.replica_facts import ReplicaFacts
from brimline.observe.cluster.topics import Topic
from brimline.observe.volumes import VolumeReading

MADE_AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOW_MS = int(MADE_AT.timestamp() * 1000)
HOUR_MS = 3_600_000
MB = 1_000_000
OFFSETS = 100
DEVICE, LOG_DIR = "8:1", "/data/a"
UNLIMITED = CleanupRules(retention_ms=-1)


def topic_id(name: str, life: int = 1) -> UUID:
    return uuid5(UUID(int=life), name)


@dataclass(frozen=True, kw_only=True)
class ALog:
    """Partition 0 of a topic: the ages of its segments in hours, the oldest first."""

    topic: str
    hours: Sequence[float]
    first_base: int = 0
    log_start: int = 0
    life: int = 1
    rules: CleanupRules | None = UNLIMITED
    views: Views = Views.AGREE
    highest_remote: int = -1

    @property
    def bases(self) -> list[int]:
        return [self.first_base + number * OFFSETS for number in range(len(self.hours))]


@dataclass(frozen=True, kw_only=True)
class ADisk:
    logs: Sequence[ALog]
    used: int
    """Percent."""
    policy: ReclaimPolicy = field(default_factory=lambda: ReclaimPolicy(ceiling_percent=80))

    def with_log(self, changed: ALog) -> "ADisk":
        return replace(self, logs=[changed if log.topic == changed.topic else log for log in self.logs])

    def without(self, topic: str) -> "ADisk":
        return replace(self, logs=[log for log in self.logs if log.topic != topic])

    def survey(self) -> ReclaimSurvey:
        tables = self._tables()
        device = tables.devices[0]
        volume = VolumeReading(
            device=DEVICE,
            log_dirs=(LOG_DIR,),
            total_bytes=device.total_bytes,
            usable_bytes=device.usable_bytes,
            reserved_bytes=None,
            observed_at=MADE_AT,
            seconds=0.0,
        )
        return ReclaimSurvey(
            made_at=MADE_AT,
            seconds=0.0,
            took=0.0,
            volumes=(volume,),
            tables=BrokerTables(tables=tables, log_dirs=(LOG_DIR,), ends=(len(self.logs),)),
            plan=reclaim.plan(tables),
            ballast_bytes=(Bytes(0),),
            facts=_facts({log.topic: topic_id(log.topic, log.life) for log in self.logs}),
        )

    def _tables(self) -> ReclaimTables:
        logs = sorted(self.logs, key=lambda log: log.topic)
        count = len(logs)
        segments = sum(len(log.hours) for log in logs)
        nothing = np.zeros(count, dtype=np.int64)
        return ReclaimTables(
            devices=[
                DeviceFacts(
                    name=DEVICE,
                    total_bytes=Bytes(100 * MB),
                    usable_bytes=Bytes((100 - self.used) * MB),
                    now_ms=NOW_MS,
                    policy=self.policy,
                )
            ],
            topics=[TopicFacts(name=log.topic, rules=log.rules) for log in logs],
            logs=LogTable(
                device=np.zeros(count, dtype=np.int32),
                topic=np.arange(count, dtype=np.int32),
                partition=np.zeros(count, dtype=np.int32),
                kind=np.full(count, FolderKind.CURRENT, dtype=np.uint8),
                is_moving=np.zeros(count, dtype=np.bool_),
                views=np.array([log.views for log in logs], dtype=np.uint8),
                segments_begin=np.cumsum([0, *(len(log.hours) for log in logs)], dtype=np.int64),
                log_start_offset=_column(log.log_start for log in logs),
                high_watermark=np.full(count, 10**9, dtype=np.int64),
                log_end_offset=np.full(count, -1, dtype=np.int64),
                last_stable_offset=np.full(count, 10**9, dtype=np.int64),
                highest_remote_offset=_column(log.highest_remote for log in logs),
                deleted_bytes=nothing,
                foreign_bytes=nothing,
                other_bytes=nothing,
            ),
            segments=SegmentTable(
                base_offset=_column(base for log in logs for base in log.bases),
                log_bytes=np.full(segments, MB, dtype=np.int64),
                allocated_bytes=np.full(segments, MB, dtype=np.int64),
                newest_timestamp_ms=_column(NOW_MS - int(hours * HOUR_MS) for log in logs for hours in log.hours),
                modified_ns=np.full(segments, NOW_MS * 1_000_000, dtype=np.int64),
            ),
        )


def _column(numbers: Iterable[int]) -> Int64Column:
    return np.fromiter(numbers, dtype=np.int64)


def _facts(ids: Mapping[str, UUID]) -> ReplicaFacts:
    return ReplicaFacts(
        answer=BrokerLogDirs(broker=BrokerId(1), address="", observed_at=MADE_AT, log_dirs={}),
        topics={name: Topic(name=name, topic_id=found, leaders={}, error=None) for name, found in ids.items()},
        rules={},
        unknown={},
        log_starts={},
        high_watermarks={},
        log_ends={},
        highest_remote={},
    )
