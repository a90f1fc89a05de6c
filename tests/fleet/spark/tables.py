"""Whole tables to compare: every row, in one order, without the columns that say when somebody worked on it."""

from pyspark.sql import SparkSession

from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.schemas import BRONZE
from brimline.fleet.tables.warehouse import Warehouse

_WHEN_WORKED_ON = {c.INGESTED_AT, c.SEEN_AT}

Rows = list[tuple[str, ...]]


def rows_of(spark: SparkSession, warehouse: Warehouse, table: Table) -> Rows:
    found = warehouse.read(spark, table)
    columns = [name for name in found.columns if name not in _WHEN_WORKED_ON]
    return sorted(tuple(map(str, row)) for row in found.select(*columns).collect())


def bronze(spark: SparkSession, warehouse: Warehouse) -> dict[str, Rows]:
    return {table.value: rows_of(spark, warehouse, table) for table in BRONZE}
