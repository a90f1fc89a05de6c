"""Upkeep: what goes, what stays whatever its age, and that a look changes nothing."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from brimline.fleet.ingest.ingest import ingest
from brimline.fleet.session.errors import FleetError
from brimline.fleet.session.progress import Lines, Progress
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.maintain import Keep, carry_out, no_longer_needed, plan_upkeep, superfluous
from brimline.fleet.tables.warehouse import Warehouse
from tests.fleet.landed import broker, land, later
from tests.fleet.spark.bronze import snapshot
from tests.fleet.spark.conftest import CORES
from tests.fleet.spark.tables import bronze

pytestmark = pytest.mark.integration

KEEP = Keep(raw_days=2, hourly_days=10, landing_days=1)
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_of_old_days_the_last_snapshot_of_each_hour_stays(spark: SparkSession) -> None:
    three_days = NOW - timedelta(days=3)
    moments = {
        "a": NOW - timedelta(minutes=1),
        "b": NOW - timedelta(minutes=2),
        "c": three_days.replace(minute=0),
        "d": three_days.replace(minute=59),
        "e": three_days + timedelta(hours=1),
        "f": NOW - timedelta(days=11),
    }
    found = [snapshot(at=at) | {"snapshot_id": name} for name, at in moments.items()]
    found.append(snapshot(broker=2, at=moments["c"]) | {"snapshot_id": "0"})
    snapshots = spark.createDataFrame([tuple(row.values()) for row in found], list(found[0]))

    gone = superfluous(snapshots, KEEP, NOW).collect()

    assert sorted(row["snapshot_id"] for row in gone) == ["c", "f"]


def test_a_landed_file_goes_when_it_is_old_and_no_plan_needs_it(spark: SparkSession) -> None:
    old = NOW - timedelta(days=2)
    taken = [
        (1, "only-volumes", old, old),
        (1, "older", old - timedelta(hours=1), old),
        (1, "newest", old, old),
        (2, "came-today", old, NOW),
        (2, "of-today", NOW, NOW),
    ]
    names = ["cluster_id", "broker_id", "path", "taken_at", "ingested_at", "snapshot_id"]
    snapshots = spark.createDataFrame([("c", *each, each[1]) for each in taken], names)

    gone = no_longer_needed(snapshots, ["newest", "of-today"], KEEP, NOW).collect()

    assert sorted(row["path"] for row in gone) == ["older", "only-volumes"]


@pytest.mark.long
def test_a_look_changes_nothing_and_the_upkeep_leaves_what_is_needed(spark: SparkSession, tmp_path: Path) -> None:
    landing, warehouse = tmp_path / "landing", Warehouse(str(tmp_path / "warehouse"))
    old = broker(0, ago=timedelta(days=3))
    # Past the hour's last minutes two looks may be of two hours
    first = later(old, -((old.header.taken_at_ms // 60_000) % 60))
    landed = [land(landing, each) for each in (first, later(first, 5), later(first, 10), broker(1))]
    ingest(spark, str(landing), warehouse, tasks=CORES)
    before = bronze(spark, warehouse)
    now = datetime.now(UTC)
    # Two days after they were taken in
    soon = now + timedelta(days=2)

    upkeep = plan_upkeep(spark, warehouse, KEEP, soon)

    assert bronze(spark, warehouse) == before
    assert (upkeep.snapshots, upkeep.landed_files) == (2, (str(landed[0]), str(landed[1])))

    carry_out(spark, warehouse, upkeep, KEEP, Progress(Lines(io.StringIO())), soon)

    assert [path.exists() for path in landed] == [False, False, True, True]
    kept = {row["snapshot_id"] for row in warehouse.read(spark, Table.SNAPSHOTS).collect()}
    assert len(kept) == 2
    for table in (Table.VOLUMES, Table.REPLICAS, Table.TOPIC_CONFIGS, Table.NEWEST):
        assert {row["snapshot_id"] for row in warehouse.read(spark, table).select("snapshot_id").collect()} == kept
    assert plan_upkeep(spark, warehouse, KEEP, soon).snapshots == 0

    land(landing, later(first, 20))
    report = ingest(spark, str(landing), warehouse, tasks=CORES)

    assert (report.snapshots, report.quarantined) == (0, {"late": 1})


@pytest.mark.parametrize("wrong", [{"raw_days": 0}, {"raw_days": 9, "hourly_days": 8}, {"landing_days": 0}])
def test_what_cannot_be_kept_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(FleetError):
        Keep(**wrong)
