"""Which of the files that were found are not known yet, asked of real tables, without Spark."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from brimline.fleet.ingest import ingest
from brimline.fleet.ingest.look import LandedFile
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.warehouse import Wanted, Warehouse
from tests.fleet.tables.test_data_files import row

NOON = datetime(2026, 1, 31, 12, 0, 0, 7000, tzinfo=UTC)


def landed(path: str, at: datetime | None) -> LandedFile:
    return LandedFile(path=path, folder="", moment_ms=None if at is None else round(at.timestamp() * 1000))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Snapshots 1 to 5, a minute apart, the third at noon and seven milliseconds."""
    made = Warehouse(str(tmp_path))
    made.write([row(number, NOON + timedelta(minutes=number - 3)) for number in range(1, 6)], Table.SNAPSHOTS, "append")
    return made


def test_only_names_from_the_oldest_moment_on_are_read_that_moment_included(warehouse: Warehouse) -> None:
    files = [landed("/3", NOON), landed("/9", NOON + timedelta(minutes=1))]

    found = warehouse.select(Table.SNAPSHOTS, ["path"], Wanted(days=[NOON.date()]), ingest._since(files))

    assert sorted(found.column(0).to_pylist()) == ["/3", "/4", "/5"]


def test_a_name_that_tells_no_moment_is_looked_for_everywhere() -> None:
    assert ingest._since([landed("/3", NOON), landed("/x", None)]) == ""


@pytest.mark.parametrize("few", [0, 1_000], ids=["from a moment on", "by name"])
def test_files_that_a_table_names_are_known(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, spark_unused: SparkSession, few: int
) -> None:
    monkeypatch.setattr(ingest, "_FEW", few)
    files = [landed("/3", NOON), landed("/5", NOON + timedelta(minutes=2)), landed("/9", NOON + timedelta(minutes=3))]

    unknown = ingest._Ingest(spark_unused, warehouse, tasks=1)._unknown(files)

    assert [each.path for each in unknown] == ["/9"]


@pytest.fixture
def spark_unused() -> SparkSession:
    """Nothing here asks it."""
    return object.__new__(SparkSession)
