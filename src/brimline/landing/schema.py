"""The columns of a snapshot file, section by section.

A file is one flat table, because a Parquet file has one schema: the column ``section`` says which section a row is of,
and every section's columns carry its name before theirs. A section has row groups of its own, in which the columns of
the others are null and take no room. So any Parquet reader can filter by ``section`` and skip the rest by statistics,
and ours reads the row groups that the header names.

In int columns that come from ``model.reclaim`` -1 is "unknown", as there; elsewhere null is. A field that is not
nullable here never has a null in its own section.

Within a version columns may be added, never changed or removed; a reader ignores those it does not know.
"""

from collections.abc import Mapping

import pyarrow as pa

from brimline.landing.header import SCHEMA_VERSION, BadHeader, Header, Section, Source, UnknownVersion

__all__ = [
    "FILE_SCHEMA",
    "HEADER_KEY",
    "LOGS",
    "SCHEMA_VERSION",
    "SECTIONS",
    "SECTION_COLUMN",
    "SEGMENTS",
    "TOPICS",
    "VOLUMES",
    "BadHeader",
    "Header",
    "Section",
    "Source",
    "UnknownVersion",
    "column_in_file",
    "is_added",
]

HEADER_KEY = b"brimline.snapshot"
SECTION_COLUMN = "section"
VOLUMES, TOPICS, LOGS, SEGMENTS = "volumes", "topics", "logs", "segments"


def _sure(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


_ADDED = {b"added": b""}


def _added(name: str, kind: pa.DataType) -> pa.Field:
    """It was not there in the first files of this version: where it is missing it is null."""
    return pa.field(name, kind, metadata=_ADDED)


def is_added(field: pa.Field) -> bool:
    return bool(field.metadata == _ADDED)


SECTIONS: Mapping[str, pa.Schema] = {
    # A row per log dir.
    VOLUMES: pa.schema(
        [
            _sure("log_dir", pa.string()),
            _sure("device", pa.string()),
            pa.field("total_bytes", pa.int64()),
            pa.field("usable_bytes", pa.int64()),
            pa.field("failure", pa.string()),
            pa.field("state", pa.string()),
            pa.field("max_used_percent", pa.int32()),
            pa.field("min_free_bytes", pa.int64()),
            pa.field("release_margin_percent", pa.int32()),
            pa.field("ceiling_percent", pa.int32()),
            pa.field("min_retention_ms", pa.int64()),
            pa.field("min_retention_bytes", pa.int64()),
            pa.field("max_bytes_per_cycle", pa.int64()),
            pa.field("protected_topics", pa.string()),
            pa.field("future_tolerance_ms", pa.int64()),
            pa.field("observed_at_ms", pa.int64()),
            _sure("is_offline", pa.bool_()),
            _added("spares_compacted", pa.bool_()),
            _added("spares_for_ever", pa.bool_()),
            _added("spares_transactions", pa.bool_()),
            _added("only_curable", pa.bool_()),
            _added("yields_at_reserve", pa.bool_()),
            _added("max_percent_per_cycle", pa.int32()),
            _added("total_files", pa.int64()),
            _added("usable_files", pa.int64()),
            _added("reserve_bytes", pa.int64()),
            _added("fewest_files", pa.int64()),
        ]
    ),
    # A row per topic that the broker holds a folder or a replica of.
    TOPICS: pa.schema(
        [
            _sure("topic", pa.string()),
            pa.field("topic_id", pa.string()),
            _sure("is_known", pa.bool_()),
            _sure("deletes", pa.bool_()),
            _sure("compacts", pa.bool_()),
            _sure("retention_ms", pa.int64()),
            _sure("retention_bytes", pa.int64()),
            _sure("local_retention_ms", pa.int64()),
            _sure("local_retention_bytes", pa.int64()),
            _sure("is_tiered", pa.bool_()),
            _sure("is_copy_disabled", pa.bool_()),
            _sure("is_internal", pa.bool_()),
            _added("is_for_ever", pa.bool_()),
        ]
    ),
    # A row per folder of a log dir (guard), or per replica (collect).
    LOGS: pa.schema(
        [
            _sure("volume", pa.int32()),
            _sure("topic", pa.int32()),
            _sure("partition", pa.int32()),
            _sure("kind", pa.uint8()),
            _sure("is_moving", pa.bool_()),
            _sure("views", pa.uint8()),
            _sure("segments", pa.int64()),
            _sure("log_start_offset", pa.int64()),
            _sure("high_watermark", pa.int64()),
            _sure("log_end_offset", pa.int64()),
            _sure("highest_remote_offset", pa.int64()),
            _sure("deleted_bytes", pa.int64()),
            _sure("foreign_bytes", pa.int64()),
            _sure("other_bytes", pa.int64()),
            pa.field("size_bytes", pa.int64()),
            pa.field("offset_lag", pa.int64()),
            pa.field("is_leader", pa.bool_()),
            pa.field("remote_bytes", pa.int64()),
            pa.field("only_local_bytes", pa.int64()),
            pa.field("remote_reason", pa.string()),
            pa.field("oldest_timestamp_ms", pa.int64()),
            pa.field("bytes_percent", pa.float64()),
            pa.field("ms_percent", pa.float64()),
            pa.field("total_percent", pa.float64()),
            pa.field("local_percent", pa.float64()),
            _added("last_stable_offset", pa.int64()),
        ]
    ),
    # A row per segment: log by log, in each with ascending base offsets, as the scan walks.
    SEGMENTS: pa.schema(
        [
            _sure("log", pa.int32()),
            _sure("base_offset", pa.int64()),
            _sure("log_bytes", pa.int64()),
            _sure("allocated_bytes", pa.int64()),
            _sure("newest_timestamp_ms", pa.int64()),
            _sure("modified_ns", pa.int64()),
        ]
    ),
}


def column_in_file(section: str, column: str) -> str:
    return f"{section}_{column}"


FILE_SCHEMA = pa.schema(
    [
        pa.field(SECTION_COLUMN, pa.string(), nullable=False),
        *(pa.field(column_in_file(name, each.name), each.type) for name, schema in SECTIONS.items() for each in schema),
    ]
)
