"""From a snapshot to the tables that a reclaim plan is made from.

**Invariant.** What comes out is what the guard planned from: the plan made from the file is the plan made in memory.
Rows that point nowhere, segments that are not those of their logs or not in order, unknown kinds: none of them comes
out, each is a ``BadSnapshot``.

Columns are numpy views of what pyarrow read wherever the section is one row group: nothing is copied.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from brimline.landing.header import Header
from brimline.landing.reader import Snapshot, Source, opened
from brimline.landing.schema import LOGS, SEGMENTS, TOPICS, VOLUMES
from brimline.landing.seal import BadSnapshot, QuarantineReason
from brimline.landing.sections import FLAGS_OF_POLICY, NUMBERS_OF_POLICY, OF_LOG_TABLE, OF_SEGMENT_TABLE, RULES
from brimline.model import Bytes
from brimline.model.reclaim import (
    NO_TOPIC,
    DeviceFacts,
    LogTable,
    ReclaimPolicy,
    ReclaimTables,
    RuleColumns,
    SegmentTable,
    TopicTable,
    Views,
    split_patterns,
)
from brimline.model.scan import FolderKind, Int32Column, Int64Column

_LAST_STABLE, _FOR_EVER = "last_stable_offset", "is_for_ever"
"""Not in files of before: unknown there."""
_PROTECTED = "protected_topics"
_OF_POLICY = (_PROTECTED, "max_used_percent", "min_free_bytes", *NUMBERS_OF_POLICY, *FLAGS_OF_POLICY)
READ_OF_VOLUMES = ("log_dir", "device", "failure", "total_bytes", "usable_bytes", "observed_at_ms", *_OF_POLICY)
READ_OF_LOGS = ("volume", "segments", *OF_LOG_TABLE)
Columns: TypeAlias = Mapping[str, pa.Array | pa.ChunkedArray]


def reclaim_tables(source: Source) -> ReclaimTables:
    """Raises ``BadSnapshot``."""
    with opened(source) as snapshot:
        volumes, topics = snapshot.columns(VOLUMES, READ_OF_VOLUMES), snapshot.columns(TOPICS)
        return tables_from(snapshot, volumes, topics, snapshot.columns(LOGS, READ_OF_LOGS))


def tables_from(snapshot: Snapshot, volumes: Columns, topics: Columns, logs: Columns) -> ReclaimTables:
    """The same where the small sections are read already. Raises ``BadSnapshot``."""
    device_of = device_rows(volumes)
    devices = _devices(volumes, device_of, snapshot.header)
    facts = _topics(topics)
    segments_begin = _begins(numpy_column(logs, "segments"))
    return ReclaimTables(
        devices=devices,
        topics=facts,
        logs=_log_table(logs, np.array(device_of, dtype=np.int32), len(facts), segments_begin),
        segments=_segment_table(snapshot, segments_begin),
    )


def numpy_column(columns: Columns, name: str) -> npt.NDArray[Any]:
    """A column without nulls, as a view of pyarrow's memory where it is one piece; a bool column is copied."""
    return np.asarray(columns[name].to_numpy())


def _filled(columns: Columns, name: str, default: int) -> npt.NDArray[Any]:
    """A column that is not in every file: where it is not, all of it is null."""
    column = columns[name]
    if column.null_count == len(column):
        return np.full(len(column), default, dtype=column.type.to_pandas_dtype())
    return np.asarray(column.fill_null(default).to_numpy())


def device_rows(volumes: Columns) -> tuple[int, ...]:
    """Each log dir's device; devices are in the order of their first log dirs.

    A log dir that could not be read stands alone, as for the guard: its device is only the last known one.
    """
    names, failures, log_dirs = (volumes[name].to_pylist() for name in ("device", "failure", "log_dir"))
    keys = [
        (name, None if failure is None else log_dir)
        for name, failure, log_dir in zip(names, failures, log_dirs, strict=True)
    ]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return tuple(places[key] for key in keys)


def _devices(volumes: Columns, device_of: Sequence[int], header: Header) -> tuple[DeviceFacts, ...]:
    """As the first log dir of each tells."""
    rows = zip(*(volumes[name].to_pylist() for name in READ_OF_VOLUMES), strict=True)
    firsts: dict[int, tuple[Any, ...]] = {}
    for device, row in zip(device_of, rows, strict=True):
        firsts.setdefault(device, row)
    return tuple(_device(dict(zip(READ_OF_VOLUMES, row, strict=True)), header) for row in firsts.values())


def _device(row: dict[str, Any], header: Header) -> DeviceFacts:
    total, usable, observed = row["total_bytes"], row["usable_bytes"], row["observed_at_ms"]
    return DeviceFacts(
        name=row["device"],
        total_bytes=None if total is None else Bytes(total),
        usable_bytes=None if usable is None else Bytes(usable),
        now_ms=header.taken_at_ms if observed is None else observed,
        policy=_policy(*[row[name] for name in _OF_POLICY]),
    )


@lru_cache(maxsize=8)  # most brokers of a fleet have the same
def _policy(*values: Any) -> ReclaimPolicy:
    said = {name: value for name, value in zip(_OF_POLICY, values, strict=True) if value is not None}
    return ReclaimPolicy(**said | {_PROTECTED: _patterns(said.get(_PROTECTED, ""))})


def _patterns(text: str) -> tuple[str, ...]:
    patterns = split_patterns(text)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise _inconsistent(f"the protected topics {pattern!r} are not a regular expression: {error}") from None
    return patterns


def _topics(topics: Columns) -> TopicTable:
    rules = {name: numpy_column(topics, name) for name in ("is_known", *RULES) if name != _FOR_EVER}
    rules[_FOR_EVER] = _filled(topics, _FOR_EVER, default=False)
    return TopicTable(topics["topic"].to_pylist(), RuleColumns(**rules))


def _begins(segments: npt.NDArray[Any]) -> Int64Column:
    counts = segments.astype(np.int64, copy=False)
    if len(counts) and (counts.min() < 0 or counts.max() > 1 << 31):
        raise _inconsistent("a log's number of segments is out of range")
    begins = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=begins[1:])
    return begins


def _log_table(logs: Columns, device_of: Int32Column, topics: int, segments_begin: Int64Column) -> LogTable:
    volume = numpy_column(logs, "volume")
    columns = {name: numpy_column(logs, name) for name in OF_LOG_TABLE if name != _LAST_STABLE}
    columns[_LAST_STABLE] = _filled(logs, _LAST_STABLE, default=-1)
    _check_range("logs.volume", volume, 0, len(device_of))
    _check_range("logs.topic", columns["topic"], NO_TOPIC, topics)
    _check_range("logs.kind", columns["kind"], 0, len(FolderKind))
    _check_range("logs.views", columns["views"], 0, len(Views))
    return LogTable(
        device=device_of[volume.astype(np.int64, copy=False)],
        segments_begin=segments_begin,
        **columns,
    )


def _segment_table(snapshot: Snapshot, begins: Int64Column) -> SegmentTable:
    rows = snapshot.header.sections[SEGMENTS].rows
    if begins[-1] != rows:
        raise _inconsistent(f"the logs count {begins[-1]} segments, and there are {rows}")
    read = snapshot.columns(SEGMENTS)
    columns = {name: numpy_column(read, name) for name in OF_SEGMENT_TABLE}
    _check_order(numpy_column(read, "log"), columns["base_offset"], begins)
    return SegmentTable(**columns)


def _check_order(log: npt.NDArray[Any], base_offset: npt.NDArray[Any], begins: Int64Column) -> None:
    """Every segment in the log that counts it, with a base offset above the one before it."""
    expected = np.repeat(np.arange(len(begins) - 1, dtype=np.int32), np.diff(begins))
    if (log != expected).any():
        raise _inconsistent("segments are not those of the logs that count them")
    if not len(log):
        return
    rises = base_offset[1:] > base_offset[:-1]
    first = begins[1:-1]
    rises[first[(first > 0) & (first < len(log))] - 1] = True
    if not rises.all():
        raise _inconsistent("base offsets do not ascend within a log")


def _check_range(name: str, column: npt.NDArray[Any], low: int, end: int) -> None:
    if len(column) and (int(column.min()) < low or int(column.max()) >= end):
        raise _inconsistent(f"{name} is not between {low} and {end - 1} everywhere")


def _inconsistent(detail: str) -> BadSnapshot:
    return BadSnapshot(QuarantineReason.INCONSISTENT, detail)
