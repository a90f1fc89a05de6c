"""From a snapshot to the tables that a reclaim plan is made from.

**Invariant.** What comes out is what the guard planned from: the plan made from the file is the plan made in memory.
Rows that point nowhere, segments that are not those of their logs or not in order, unknown kinds: none of them comes
out, each is a ``BadSnapshot``.

Columns are numpy views of what pyarrow read wherever the section is one row group: nothing is copied.
"""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from brimline.landing.header import Header
from brimline.landing.reader import Snapshot, Source, opened
from brimline.landing.schema import LOGS, SEGMENTS, TOPICS, VOLUMES
from brimline.landing.seal import BadSnapshot, QuarantineReason
from brimline.landing.sections import FLAGS_OF_POLICY, OF_LOG_TABLE, OF_SEGMENT_TABLE, RULES
from brimline.model import Bytes
from brimline.model.reclaim import (
    CEILING_OFF,
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
READ_OF_LOGS = ("volume", "segments", *OF_LOG_TABLE)


def reclaim_tables(source: Source) -> ReclaimTables:
    """Raises ``BadSnapshot``."""
    with opened(source) as snapshot:
        return tables_from(snapshot, snapshot.read(VOLUMES), snapshot.read(TOPICS), snapshot.read(LOGS, READ_OF_LOGS))


def tables_from(snapshot: Snapshot, volumes: pa.Table, topics: pa.Table, logs: pa.Table) -> ReclaimTables:
    """The same where the small sections are read already. Raises ``BadSnapshot``."""
    devices, device_of = _devices(volumes, snapshot.header)
    facts = _topics(topics)
    segments_begin = _begins(numpy_column(logs, "segments"))
    return ReclaimTables(
        devices=devices,
        topics=facts,
        logs=_log_table(logs, device_of, len(facts), segments_begin),
        segments=_segment_table(snapshot, segments_begin),
    )


def numpy_column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """A column without nulls, as a view of pyarrow's memory where it is one piece; a bool column is copied."""
    column = table.column(name)
    if pa.types.is_boolean(column.type):
        return np.asarray(column.to_numpy(), dtype=np.bool_)
    if column.num_chunks == 1:
        return np.asarray(column.chunk(0).to_numpy(zero_copy_only=True))
    return np.asarray(column.to_numpy())


def _devices(volumes: pa.Table, header: Header) -> tuple[tuple[DeviceFacts, ...], Int32Column]:
    """The devices in the order of their first log dir, and each volume row's device.

    A log dir that could not be read stands alone, as for the guard: its device is only the last known one.
    """
    devices: list[DeviceFacts] = []
    places: dict[tuple[str, str], int] = {}
    of_row = []
    for row in volumes.to_pylist():
        key = (row["device"], "" if row["failure"] is None else row["log_dir"])
        if key not in places:
            places[key] = len(devices)
            devices.append(_device(row, header))
        of_row.append(places[key])
    return tuple(devices), np.array(of_row, dtype=np.int32)


def _device(row: dict[str, object], header: Header) -> DeviceFacts:
    total, usable = _optional(row, "total_bytes"), _optional(row, "usable_bytes")
    observed = _optional(row, "observed_at_ms")
    defaults = ReclaimPolicy()
    text = row["protected_topics"]
    return DeviceFacts(
        name=str(row["device"]),
        total_bytes=None if total is None else Bytes(total),
        usable_bytes=None if usable is None else Bytes(usable),
        now_ms=header.taken_at_ms if observed is None else observed,
        policy=ReclaimPolicy(
            ceiling_percent=_number(row, "ceiling_percent", CEILING_OFF),
            min_retention_ms=_number(row, "min_retention_ms", defaults.min_retention_ms),
            min_retention_bytes=_number(row, "min_retention_bytes", defaults.min_retention_bytes),
            max_bytes_per_cycle=_optional(row, "max_bytes_per_cycle"),
            max_percent_per_cycle=_optional(row, "max_percent_per_cycle"),
            max_used_percent=_number(row, "max_used_percent", defaults.max_used_percent),
            min_free_bytes=_number(row, "min_free_bytes", defaults.min_free_bytes),
            protected_topics=_patterns(None if text is None else str(text)),
            future_tolerance_ms=_number(row, "future_tolerance_ms", defaults.future_tolerance_ms),
            **{name: row[name] is True for name in FLAGS_OF_POLICY},
        ),
    )


def _patterns(text: str | None) -> tuple[str, ...]:
    patterns = split_patterns(text or "")
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise _inconsistent(f"the protected topics {pattern!r} are not a regular expression: {error}") from None
    return patterns


def _optional(row: dict[str, object], name: str) -> int | None:
    value = row[name]
    return value if isinstance(value, int) else None


def _number(row: dict[str, object], name: str, default: int) -> int:
    value = _optional(row, name)
    return default if value is None else value


def _topics(topics: pa.Table) -> TopicTable:
    rules = {name: numpy_column(topics, name) for name in ("is_known", *RULES) if name != _FOR_EVER}
    is_for_ever = topics.column(_FOR_EVER)
    rules[_FOR_EVER] = np.equal(is_for_ever.to_numpy(), True)  # noqa: FBT003  null is not
    return TopicTable(topics.column("topic").to_pylist(), RuleColumns(**rules))


def _begins(segments: npt.NDArray[Any]) -> Int64Column:
    counts = segments.astype(np.int64, copy=False)
    if len(counts) and (counts.min() < 0 or counts.max() > 1 << 31):
        raise _inconsistent("a log's number of segments is out of range")
    begins = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=begins[1:])
    return begins


def _log_table(logs: pa.Table, device_of: Int32Column, topics: int, segments_begin: Int64Column) -> LogTable:
    volume = numpy_column(logs, "volume")
    columns = {name: numpy_column(logs, name) for name in OF_LOG_TABLE if name != _LAST_STABLE}
    columns[_LAST_STABLE] = np.asarray(logs.column(_LAST_STABLE).fill_null(-1).to_numpy())
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
    read = snapshot.read(SEGMENTS)
    columns = {name: numpy_column(read, name) for name in OF_SEGMENT_TABLE}
    _check_order(numpy_column(read, "log"), columns["base_offset"], begins)
    return SegmentTable(**columns)


def _check_order(log: npt.NDArray[Any], base_offset: npt.NDArray[Any], begins: Int64Column) -> None:
    """Every segment in the log that counts it, with a base offset above the one before it."""
    expected = np.repeat(np.arange(len(begins) - 1, dtype=np.int32), np.diff(begins))
    if not np.array_equal(log, expected):
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
