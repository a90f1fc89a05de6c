"""The bronze tables' schemas, all of them, nullability stated. Unknown is null: the files' -1 ends at the ingest.

The keys come first, because Delta keeps minimum and maximum of the first columns only (``INDEXED_COLUMNS``).

The bronze tables' schemas as Arrow has them: made from Spark's, so that there is one place to change.
"""

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table

INDEXED_COLUMNS = 3

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


_OF_A_SNAPSHOT = [
    _known(c.CLUSTER_ID, _STRING),
    _known(c.BROKER_ID, _INT),
    _known(c.TAKEN_AT, _TIME),
    _known(c.SNAPSHOT_ID, _STRING),
    _known(c.SOURCE, _STRING),
    _known(c.TAKEN_ON, DateType()),
]

VOLUMES = StructType(
    [
        *_OF_A_SNAPSHOT,
        _known(c.LOG_DIR, _STRING),
        _known(c.DEVICE, _STRING),
        _maybe(c.TOTAL_BYTES, _LONG),
        _maybe(c.USABLE_BYTES, _LONG),
        _maybe(c.FAILURE, _STRING),
        _maybe(c.STATE, _STRING),
        _maybe(c.MAX_USED_PERCENT, _INT),
        _maybe(c.MIN_FREE_BYTES, _LONG),
        _maybe(c.RELEASE_MARGIN_PERCENT, _INT),
        _maybe(c.CEILING_PERCENT, _INT),
        _maybe(c.MIN_RETENTION_MS, _LONG),
        _maybe(c.MIN_RETENTION_BYTES, _LONG),
        _maybe(c.MAX_BYTES_PER_CYCLE, _LONG),
        _maybe(c.PROTECTED_TOPICS, _STRING),
        _maybe(c.FUTURE_TOLERANCE_MS, _LONG),
        _maybe(c.OBSERVED_AT_MS, _LONG),
        _known(c.IS_OFFLINE, _BOOL),
    ]
)

TOPIC_CONFIGS = StructType(
    [
        *_OF_A_SNAPSHOT,
        _known(c.TOPIC, _STRING),
        _maybe(c.TOPIC_ID, _STRING),
        _known(c.IS_KNOWN, _BOOL),
        _known(c.DELETES, _BOOL),
        _known(c.COMPACTS, _BOOL),
        _known(c.RETENTION_MS, _LONG),
        _known(c.RETENTION_BYTES, _LONG),
        _known(c.LOCAL_RETENTION_MS, _LONG),
        _known(c.LOCAL_RETENTION_BYTES, _LONG),
        _known(c.IS_TIERED, _BOOL),
        _known(c.IS_COPY_DISABLED, _BOOL),
        _known(c.IS_INTERNAL, _BOOL),
    ]
)

REPLICAS = StructType(
    [
        *_OF_A_SNAPSHOT,
        _known(c.LOG_DIR, _STRING),
        _known(c.DEVICE, _STRING),
        # Null in the rows of folders that are no replica's
        _maybe(c.TOPIC, _STRING),
        _maybe(c.TOPIC_ID, _STRING),
        _maybe(c.PARTITION, _INT),
        _known(c.KIND, _INT),
        _known(c.IS_MOVING, _BOOL),
        _known(c.VIEWS, _INT),
        _known(c.SEGMENTS, _LONG),
        _maybe(c.LOG_START_OFFSET, _LONG),
        _maybe(c.HIGH_WATERMARK, _LONG),
        _maybe(c.LOG_END_OFFSET, _LONG),
        _maybe(c.HIGHEST_REMOTE_OFFSET, _LONG),
        _known(c.DELETED_BYTES, _LONG),
        _known(c.FOREIGN_BYTES, _LONG),
        _known(c.OTHER_BYTES, _LONG),
        _maybe(c.SIZE_BYTES, _LONG),
        _maybe(c.OFFSET_LAG, _LONG),
        _maybe(c.IS_LEADER, _BOOL),
        _maybe(c.REMOTE_BYTES, _LONG),
        _maybe(c.ONLY_LOCAL_BYTES, _LONG),
        _maybe(c.REMOTE_REASON, _STRING),
        _maybe(c.OLDEST_TIMESTAMP_MS, _LONG),
        _maybe(c.BYTES_PERCENT, _DOUBLE),
        _maybe(c.MS_PERCENT, _DOUBLE),
    ]
)

TOPIC_AGES = StructType(
    [
        *_OF_A_SNAPSHOT,
        _known(c.TOPIC, _STRING),
        # Null: the segments' timestamps are unknown, or in the future
        _maybe(c.MIN_AGE_DAYS, _INT),
        _known(c.SEGMENTS, _LONG),
        _known(c.LOG_BYTES, _LONG),
        _known(c.ALLOCATED_BYTES, _LONG),
    ]
)

SEGMENT_SNAPSHOTS = StructType(
    [
        *_OF_A_SNAPSHOT,
        _known(c.PATH, _STRING),
        _known(c.FILE_BYTES, _LONG),
        _known(c.ROWS, _LONG),
    ]
)

SNAPSHOTS = StructType(
    [
        *_OF_A_SNAPSHOT,
        _known(c.PATH, _STRING),
        _known(c.FILE_BYTES, _LONG),
        _known(c.MADE_BY, _STRING),
        _known(c.INGESTED_AT, _TIME),
        _known(c.VOLUMES_ROWS, _LONG),
        _known(c.TOPICS_ROWS, _LONG),
        _known(c.LOGS_ROWS, _LONG),
        _known(c.SEGMENTS_ROWS, _LONG),
    ]
)

QUARANTINE = StructType(
    [
        _known(c.PATH, _STRING),
        _known(c.REASON, _STRING),
        _known(c.DETAIL, _STRING),
        _known(c.SEEN_AT, _TIME),
        # As far as the file could say
        _maybe(c.CLUSTER_ID, _STRING),
        _maybe(c.BROKER_ID, _INT),
        _maybe(c.SNAPSHOT_ID, _STRING),
        _maybe(c.TAKEN_AT, _TIME),
        _maybe(c.SOURCE, _STRING),
    ]
)

THINNED = StructType([_known(c.CLOSED_BEFORE, DateType()), _known(c.THINNED_AT, _TIME)])

FINDINGS = StructType(
    [
        _known(c.FINDING, _STRING),
        _known(c.CLUSTER_ID, _STRING),
        _known(c.BROKER_ID, _INT),
        _known(c.SUBJECT, _STRING),
        _known(c.DETAIL, _STRING),
        _known(c.FIRST_SEEN, _TIME),
        _known(c.LAST_SEEN, _TIME),
    ]
)

BRONZE = {
    Table.VOLUMES: VOLUMES,
    Table.REPLICAS: REPLICAS,
    Table.TOPIC_CONFIGS: TOPIC_CONFIGS,
    Table.TOPIC_AGES: TOPIC_AGES,
    Table.SEGMENT_SNAPSHOTS: SEGMENT_SNAPSHOTS,
    Table.SNAPSHOTS: SNAPSHOTS,
    Table.QUARANTINE: QUARANTINE,
    Table.THINNED: THINNED,
}


ARROW: dict[Table, pa.Schema] = {table: to_arrow_schema(schema, timezone="UTC") for table, schema in BRONZE.items()}
