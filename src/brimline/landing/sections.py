"""From what somebody saw of a broker to the sections of its snapshot. No pyarrow: see ``columns``.

The inverse of ``tables``: what goes in here as the tables of a plan comes out there as the same tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brimline.decide.disk_state import DiskLimits
from brimline.landing.columns import Columns, Numbers, Sections, Texts, known
from brimline.model import Bytes
from brimline.model.reclaim import CleanupRules, LogTable, ReclaimPolicy, SegmentTable, TopicFacts
from brimline.model.scan import Int32Column, Int64Column

VOLUMES, TOPICS, LOGS, SEGMENTS = "volumes", "topics", "logs", "segments"

OF_LOG_TABLE = (
    "topic",
    "partition",
    "kind",
    "is_moving",
    "views",
    "log_start_offset",
    "high_watermark",
    "log_end_offset",
    "highest_remote_offset",
    "deleted_bytes",
    "foreign_bytes",
    "other_bytes",
)
OF_SEGMENT_TABLE = ("base_offset", "log_bytes", "allocated_bytes", "newest_timestamp_ms", "modified_ns")
_NUMBERS_OF_VOLUME = ("total_bytes", "usable_bytes", "observed_at_ms")
_NUMBERS_OF_LIMITS = ("max_used_percent", "min_free_bytes", "release_margin_percent")
_NUMBERS_OF_POLICY = (
    "ceiling_percent",
    "min_retention_ms",
    "min_retention_bytes",
    "max_bytes_per_cycle",
    "future_tolerance_ms",
)
_RULES = (
    "deletes",
    "compacts",
    "retention_ms",
    "retention_bytes",
    "local_retention_ms",
    "local_retention_bytes",
    "is_tiered",
    "is_copy_disabled",
    "is_internal",
)
_NOT_KNOWN = CleanupRules(deletes=False, retention_ms=-1)
"""Stands in the columns of a topic whose rules nobody told; ``is_known`` says that it means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeRow:
    """A log dir and the volume under it. ``None`` is not known, or not said."""

    log_dir: str
    device: str
    total_bytes: Bytes | None
    usable_bytes: Bytes | None
    failure: str | None = None
    state: str | None = None
    limits: DiskLimits | None = None
    policy: ReclaimPolicy | None = None
    observed_at_ms: int | None = None
    is_offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogFigures:
    """What is known of the logs besides the tables of a plan: a row each, masked or ``None`` where it is not."""

    size_bytes: Numbers
    offset_lag: Numbers
    is_leader: Numbers
    remote_bytes: Numbers
    only_local_bytes: Numbers
    remote_reason: Texts
    """Why one of the two is not known."""
    bytes_percent: Numbers
    total_percent: Numbers
    local_percent: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTopic:
    facts: TopicFacts
    topic_id: str | None


def sections_of(
    volumes: Sequence[VolumeRow],
    topics: Sequence[NamedTopic],
    logs: LogTable,
    volume_of_log: Int32Column,
    figures: LogFigures,
    segments: SegmentTable | None,
) -> Sections:
    """``segments`` is ``None`` for whoever cannot see them; then no log may count any.

    The column ``log`` of the segments follows from the counts: whoever makes the Parquet adds it.
    """
    counts = np.diff(logs.segments_begin)
    return {
        VOLUMES: _volumes(volumes),
        TOPICS: _topics(topics),
        LOGS: {
            "volume": volume_of_log,
            **{name: getattr(logs, name) for name in OF_LOG_TABLE},
            "segments": counts,
            "size_bytes": figures.size_bytes,
            "offset_lag": figures.offset_lag,
            "is_leader": figures.is_leader,
            "remote_bytes": figures.remote_bytes,
            "only_local_bytes": figures.only_local_bytes,
            "remote_reason": figures.remote_reason,
            "oldest_timestamp_ms": _oldest(logs.segments_begin, segments),
            "bytes_percent": figures.bytes_percent,
            "ms_percent": nothing_known(len(logs), np.dtype(np.float64)),
            "total_percent": figures.total_percent,
            "local_percent": figures.local_percent,
        },
        SEGMENTS: {}
        if segments is None
        else {"counts": counts, **{name: getattr(segments, name) for name in OF_SEGMENT_TABLE}},
    }


def nothing_known(rows: int, kind: "np.dtype[np.generic]") -> Numbers:
    column: Numbers = np.ma.MaskedArray(np.zeros(rows, dtype=kind), mask=np.ones(rows, dtype=np.bool_))
    return column


def _volumes(rows: Sequence[VolumeRow]) -> Columns:
    policies = [row.policy for row in rows]
    return {
        "log_dir": [row.log_dir for row in rows],
        "device": [row.device for row in rows],
        **{name: _optional([getattr(row, name) for row in rows]) for name in _NUMBERS_OF_VOLUME},
        **{
            name: _optional([None if row.limits is None else getattr(row.limits, name) for row in rows])
            for name in _NUMBERS_OF_LIMITS
        },
        "failure": [row.failure for row in rows],
        "state": [row.state for row in rows],
        **{
            name: _optional([None if policy is None else getattr(policy, name) for policy in policies])
            for name in _NUMBERS_OF_POLICY
        },
        "protected_topics": [None if policy is None else ",".join(policy.protected_topics) for policy in policies],
        "is_offline": np.array([row.is_offline for row in rows], dtype=np.bool_),
    }


def _topics(topics: Sequence[NamedTopic]) -> Columns:
    rules = [topic.facts.rules or _NOT_KNOWN for topic in topics]
    return {
        "topic": [topic.facts.name for topic in topics],
        "topic_id": [topic.topic_id for topic in topics],
        "is_known": np.array([topic.facts.rules is not None for topic in topics], dtype=np.bool_),
        **{name: np.array([getattr(rule, name) for rule in rules], dtype=_dtype(name)) for name in _RULES},
    }


def _dtype(rule: str) -> type[np.generic]:
    return np.int64 if "retention" in rule else np.bool_


def _oldest(begins: Int64Column, segments: SegmentTable | None) -> Numbers:
    """The newest timestamp of each log's first segment: by its age retention decides."""
    rows = len(begins) - 1
    if segments is None or not len(segments):
        return nothing_known(rows, np.dtype(np.int64))
    first = np.minimum(begins[:-1], len(segments) - 1)
    return known(np.where(begins[:-1] < begins[1:], segments.newest_timestamp_ms[first], -1))


def _optional(values: Sequence[int | None]) -> Numbers:
    column: Numbers = np.ma.MaskedArray(
        np.array([value or 0 for value in values], dtype=np.int64),
        mask=np.array([value is None for value in values], dtype=np.bool_),
    )
    return column
