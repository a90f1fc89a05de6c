"""One job for each question. A job reads tables, composes transforms, and gives back the rows of its own table.

Only here are tables read and is anything carried out; the transforms take no session and know no clock. A job that is
interrupted has written nothing: its table is overwritten in one go at the end, and the rerun gives the same rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import StructType

from brimline.decide.fill_rate import READINGS_KEPT
from brimline.fleet.jobs import forecast, growth, tier_overlap
from brimline.fleet.jobs.fleet_summary import fleet_summary
from brimline.fleet.jobs.newest import newest_of_each_broker, of_snapshots, sampled
from brimline.fleet.jobs.reclaim_plan import gains_on_peers, reclaim_plan
from brimline.fleet.jobs.retention_pressure import retention_pressure
from brimline.fleet.jobs.volume_pressure import volume_pressure
from brimline.fleet.planner.rows import PLAN
from brimline.fleet.planner.spark_tasks import rows_on_spark
from brimline.fleet.planner.tasks import SnapshotFile
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.gold_schemas import GOLD, OWN_PLAN
from brimline.fleet.tables.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    name: Table
    run: Callable[[SparkSession, Warehouse, datetime], DataFrame]
    """From the session, the warehouse and the time that counts as now, to the rows of the table."""


def run_job(job: Job, spark: SparkSession, warehouse: Warehouse, now: datetime) -> None:
    """The table as of now, in place of the one before."""
    try:
        warehouse.overwrite(conformed(job.run(spark, warehouse, now), GOLD[job.name]), job.name)
    finally:
        spark.catalog.clearCache()


def conformed(rows: DataFrame, schema: StructType) -> DataFrame:
    """The columns of the schema, in its order and types."""
    return rows.select(*(F.col(field.name).cast(field.dataType).alias(field.name) for field in schema.fields))


def run_volume_pressure(spark: SparkSession, warehouse: Warehouse, now: datetime) -> DataFrame:
    snapshots, volumes = warehouse.read(spark, Table.SNAPSHOTS), warehouse.read(spark, Table.VOLUMES)
    chosen = sampled(_since(snapshots, now, growth.DAYS_OF_HISTORY), READINGS_KEPT)
    history = of_snapshots(_since(volumes, now, growth.DAYS_OF_HISTORY), chosen)
    return volume_pressure(of_snapshots(volumes, newest_of_each_broker(snapshots)), history, now)


def run_tier_overlap(spark: SparkSession, warehouse: Warehouse, now: datetime) -> DataFrame:
    snapshots, replicas = warehouse.read(spark, Table.SNAPSHOTS), warehouse.read(spark, Table.REPLICAS)
    newest = newest_of_each_broker(snapshots)
    chosen = sampled(_since(snapshots, now, tier_overlap.DAYS_OF_HISTORY), 1)
    return tier_overlap.tier_overlap(
        of_snapshots(replicas, newest),
        of_snapshots(warehouse.read(spark, Table.TOPIC_CONFIGS), newest),
        of_snapshots(_since(replicas, now, tier_overlap.DAYS_OF_HISTORY), chosen),
        now,
    )


def run_retention_pressure(spark: SparkSession, warehouse: Warehouse, now: datetime) -> DataFrame:
    newest = newest_of_each_broker(warehouse.read(spark, Table.SNAPSHOTS))
    replicas, configs = (warehouse.read(spark, table) for table in (Table.REPLICAS, Table.TOPIC_CONFIGS))
    return retention_pressure(of_snapshots(replicas, newest), of_snapshots(configs, newest), now)


def run_reclaim_plan(spark: SparkSession, warehouse: Warehouse, now: datetime) -> DataFrame:
    newest = newest_of_each_broker(warehouse.read(spark, Table.SEGMENT_SNAPSHOTS))
    # Twice in what follows, and planned once.
    own = rows_on_spark(spark, snapshot_files(newest), PLAN, OWN_PLAN).persist()
    replicas = of_snapshots(warehouse.read(spark, Table.REPLICAS), newest)
    gains = gains_on_peers(own, replicas, newest.select(c.CLUSTER_ID, c.BROKER_ID, c.PATH))
    return reclaim_plan(own, gains, now)


def run_forecast(spark: SparkSession, warehouse: Warehouse, now: datetime) -> DataFrame:
    snapshots, volumes = warehouse.read(spark, Table.SNAPSHOTS), warehouse.read(spark, Table.VOLUMES)
    history = _since(volumes, now, forecast.DAYS_OF_HISTORY)
    return forecast.forecast_volumes(of_snapshots(volumes, newest_of_each_broker(snapshots)), history, now)


def run_fleet_summary(spark: SparkSession, warehouse: Warehouse, _now: datetime) -> DataFrame:
    return fleet_summary(
        warehouse.read(spark, Table.VOLUME_PRESSURE),
        warehouse.read(spark, Table.TIER_OVERLAP),
        warehouse.read(spark, Table.RETENTION_PRESSURE),
        warehouse.read(spark, Table.RECLAIM_PLAN),
        warehouse.read(spark, Table.QUARANTINE),
    )


def snapshot_files(newest: DataFrame) -> Sequence[SnapshotFile]:
    """The manifest's rows where they are needed: a name for each broker."""
    taken_at_ms = F.unix_millis(c.TAKEN_AT).alias("taken_at_ms")
    rows = newest.select(c.PATH, c.ROWS, c.CLUSTER_ID, c.BROKER_ID, c.SNAPSHOT_ID, taken_at_ms).collect()
    return [
        SnapshotFile(
            path=row[c.PATH],
            segments=row[c.ROWS],
            cluster_id=row[c.CLUSTER_ID],
            broker_id=row[c.BROKER_ID],
            snapshot_id=row[c.SNAPSHOT_ID],
            taken_at_ms=row["taken_at_ms"],
        )
        for row in rows
    ]


def _since(rows: DataFrame, now: datetime, days: int) -> DataFrame:
    """The day first, because it chooses files; then the moment."""
    since = now.astimezone(UTC) - timedelta(days=days)
    return rows.where((F.col(c.TAKEN_ON) >= F.lit(since.date())) & (F.col(c.TAKEN_AT) >= F.lit(since)))


JOBS = (
    Job(name=Table.VOLUME_PRESSURE, run=run_volume_pressure),
    Job(name=Table.TIER_OVERLAP, run=run_tier_overlap),
    Job(name=Table.RETENTION_PRESSURE, run=run_retention_pressure),
    Job(name=Table.RECLAIM_PLAN, run=run_reclaim_plan),
    Job(name=Table.FORECAST, run=run_forecast),
    Job(name=Table.FLEET_SUMMARY, run=run_fleet_summary),
)
"""In this order: the last one reads what the others wrote."""
