"""One row per cluster: devices counted once, unknown not as zero, and clusters that only refused files speak of."""

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from brimline.fleet.jobs.fleet_summary import DAYS_KEPT, fleet_summary, with_history
from brimline.fleet.jobs.jobs import conformed
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.gold_schemas import GOLD
from brimline.fleet.tables.schemas import BRONZE
from tests.fleet.spark.bronze import NOW, Row

pytestmark = pytest.mark.integration
SCHEMAS = {**GOLD, **BRONZE}


def volume(**said: object) -> Row:
    known = {"cluster_id": "c", "broker_id": 1, "log_dir": "/a", "device": "8:1", "state": "ok", "is_stale": False}
    limits = {"max_used_percent": 90, "min_free_bytes": 0, "release_margin_percent": 0, "ceiling_percent": 100}
    reserve = {"reserve_bytes": 0, "fewest_files": 0}
    whence = {"limits_from": "guard", "taken_at": NOW, "source": "guard", "age_seconds": 0, "is_offline": False}
    return {**known, **limits, **reserve, **whence, **said}


def plan(**said: object) -> Row:
    known = {"cluster_id": "c", "broker_id": 1, "snapshot_id": "s", "taken_at": NOW, "is_stale": False}
    return {**known, "device": "8:1", "device_outcome": "enough-taken", **said}


def refused(cluster: str | None) -> Row:
    return {"path": "/x", "reason": "truncated", "detail": "", "seen_at": NOW, "cluster_id": cluster}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str | None, Any]:
    rows = {
        Table.VOLUME_PRESSURE: [
            volume(total_bytes=1000, usable_bytes=400, used_bytes=600, used_percent=60.0, days_to_fence=9.0),
            volume(log_dir="/b", total_bytes=1000, usable_bytes=400, used_bytes=600, used_percent=60.0, state="full"),
            volume(broker_id=2, total_bytes=3000, usable_bytes=300, used_bytes=2700, used_percent=90.0, is_stale=True),
            volume(broker_id=2, log_dir="/c", device="8:2", state="offline", is_offline=True, is_stale=True),
            volume(broker_id=2, log_dir="/d", device="8:3", state="unknown", is_stale=True),
            volume(broker_id=3, device=None, days_to_fence=2.0, used_percent=1.0),
            volume(cluster_id="dark", state="unknown"),
        ],
        Table.TIER_OVERLAP: [],
        Table.RETENTION_PRESSURE: [],
        Table.RECLAIM_PLAN: [
            plan(freed_bytes=5),
            plan(freed_bytes=7, device_outcome="floor-reached"),
            plan(device_outcome="floor-reached"),
            plan(broker_id=2, device_outcome="floor-reached"),
            plan(broker_id=3, device=None, device_outcome="snapshot-unusable"),
        ],
        Table.QUARANTINE: [refused("c"), refused("c"), refused(None), refused("only-refused")],
    }
    frames = [
        spark.createDataFrame([tuple(row.get(name) for name in SCHEMAS[table].names) for row in each], SCHEMAS[table])
        for table, each in rows.items()
    ]
    summary = conformed(fleet_summary(*frames), GOLD[Table.FLEET_SUMMARY])
    return {row.cluster_id: row for row in summary.collect()}


def test_every_cluster_has_one_row(found: dict[str | None, Any]) -> None:
    assert found.keys() == {"c", "dark", "only-refused", None}


def test_log_dirs_are_counted_by_state_and_devices_once(found: dict[str | None, Any]) -> None:
    row = found["c"]

    assert (row.brokers, row.stale_brokers, row.log_dirs, row.devices) == (3, 1, 6, 5)
    assert (row.ok_log_dirs, row.full_log_dirs, row.unknown_log_dirs, row.offline_log_dirs) == (3, 1, 1, 1)
    assert (row.total_bytes, row.usable_bytes, row.used_bytes, row.used_percent) == (4000, 700, 3300, 82.5)


def test_the_worst_and_the_first_to_fill_are_named(found: dict[str | None, Any]) -> None:
    row = found["c"]

    assert (row.worst_broker_id, row.worst_log_dir, row.worst_used_percent) == (2, "/a", 90.0)
    assert (row.first_to_fill_broker_id, row.first_to_fill_log_dir, row.days_to_fence) == (3, "/a", 2.0)


def test_plans_and_refused_files_are_counted(found: dict[str | None, Any]) -> None:
    row = found["c"]

    assert (row.reclaim_bytes, row.impossible_devices, row.unusable_snapshots) == (12, 2, 1)
    assert {name: each.quarantined_files for name, each in found.items()} == {
        "c": 2,
        "dark": 0,
        "only-refused": 1,
        None: 1,
    }


def test_what_nobody_could_read_is_unknown_and_not_zero(found: dict[str | None, Any]) -> None:
    row = found["dark"]

    assert (row.total_bytes, row.used_percent, row.worst_log_dir, row.days_to_fence) == (None, None, None, None)
    assert (row.brokers, row.unknown_log_dirs) == (1, 1)


def test_history_has_the_last_summary_of_each_day_and_ends(spark: SparkSession) -> None:
    zeros = {field.name: 0 for field in GOLD[Table.FLEET_SUMMARY].fields if not field.nullable}
    made = Table.FLEET_HISTORY
    history = spark.createDataFrame([], GOLD[made])
    for hours, used in ((-24 * (DAYS_KEPT + 1), 10.0), (-24, 20.0), (-1, 30.0), (0, 40.0)):
        rows = [{**zeros, "cluster_id": "c", "used_percent": used}]
        summary = spark.createDataFrame(rows, GOLD[Table.FLEET_SUMMARY])
        history = conformed(with_history(summary, history, NOW + timedelta(hours=hours)), GOLD[made])

    days = {row["day"]: row["used_percent"] for row in history.collect()}

    assert days == {(NOW - timedelta(days=1)).date(): 20.0, NOW.date(): 40.0}
