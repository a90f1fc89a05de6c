"""The schemas of the tables that answer, all of them, nullability stated. Unknown is null and has a state that says so.

The order of the columns is the order in which people read them.
"""

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from brimline.fleet.tables import columns as c
from brimline.fleet.tables import columns as g
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.schemas import FINDINGS

_STRING = StringType()
_INT = IntegerType()
_LONG = LongType()
_BOOL = BooleanType()
_DOUBLE = DoubleType()
_TIME = TimestampType()


def _known(name: str, kind: DataType) -> StructField:
    return StructField(name, kind, nullable=False)


def _maybe(name: str, kind: DataType) -> StructField:
    return StructField(name, kind, nullable=True)


VOLUME_PRESSURE = StructType(
    [
        _known(c.CLUSTER_ID, _STRING),
        _known(c.BROKER_ID, _INT),
        _known(c.LOG_DIR, _STRING),
        _maybe(c.DEVICE, _STRING),
        _known(c.STATE, _STRING),
        _maybe(g.USED_PERCENT, _DOUBLE),
        _maybe(c.TOTAL_BYTES, _LONG),
        _maybe(c.USABLE_BYTES, _LONG),
        _maybe(g.USED_BYTES, _LONG),
        _maybe(g.GROWTH_BYTES_PER_DAY, _DOUBLE),
        # days | readings
        _maybe(g.GROWTH_FROM, _STRING),
        _maybe(g.DAYS_TO_FENCE, _DOUBLE),
        _maybe(g.BYTES_TO_FENCE, _LONG),
        _maybe(g.DAYS_TO_CEILING, _DOUBLE),
        _maybe(g.BYTES_TO_CEILING, _LONG),
        _maybe(g.BREACHES, _STRING),
        _maybe(g.GUARD_STATE, _STRING),
        _maybe(c.FAILURE, _STRING),
        _maybe(c.IS_OFFLINE, _BOOL),
        _known(c.MAX_USED_PERCENT, _INT),
        _known(c.MIN_FREE_BYTES, _LONG),
        _known(c.RELEASE_MARGIN_PERCENT, _INT),
        _known(c.CEILING_PERCENT, _INT),
        # guard | default
        _known(g.LIMITS_FROM, _STRING),
        # As far back as history goes
        _maybe(g.DEVICE_SINCE, _TIME),
        _known(c.TAKEN_AT, _TIME),
        _known(c.SOURCE, _STRING),
        _known(g.AGE_SECONDS, _LONG),
        _known(g.IS_STALE, _BOOL),
    ]
)

GROWTH = StructType(
    [
        _known(c.CLUSTER_ID, _STRING),
        _known(c.BROKER_ID, _INT),
        _known(c.LOG_DIR, _STRING),
        _known(g.DEVICE_SINCE, _TIME),
        _maybe(g.GROWTH_BYTES_PER_DAY, _DOUBLE),
        _maybe(g.GROWTH_FROM, _STRING),
    ]
)
"""How the log dirs grew: a step on the way to ``volume_pressure``."""

TIER_OVERLAP = StructType(
    [
        _known(c.CLUSTER_ID, _STRING),
        _known(c.TOPIC, _STRING),
        _maybe(c.TOPIC_ID, _STRING),
        _known(g.PARTITIONS, _LONG),
        _known(g.REPLICAS, _LONG),
        # Of the leaders, whose remote part is known
        _maybe(g.LOCAL_BYTES, _LONG),
        _maybe(c.REMOTE_BYTES, _LONG),
        _maybe(c.ONLY_LOCAL_BYTES, _LONG),
        _maybe(g.OVERLAP_BYTES, _LONG),
        _maybe(g.OVERLAP_PERCENT, _DOUBLE),
        # Of all replicas
        _maybe(g.REPLICA_BYTES, _LONG),
        _known(g.UNKNOWN_PARTITIONS, _LONG),
        _maybe(g.UNKNOWN_REASONS, _STRING),
        _known(g.STALLED_PARTITIONS, _LONG),
        _maybe(g.STALLED_SINCE, _TIME),
        _maybe(g.WAITING_BYTES, _LONG),
        _known(c.IS_COPY_DISABLED, _BOOL),
        _known(c.TAKEN_AT, _TIME),
        _known(g.IS_STALE, _BOOL),
    ]
)

RETENTION_PRESSURE = StructType(
    [
        # Among the cluster's replicas, the fullest first; null where no figure is known
        _maybe(g.RANK, _INT),
        _known(c.CLUSTER_ID, _STRING),
        _known(c.TOPIC, _STRING),
        _known(c.PARTITION, _INT),
        _known(c.BROKER_ID, _INT),
        _maybe(g.PRESSURE_PERCENT, _LONG),
        # limited | unlimited | unknown
        _known(g.LIMIT, _STRING),
        _maybe(g.PLAIN_PERCENT, _LONG),
        _maybe(g.TIERED_PERCENT, _LONG),
        _maybe(g.LOCAL_PERCENT, _LONG),
        _maybe(c.SIZE_BYTES, _LONG),
        _maybe(c.RETENTION_BYTES, _LONG),
        _maybe(c.LOCAL_RETENTION_BYTES, _LONG),
        _maybe(c.REMOTE_BYTES, _LONG),
        _maybe(c.ONLY_LOCAL_BYTES, _LONG),
        _maybe(c.REMOTE_REASON, _STRING),
        _known(g.IS_FUTURE, _BOOL),
        _maybe(c.IS_LEADER, _BOOL),
        _maybe(g.GUARD_PERCENT, _DOUBLE),
        _maybe(g.EQUALS_GUARD, _BOOL),
        _known(c.LOG_DIR, _STRING),
        _maybe(c.TOPIC_ID, _STRING),
        _known(c.TAKEN_AT, _TIME),
        _known(g.IS_STALE, _BOOL),
    ]
)

OWN_PLAN = StructType(
    [
        _known(c.CLUSTER_ID, _STRING),
        _known(c.BROKER_ID, _INT),
        _known(c.SNAPSHOT_ID, _STRING),
        _known(c.TAKEN_AT, _TIME),
        _maybe(c.FAILURE, _STRING),
        _maybe(c.DEVICE, _STRING),
        _maybe(g.DEVICE_LOG_DIRS, ArrayType(_STRING)),
        _known(g.DEVICE_OUTCOME, _STRING),
        _maybe(g.DEVICE_CEILING_PERCENT, _INT),
        _maybe(g.DEVICE_TOTAL_BYTES, _LONG),
        _maybe(g.DEVICE_USED_BYTES, _LONG),
        _maybe(g.DEVICE_LIMIT_BYTES, _LONG),
        _maybe(g.DEVICE_GOING_BYTES, _LONG),
        _maybe(g.DEVICE_EXCESS_BYTES, _LONG),
        _maybe(g.DEVICE_REMOVABLE_BYTES, _LONG),
        _maybe(g.DEVICE_TAKEN_BYTES, _LONG),
        _maybe(g.DEVICE_TAKEN_SEGMENTS, _LONG),
        _maybe(g.DEVICE_MISSING_BYTES, _LONG),
        _maybe(g.DEVICE_LOCAL_RETENTION_BYTES, _LONG),
        _maybe(c.LOG_DIR, _STRING),
        _maybe(c.TOPIC, _STRING),
        _maybe(c.TOPIC_ID, _STRING),
        _maybe(c.PARTITION, _INT),
        _maybe(g.FROM_OFFSET, _LONG),
        _maybe(g.NEW_LOG_START_OFFSET, _LONG),
        _maybe(g.TAKEN_SEGMENTS, _LONG),
        _maybe(g.TAKEN_BYTES, _LONG),
        _maybe(g.OLDEST_AT, _TIME),
        _maybe(g.NEWEST_AT, _TIME),
    ]
)
"""What each guard would do by itself: ``planner_rows.PLAN_ROWS`` in Spark's words."""

PEER_GAINS = StructType(
    [
        _known(c.CLUSTER_ID, _STRING),
        _known(c.BROKER_ID, _INT),
        _maybe(c.LOG_DIR, _STRING),
        _maybe(c.TOPIC, _STRING),
        _known(c.TOPIC_ID, _STRING),
        _known(c.PARTITION, _INT),
        _known(g.TRIMMED_BY, _INT),
        _known(g.NEW_LOG_START_OFFSET, _LONG),
        _maybe(g.GAINED_SEGMENTS, _LONG),
        _maybe(g.GAINED_BYTES, _LONG),
    ]
)
"""What the others' trims free on each broker: ``planner_gains.GAIN_ROWS`` in Spark's words."""

RECLAIM_PLAN = StructType(
    [
        *OWN_PLAN.fields,
        _maybe(g.OTHER_REPLICAS, _LONG),
        _maybe(g.OTHERS_GAIN_BYTES, _LONG),
        _maybe(g.PEER_LOG_START_OFFSET, _LONG),
        _maybe(g.PEER_FREED_BYTES, _LONG),
        _maybe(g.TAKEN_BY_PEER_TOO_BYTES, _LONG),
        _maybe(g.FREED_BYTES, _LONG),
        _known(g.IS_STALE, _BOOL),
    ]
)

FORECAST = StructType(
    [
        _known(c.CLUSTER_ID, _STRING),
        _known(c.BROKER_ID, _INT),
        _known(c.DEVICE, _STRING),
        # All that are on the device, with a comma between them
        _known(g.LOG_DIRS_OF_DEVICE, _STRING),
        # full | filling | not-filling | too-short | stale | unreadable | no-limit
        _known(g.OUTLOOK, _STRING),
        # From the newest reading on; null: not within a year, or unknown
        _maybe(g.DAYS_TO_FULL, _DOUBLE),
        _maybe(g.SOONEST_DAYS, _DOUBLE),
        _maybe(g.LATEST_DAYS, _DOUBLE),
        _maybe(g.FULL_AT, _TIME),
        _maybe(g.USED_PERCENT, _DOUBLE),
        _maybe(g.GROWTH_BYTES_PER_DAY, _DOUBLE),
        # Points of used percent that the same rule was off by, a week ahead, in the device's own past
        _maybe(g.BACK_TEST_ERROR_POINTS, _DOUBLE),
        _known(g.BACK_TESTS, _LONG),
        _known(g.DAYS_KNOWN, _LONG),
        _maybe(g.LIMIT_BYTES, _LONG),
        _maybe(c.TOTAL_BYTES, _LONG),
        # guard | default
        _known(g.LIMITS_FROM, _STRING),
        _maybe(g.AS_OF, _TIME),
    ]
)

FLEET_SUMMARY = StructType(
    [
        # Null: files in quarantine that do not say whose they are
        _maybe(c.CLUSTER_ID, _STRING),
        _known(g.BROKERS, _LONG),
        _known(g.STALE_BROKERS, _LONG),
        _known(g.LOG_DIRS, _LONG),
        _known(g.DEVICES, _LONG),
        _known(g.OK_LOG_DIRS, _LONG),
        _known(g.FULL_LOG_DIRS, _LONG),
        _known(g.UNKNOWN_LOG_DIRS, _LONG),
        _known(g.OFFLINE_LOG_DIRS, _LONG),
        # Each device once; null when no device's bytes are known
        _maybe(c.TOTAL_BYTES, _LONG),
        _maybe(c.USABLE_BYTES, _LONG),
        _maybe(g.USED_BYTES, _LONG),
        _maybe(g.USED_PERCENT, _DOUBLE),
        _maybe(g.WORST_USED_PERCENT, _DOUBLE),
        _maybe(g.WORST_BROKER_ID, _INT),
        _maybe(g.WORST_LOG_DIR, _STRING),
        _maybe(g.DAYS_TO_FENCE, _DOUBLE),
        _maybe(g.FIRST_TO_FILL_BROKER_ID, _INT),
        _maybe(g.FIRST_TO_FILL_LOG_DIR, _STRING),
        _known(g.OVER_RETENTION_REPLICAS, _LONG),
        _known(g.STALLED_PARTITIONS, _LONG),
        _known(g.RECLAIM_BYTES, _LONG),
        _known(g.IMPOSSIBLE_DEVICES, _LONG),
        _known(g.UNUSABLE_SNAPSHOTS, _LONG),
        _known(g.QUARANTINED_FILES, _LONG),
        _maybe(c.TAKEN_AT, _TIME),
    ]
)

GOLD: Mapping[Table, StructType] = {
    Table.FINDINGS: FINDINGS,
    Table.VOLUME_PRESSURE: VOLUME_PRESSURE,
    Table.TIER_OVERLAP: TIER_OVERLAP,
    Table.RETENTION_PRESSURE: RETENTION_PRESSURE,
    Table.RECLAIM_PLAN: RECLAIM_PLAN,
    Table.FORECAST: FORECAST,
    Table.FLEET_SUMMARY: FLEET_SUMMARY,
}
