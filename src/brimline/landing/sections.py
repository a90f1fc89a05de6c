"""A snapshot's sections: columns of what somebody saw of a broker, before they are Parquet.

They are the inverse of ``tables``: what goes in here as the tables of a plan comes out there as the same tables.

The guard has numpy, and pyarrow is ten times its size: it writes its columns to a file without a name, and a
short-lived child reads them from there. The file has a line of JSON and then numpy's own format, array by array;
nothing in it can be executed.

A column of numbers is an array, masked where a number is not known; a column of texts has ``None`` there.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from brimline.decide.disk_state import DiskLimits
from brimline.documents.codec import read_json
from brimline.model import Bytes
from brimline.model.reclaim import CleanupRules, LogTable, ReclaimPolicy, SegmentTable, TopicFacts
from brimline.model.scan import Int32Column, Int64Column

Numbers: TypeAlias = npt.NDArray[Any]
"""Or a masked array, which is one too."""
Texts: TypeAlias = Sequence[str | None]
Columns: TypeAlias = Mapping[str, Numbers | Texts]
Sections: TypeAlias = Mapping[str, Columns]

_PLAIN, _MASKED, _TEXTS = "plain", "masked", "texts"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    instructions: dict[str, Any]
    kinds: dict[str, dict[str, str]]
    texts: Any
    """By section and name. There may be millions, and whoever wrote them is ourselves."""


def known(values: Numbers) -> Numbers:
    """Masked where the number is below 0, which in the model's columns is "unknown"."""
    column: Numbers = np.ma.MaskedArray(values, mask=values < 0)
    return column


def write_columns(file: BinaryIO, instructions: Mapping[str, object], sections: Sections) -> None:
    """``instructions`` are whatever the reader needs besides, as JSON has it."""
    kinds = {
        section: {name: _kind(column) for name, column in columns.items()} for section, columns in sections.items()
    }
    texts = {
        section: {name: list(column) for name, column in columns.items() if not isinstance(column, np.ndarray)}
        for section, columns in sections.items()
    }
    head = {"instructions": instructions, "kinds": kinds, "texts": texts}
    file.write(json.dumps(head).encode() + b"\n")
    for columns in sections.values():
        for column in columns.values():
            if isinstance(column, np.ndarray):
                np.save(file, np.ascontiguousarray(np.ma.getdata(column)), allow_pickle=False)
                if isinstance(column, np.ma.MaskedArray):
                    np.save(file, np.ma.getmaskarray(column), allow_pickle=False)


def read_columns(file: BinaryIO) -> tuple[Mapping[str, Any], Sections]:
    """``ValueError`` when the file is not whole."""
    head = read_json(_Head, file.readline())
    sections: dict[str, dict[str, Numbers | Texts]] = {}
    for section, kinds in head.kinds.items():
        columns = sections.setdefault(section, {})
        for name, kind in kinds.items():
            columns[name] = head.texts[section][name] if kind == _TEXTS else _read_numbers(file, kind)
    return head.instructions, sections


def _read_numbers(file: BinaryIO, kind: str) -> Numbers:
    values: Numbers = np.load(file, allow_pickle=False)
    if kind == _PLAIN:
        return values
    masked: Numbers = np.ma.MaskedArray(values, mask=np.load(file, allow_pickle=False))
    return masked


def _kind(column: Numbers | Texts) -> str:
    if not isinstance(column, np.ndarray):
        return _TEXTS
    return _MASKED if isinstance(column, np.ma.MaskedArray) else _PLAIN


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
    "last_stable_offset",
    "deleted_bytes",
    "foreign_bytes",
    "other_bytes",
)
OF_SEGMENT_TABLE = ("base_offset", "log_bytes", "allocated_bytes", "newest_timestamp_ms", "modified_ns")
_NUMBERS_OF_VOLUME = ("total_bytes", "usable_bytes", "total_files", "usable_files", "observed_at_ms")
_NUMBERS_OF_LIMITS = {
    "max_used_percent": "max_used_percent",
    "min_free_bytes": "min_free_bytes",
    "release_margin_percent": "release_margin_percent",
    "reserve_bytes": "reserve",
    "fewest_files": "min_free_files",
}
"""Column → member."""
NUMBERS_OF_POLICY = (
    "ceiling_percent",
    "min_retention_ms",
    "min_retention_bytes",
    "max_bytes_per_cycle",
    "max_percent_per_cycle",
    "future_tolerance_ms",
)
FLAGS_OF_POLICY = ("spares_compacted", "spares_for_ever", "spares_transactions", "only_curable", "yields_at_reserve")
RULES = (
    "deletes",
    "compacts",
    "retention_ms",
    "retention_bytes",
    "local_retention_ms",
    "local_retention_bytes",
    "is_tiered",
    "is_copy_disabled",
    "is_internal",
    "is_for_ever",
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
    total_files: int | None = None
    usable_files: int | None = None
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
            name: _optional([None if row.limits is None else getattr(row.limits, member) for row in rows])
            for name, member in _NUMBERS_OF_LIMITS.items()
        },
        "failure": [row.failure for row in rows],
        "state": [row.state for row in rows],
        **{
            name: _optional([None if policy is None else getattr(policy, name) for policy in policies])
            for name in NUMBERS_OF_POLICY
        },
        **{
            name: _flags([None if policy is None else getattr(policy, name) for policy in policies])
            for name in FLAGS_OF_POLICY
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
        **{name: np.array([getattr(rule, name) for rule in rules], dtype=_dtype(name)) for name in RULES},
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


def _flags(values: Sequence[bool | None]) -> Numbers:
    column: Numbers = np.ma.MaskedArray(
        np.array([bool(value) for value in values], dtype=np.bool_),
        mask=np.array([value is None for value in values], dtype=np.bool_),
    )
    return column


def _optional(values: Sequence[int | None]) -> Numbers:
    column: Numbers = np.ma.MaskedArray(
        np.array([value or 0 for value in values], dtype=np.int64),
        mask=np.array([value is None for value in values], dtype=np.bool_),
    )
    return column
