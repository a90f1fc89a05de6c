"""When tables are left as they are: by what their last commits say, without Spark."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from brimline.fleet.jobs.inputs import Inputs
from brimline.fleet.jobs.standing import made_from, stand
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.manifest import with_snapshots
from brimline.fleet.tables.warehouse import Warehouse
from tests.fleet.tables.test_manifest import NOON, snapshot

MADE = (Table.FORECAST, Table.FLEET_SUMMARY)
FIVE = timedelta(minutes=5)


def inputs(warehouse: Warehouse, now: datetime) -> Inputs:
    return Inputs(spark=cast("SparkSession", None), warehouse=warehouse, now=now)


def land(warehouse: Warehouse, minutes: int) -> None:
    found = [snapshot(1, minutes)]
    warehouse.write(found, Table.SNAPSHOTS, "append")
    warehouse.write(with_snapshots([], found), Table.NEWEST, "overwrite")


def make(warehouse: Warehouse, told: Mapping[str, str]) -> None:
    for table in MADE:
        warehouse.commit(table, [], "overwrite", told=told)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A snapshot of noon, and tables that were made five minutes later."""
    made = Warehouse(str(tmp_path))
    land(made, 0)
    make(made, made_from(inputs(made, NOON + FIVE)))
    return made


def test_tables_stand_while_nothing_lands(warehouse: Warehouse) -> None:
    assert stand(inputs(warehouse, NOON + FIVE), MADE)
    assert stand(inputs(warehouse, NOON + 2 * FIVE), MADE)


def test_what_landed_ends_it(warehouse: Warehouse) -> None:
    land(warehouse, 6)

    assert not stand(inputs(warehouse, NOON + 2 * FIVE), MADE)


def test_a_refused_file_ends_it_too(warehouse: Warehouse) -> None:
    refused = {"path": "/x", "reason": "late", "detail": "x", "seen_at": NOON}
    warehouse.write([refused], Table.QUARANTINE, "append")

    assert not stand(inputs(warehouse, NOON + 2 * FIVE), MADE)


def test_a_broker_that_became_silent_since_ends_it(warehouse: Warehouse) -> None:
    assert stand(inputs(warehouse, NOON + timedelta(minutes=14)), MADE)
    assert not stand(inputs(warehouse, NOON + timedelta(minutes=16)), MADE)


def test_an_hour_ends_it_where_all_were_silent_before(warehouse: Warehouse) -> None:
    later = NOON + timedelta(days=1)
    make(warehouse, made_from(inputs(warehouse, later)))

    assert stand(inputs(warehouse, later + timedelta(minutes=59)), MADE)
    assert not stand(inputs(warehouse, later + timedelta(minutes=60)), MADE)
    assert not stand(inputs(warehouse, later - FIVE), MADE)


def test_a_table_that_was_not_made_with_the_others_ends_it(warehouse: Warehouse) -> None:
    assert not stand(inputs(warehouse, NOON + FIVE), (*MADE, Table.FINDINGS))
    warehouse.commit(Table.FORECAST, [], "overwrite")
    assert not stand(inputs(warehouse, NOON + FIVE), MADE)


def test_times_are_in_utc_whatever_the_zone(warehouse: Warehouse) -> None:
    elsewhere = (NOON + 2 * FIVE).astimezone(UTC).astimezone()

    assert stand(inputs(warehouse, elsewhere), MADE)
