"""One job for each question. A job reads tables, composes transforms, and gives back the rows of its own table.

Only here are tables read and is anything carried out; the transforms take no session and know no clock. A job that is
interrupted has written nothing: its table is overwritten in one go at the end, and the rerun gives the same rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from brimline.fleet.ingest.findings import DAYS_LOOKED_AT as FINDINGS_DAYS
from brimline.fleet.ingest.findings import findings
from brimline.fleet.jobs import forecast, tier_overlap
from brimline.fleet.jobs.fleet_summary import fleet_summary, with_history
from brimline.fleet.jobs.inputs import Inputs
from brimline.fleet.jobs.moments import of_snapshots, sampled
from brimline.fleet.jobs.reclaim_plan import gains_on_peers, reclaim_plan
from brimline.fleet.jobs.retention_pressure import retention_pressure
from brimline.fleet.jobs.volume_pressure import volume_pressure
from brimline.fleet.planner.rows import PLAN
from brimline.fleet.planner.spark_tasks import rows_on_spark
from brimline.fleet.planner.tasks import SnapshotFile
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.gold_schemas import GOLD, OWN_PLAN
from brimline.fleet.tables.manifest import planned_from
from brimline.fleet.tables.warehouse import Wanted, nullable


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    name: Table
    run: Callable[[Inputs], DataFrame]
    """To the rows of the table."""


def run_job(job: Job, inputs: Inputs, told: Mapping[str, str] | None = None) -> int:
    """The table as of now, in place of the one before; how many rows it has. ``told``: what its commit says."""
    try:
        rows = conformed(job.run(inputs), GOLD[job.name])
        return inputs.warehouse.overwrite(rows, job.name, told, is_small=inputs.is_small)
    finally:
        inputs.forget()


def conformed(rows: DataFrame, schema: StructType) -> DataFrame:
    """The columns of the schema, in its order and types, and no others."""
    return rows.to(nullable(schema))


def run_findings(inputs: Inputs) -> DataFrame:
    return findings(inputs.since(Table.VOLUMES, FINDINGS_DAYS), inputs.since(Table.TOPIC_CONFIGS, FINDINGS_DAYS))


def run_volume_pressure(inputs: Inputs) -> DataFrame:
    history = inputs.since(Table.VOLUMES, forecast.DAYS_OF_HISTORY)
    return volume_pressure(inputs.of_newest(Table.VOLUMES), history, inputs.all(Table.FORECAST), inputs.now)


def run_tier_overlap(inputs: Inputs) -> DataFrame:
    chosen = sampled(inputs.since(Table.SNAPSHOTS, tier_overlap.DAYS_OF_HISTORY), 1)
    return tier_overlap.tier_overlap(
        inputs.of_newest(Table.REPLICAS),
        inputs.of_newest(Table.TOPIC_CONFIGS),
        of_snapshots(inputs.since(Table.REPLICAS, tier_overlap.DAYS_OF_HISTORY), chosen),
        inputs.now,
    )


def run_retention_pressure(inputs: Inputs) -> DataFrame:
    return retention_pressure(inputs.of_newest(Table.REPLICAS), inputs.of_newest(Table.TOPIC_CONFIGS), inputs.now)


def run_reclaim_plan(inputs: Inputs) -> DataFrame:
    files = planned_from(inputs.newest)
    own = inputs.kept(rows_on_spark(inputs.spark, files, PLAN, OWN_PLAN))
    wanted = Wanted.of({each.snapshot_id: _moment(each) for each in files})
    replicas = inputs.warehouse.read(inputs.spark, Table.REPLICAS, wanted)
    gains = inputs.kept(gains_on_peers(own, replicas, _names(inputs, files)))
    return reclaim_plan(own, gains, inputs.now)


def run_forecast(inputs: Inputs) -> DataFrame:
    history = inputs.since(Table.VOLUMES, forecast.DAYS_OF_HISTORY)
    return forecast.forecast_volumes(inputs.of_newest(Table.VOLUMES), history, inputs.now)


def run_fleet_summary(inputs: Inputs) -> DataFrame:
    made = (Table.VOLUME_PRESSURE, Table.TIER_OVERLAP, Table.RETENTION_PRESSURE, Table.RECLAIM_PLAN, Table.QUARANTINE)
    return fleet_summary(*(inputs.all(table) for table in made))


def run_fleet_history(inputs: Inputs) -> DataFrame:
    return with_history(inputs.all(Table.FLEET_SUMMARY), inputs.all(Table.FLEET_HISTORY), inputs.now)


def _names(inputs: Inputs, files: Sequence[SnapshotFile]) -> DataFrame:
    rows = [(each.cluster_id, each.broker_id, each.path) for each in files]
    return inputs.spark.createDataFrame(rows, f"{c.CLUSTER_ID} string, {c.BROKER_ID} int, {c.PATH} string")


def _moment(file: SnapshotFile) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=file.taken_at_ms)


JOBS = (
    Job(name=Table.FINDINGS, run=run_findings),
    Job(name=Table.FORECAST, run=run_forecast),
    Job(name=Table.VOLUME_PRESSURE, run=run_volume_pressure),
    Job(name=Table.TIER_OVERLAP, run=run_tier_overlap),
    Job(name=Table.RETENTION_PRESSURE, run=run_retention_pressure),
    Job(name=Table.RECLAIM_PLAN, run=run_reclaim_plan),
    Job(name=Table.FLEET_SUMMARY, run=run_fleet_summary),
    Job(name=Table.FLEET_HISTORY, run=run_fleet_history),
)
"""In this order: ``volume_pressure`` reads ``forecast``, and the last two what the others wrote."""
