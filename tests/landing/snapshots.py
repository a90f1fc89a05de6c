"""Snapshots for tests: made from the tables of a plan as the guard makes them, by way of columns of numpy."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from brimline.decide.disk_state import DiskLimits
from brimline.landing.header import Header, Source
from brimline.landing.sections import LogFigures, NamedTopic, Sections, VolumeRow, nothing_known, sections_of
from brimline.landing.writer import encode, tables_of
from brimline.model import Bytes
from brimline.model.reclaim import ReclaimTables
from tests.decide.reclaim.worlds import world

HEADER = Header(
    snapshot_id="0123456789abcdef",
    cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
    broker_id=7,
    source=Source.GUARD,
    taken_at_ms=1_700_000_000_000,
)


def with_devices_apart(tables: ReclaimTables) -> ReclaimTables:
    """A file knows devices by their names."""
    return replace(tables, devices=[replace(each, name=f"8:{row}") for row, each in enumerate(tables.devices)])


def sections(tables: ReclaimTables) -> Sections:
    """One log dir on each device; nothing is known besides the tables."""
    logs = len(tables.logs)
    numbers, percent = nothing_known(logs, np.dtype(np.int64)), nothing_known(logs, np.dtype(np.float64))
    return sections_of(
        volumes=[
            VolumeRow(
                log_dir=f"/data/{row}",
                device=device.name,
                total_bytes=device.total_bytes,
                usable_bytes=device.usable_bytes,
                limits=DiskLimits(
                    max_used_percent=device.policy.max_used_percent,
                    min_free_bytes=Bytes(device.policy.min_free_bytes),
                ),
                policy=device.policy,
                observed_at_ms=device.now_ms,
            )
            for row, device in enumerate(tables.devices)
        ],
        topics=[NamedTopic(facts=topic, topic_id=None) for topic in tables.topics],
        logs=tables.logs,
        volume_of_log=tables.logs.device,
        figures=LogFigures(
            size_bytes=numbers,
            offset_lag=numbers,
            is_leader=nothing_known(logs, np.dtype(np.bool_)),
            remote_bytes=numbers,
            only_local_bytes=numbers,
            remote_reason=[None] * logs,
            bytes_percent=percent,
            total_percent=percent,
            local_percent=percent,
        ),
        segments=tables.segments,
    )


def encoded(tables: ReclaimTables, header: Header = HEADER) -> bytes:
    return encode(header, tables_of(sections(tables)))


def some_tables(seed: int = 4) -> ReclaimTables:
    """A world with devices, logs and segments in it."""
    return with_devices_apart(world(seed))


def sections_as_tables(seed: int = 4) -> Mapping[str, pa.Table]:
    return tables_of(sections(some_tables(seed)))
