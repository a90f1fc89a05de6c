"""The schemas of the tables that answer, all of them, nullability stated. Unknown is null and has a state that says so.

The order of the columns is the order in which people read them.
"""

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    DateType,
    StructType,
)

from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.schemas import BOOL, DOUBLE, FINDINGS, INT, LONG, STRING, TIME, known, maybe

VOLUME_PRESSURE = StructType(
    [
        known(c.CLUSTER_ID, STRING),
        known(c.BROKER_ID, INT),
        known(c.LOG_DIR, STRING),
        maybe(c.DEVICE, STRING),
        known(c.STATE, STRING),
        maybe(c.USED_PERCENT, DOUBLE),
        maybe(c.TOTAL_BYTES, LONG),
        maybe(c.USABLE_BYTES, LONG),
        maybe(c.USED_BYTES, LONG),
        maybe(c.GROWTH_BYTES_PER_DAY, DOUBLE),
        maybe(c.DAYS_TO_FENCE, DOUBLE),
        maybe(c.BYTES_TO_FENCE, LONG),
        maybe(c.DAYS_TO_CEILING, DOUBLE),
        maybe(c.BYTES_TO_CEILING, LONG),
        maybe(c.BREACHES, STRING),
        maybe(c.GUARD_STATE, STRING),
        maybe(c.FAILURE, STRING),
        maybe(c.IS_OFFLINE, BOOL),
        maybe(c.TOTAL_FILES, LONG),
        maybe(c.USABLE_FILES, LONG),
        known(c.MAX_USED_PERCENT, INT),
        known(c.MIN_FREE_BYTES, LONG),
        known(c.RELEASE_MARGIN_PERCENT, INT),
        known(c.RESERVE_BYTES, LONG),
        known(c.FEWEST_FILES, LONG),
        known(c.CEILING_PERCENT, INT),
        # guard | default
        known(c.LIMITS_FROM, STRING),
        known(c.TAKEN_AT, TIME),
        known(c.SOURCE, STRING),
        known(c.AGE_SECONDS, LONG),
        known(c.IS_STALE, BOOL),
    ]
)

TIER_OVERLAP = StructType(
    [
        known(c.CLUSTER_ID, STRING),
        known(c.TOPIC, STRING),
        maybe(c.TOPIC_ID, STRING),
        known(c.PARTITIONS, LONG),
        known(c.REPLICAS, LONG),
        # Of the leaders, whose remote part is known
        maybe(c.LOCAL_BYTES, LONG),
        maybe(c.REMOTE_BYTES, LONG),
        maybe(c.ONLY_LOCAL_BYTES, LONG),
        maybe(c.OVERLAP_BYTES, LONG),
        maybe(c.OVERLAP_PERCENT, DOUBLE),
        # Of all replicas
        maybe(c.REPLICA_BYTES, LONG),
        known(c.UNKNOWN_PARTITIONS, LONG),
        maybe(c.UNKNOWN_REASONS, STRING),
        known(c.STALLED_PARTITIONS, LONG),
        # Their partitions whose uploads stall; unknown whether a segment waits
        known(c.UNJUDGED_PARTITIONS, LONG),
        maybe(c.STALLED_SINCE, TIME),
        maybe(c.WAITING_BYTES, LONG),
        known(c.IS_COPY_DISABLED, BOOL),
        known(c.TAKEN_AT, TIME),
        known(c.IS_STALE, BOOL),
    ]
)

RETENTION_PRESSURE = StructType(
    [
        # Among the cluster's replicas, the fullest first; null where no figure is known
        maybe(c.RANK, INT),
        known(c.CLUSTER_ID, STRING),
        known(c.TOPIC, STRING),
        known(c.PARTITION, INT),
        known(c.BROKER_ID, INT),
        maybe(c.PRESSURE_PERCENT, LONG),
        # limited | time | unlimited | unknown
        known(c.LIMIT, STRING),
        maybe(c.PLAIN_PERCENT, LONG),
        maybe(c.TIERED_PERCENT, LONG),
        maybe(c.LOCAL_PERCENT, LONG),
        maybe(c.SIZE_BYTES, LONG),
        maybe(c.RETENTION_BYTES, LONG),
        maybe(c.LOCAL_RETENTION_BYTES, LONG),
        maybe(c.REMOTE_BYTES, LONG),
        maybe(c.ONLY_LOCAL_BYTES, LONG),
        maybe(c.REMOTE_REASON, STRING),
        known(c.IS_FUTURE, BOOL),
        maybe(c.IS_LEADER, BOOL),
        maybe(c.GUARD_PERCENT, DOUBLE),
        maybe(c.EQUALS_GUARD, BOOL),
        known(c.LOG_DIR, STRING),
        maybe(c.TOPIC_ID, STRING),
        known(c.TAKEN_AT, TIME),
        known(c.IS_STALE, BOOL),
    ]
)

OWN_PLAN = StructType(
    [
        known(c.CLUSTER_ID, STRING),
        known(c.BROKER_ID, INT),
        known(c.SNAPSHOT_ID, STRING),
        known(c.TAKEN_AT, TIME),
        maybe(c.FAILURE, STRING),
        maybe(c.DEVICE, STRING),
        maybe(c.DEVICE_LOG_DIRS, ArrayType(STRING)),
        known(c.DEVICE_OUTCOME, STRING),
        maybe(c.DEVICE_CEILING_PERCENT, INT),
        maybe(c.DEVICE_TOTAL_BYTES, LONG),
        maybe(c.DEVICE_USED_BYTES, LONG),
        maybe(c.DEVICE_LIMIT_BYTES, LONG),
        maybe(c.DEVICE_GOING_BYTES, LONG),
        maybe(c.DEVICE_EXCESS_BYTES, LONG),
        maybe(c.DEVICE_REMOVABLE_BYTES, LONG),
        maybe(c.DEVICE_TAKEN_BYTES, LONG),
        maybe(c.DEVICE_TAKEN_SEGMENTS, LONG),
        maybe(c.DEVICE_MISSING_BYTES, LONG),
        maybe(c.DEVICE_LOCAL_RETENTION_BYTES, LONG),
        maybe(c.LOG_DIR, STRING),
        maybe(c.TOPIC, STRING),
        maybe(c.TOPIC_ID, STRING),
        maybe(c.PARTITION, INT),
        maybe(c.FROM_OFFSET, LONG),
        maybe(c.NEW_LOG_START_OFFSET, LONG),
        maybe(c.TAKEN_SEGMENTS, LONG),
        maybe(c.TAKEN_BYTES, LONG),
        maybe(c.OLDEST_AT, TIME),
        maybe(c.NEWEST_AT, TIME),
    ]
)
"""What each guard would do by itself: ``planner_rows.PLAN_ROWS`` in Spark's words."""

PEER_GAINS = StructType(
    [
        known(c.CLUSTER_ID, STRING),
        known(c.BROKER_ID, INT),
        maybe(c.LOG_DIR, STRING),
        maybe(c.TOPIC, STRING),
        known(c.TOPIC_ID, STRING),
        known(c.PARTITION, INT),
        known(c.TRIMMED_BY, INT),
        known(c.NEW_LOG_START_OFFSET, LONG),
        maybe(c.GAINED_SEGMENTS, LONG),
        maybe(c.GAINED_BYTES, LONG),
    ]
)
"""What the others' trims free on each broker: ``planner_gains.GAIN_ROWS`` in Spark's words."""

RECLAIM_PLAN = StructType(
    [
        *OWN_PLAN.fields,
        maybe(c.OTHER_REPLICAS, LONG),
        maybe(c.OTHERS_GAIN_BYTES, LONG),
        maybe(c.PEER_LOG_START_OFFSET, LONG),
        maybe(c.PEER_FREED_BYTES, LONG),
        maybe(c.TAKEN_BY_PEER_TOO_BYTES, LONG),
        maybe(c.FREED_BYTES, LONG),
        known(c.IS_STALE, BOOL),
    ]
)

FORECAST = StructType(
    [
        known(c.CLUSTER_ID, STRING),
        known(c.BROKER_ID, INT),
        known(c.DEVICE, STRING),
        # All that are on the device, with a comma between them
        known(c.LOG_DIRS_OF_DEVICE, STRING),
        # full | filling | not-filling | too-short | stale | unreadable | no-limit
        known(c.OUTLOOK, STRING),
        # From the newest reading on; null: not within a year, or unknown
        maybe(c.DAYS_TO_FULL, DOUBLE),
        maybe(c.SOONEST_DAYS, DOUBLE),
        maybe(c.LATEST_DAYS, DOUBLE),
        maybe(c.FULL_AT, TIME),
        maybe(c.USED_PERCENT, DOUBLE),
        maybe(c.GROWTH_BYTES_PER_DAY, DOUBLE),
        # Points of used percent that the same rule was off by, a week ahead, in the device's own past
        maybe(c.BACK_TEST_ERROR_POINTS, DOUBLE),
        known(c.BACK_TESTS, LONG),
        known(c.DAYS_KNOWN, LONG),
        maybe(c.LIMIT_BYTES, LONG),
        maybe(c.TOTAL_BYTES, LONG),
        # guard | default
        known(c.LIMITS_FROM, STRING),
        maybe(c.AS_OF, TIME),
    ]
)

FLEET_SUMMARY = StructType(
    [
        # Null: quarantined files of unknown origin
        maybe(c.CLUSTER_ID, STRING),
        known(c.BROKERS, LONG),
        known(c.STALE_BROKERS, LONG),
        known(c.LOG_DIRS, LONG),
        known(c.DEVICES, LONG),
        known(c.OK_LOG_DIRS, LONG),
        known(c.FULL_LOG_DIRS, LONG),
        known(c.UNKNOWN_LOG_DIRS, LONG),
        known(c.OFFLINE_LOG_DIRS, LONG),
        # Each device once; null when no device's bytes are known
        maybe(c.TOTAL_BYTES, LONG),
        maybe(c.USABLE_BYTES, LONG),
        maybe(c.USED_BYTES, LONG),
        maybe(c.USED_PERCENT, DOUBLE),
        maybe(c.WORST_USED_PERCENT, DOUBLE),
        maybe(c.WORST_BROKER_ID, INT),
        maybe(c.WORST_LOG_DIR, STRING),
        maybe(c.DAYS_TO_FENCE, DOUBLE),
        maybe(c.FIRST_TO_FILL_BROKER_ID, INT),
        maybe(c.FIRST_TO_FILL_LOG_DIR, STRING),
        known(c.OVER_RETENTION_REPLICAS, LONG),
        known(c.STALLED_PARTITIONS, LONG),
        known(c.RECLAIM_BYTES, LONG),
        known(c.IMPOSSIBLE_DEVICES, LONG),
        known(c.UNUSABLE_SNAPSHOTS, LONG),
        known(c.QUARANTINED_FILES, LONG),
        maybe(c.TAKEN_AT, TIME),
    ]
)

FLEET_HISTORY = StructType([known(c.DAY, DateType()), *FLEET_SUMMARY.fields])

GOLD: Mapping[Table, StructType] = {
    Table.FINDINGS: FINDINGS,
    Table.VOLUME_PRESSURE: VOLUME_PRESSURE,
    Table.TIER_OVERLAP: TIER_OVERLAP,
    Table.RETENTION_PRESSURE: RETENTION_PRESSURE,
    Table.RECLAIM_PLAN: RECLAIM_PLAN,
    Table.FORECAST: FORECAST,
    Table.FLEET_SUMMARY: FLEET_SUMMARY,
    Table.FLEET_HISTORY: FLEET_HISTORY,
}
