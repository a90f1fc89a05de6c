"""From landed files to tables: everything once, whatever is wrong with some of it and wherever it is interrupted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from brimline.fleet.ingest.ingest import ingest
from brimline.fleet.jobs.inputs import Inputs
from brimline.fleet.jobs.jobs import run_findings
from brimline.fleet.session.errors import JobFailed, LandingFailed
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.data_files import DataFile
from brimline.fleet.tables.manifest import newest, newest_of
from brimline.fleet.tables.warehouse import BatchName, Warehouse
from brimline.landing.schema import LOGS, SEGMENTS, TOPICS, VOLUMES
from brimline.landing.writer import encode
from tests.fleet.landed import broker, land, later, name_beside, put, with_column, with_header
from tests.fleet.spark.conftest import CORES
from tests.fleet.spark.tables import bronze, rows_of

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[3]


class Killed(OSError):
    """Stands for the end of the process."""


@dataclass(frozen=True)
class Dying(Warehouse):
    """Ends right after its append to one table."""

    after: Table = Table.SNAPSHOTS

    def commit(
        self,
        table: Table,
        files: Sequence[DataFile],
        mode: str,
        batch: BatchName | None = None,
        told: Mapping[str, str] | None = None,
    ) -> None:
        super().commit(table, files, mode, batch, told)
        if table is self.after:
            raise Killed


def test_every_row_of_every_snapshot_is_in_its_table_once(spark: SparkSession, tmp_path: Path) -> None:
    landing, warehouse = tmp_path / "landing", Warehouse(str(tmp_path / "warehouse"))
    made = [broker(number) for number in range(3)]
    for each in made:
        land(landing, each)

    first = ingest(spark, str(landing), warehouse, tasks=CORES)
    land(landing, later(made[0], 1))
    second = ingest(spark, str(landing), warehouse, tasks=CORES)
    third = ingest(spark, str(landing), warehouse, tasks=CORES)

    assert (first.snapshots, second.snapshots, third.snapshots) == (3, 1, 0)
    twice = [*made, made[0]]
    for section, table in ((VOLUMES, Table.VOLUMES), (TOPICS, Table.TOPIC_CONFIGS), (LOGS, Table.REPLICAS)):
        expected = sum(len(each.tables[section]) for each in twice)
        assert warehouse.read(spark, table).count() == expected
    snapshots = warehouse.read(spark, Table.SNAPSHOTS).collect()
    assert sum(row["segments_rows"] for row in snapshots) == sum(len(each.tables[SEGMENTS]) for each in twice)
    assert newest(warehouse.place) == newest_of(warehouse.place)
    assert newest(warehouse.place)[0]["snapshot_id"] == later(made[0], 1).header.snapshot_id


def test_what_is_wrong_with_a_file_is_named_and_disturbs_no_other(spark: SparkSession, tmp_path: Path) -> None:
    landing, warehouse = tmp_path / "landing", Warehouse(str(tmp_path / "warehouse"))
    good = broker(0)
    data = encode(good.header, good.tables)
    land(landing, good)
    land(landing, good, name_beside(good.header, "copy.parquet"))
    put(landing, name_beside(good.header, "empty.parquet"), b"")
    put(landing, name_beside(good.header, "text.parquet"), b"PAR is not enough")
    put(landing, name_beside(good.header, "half.parquet"), data[: len(data) // 2])
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 0xFF
    put(landing, name_beside(good.header, "flipped.parquet"), bytes(flipped))
    pq.write_table(pa.table({"a": [1]}), put(landing, name_beside(good.header, "other.parquet"), b""))
    land(landing, with_header(good, version=2, snapshot_id="e1"))
    land(landing, with_header(good, taken_at_ms=good.header.taken_at_ms + 3 * 3_600_000, snapshot_id="e2"))
    nowhere = with_column(good, LOGS, "volume", pa.array([99] * len(good.tables[LOGS]), pa.int32()))
    land(landing, with_header(nowhere, snapshot_id="e3"))
    (landing / name_beside(good.header, "folder.parquet")).mkdir()

    report = ingest(spark, str(landing), warehouse, tasks=CORES)
    again = ingest(spark, str(landing), warehouse, tasks=CORES)

    reasons = {"not-parquet": 2, "truncated": 1, "no-header": 1, "future-version": 1, "clock-in-future": 1}
    assert report.quarantined == dict(sorted((reasons | {"duplicate": 1, "inconsistent": 1, "corrupt": 1}).items()))
    assert report.snapshots == 1
    assert warehouse.read(spark, Table.REPLICAS).count() == len(good.tables[LOGS])
    assert (again.snapshots, again.quarantined) == (0, {})
    quarantine = warehouse.read(spark, Table.QUARANTINE).collect()
    assert all(row["detail"] for row in quarantine)
    assert Counter(row["reason"] for row in quarantine) == report.quarantined


def test_a_batch_that_ended_anywhere_is_done_again_and_no_row_is_there_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    landing = tmp_path / "landing"
    for number in range(3):
        land(landing, broker(number))
    put(landing, name_beside(broker(0).header, "text.parquet"), b"not Parquet")
    undisturbed, place = Warehouse(str(tmp_path / "undisturbed")), str(tmp_path / "warehouse")
    ingest(spark, str(landing), undisturbed, tasks=CORES)

    for table in (Table.QUARANTINE, Table.VOLUMES, Table.NEWEST, Table.SNAPSHOTS):
        with pytest.raises(JobFailed, match="Killed"):
            ingest(spark, str(landing), Dying(place, table), tasks=CORES)
    ingest(spark, str(landing), Warehouse(place), tasks=CORES)

    assert bronze(spark, Warehouse(place)) == bronze(spark, undisturbed)


@pytest.mark.long
def test_without_its_memory_the_ingest_finds_out_what_it_has(spark: SparkSession, tmp_path: Path) -> None:
    """One batch is finished; of the next, some rows are in the tables when the memory is lost."""
    landing = tmp_path / "landing"
    undisturbed, place = Warehouse(str(tmp_path / "undisturbed")), str(tmp_path / "warehouse")
    land(landing, broker(0))
    put(landing, name_beside(broker(0).header, "text.parquet"), b"not Parquet")
    ingest(spark, str(landing), Warehouse(place), tasks=CORES)
    land(landing, broker(1))
    with pytest.raises(JobFailed, match="Killed"):
        ingest(spark, str(landing), Dying(place, Table.NEWEST), tasks=CORES)
    rmtree(Warehouse(place).memory)

    ingest(spark, str(landing), Warehouse(place), tasks=CORES)

    ingest(spark, str(landing), undisturbed, tasks=CORES)
    assert bronze(spark, Warehouse(place)) == bronze(spark, undisturbed)


def test_a_cluster_id_may_hold_any_character(spark: SparkSession, tmp_path: Path) -> None:
    landing, warehouse = tmp_path / "a place %41", Warehouse(str(tmp_path / "ware house"))
    land(landing, with_header(broker(0), cluster_id="a/b %2E ü*{x}"))

    report = ingest(spark, str(landing), warehouse, tasks=CORES)

    assert (report.snapshots, report.quarantined) == (1, {})
    assert {row["cluster_id"] for row in warehouse.read(spark, Table.VOLUMES).collect()} == {"a/b %2E ü*{x}"}


def test_a_landing_place_that_does_not_exist_is_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LandingFailed, match="no landing place"):
        ingest(spark, str(tmp_path / "nowhere"), Warehouse(str(tmp_path / "warehouse")), tasks=CORES)


def test_what_is_odd_is_found_and_taken_in_all_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """A device that changed, a topic made anew, and two brokers that write under one id."""
    landing, warehouse = tmp_path / "landing", Warehouse(str(tmp_path / "warehouse"))
    made = broker(0, ago=timedelta(hours=1))
    topics = made.tables[TOPICS].column("topic_id").to_pylist()
    other_topic = with_column(made, TOPICS, "topic_id", pa.array(["anew", *topics[1:]]))
    devices = made.tables[VOLUMES].column("device").to_pylist()
    other_device = with_column(other_topic, VOLUMES, "device", pa.array(["/dev/new", *devices[1:]]))
    land(landing, made)
    land(landing, later(other_topic, 5))
    land(landing, later(other_device, 10))
    twin = broker(1, ago=timedelta(hours=1))
    stranger = with_column(twin, TOPICS, "topic_id", pa.array([f"id-{row}" for row in range(len(twin.tables[TOPICS]))]))
    for minutes, each in enumerate((twin, stranger, twin, stranger)):
        land(landing, later(each, minutes))

    report = ingest(spark, str(landing), warehouse, tasks=CORES)
    warehouse.overwrite(run_findings(Inputs(spark=spark, warehouse=warehouse, now=datetime.now(UTC))), Table.FINDINGS)

    assert (report.snapshots, report.quarantined) == (7, {})
    found = Counter((row["finding"], row["broker_id"]) for row in warehouse.read(spark, Table.FINDINGS).collect())
    strangers = sum(topic is not None for topic in twin.tables[TOPICS].column("topic_id").to_pylist())
    assert found == {
        ("device-changed", 0): 1,
        ("topic-recreated", 0): 1,
        ("two-brokers-one-id", 1): strangers,
    }
    assert "/dev/new" in next(row[4] for row in rows_of(spark, warehouse, Table.FINDINGS) if row[0] == "device-changed")
