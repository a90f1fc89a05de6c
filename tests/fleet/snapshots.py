"""Snapshot files made from the tables of a reclaim plan, such as the scenarios'."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa

from brimline.fleet.planner.tasks import SnapshotFile
from brimline.landing.schema import LOGS, SECTIONS, SEGMENTS, TOPICS, VOLUMES, Header, Source
from brimline.landing.sections import FLAGS_OF_POLICY
from brimline.landing.writer import encode
from brimline.model.quantities import Bytes
from brimline.model.reclaim import (
    CleanupRules,
    DeviceFacts,
    LogTable,
    ReclaimPolicy,
    ReclaimTables,
    SegmentTable,
    TopicFacts,
)
from brimline.model.scan import FolderKind

TAKEN_AT_MS = 1_700_000_000_000
HALF = ReclaimPolicy(ceiling_percent=50)
FOR_EVER = CleanupRules(retention_ms=-1)
_UNKNOWN = CleanupRules(deletes=False)


def topic_id_of(topic: str) -> str:
    """The same on every broker."""
    return str(UUID(bytes=topic.encode().ljust(16, b"-")[:16]))


def header_of(cluster: str = "cluster-a", broker: int = 1, taken_at_ms: int = TAKEN_AT_MS) -> Header:
    return Header(
        snapshot_id=f"{broker:04x}{taken_at_ms:012x}",
        cluster_id=cluster,
        broker_id=broker,
        source=Source.GUARD,
        taken_at_ms=taken_at_ms,
    )


def with_unique_devices(tables: ReclaimTables) -> ReclaimTables:
    """A file tells devices apart by their names; the tables do by their rows."""
    devices = tuple(replace(device, name=f"{device.name}-{row}") for row, device in enumerate(tables.devices))
    return replace(tables, devices=devices)


def sections_of(tables: ReclaimTables) -> Mapping[str, pa.Table]:
    """Each device has one log dir, ``/`` and its name."""
    return {
        VOLUMES: _table(VOLUMES, [_volume(device) for device in tables.devices]),
        TOPICS: _table(TOPICS, [_topic(topic) for topic in tables.topics]),
        LOGS: _logs(tables),
        SEGMENTS: _segments(tables),
    }


def write_snapshot(folder: Path, header: Header, sections: Mapping[str, pa.Table]) -> SnapshotFile:
    path = folder / header.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(header, sections))
    return file_of(path, header, len(sections[SEGMENTS]))


def file_of(path: Path, header: Header, segments: int) -> SnapshotFile:
    return SnapshotFile(
        path=str(path),
        segments=segments,
        cluster_id=header.cluster_id,
        broker_id=header.broker_id,
        snapshot_id=header.snapshot_id,
        taken_at_ms=header.taken_at_ms,
    )


def _table(section: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SECTIONS[section])


def _volume(device: DeviceFacts) -> Mapping[str, object]:
    policy = device.policy
    return {
        "log_dir": f"/{device.name}",
        "device": device.name,
        "total_bytes": device.total_bytes,
        "usable_bytes": device.usable_bytes,
        "ceiling_percent": policy.ceiling_percent,
        "min_retention_ms": policy.min_retention_ms,
        "min_retention_bytes": policy.min_retention_bytes,
        "max_bytes_per_cycle": policy.max_bytes_per_cycle,
        "max_percent_per_cycle": policy.max_percent_per_cycle,
        "max_used_percent": policy.max_used_percent,
        "min_free_bytes": policy.min_free_bytes,
        "protected_topics": ",".join(policy.protected_topics),
        "future_tolerance_ms": policy.future_tolerance_ms,
        "observed_at_ms": device.now_ms,
        "is_offline": False,
        **{name: getattr(policy, name) for name in FLAGS_OF_POLICY},
    }


def _topic(topic: TopicFacts) -> Mapping[str, object]:
    rules = topic.rules or _UNKNOWN
    known = {name: getattr(rules, name) for name in CleanupRules.__dataclass_fields__}
    return known | {"topic": topic.name, "topic_id": topic_id_of(topic.name), "is_known": topic.rules is not None}


def _logs(tables: ReclaimTables) -> pa.Table:
    logs = tables.logs
    known = {name: getattr(logs, name) for name in SECTIONS[LOGS].names if hasattr(logs, name)}
    known |= {"volume": logs.device, "segments": np.diff(logs.segments_begin)}
    arrays = [
        pa.array(known[field.name], type=field.type) if field.name in known else pa.nulls(len(logs), field.type)
        for field in SECTIONS[LOGS]
    ]
    return pa.Table.from_arrays(arrays, schema=SECTIONS[LOGS])


def _segments(tables: ReclaimTables) -> pa.Table:
    counts = np.diff(tables.logs.segments_begin)
    log = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    columns = {"log": log} | {
        name: getattr(tables.segments, name) for name in SECTIONS[SEGMENTS].names if name != "log"
    }
    return pa.Table.from_arrays(
        [pa.array(columns[name]) for name in SECTIONS[SEGMENTS].names], schema=SECTIONS[SEGMENTS]
    )


def broker_of_one_log(
    used: int,
    segments: Sequence[int],
    *,
    log_start: int = 0,
    is_moving: bool = False,
    policy: ReclaimPolicy = HALF,
    rules: CleanupRules = FOR_EVER,
    ages_ms: Sequence[int] | None = None,
) -> ReclaimTables:
    """A disk of 1000 bytes, and partition 7 of ``orders``: segments of 100 bytes at these base offsets."""
    count = len(segments)
    ages = [10**6 - each for each in range(count)] if ages_ms is None else ages_ms
    return ReclaimTables(
        devices=(
            DeviceFacts(
                name="disk",
                total_bytes=Bytes(1000),
                usable_bytes=Bytes(1000 - used),
                now_ms=TAKEN_AT_MS,
                policy=policy,
            ),
        ),
        topics=(TopicFacts(name="orders", rules=rules),),
        logs=LogTable(
            device=np.zeros(1, dtype=np.int32),
            topic=np.zeros(1, dtype=np.int32),
            partition=np.array([7], dtype=np.int32),
            kind=np.array([FolderKind.CURRENT], dtype=np.uint8),
            is_moving=np.array([is_moving]),
            views=np.zeros(1, dtype=np.uint8),
            segments_begin=np.array([0, count], dtype=np.int64),
            log_start_offset=np.array([log_start], dtype=np.int64),
            high_watermark=np.array([1000], dtype=np.int64),
            log_end_offset=np.array([-1], dtype=np.int64),
            highest_remote_offset=np.array([-1], dtype=np.int64),
            last_stable_offset=np.array([1000], dtype=np.int64),
            deleted_bytes=np.zeros(1, dtype=np.int64),
            foreign_bytes=np.zeros(1, dtype=np.int64),
            other_bytes=np.zeros(1, dtype=np.int64),
        ),
        segments=SegmentTable(
            base_offset=np.array(segments, dtype=np.int64),
            log_bytes=np.full(count, 100, dtype=np.int64),
            allocated_bytes=np.full(count, 100, dtype=np.int64),
            newest_timestamp_ms=TAKEN_AT_MS - np.array(ages, dtype=np.int64),
            modified_ns=np.zeros(count, dtype=np.int64),
        ),
    )
