"""From landed files to every table that answers, in one warehouse; and again: the same rows."""

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from brimline.fleet.ingest.ingest import ingest
from brimline.fleet.jobs.inputs import Inputs
from brimline.fleet.jobs.jobs import JOBS, run_job
from brimline.fleet.jobs.run import run_round
from brimline.fleet.planner.rows import PLAN
from brimline.fleet.planner.tasks import rows_locally
from brimline.fleet.tables import warehouse as warehouse_module
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.warehouse import Warehouse
from tests.fleet.snapshots import TAKEN_AT_MS, broker_of_one_log, header_of, sections_of, write_snapshot
from tests.fleet.spark.conftest import CORES
from tests.fleet.spark.tables import Rows, rows_of

pytestmark = pytest.mark.integration
NOW = datetime.fromtimestamp(TAKEN_AT_MS / 1000, UTC) + timedelta(minutes=1)
USED = {1: 700, 2: 400, 3: 400}


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three brokers with one partition, looked at twice; and a file that is none."""
    folder = tmp_path_factory.mktemp("landing")
    for broker, used in USED.items():
        for age_minutes in (5, 0):
            header = header_of(broker=broker, taken_at_ms=TAKEN_AT_MS - age_minutes * 60_000)
            write_snapshot(folder, header, sections_of(broker_of_one_log(used - age_minutes, [0, 10, 20, 30, 40])))
    (folder / header_of(broker=9).name).parent.mkdir(parents=True)
    (folder / header_of(broker=9).name).write_bytes(b"PAR1 and no more")
    return folder


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    made = Warehouse(str(tmp_path_factory.mktemp("warehouse") / "{odd} [a] #1*"))
    ingest(spark, str(landing), made, tasks=CORES)
    inputs = Inputs(spark=spark, warehouse=made, now=NOW)
    for job in JOBS:
        run_job(job, inputs)
    return made


def read(spark: SparkSession, warehouse: Warehouse, table: Table) -> list[Mapping[str, Any]]:
    return [row.asDict() for row in warehouse.read(spark, table).collect()]


def test_the_plan_is_that_of_the_local_planner(spark: SparkSession, warehouse: Warehouse, landing: Path) -> None:
    rows = {row["broker_id"]: row for row in read(spark, warehouse, Table.RECLAIM_PLAN)}

    for broker, used in USED.items():
        file = write_snapshot(
            landing.parent / "again",
            header_of(broker=broker),
            sections_of(broker_of_one_log(used, [0, 10, 20, 30, 40])),
        )
        (local,) = (row for batch in rows_locally([file], PLAN) for row in batch.to_pylist())
        own = {name: rows[broker][name] for name in local if name.startswith("device_")}
        assert own == {name: local[name] for name in own}
    assert (rows[1]["taken_bytes"], rows[1]["other_replicas"], rows[1]["others_gain_bytes"]) == (200, 2, 400)
    assert [rows[broker]["freed_bytes"] for broker in USED] == [200, 200, 200]


def test_the_newest_rows_are_the_same_whoever_reads_them(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By delta-rs in this process, by Spark itself, or by pyarrow in its tasks: a matter of size and place."""

    def newest() -> list[tuple[str, ...]]:
        rows = Inputs(spark=spark, warehouse=warehouse, now=NOW).of_newest(Table.REPLICAS).collect()
        return sorted(tuple(map(str, row)) for row in rows)

    here = newest()
    monkeypatch.setattr(warehouse_module, "SMALL_BYTES", 0)
    by_spark = newest()
    monkeypatch.setattr(warehouse_module, "is_uri", lambda _: True)
    by_tasks = newest()

    assert len(here) == len(USED)
    assert here == by_spark == by_tasks


def test_rows_that_somebody_else_has_marked_as_deleted_are_not_read(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With deletion vectors the data files still hold them."""
    monkeypatch.setattr(warehouse_module, "SMALL_BYTES", 0)
    copy = Warehouse(str(tmp_path))
    shutil.copytree(f"{warehouse.place}/replicas", tmp_path / "replicas")
    table = f"delta.`{tmp_path}/replicas`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    before = {file.name for file in tmp_path.rglob("*.parquet")}
    spark.sql(f"DELETE FROM {table} WHERE broker_id = 1 AND taken_at < '{NOW - timedelta(minutes=3)}'")

    found = [row["broker_id"] for row in read(spark, copy, Table.REPLICAS)]

    assert {file.name for file in tmp_path.rglob("*.parquet")} == before
    assert sorted(found) == [1, 2, 2, 3, 3]


def test_every_volume_has_its_newest_figures(spark: SparkSession, warehouse: Warehouse) -> None:
    rows = {row["broker_id"]: row for row in read(spark, warehouse, Table.VOLUME_PRESSURE)}

    assert {broker: row["used_bytes"] for broker, row in rows.items()} == USED
    assert not any(row["is_stale"] for row in rows.values())


def test_the_summary_has_a_row_for_the_cluster_and_counts_what_was_refused(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    rows = {row["cluster_id"]: row for row in read(spark, warehouse, Table.FLEET_SUMMARY)}
    row = rows["cluster-a"]

    assert (row["brokers"], row["log_dirs"], row["devices"], row["total_bytes"]) == (3, 3, 3, 3000)
    assert (row["worst_broker_id"], row["worst_used_percent"], row["reclaim_bytes"]) == (1, 70.0, 600)
    assert sum(each["quarantined_files"] for each in rows.values()) == 1


def test_jobs_again_give_the_same_tables(spark: SparkSession, warehouse: Warehouse) -> None:
    again = [job for job in JOBS if job.name in (Table.VOLUME_PRESSURE, Table.RECLAIM_PLAN)]

    def gold() -> dict[str, Rows]:
        return {job.name.value: rows_of(spark, warehouse, job.name) for job in again}

    before = gold()
    inputs = Inputs(spark=spark, warehouse=warehouse, now=NOW)
    for job in again:
        run_job(job, inputs)

    assert gold() == before


def test_a_warehouse_that_was_removed_between_two_rounds_is_made_again(
    spark: SparkSession, landing: Path, tmp_path: Path
) -> None:
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    for _ in range(2):
        report = run_round(spark, str(landing), warehouse, tasks=CORES, now=NOW)

        assert report.ingest is not None
        assert (report.ingest.snapshots, report.failures) == (6, {})
        shutil.rmtree(warehouse.place)


def test_jobs_over_an_empty_warehouse_give_empty_tables(spark: SparkSession, tmp_path: Path) -> None:
    empty = Warehouse(str(tmp_path))

    inputs = Inputs(spark=spark, warehouse=empty, now=NOW)
    for job in JOBS:
        run_job(job, inputs)

    assert {job.name: empty.read(spark, job.name).count() for job in JOBS} == {job.name: 0 for job in JOBS}


def test_what_others_have_cached_in_the_session_stays(spark: SparkSession, tmp_path: Path) -> None:
    theirs = spark.range(3).persist()
    inputs = Inputs(spark=spark, warehouse=Warehouse(str(tmp_path)), now=NOW, is_small=False)
    ours = inputs.kept(spark.range(4))
    is_kept = ours.is_cached

    inputs.forget()

    assert (is_kept, ours.is_cached, theirs.is_cached) == (True, False, True)
    theirs.unpersist()
