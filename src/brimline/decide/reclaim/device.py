"""The part of the tables that belongs to a few devices, in rows of its own.

Rules look at a log alone, so they are applied to all logs of several small devices at once: numpy's calls cost more
than the rows of one broker. A large device has columns of its own, so planning for a fleet takes no more memory than
for its largest device.

The logs of a device mostly stand together, as the guard walks its log dirs; then its columns are views. Where they do
not, they are copied together.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from brimline.decide.reclaim import kernel
from brimline.model.reclaim import DeviceFacts, LogTable, ReclaimPolicy, ReclaimTables, SegmentTable
from brimline.model.scan import Int64Column


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceColumns:
    """``segments`` are numbered from 0; log r owns those from ``begin[r]`` up to, not including, ``end[r]``.

    Device d has the logs from ``until[d]`` up to, not including, ``until[d + 1]``.
    """

    devices: Sequence[DeviceFacts]
    until: Int64Column
    log_rows: slice | Int64Column
    segment_rows: slice | Int64Column
    logs: LogTable
    segments: SegmentTable
    begin: Int64Column
    end: Int64Column

    @property
    def facts(self) -> DeviceFacts:
        """Of the only device."""
        (facts,) = self.devices
        return facts

    def of_log(self, values: Sequence[int]) -> kernel.Each:
        """Of every log what is said of its device: one number where all devices say the same."""
        if all(value == values[0] for value in values):
            return values[0] if values else 0
        return np.repeat(np.array(values, dtype=np.int64), np.diff(self.until))

    def of_policy(self, value: Callable[[ReclaimPolicy], int]) -> kernel.Each:
        return self.of_log([value(facts.policy) for facts in self.devices])

    @cached_property
    def now_ms(self) -> kernel.Each:
        return self.of_log([facts.now_ms for facts in self.devices])

    @property
    def logs_of(self) -> Iterator[slice]:
        """Of each device."""
        return map(slice, self.until[:-1].tolist(), self.until[1:].tolist())

    def by_device(self, of_log: Int64Column) -> list[int]:
        """Sums of the logs of each device."""
        before = kernel.sums(of_log)[self.until]
        found: list[int] = (before[1:] - before[:-1]).tolist()
        return found

    def log_row(self, log: Int64Column) -> Int64Column:
        """Rows in the whole table."""
        return log + self.log_rows.start if isinstance(self.log_rows, slice) else self.log_rows[log]

    def segment_row(self, segment: Int64Column) -> Int64Column:
        """Rows in the whole table."""
        return segment + self.segment_rows.start if isinstance(self.segment_rows, slice) else self.segment_rows[segment]

    @cached_property
    def count(self) -> Int64Column:
        return self.end - self.begin

    @cached_property
    def closed(self) -> Int64Column:
        """How many segments of each log have a successor."""
        return np.maximum(self.count - 1, 0)

    @cached_property
    def log_of_segment(self) -> Int64Column:
        return np.repeat(np.arange(len(self.logs), dtype=np.int64), self.count)

    def age_keys(self) -> Int64Column:
        """``kernel.monotone`` of every segment."""
        segments, tolerance = self.segments, self.of_policy(lambda policy: policy.future_tolerance_ms)
        now, tolerance = (
            each if isinstance(each, int) else np.repeat(each, self.count) for each in (self.now_ms, tolerance)
        )
        age = kernel.ages(segments.newest_timestamp_ms, segments.modified_ns, now, tolerance)
        return kernel.monotone(age, self.log_of_segment)

    @cached_property
    def log_bytes_before(self) -> Int64Column:
        return kernel.sums(self.segments.log_bytes)

    @cached_property
    def allocated_before(self) -> Int64Column:
        return kernel.sums(self.segments.allocated_bytes)

    def allocated(self, first: Int64Column, until: Int64Column) -> Int64Column:
        """Of every log: the bytes of its segments from number ``first`` up to, not including, ``until``."""
        before = self.allocated_before
        return np.asarray(before[self.begin + until] - before[self.begin + first], dtype=np.int64)

    @cached_property
    def below_high_watermark(self) -> Int64Column:
        """Of every log: how many closed segments every replica in sync has wholly."""
        return self.ends_up_to(self.logs.high_watermark)

    @cached_property
    def stable(self) -> Int64Column:
        """Of every log: how many closed segments end below its first open transaction."""
        return self.ends_up_to(self.logs.last_stable_offset)

    @cached_property
    def uploaded(self) -> Int64Column:
        """Of every log: how many closed segments the remote store has wholly."""
        return self.ends_up_to(self.logs.highest_remote_offset + 1)

    def ends_up_to(self, offset: Int64Column) -> Int64Column:
        """Of every log: how many closed segments hold only offsets below ``offset``. Unknown (-1) is none."""
        # Base offsets ascend along a log, so those that are counted are its head.
        begun = kernel.sums(self.segments.base_offset <= np.repeat(offset, self.count))
        counted: Int64Column = begun[self.end] - begun[self.begin]
        return np.minimum(np.maximum(counted - 1, 0), self.closed)


def each_device(tables: ReclaimTables) -> Iterator[DeviceColumns]:
    """In the order of the devices, those without logs too."""
    return few_devices(tables, most_rows=-1)  # not even two that have nothing


def few_devices(tables: ReclaimTables, most_rows: int = 1 << 18) -> Iterator[DeviceColumns]:
    """The same, but devices that follow one another come together while they have few logs and segments."""
    logs = tables.logs
    order = np.argsort(logs.device, kind="stable")
    until = np.searchsorted(logs.device[order], np.arange(len(tables.devices) + 1))
    if until[0] != 0 or until[-1] != len(logs):
        raise ValueError("a log names a device that is not there")
    held = kernel.sums(np.diff(logs.segments_begin)[order] + 1)[until].tolist()
    first = 0
    for end in range(1, len(tables.devices) + 1):
        if end == len(tables.devices) or held[end + 1] - held[first] > most_rows:
            rows = order[until[first] : until[end]]
            yield _checked(_of_devices(tables, tables.devices[first:end], rows, until[first : end + 1] - until[first]))
            first = end


def columns_of_device(tables: ReclaimTables, device: int) -> DeviceColumns:
    rows = np.flatnonzero(tables.logs.device == device)
    return _checked(_of_devices(tables, tables.devices[device : device + 1], rows, np.array([0, len(rows)])))


def _of_devices(
    tables: ReclaimTables, devices: Sequence[DeviceFacts], rows: Int64Column, until: Int64Column
) -> DeviceColumns:
    begin, end = tables.logs.segments_begin[rows], tables.logs.segments_begin[rows + 1]
    log_rows: slice | Int64Column
    segment_rows: slice | Int64Column
    if len(rows) and (rows[1:] - rows[:-1] == 1).all():
        log_rows, segment_rows = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(begin[0]), int(end[-1]))
        begin, end = begin - segment_rows.start, end - segment_rows.start
    else:
        log_rows, segment_rows = rows, kernel.rows_of_ranges(begin, end - begin)
        end = np.cumsum(end - begin)
        begin = np.concatenate(([0], end[:-1])) if len(end) else end
    return DeviceColumns(
        devices=devices,
        until=until,
        log_rows=log_rows,
        segment_rows=segment_rows,
        logs=LogTable(**{name: getattr(tables.logs, name)[log_rows] for name in _LOG_COLUMNS}),
        segments=SegmentTable(**{name: getattr(tables.segments, name)[segment_rows] for name in _SEGMENT_COLUMNS}),
        begin=begin,
        end=end,
    )


def _checked(columns: DeviceColumns) -> DeviceColumns:
    """A table out of order would silently give a plan that trims the middle of a log."""
    segments = columns.segments
    if (columns.end < columns.begin).any() or (len(columns.logs) and columns.end[-1] != len(segments)):
        raise ValueError("the logs' segments do not follow one another")
    is_ascending = segments.base_offset[1:] > segments.base_offset[:-1]
    # The first segment of a log may begin anywhere.
    first = columns.begin[(columns.begin > 0) & (columns.begin < len(segments))]
    is_ascending[first - 1] = True
    if not is_ascending.all():
        raise ValueError("the base offsets of a log's segments do not ascend")
    if min(segments.base_offset.min(initial=0), segments.allocated_bytes.min(initial=0)) < 0:
        raise ValueError("a base offset or a size is negative")
    if segments.log_bytes.min(initial=0) < 0:
        raise ValueError("a base offset or a size is negative")
    return columns


_LOG_COLUMNS = tuple(field.name for field in fields(LogTable))
_SEGMENT_COLUMNS = tuple(field.name for field in fields(SegmentTable))
