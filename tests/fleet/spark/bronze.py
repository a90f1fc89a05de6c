"""Rows of the bronze tables, in which only what a test is about is said."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.schemas import BRONZE
from brimline.model.reclaim import Views
from brimline.model.scan import FolderKind

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)

Row: TypeAlias = Mapping[str, Any]


def minutes_ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def snapshot(broker: int = 1, at: datetime = NOW, *, cluster: str = "c", source: str = "guard") -> dict[str, Any]:
    return {
        "cluster_id": cluster,
        "broker_id": broker,
        "taken_at": at,
        "snapshot_id": f"{broker:04x}{int(at.timestamp()):012x}",
        "source": source,
        "taken_on": at.date(),
    }


def volume(of: Row, **said: object) -> Row:
    limits = {"max_used_percent": 90, "min_free_bytes": 0, "release_margin_percent": 0, "ceiling_percent": 100}
    space = {"total_bytes": 1000, "usable_bytes": 500}
    place = {"log_dir": "/data", "device": "8:1", "is_offline": False}
    return {**of, **place, **space, **limits, **said}


def replica(of: Row, **said: object) -> Row:
    place = {"log_dir": "/data", "device": "8:1", "topic": "t", "topic_id": "id-t", "partition": 0}
    folder = {"kind": int(FolderKind.CURRENT), "views": int(Views.AGREE), "is_moving": False, "segments": 0}
    sizes = {"deleted_bytes": 0, "foreign_bytes": 0, "other_bytes": 0, "size_bytes": 100}
    return {**of, **place, **folder, **sizes, **said}


def topic_config(of: Row, **said: object) -> Row:
    limits = {"retention_ms": -1, "retention_bytes": -1, "local_retention_ms": -2, "local_retention_bytes": -2}
    kind = {"deletes": True, "compacts": False, "is_tiered": False, "is_copy_disabled": False, "is_internal": False}
    return {**of, "topic": "t", "topic_id": "id-t", "is_known": True, **limits, **kind, **said}


def frame(spark: SparkSession, table: Table, rows: Sequence[Row]) -> DataFrame:
    schema = BRONZE[table]
    return spark.createDataFrame([tuple(row.get(name) for name in schema.names) for row in rows], schema)
