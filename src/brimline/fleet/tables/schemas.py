"""The bronze tables' schemas, all of them, nullability stated. Unknown is null: the files' -1 ends at the ingest.

The keys come first, because Delta keeps minimum and maximum of the first columns only (``INDEXED_COLUMNS``).
Arrow's are made from Spark's, so that there is one place to change.
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

STRING = StringType()
INT = IntegerType()
LONG = LongType()
BOOL = BooleanType()
DOUBLE = DoubleType()
TIME = TimestampType()


def known(name: str, kind: DataType) -> StructField:
    return StructField(name, kind, nullable=False)


def maybe(name: str, kind: DataType) -> StructField:
    return StructField(name, kind, nullable=True)


_OF_A_SNAPSHOT = [
    known(c.CLUSTER_ID, STRING),
    known(c.BROKER_ID, INT),
    known(c.TAKEN_AT, TIME),
    known(c.SNAPSHOT_ID, STRING),
    known(c.SOURCE, STRING),
    known(c.TAKEN_ON, DateType()),
]

VOLUMES = StructType(
    [
        *_OF_A_SNAPSHOT,
        known(c.LOG_DIR, STRING),
        known(c.DEVICE, STRING),
        maybe(c.TOTAL_BYTES, LONG),
        maybe(c.USABLE_BYTES, LONG),
        maybe(c.FAILURE, STRING),
        maybe(c.STATE, STRING),
        maybe(c.MAX_USED_PERCENT, INT),
        maybe(c.MIN_FREE_BYTES, LONG),
        maybe(c.RELEASE_MARGIN_PERCENT, INT),
        maybe(c.CEILING_PERCENT, INT),
        maybe(c.MIN_RETENTION_MS, LONG),
        maybe(c.MIN_RETENTION_BYTES, LONG),
        maybe(c.MAX_BYTES_PER_CYCLE, LONG),
        maybe(c.PROTECTED_TOPICS, STRING),
        maybe(c.FUTURE_TOLERANCE_MS, LONG),
        maybe(c.OBSERVED_AT_MS, LONG),
        known(c.IS_OFFLINE, BOOL),
        # Null in files of before
        maybe(c.TOTAL_FILES, LONG),
        maybe(c.USABLE_FILES, LONG),
        maybe(c.RESERVE_BYTES, LONG),
        maybe(c.FEWEST_FILES, LONG),
    ]
)

TOPIC_CONFIGS = StructType(
    [
        *_OF_A_SNAPSHOT,
        known(c.TOPIC, STRING),
        maybe(c.TOPIC_ID, STRING),
        known(c.IS_KNOWN, BOOL),
        known(c.DELETES, BOOL),
        known(c.COMPACTS, BOOL),
        known(c.RETENTION_MS, LONG),
        known(c.RETENTION_BYTES, LONG),
        known(c.LOCAL_RETENTION_MS, LONG),
        known(c.LOCAL_RETENTION_BYTES, LONG),
        known(c.IS_TIERED, BOOL),
        known(c.IS_COPY_DISABLED, BOOL),
        known(c.IS_INTERNAL, BOOL),
    ]
)

REPLICAS = StructType(
    [
        *_OF_A_SNAPSHOT,
        known(c.LOG_DIR, STRING),
        known(c.DEVICE, STRING),
        # Null in the rows of folders that are no replica's
        maybe(c.TOPIC, STRING),
        maybe(c.TOPIC_ID, STRING),
        maybe(c.PARTITION, INT),
        known(c.KIND, INT),
        known(c.IS_MOVING, BOOL),
        known(c.VIEWS, INT),
        known(c.SEGMENTS, LONG),
        maybe(c.LOG_START_OFFSET, LONG),
        maybe(c.HIGH_WATERMARK, LONG),
        maybe(c.LOG_END_OFFSET, LONG),
        maybe(c.HIGHEST_REMOTE_OFFSET, LONG),
        known(c.DELETED_BYTES, LONG),
        known(c.FOREIGN_BYTES, LONG),
        known(c.OTHER_BYTES, LONG),
        maybe(c.SIZE_BYTES, LONG),
        maybe(c.OFFSET_LAG, LONG),
        maybe(c.IS_LEADER, BOOL),
        maybe(c.REMOTE_BYTES, LONG),
        maybe(c.ONLY_LOCAL_BYTES, LONG),
        maybe(c.REMOTE_REASON, STRING),
        maybe(c.OLDEST_TIMESTAMP_MS, LONG),
        maybe(c.BYTES_PERCENT, DOUBLE),
        maybe(c.MS_PERCENT, DOUBLE),
    ]
)

SNAPSHOTS = StructType(
    [
        *_OF_A_SNAPSHOT,
        known(c.PATH, STRING),
        known(c.FILE_BYTES, LONG),
        known(c.MADE_BY, STRING),
        known(c.INGESTED_AT, TIME),
        known(c.VOLUMES_ROWS, LONG),
        known(c.TOPICS_ROWS, LONG),
        known(c.LOGS_ROWS, LONG),
        known(c.SEGMENTS_ROWS, LONG),
    ]
)

NEWEST = StructType(
    [
        known(c.CLUSTER_ID, STRING),
        known(c.BROKER_ID, INT),
        known(c.TAKEN_AT, TIME),
        known(c.SNAPSHOT_ID, STRING),
        known(c.SOURCE, STRING),
        # Of the newest snapshot with segments, which may be an older one; null where there is none
        maybe(c.SEGMENTS_TAKEN_AT, TIME),
        maybe(c.SEGMENTS_SNAPSHOT_ID, STRING),
        maybe(c.SEGMENTS_PATH, STRING),
        maybe(c.SEGMENTS_ROWS, LONG),
    ]
)

QUARANTINE = StructType(
    [
        known(c.PATH, STRING),
        known(c.REASON, STRING),
        known(c.DETAIL, STRING),
        known(c.SEEN_AT, TIME),
        # As far as the file could say
        maybe(c.CLUSTER_ID, STRING),
        maybe(c.BROKER_ID, INT),
        maybe(c.SNAPSHOT_ID, STRING),
        maybe(c.TAKEN_AT, TIME),
        maybe(c.SOURCE, STRING),
    ]
)

THINNED = StructType([known(c.CLOSED_BEFORE, DateType()), known(c.THINNED_AT, TIME)])

FINDINGS = StructType(
    [
        known(c.FINDING, STRING),
        known(c.CLUSTER_ID, STRING),
        known(c.BROKER_ID, INT),
        known(c.SUBJECT, STRING),
        known(c.DETAIL, STRING),
        known(c.FIRST_SEEN, TIME),
        known(c.LAST_SEEN, TIME),
    ]
)

BRONZE = {
    Table.VOLUMES: VOLUMES,
    Table.REPLICAS: REPLICAS,
    Table.TOPIC_CONFIGS: TOPIC_CONFIGS,
    Table.SNAPSHOTS: SNAPSHOTS,
    Table.NEWEST: NEWEST,
    Table.QUARANTINE: QUARANTINE,
    Table.THINNED: THINNED,
}

NOT_NEGATIVE = {
    Table.VOLUMES: (c.TOTAL_BYTES, c.USABLE_BYTES, c.TOTAL_FILES, c.USABLE_FILES),
    Table.REPLICAS: (
        *(c.SEGMENTS, c.DELETED_BYTES, c.FOREIGN_BYTES, c.OTHER_BYTES, c.SIZE_BYTES, c.REMOTE_BYTES),
        c.BYTES_PERCENT,
    ),
    Table.SNAPSHOTS: (c.FILE_BYTES,),
}
"""What these tables never hold less than 0 of: a snapshot that does is refused, and Delta refuses it of anybody."""

ARROW: dict[Table, pa.Schema] = {table: to_arrow_schema(schema, timezone="UTC") for table, schema in BRONZE.items()}
