"""KIP-827 and KIP-1201 for a fleet: how full is every log dir's volume, in which state, and when does it reach a limit?

**Invariant.** The state is what the guard says of the same reading by the same limits (``disk_rules``), but ``offline``
where the broker says so. A volume that cannot be read is ``unknown`` and has no percentage; a broker that is silent
keeps its last row, marked as stale.

Limits are those of the newest snapshot that has some; ``limits_from`` says ``default`` where no guard ever told any.

How fast a volume fills is asked of ``forecast``, which has one answer for all tables: ``days_to_fence`` is its
``days_to_full``.
"""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.decide.disk_state import DiskLimits
from brimline.fleet.jobs import disk_rules
from brimline.fleet.jobs.moments import age_seconds, is_stale
from brimline.fleet.tables import columns as c
from brimline.model.reclaim import CEILING_OFF

FROM_GUARD, FROM_DEFAULT = "guard", "default"
_LOG_DIR = [c.CLUSTER_ID, c.BROKER_ID, c.LOG_DIR]
_DEVICE = [c.CLUSTER_ID, c.BROKER_ID, c.DEVICE]
_DEFAULTS = DiskLimits()
_DEFAULT_LIMITS = {
    c.MAX_USED_PERCENT: _DEFAULTS.max_used_percent,
    c.MIN_FREE_BYTES: int(_DEFAULTS.min_free_bytes),
    c.RELEASE_MARGIN_PERCENT: _DEFAULTS.release_margin_percent,
    c.CEILING_PERCENT: CEILING_OFF,
    c.RESERVE_BYTES: int(_DEFAULTS.reserve),
    c.FEWEST_FILES: _DEFAULTS.min_free_files,
}


def volume_pressure(volumes: DataFrame, history: DataFrame, forecast: DataFrame, now: datetime) -> DataFrame:
    """``volumes``: of the newest snapshot of each broker; ``history``: of the last days; ``forecast``: the table."""
    rows = with_limits(volumes, volumes.unionByName(history))
    filling = forecast.select(*_DEVICE, c.GROWTH_BYTES_PER_DAY, c.DAYS_TO_FULL)
    rows = rows.join(filling, on=_DEVICE, how="left")
    rows = rows.withColumnRenamed(c.STATE, c.GUARD_STATE).withColumn(c.USED_BYTES, disk_rules.used_bytes())
    rows = rows.withColumns(
        {
            c.USED_PERCENT: disk_rules.used_percent(),
            c.STATE: disk_rules.state(),
            c.BREACHES: disk_rules.breaches(),
            c.AGE_SECONDS: age_seconds(now),
            c.IS_STALE: is_stale(now),
            c.BYTES_TO_FENCE: disk_rules.bytes_to_fence(),
            c.BYTES_TO_CEILING: disk_rules.bytes_to_ceiling(),
        }
    )
    return rows.withColumns(
        {c.DAYS_TO_FENCE: disk_rules.days_to_fence(), c.DAYS_TO_CEILING: disk_rules.days_to_ceiling()}
    )


def with_limits(rows: DataFrame, told_by: DataFrame) -> DataFrame:
    names = list(_DEFAULT_LIMITS)
    told = told_by.where(F.col(c.MAX_USED_PERCENT).isNotNull())
    told = told.groupBy(*_LOG_DIR).agg(F.max_by(F.struct(*names), F.col(c.TAKEN_AT)).alias("limits"))
    joined = rows.drop(*names).join(told, on=_LOG_DIR, how="left")
    limits = {name: F.coalesce(f"limits.{name}", F.lit(default)) for name, default in _DEFAULT_LIMITS.items()}
    whose = F.when(F.col("limits").isNotNull(), FROM_GUARD).otherwise(FROM_DEFAULT)
    return joined.withColumns({**limits, c.LIMITS_FROM: whose}).drop("limits")
