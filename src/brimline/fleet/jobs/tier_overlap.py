"""KIP-1187 for a fleet: what of every tiered topic is local, remote, in both, and only here; and uploads that stall.

**Invariant.** A partition counts once, as its leader tells it in the newest snapshot in which one says that it leads.
Where the remote size is not known the partition is in no sum but that of ``unknown_partitions``, with the reason.

**Stalled.** The remote end of a partition has stood still for an hour or more while its log went on, and the log has
more segments than when it stopped: a segment was closed and not uploaded. Without the last condition every slow topic
would stall, because the active segment is never uploaded; so a stall shows once local retention has nothing uploaded
left to remove. ``stalled_since`` looks back as far as history is read, a day.

Only guards tell how many segments a log has. Where no snapshot does, the hour must do. Where some do, only those are
compared; if they are not an hour apart it cannot be told, and the partition is one of ``unjudged_partitions``.
"""

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.fleet.jobs.moments import is_stale
from brimline.fleet.jobs.retention_pressure import with_configs
from brimline.fleet.tables import columns as c
from brimline.model.scan import FolderKind

DAYS_OF_HISTORY = 1
STALLED_AFTER_SECONDS = 3600
_TOPIC = [c.CLUSTER_ID, c.TOPIC, c.TOPIC_ID]
_PARTITION = [*_TOPIC, c.PARTITION]
_IS_REMOTE_KNOWN, _REMOTE_END, _LOG_END, _IS_STALLED = "is_remote_known", "remote_end", "log_end", "is_stalled"
_NEWEST, _STOPPED, _FIRST_TOLD, _LAST_TOLD = "newest", "stopped", "first_told", "last_told"


def tier_overlap(replicas: DataFrame, topic_configs: DataFrame, history: DataFrame, now: datetime) -> DataFrame:
    """``replicas`` and ``topic_configs`` of each broker's newest snapshot; ``history``: replicas of the last days."""
    tiered = with_configs(replicas, topic_configs).where(F.col(c.IS_TIERED) & _is_current())
    leaders = newest_leaders(tiered).withColumn(_IS_REMOTE_KNOWN, _is_remote_known())
    partitions = _joined(leaders, stalls(history))
    topics = partitions.groupBy(*_TOPIC).agg(*_sums())
    topics = _joined(topics, tiered.groupBy(*_TOPIC).agg(*_replica_sums()))
    topics = topics.withColumns(
        {
            c.OVERLAP_BYTES: F.col(c.LOCAL_BYTES) - F.col(c.ONLY_LOCAL_BYTES),
            c.IS_STALE: is_stale(now),
        }
    )
    share = F.col(c.OVERLAP_BYTES) * 100.0 / F.col(c.LOCAL_BYTES)
    return topics.withColumn(c.OVERLAP_PERCENT, F.when(F.col(c.LOCAL_BYTES) > 0, share))


def newest_leaders(replicas: DataFrame) -> DataFrame:
    """A row per partition. Two brokers may both say that they lead, if leadership moved between their snapshots."""
    latest = Window.partitionBy(*_PARTITION).orderBy(F.col(c.TAKEN_AT).desc(), F.col(c.BROKER_ID))
    numbered = replicas.where(c.IS_LEADER).withColumn("number", F.row_number().over(latest))
    return numbered.where(F.col("number") == 1).drop("number")


def stalls(history: DataFrame) -> DataFrame:
    """Partitions whose remote end stands still: since when, and whether that is a stall; null where nobody can tell.

    ``history``: rows of leaders of the last days.
    """
    told = history.where(F.col(c.IS_LEADER) & _is_current() & _is_remote_known())
    facts = F.struct(c.TAKEN_AT, _REMOTE_END, _LOG_END, c.SEGMENTS)
    # Nothing uploaded yet is an end too: one before the first offset.
    told = told.withColumns(
        {
            _REMOTE_END: F.coalesce(c.HIGHEST_REMOTE_OFFSET, F.lit(-1)),
            _LOG_END: F.coalesce(c.LOG_END_OFFSET, c.HIGH_WATERMARK),
        }
    )
    told = told.select(*_PARTITION, facts.alias("at"))
    newest = F.max("at").over(Window.partitionBy(*_PARTITION)).alias(_NEWEST)
    standing = told.select(*_PARTITION, "at", newest).where(
        F.col(f"at.{_REMOTE_END}") == F.col(f"{_NEWEST}.{_REMOTE_END}")
    )
    has_segments = F.col(f"at.{c.SEGMENTS}") > 0
    ends = standing.groupBy(*_PARTITION).agg(
        F.min("at").alias(_STOPPED),
        F.max(_NEWEST).alias(_NEWEST),
        F.min(F.when(has_segments, F.col("at"))).alias(_FIRST_TOLD),
        F.max(F.when(has_segments, F.col("at"))).alias(_LAST_TOLD),
    )
    found = ends.where(_stands_still()).withColumn(_IS_STALLED, _has_rolled())
    return found.select(*_PARTITION, _IS_STALLED, F.col(f"{_STOPPED}.{c.TAKEN_AT}").alias(c.STALLED_SINCE))


def _stands_still() -> Column:
    log_went_on = F.col(f"{_NEWEST}.{_LOG_END}") > F.col(f"{_STOPPED}.{_LOG_END}")
    return _are_apart(_STOPPED, _NEWEST) & log_went_on


def _has_rolled() -> Column:
    has_more = F.col(f"{_LAST_TOLD}.{c.SEGMENTS}") > F.col(f"{_FIRST_TOLD}.{c.SEGMENTS}")
    return F.when(F.col(_FIRST_TOLD).isNull(), F.lit(True)).when(  # noqa: FBT003 - a literal column
        _are_apart(_FIRST_TOLD, _LAST_TOLD), has_more
    )


def _are_apart(first: str, last: str) -> Column:
    seconds = F.unix_seconds(f"{last}.{c.TAKEN_AT}") - F.unix_seconds(f"{first}.{c.TAKEN_AT}")
    return seconds >= STALLED_AFTER_SECONDS


def _sums() -> list[Column]:
    is_known, is_copied = F.col(_IS_REMOTE_KNOWN), ~F.col(c.IS_COPY_DISABLED)
    is_stalled = F.col(_IS_STALLED) & is_copied
    is_unjudged = F.col(c.STALLED_SINCE).isNotNull() & F.col(_IS_STALLED).isNull() & is_copied
    reasons = F.array_join(
        F.array_sort(F.collect_set(F.when(~is_known, F.coalesce(c.REMOTE_REASON, F.lit("not-told"))))), ", "
    )
    return [
        F.count("*").alias(c.PARTITIONS),
        F.sum(F.when(is_known, F.col(c.SIZE_BYTES))).alias(c.LOCAL_BYTES),
        F.sum(F.when(is_known, F.col(c.REMOTE_BYTES))).alias(c.REMOTE_BYTES),
        F.sum(F.when(is_known, F.col(c.ONLY_LOCAL_BYTES))).alias(c.ONLY_LOCAL_BYTES),
        F.count_if(~is_known).alias(c.UNKNOWN_PARTITIONS),
        F.nullif(reasons, F.lit("")).alias(c.UNKNOWN_REASONS),
        F.count_if(is_stalled).alias(c.STALLED_PARTITIONS),
        F.count_if(is_unjudged).alias(c.UNJUDGED_PARTITIONS),
        F.min(F.when(is_stalled, F.col(c.STALLED_SINCE))).alias(c.STALLED_SINCE),
        F.sum(F.when(is_stalled, F.col(c.ONLY_LOCAL_BYTES))).alias(c.WAITING_BYTES),
        F.bool_and(c.IS_COPY_DISABLED).alias(c.IS_COPY_DISABLED),
        F.min(c.TAKEN_AT).alias(c.TAKEN_AT),
    ]


def _replica_sums() -> list[Column]:
    return [F.count("*").alias(c.REPLICAS), F.sum(c.SIZE_BYTES).alias(c.REPLICA_BYTES)]


def _joined(left: DataFrame, right: DataFrame) -> DataFrame:
    """By all keys of ``right`` that name a topic or a partition; an unknown topic id is one that equals itself."""
    keys = [name for name in _PARTITION if name in right.columns]
    other = right.withColumnsRenamed({name: f"other_{name}" for name in keys})
    is_same = [F.col(name).eqNullSafe(F.col(f"other_{name}")) for name in keys]
    return left.join(other, on=is_same, how="left").drop(*(f"other_{name}" for name in keys))


def _is_current() -> Column:
    return F.col(c.KIND) == int(FolderKind.CURRENT)


def _is_remote_known() -> Column:
    return F.col(c.REMOTE_BYTES).isNotNull() & F.col(c.ONLY_LOCAL_BYTES).isNotNull()
