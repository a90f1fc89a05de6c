"""Landed snapshots of made-up fleets, and what DuckDB and Polars get beside them.

The two get everything about logs and devices ready-made and in memory: what the rules say of each log, and how far each
device is above its ceiling. What is timed is what a plan is about: reading the segments from the landed files, and
choosing. Brimline is given the files and nothing else.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from brimline.decide.reclaim import plan
from brimline.decide.reclaim_topics import TopicColumns
from brimline.fleet.planner_tasks import SnapshotFile
from brimline.fleet.synth import synthesise
from brimline.fleet.synth_spec import FleetSpec
from brimline.landing.reader import Snapshot
from brimline.landing.schema import SEGMENTS
from brimline.landing.tables import reclaim_tables
from brimline.model.reclaim import ReclaimTables
from brimline.model.reclaim_plan import DevicePlan, ReclaimReason
from brimline.model.scan import FolderKind

UNTIL_MS = 1_760_000_400_000
CEILING_PERCENT = 60
LANDING, LOGS, NAMES, DEVICES, FILES = "landing", "logs.parquet", "names.parquet", "devices.parquet", "files.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A fleet, by what it holds."""

    brokers: int
    clusters: int
    replicas: int
    """Of each broker."""

    @property
    def spec(self) -> FleetSpec:
        return FleetSpec(
            until_ms=UNTIL_MS,
            seed=7,
            clusters=self.clusters,
            brokers=self.brokers,
            replicas=self.replicas,
            days=0,
            ceiling_percent=CEILING_PERCENT,
        )


def make(folder: Path, size: Size) -> int:
    """Returns how many segments there are."""
    return synthesise(size.spec, str(folder / LANDING), lambda _: None).segments


def files_in(folder: Path) -> list[SnapshotFile]:
    """As the manifest of a warehouse names them."""
    paths = sorted((folder / LANDING).rglob("*.parquet"))
    return [_file(path) for path in paths]


def _file(path: Path) -> SnapshotFile:
    with Snapshot(path) as snapshot:
        header = snapshot.header
    return SnapshotFile(
        path=str(path),
        segments=header.sections[SEGMENTS].rows,
        cluster_id=header.cluster_id,
        broker_id=header.broker_id,
        snapshot_id=header.snapshot_id,
        taken_at_ms=header.taken_at_ms,
    )


def write_look_ups(folder: Path) -> None:
    """For DuckDB and Polars. Logs and devices are numbered through the whole fleet, in the order of the files."""
    files = files_in(folder)
    first_log, first_device = 0, 0
    firsts: list[int] = []
    logs, names, devices = [], [], []
    for file, look_ups in zip(files, _of_each(files), strict=True):
        firsts.append(first_log)
        logs.append(_moved(look_ups.logs, first_log, first_device))
        devices.append(_moved(look_ups.devices, 0, first_device))
        names.append(look_ups.names)
        first_log += len(look_ups.logs)
        first_device += len(look_ups.devices)
        if not file.segments:
            raise ValueError(f"{file.path} has no segments")
    pq.write_table(pa.concat_tables(logs), folder / LOGS)
    pq.write_table(pa.concat_tables(names), folder / NAMES)
    pq.write_table(pa.concat_tables(devices), folder / DEVICES)
    columns = {
        "filename": [file.path for file in files],
        "first_log": firsts,
        "now_ms": [file.taken_at_ms for file in files],
    }
    pq.write_table(pa.table(columns), folder / FILES)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LookUps:
    """Of one broker, numbered from 0."""

    logs: pa.Table
    names: pa.Table
    devices: pa.Table


def _of_each(files: Sequence[SnapshotFile]) -> Iterator[LookUps]:
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        yield from pool.map(_look_ups, files, chunksize=8)


def _look_ups(file: SnapshotFile) -> LookUps:
    tables = reclaim_tables(file.path)
    planned = plan(tables)
    count = len(tables.logs)
    names = [*(topic.name for topic in tables.topics), None]
    return LookUps(
        logs=_log_columns(tables, planned.logs.standing == ReclaimReason.CANDIDATE),
        names=pa.table(
            {
                "cluster_id": [file.cluster_id] * count,
                "broker_id": [file.broker_id] * count,
                "topic": pa.array([names[topic] for topic in tables.logs.topic.tolist()], type=pa.string()),
                "partition": tables.logs.partition,
            }
        ),
        devices=pa.table(
            {
                "device": np.arange(len(tables.devices), dtype=np.int64),
                "over_bytes": np.array([_over(each) for each in planned.devices], dtype=np.int64),
            }
        ),
    )


def _log_columns(tables: ReclaimTables, is_candidate: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> pa.Table:
    logs, topics = tables.logs, TopicColumns(tables.topics)
    uploaded = np.where(topics.is_copying[logs.topic], logs.highest_remote_offset + 1, logs.high_watermark)
    policies = [device.policy for device in tables.devices]
    return pa.table(
        {
            "log": np.arange(len(logs), dtype=np.int64),
            "device": logs.device.astype(np.int64),
            # The file's topics are in the order of their names.
            "topic": logs.topic.astype(np.int64),
            "part": logs.partition.astype(np.int64),
            "candidate": is_candidate,
            "visited": (logs.kind == FolderKind.CURRENT) & ~logs.is_moving,
            "log_start_offset": logs.log_start_offset,
            "high_watermark": logs.high_watermark,
            "reach": np.minimum(uploaded, logs.high_watermark),
            "retention_ms": topics.retention_ms[logs.topic],
            "retention_bytes": topics.retention_bytes[logs.topic],
            "min_retention_ms": np.array([each.min_retention_ms for each in policies], dtype=np.int64)[logs.device],
        }
    )


def _over(planned: DevicePlan) -> int:
    """Above the ceiling, without what leaves with folders and marked files."""
    if planned.used_bytes is None or planned.limit_bytes is None:
        return 0
    leaving = planned.going.deleted_files + planned.going.delete_folders
    return max(planned.used_bytes - planned.limit_bytes, 0) - leaving


def _moved(table: pa.Table, first_log: int, first_device: int) -> pa.Table:
    for name, first in (("log", first_log), ("device", first_device)):
        if name in table.column_names:
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, pa.array(table.column(name).to_numpy() + first))
    return table
