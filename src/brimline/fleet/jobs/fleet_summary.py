"""The fleet in one row per cluster: how many brokers, how full, which volume is worst, and which fills first.

Every table's rows become a few figures under common names, and all of them are added up by cluster in one go: a join
for each table would cost more than all the rest.
"""

from datetime import UTC, datetime, timedelta
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.decide.disk_state import DiskState
from brimline.fleet.planner.rows import SNAPSHOT_UNUSABLE
from brimline.fleet.tables import columns as c
from brimline.model.reclaim_plan import DeviceOutcome

DAYS_KEPT = 400
_SUMS = (
    c.LOG_DIRS,
    c.DEVICES,
    c.OK_LOG_DIRS,
    c.FULL_LOG_DIRS,
    c.UNKNOWN_LOG_DIRS,
    c.OFFLINE_LOG_DIRS,
    c.OVER_RETENTION_REPLICAS,
    c.STALLED_PARTITIONS,
    c.RECLAIM_BYTES,
    c.QUARANTINED_FILES,
)
_SIZES = (c.TOTAL_BYTES, c.USABLE_BYTES, c.USED_BYTES)
_BROKER, _STALE_BROKER, _UNUSABLE_BROKER, _IMPOSSIBLE_DEVICE = "broker", "stale_broker", "unusable", "impossible"
_DISTINCT = {
    c.BROKERS: _BROKER,
    c.STALE_BROKERS: _STALE_BROKER,
    c.UNUSABLE_SNAPSHOTS: _UNUSABLE_BROKER,
    c.IMPOSSIBLE_DEVICES: _IMPOSSIBLE_DEVICE,
}
_WORST, _FIRST = "worst", "first"

_IMPOSSIBLE = (DeviceOutcome.FLOOR_REACHED.label, DeviceOutcome.NO_CURE.label)


def fleet_summary(
    volume_pressure: DataFrame,
    tier_overlap: DataFrame,
    retention_pressure: DataFrame,
    reclaim_plan: DataFrame,
    quarantine: DataFrame,
) -> DataFrame:
    """Of the tables that were just made. A cluster of which there is nothing but refused files has a row too."""
    figures = (
        of_devices(volume_pressure),
        tier_overlap.select(c.CLUSTER_ID, c.STALLED_PARTITIONS),
        _one_each(retention_pressure.where(F.col(c.PRESSURE_PERCENT) > 100), c.OVER_RETENTION_REPLICAS),
        _of_plan(reclaim_plan),
        _one_each(quarantine, c.QUARANTINED_FILES),
    )
    together = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), figures)
    clusters = together.groupBy(c.CLUSTER_ID).agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _SUMS),
        *(F.sum(name).alias(name) for name in _SIZES),
        *(F.size(F.collect_set(name)).alias(count) for count, name in _DISTINCT.items()),
        F.max(_WORST).alias(_WORST),
        F.min(_FIRST).alias(_FIRST),
        F.max(c.TAKEN_AT).alias(c.TAKEN_AT),
    )
    share = F.col(c.USED_BYTES) * 100.0 / F.col(c.TOTAL_BYTES)
    return clusters.withColumns(
        {
            c.USED_PERCENT: F.when(F.col(c.TOTAL_BYTES) > 0, share),
            c.WORST_USED_PERCENT: F.col(f"{_WORST}.{c.USED_PERCENT}"),
            c.WORST_BROKER_ID: F.col(f"{_WORST}.{c.BROKER_ID}"),
            c.WORST_LOG_DIR: F.col(f"{_WORST}.{c.LOG_DIR}"),
            c.DAYS_TO_FENCE: F.col(f"{_FIRST}.{c.DAYS_TO_FENCE}"),
            c.FIRST_TO_FILL_BROKER_ID: F.col(f"{_FIRST}.{c.BROKER_ID}"),
            c.FIRST_TO_FILL_LOG_DIR: F.col(f"{_FIRST}.{c.LOG_DIR}"),
        }
    )


def with_history(summary: DataFrame, history: DataFrame, now: datetime) -> DataFrame:
    """The history of before, with this summary as its day's: the last of a day stays."""
    today = now.astimezone(UTC).date()
    first = F.lit(today - timedelta(days=DAYS_KEPT))
    earlier = history.where((F.col(c.DAY) >= first) & (F.col(c.DAY) < F.lit(today)))
    return earlier.unionByName(summary.withColumn(c.DAY, F.lit(today)))


def of_devices(volume_pressure: DataFrame) -> DataFrame:
    """A row per device: log dirs that share a device share its bytes, so each device counts once."""
    device = F.coalesce(c.DEVICE, c.LOG_DIR).alias("on_device")
    worst = F.struct(c.USED_PERCENT, c.BROKER_ID, c.LOG_DIR)
    first = F.struct(c.DAYS_TO_FENCE, c.BROKER_ID, c.LOG_DIR)
    devices = volume_pressure.groupBy(c.CLUSTER_ID, c.BROKER_ID, device).agg(
        F.count("*").alias(c.LOG_DIRS),
        F.count_if(F.col(c.STATE) == DiskState.OK.value).alias(c.OK_LOG_DIRS),
        F.count_if(F.col(c.STATE) == DiskState.FULL.value).alias(c.FULL_LOG_DIRS),
        F.count_if(F.col(c.STATE) == DiskState.UNKNOWN.value).alias(c.UNKNOWN_LOG_DIRS),
        F.count_if(F.col(c.STATE) == DiskState.OFFLINE.value).alias(c.OFFLINE_LOG_DIRS),
        F.max(c.TOTAL_BYTES).alias(c.TOTAL_BYTES),
        F.min(c.USABLE_BYTES).alias(c.USABLE_BYTES),
        F.max(c.USED_BYTES).alias(c.USED_BYTES),
        F.max(F.when(F.col(c.USED_PERCENT).isNotNull(), worst)).alias(_WORST),
        F.min(F.when(F.col(c.DAYS_TO_FENCE).isNotNull(), first)).alias(_FIRST),
        F.bool_or(c.IS_STALE).alias(c.IS_STALE),
        F.max(c.TAKEN_AT).alias(c.TAKEN_AT),
    )
    return devices.withColumns(
        {
            c.DEVICES: F.lit(1),
            _BROKER: F.col(c.BROKER_ID),
            _STALE_BROKER: F.when(F.col(c.IS_STALE), F.col(c.BROKER_ID)),
        }
    ).drop(c.BROKER_ID, "on_device", c.IS_STALE)


def _of_plan(reclaim_plan: DataFrame) -> DataFrame:
    outcome, broker = F.col(c.DEVICE_OUTCOME), F.col(c.BROKER_ID)
    device = F.concat_ws(" ", broker.cast("string"), F.col(c.DEVICE))
    return reclaim_plan.select(
        c.CLUSTER_ID,
        F.col(c.FREED_BYTES).alias(c.RECLAIM_BYTES),
        F.when(outcome.isin(*_IMPOSSIBLE), device).alias(_IMPOSSIBLE_DEVICE),
        F.when(outcome == SNAPSHOT_UNUSABLE, broker).alias(_UNUSABLE_BROKER),
    )


def _one_each(rows: DataFrame, name: str) -> DataFrame:
    return rows.select(c.CLUSTER_ID, F.lit(1).alias(name))
