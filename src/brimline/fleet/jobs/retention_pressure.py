"""KIP-1257 for a fleet: how much of its retention does every replica use, in percent, the fullest first.

**Invariant.** The figures are those of ``decide.retention_percent``, to the digit: cut and not rounded, not capped, 0
where there is no limit. ``plain_percent`` is the bean of every replica; ``tiered_percent`` and ``local_percent`` are
the beans of a tiered partition, and its leader alone has them. ``limit`` says what holds the log: ``limited`` by size,
``time`` by ``retention.ms`` alone, ``unlimited`` by neither. What is not known gives no figure: ``limit`` says
``unknown`` where the topic's configuration is not known, ``remote_reason`` why a remote size is not.

``guard_percent`` is what the guard itself made of the same reading, where the snapshot has it, and ``equals_guard``
says whether both agree.
"""

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.fleet.jobs.disk_rules import hundred_times_over
from brimline.fleet.jobs.moments import is_stale
from brimline.fleet.tables import columns as c
from brimline.model.partitions import USE_RETENTION_BYTES
from brimline.model.scan import REPLICA_FOLDERS, FolderKind

LIMITED, BY_TIME, UNLIMITED, UNKNOWN = "limited", "time", "unlimited", "unknown"
_PLAIN_LIMIT, _IS_LED_TIERED = "plain_limit", "is_led_tiered"
_CONFIG_KEY = (c.SNAPSHOT_ID, c.TOPIC, c.TOPIC_ID)
_CONFIGS = (
    c.IS_KNOWN,
    c.DELETES,
    c.RETENTION_MS,
    c.RETENTION_BYTES,
    c.LOCAL_RETENTION_BYTES,
    c.IS_TIERED,
    c.IS_COPY_DISABLED,
)


def retention_pressure(replicas: DataFrame, topic_configs: DataFrame, now: datetime) -> DataFrame:
    """Both of the newest snapshot of each broker."""
    rows = with_configs(replicas, topic_configs)
    rows = rows.withColumns(
        {
            c.IS_FUTURE: F.col(c.KIND) == int(FolderKind.FUTURE),
            _PLAIN_LIMIT: F.when(_is_copying(), F.lit(0)).otherwise(F.col(c.RETENTION_BYTES)),
            c.LOCAL_RETENTION_BYTES: _effective_local(),
            _IS_LED_TIERED: _is_led_tiered(),
        }
    )
    rows = rows.withColumns(_figures())
    rows = rows.withColumns(
        {
            c.PRESSURE_PERCENT: F.greatest(c.PLAIN_PERCENT, c.TIERED_PERCENT, c.LOCAL_PERCENT),
            c.LIMIT: _limit(),
            c.GUARD_PERCENT: F.col(c.BYTES_PERCENT),
            c.EQUALS_GUARD: F.col(c.BYTES_PERCENT) == F.col(c.PLAIN_PERCENT),
            c.IS_STALE: is_stale(now),
        }
    )
    return ranked(rows)


def with_configs(replicas: DataFrame, topic_configs: DataFrame) -> DataFrame:
    """Replicas, current and future, with what their own broker computes for their topics."""
    held = replicas.where(F.col(c.KIND).isin([int(kind) for kind in REPLICA_FOLDERS]) & F.col(c.TOPIC).isNotNull())
    known = topic_configs.where(c.IS_KNOWN).select(
        *(F.col(name).alias(f"config_{name}") for name in _CONFIG_KEY), *_CONFIGS
    )
    # By id too: a topic that was made anew may be there twice. An id that is not known is one that equals itself.
    is_same = [F.col(name).eqNullSafe(F.col(f"config_{name}")) for name in _CONFIG_KEY]
    return held.join(known, on=is_same, how="left").drop(*(f"config_{name}" for name in _CONFIG_KEY))


def ranked(rows: DataFrame) -> DataFrame:
    fullest = Window.partitionBy(c.CLUSTER_ID).orderBy(F.col(c.PRESSURE_PERCENT).desc_nulls_last())
    return rows.withColumn(c.RANK, F.when(F.col(c.PRESSURE_PERCENT).isNotNull(), F.rank().over(fullest)))


def _figures() -> dict[str, Column]:
    whole = F.col(c.ONLY_LOCAL_BYTES) + F.col(c.REMOTE_BYTES)
    is_led = F.col(_IS_LED_TIERED)
    return {
        c.PLAIN_PERCENT: _percent_of(F.col(c.SIZE_BYTES), F.col(_PLAIN_LIMIT)),
        c.TIERED_PERCENT: F.when(is_led, _percent_of(whole, F.col(c.RETENTION_BYTES))),
        c.LOCAL_PERCENT: F.when(is_led, _percent_of(F.col(c.SIZE_BYTES), F.col(c.LOCAL_RETENTION_BYTES))),
    }


def _percent_of(size: Column, limit: Column) -> Column:
    """What has no limit is 0 whatever its size; an unknown size or limit gives no figure."""
    return F.when(limit <= 0, F.lit(0)).when(limit.isNotNull(), hundred_times_over(size, limit))


def _is_copying() -> Column:
    return F.col(c.IS_TIERED) & ~F.col(c.IS_COPY_DISABLED)


def _effective_local() -> Column:
    """Of a tiered topic; others have no local limit of their own."""
    local = F.col(c.LOCAL_RETENTION_BYTES)
    effective = F.when(local == USE_RETENTION_BYTES, F.col(c.RETENTION_BYTES)).otherwise(local)
    return F.when(F.col(c.IS_TIERED), effective)


def _is_led_tiered() -> Column:
    is_current = F.col(c.KIND) == int(FolderKind.CURRENT)
    return F.col(c.IS_TIERED) & F.col(c.IS_LEADER) & is_current


def _limit() -> Column:
    is_limited = (F.col(_PLAIN_LIMIT) > 0) | _has_tiered_limit()
    is_by_time = F.col(c.DELETES) & (F.col(c.RETENTION_MS) >= 0)
    known = F.when(is_limited, LIMITED).when(is_by_time, BY_TIME).otherwise(UNLIMITED)
    return F.when(F.col(c.IS_KNOWN).isNull(), UNKNOWN).otherwise(known)


def _has_tiered_limit() -> Column:
    largest = F.greatest(c.RETENTION_BYTES, c.LOCAL_RETENTION_BYTES)
    return F.col(c.IS_TIERED) & (largest > 0)
