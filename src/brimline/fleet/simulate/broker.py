"""One broker through some days under other rules: rows that say what each of its replicas loses, and when."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from brimline.decide.disk_state import DiskLimits
from brimline.decide.reclaim import kernel
from brimline.decide.reclaim.device import each_device
from brimline.fleet.planner.broker_snapshot import BrokerSnapshot
from brimline.fleet.planner.tasks import FailedBroker
from brimline.fleet.simulate.state import DAY_MS, Day, first_day, inflow, next_day
from brimline.fleet.simulate.what_if import WhatIf
from brimline.model.quantities import Bytes
from brimline.model.reclaim import AN_HOUR_MS, ReclaimTables
from brimline.model.reclaim_plan import DeviceOutcome
from brimline.model.scan import FolderKind, Int64Column

NEVER = -1
_LONGEST_FILLING_DAYS = 365

SIMULATED_ROWS = pa.schema(
    [
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("broker_id", pa.int32(), nullable=False),
        pa.field("now_ms", pa.int64(), nullable=False),
        pa.field("failure", pa.string()),
        # The same in all rows of a device; days count from today, which is 0
        pa.field("device", pa.string()),
        pa.field("device_log_dirs", pa.string()),
        pa.field("device_total_bytes", pa.int64()),
        pa.field("device_used_bytes", pa.int64()),
        pa.field("device_used_bytes_at_end", pa.int64()),
        pa.field("device_by_retention_bytes", pa.int64()),
        pa.field("device_by_ceiling_bytes", pa.int64()),
        pa.field("device_refused_bytes", pa.int64()),
        pa.field("device_ceiling_percent", pa.int32()),
        pa.field("device_fence_bytes", pa.int64()),
        pa.field("device_full_on_day", pa.int32()),
        pa.field("device_ceiling_missed_on_day", pa.int32()),
        # Of a replica; null in the row of a device without any
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("bytes", pa.int64()),
        pa.field("bytes_a_day", pa.int64()),
        pa.field("by_retention_bytes", pa.int64()),
        pa.field("by_ceiling_bytes", pa.int64()),
        pa.field("by_ceiling_today_bytes", pa.int64()),
        pa.field("refused_bytes", pa.int64()),
        pa.field("ceiling_on_day", pa.int32()),
        pa.field("refused_on_day", pa.int32()),
        pa.field("oldest_ms", pa.int64()),
        pa.field("oldest_ms_at_end", pa.int64()),
        # By the ceiling, today; null where nothing is
        pa.field("trimmed_to", pa.int64()),
    ]
)


class _Sums:
    """What the days did so far, a row per log or per device."""

    def __init__(self, logs: int, devices: int) -> None:
        self.by_retention, self.by_ceiling, self.refused, self.by_ceiling_today = (
            np.zeros(logs, dtype=np.int64) for _ in range(4)
        )
        self.trimmed_to = np.full(logs, NEVER, dtype=np.int64)
        self.ceiling_on, self.refused_on = (np.full(logs, NEVER, dtype=np.int64) for _ in range(2))
        self.full_on, self.missed_on = [NEVER] * devices, [NEVER] * devices

    def add(self, number: int, day: Day, fences: tuple[int | None, ...]) -> None:
        self.by_retention += day.by_retention
        self.by_ceiling += day.by_ceiling
        self.refused += day.refused
        if number == 0:
            self.by_ceiling_today += day.by_ceiling
            outcomes = day.plan.logs
            self.trimmed_to = np.where(outcomes.taken_segments > 0, outcomes.new_log_start_offset, NEVER)
        self.ceiling_on[(day.by_ceiling > 0) & (self.ceiling_on < 0)] = number
        self.refused_on[(day.refused > 0) & (self.refused_on < 0)] = number
        refused = np.bincount(day.tables.logs.device, weights=day.refused, minlength=len(self.full_on))
        for row, (facts, planned) in enumerate(zip(day.tables.devices, day.plan.devices, strict=True)):
            is_over = fences[row] is not None and (facts.used_bytes or 0) > (fences[row] or 0)
            if (is_over or refused[row] > 0) and self.full_on[row] < 0:
                self.full_on[row] = number
            is_missed = planned.outcome in (DeviceOutcome.FLOOR_REACHED, DeviceOutcome.NO_CURE)
            if is_missed and self.missed_on[row] < 0:
                self.missed_on[row] = number


def simulated_rows(what_if: WhatIf, broker: BrokerSnapshot) -> pa.RecordBatch:
    tables = what_if.applied(broker.tables)
    if not tables.devices:
        return pa.RecordBatch.from_pylist([], schema=SIMULATED_ROWS)
    fences = tuple(fence(what_if, broker, row) for row in range(len(tables.devices)))
    a_day = inflow(tables)
    sums = _Sums(len(tables.logs), len(tables.devices))
    day = first_day(tables)
    sums.add(0, day, fences)
    for number in range(1, what_if.days + 1):
        day = next_day(day.tables, a_day, fences)
        sums.add(number, day, fences)
    return _rows(broker, tables, day.tables, a_day.allocated_bytes, sums, fences)


def fence(what_if: WhatIf, broker: BrokerSnapshot, device: int) -> int | None:
    """How many bytes of the device may be used before Produce is refused; the strictest of its log dirs counts."""
    total = broker.tables.devices[device].total_bytes
    if total is None:
        return None
    most = []
    for row, on_device in enumerate(broker.device_of_log_dir):
        told = what_if.max_used_percent, broker.max_used_percent[row], DiskLimits().max_used_percent
        percent = next(each for each in told if each is not None)
        least_free = broker.min_free_bytes[row] or 0
        if on_device == device:
            most.append(min(total * percent // 100, total - least_free))
    return max(min(most), 0) if most else None


def failure_row(failed: FailedBroker) -> pa.RecordBatch:
    file = failed.file
    row = {
        "cluster_id": file.cluster_id,
        "broker_id": file.broker_id,
        "now_ms": file.taken_at_ms,
        "failure": failed.why,
    }
    return pa.RecordBatch.from_pylist([row], schema=SIMULATED_ROWS)


def _rows(
    broker: BrokerSnapshot,
    now: ReclaimTables,
    at_end: ReclaimTables,
    a_day: Int64Column,
    sums: _Sums,
    fences: tuple[int | None, ...],
) -> pa.RecordBatch:
    logs = now.logs
    held = np.flatnonzero((logs.kind == FolderKind.CURRENT) & (logs.topic >= 0))
    of_held = logs.device[held].astype(np.int64)
    idle = np.setdiff1d(np.arange(len(now.devices), dtype=np.int64), of_held)
    log = np.concatenate((held, np.full(len(idle), -1, dtype=np.int64)))
    device = np.concatenate((of_held, idle))
    header = broker.header
    same = (header.cluster_id, header.broker_id, header.taken_at_ms, None)
    columns = [
        *(pa.repeat(pa.scalar(value, kind.type), len(log)) for value, kind in zip(same, SIMULATED_ROWS, strict=False)),
        *_device_columns(broker, now, at_end, sums, fences, device),
        *_log_columns(broker, now, at_end, a_day, sums, log),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SIMULATED_ROWS)


def _device_columns(
    broker: BrokerSnapshot,
    now: ReclaimTables,
    at_end: ReclaimTables,
    sums: _Sums,
    fences: tuple[int | None, ...],
    device: Int64Column,
) -> list[pa.Array]:
    def summed(column: Int64Column) -> list[int]:
        total = np.zeros(len(now.devices), dtype=np.int64)
        np.add.at(total, now.logs.device, column)
        return [int(each) for each in total]

    values: list[list[str] | list[int] | list[int | None] | list[Bytes | None]] = [
        [facts.name for facts in now.devices],
        [", ".join(broker.log_dirs_of(row)) for row in range(len(now.devices))],
        [facts.total_bytes for facts in now.devices],
        [facts.used_bytes for facts in now.devices],
        [facts.used_bytes for facts in at_end.devices],
        summed(sums.by_retention),
        summed(sums.by_ceiling),
        summed(sums.refused),
        [facts.policy.ceiling_percent for facts in now.devices],
        list(fences),
        _days(sums.full_on),
        _days(sums.missed_on),
    ]
    first = SIMULATED_ROWS.get_field_index("device")
    rows = pa.array(device)
    return [
        pa.array(each, type=SIMULATED_ROWS.field(first + place).type).take(rows) for place, each in enumerate(values)
    ]


def _days(numbers: list[int]) -> list[int | None]:
    return [None if number == NEVER else number for number in numbers]


def _log_columns(
    broker: BrokerSnapshot,
    now: ReclaimTables,
    at_end: ReclaimTables,
    a_day: Int64Column,
    sums: _Sums,
    log: Int64Column,
) -> list[pa.Array]:
    none = log < 0

    def of_logs(column: npt.NDArray[np.generic], unknown: int | None = None) -> pa.Array:
        held = (column if len(column) else np.zeros(1, dtype=column.dtype))[log]
        return pa.array(held, mask=none if unknown is None else none | (held == unknown))

    def named(names: list[str] | tuple[str | None, ...]) -> pa.Array:
        return pa.array(names, type=pa.string()).take(of_logs(now.logs.topic))

    sizes = kernel.sums(now.segments.allocated_bytes)
    return [
        named([topic.name for topic in now.topics]),
        named(broker.topic_ids),
        of_logs(now.logs.partition),
        of_logs(np.diff(sizes[now.logs.segments_begin])),
        of_logs(a_day),
        *(of_logs(column) for column in (sums.by_retention, sums.by_ceiling, sums.by_ceiling_today, sums.refused)),
        *(of_logs(column.astype(np.int32), NEVER) for column in (sums.ceiling_on, sums.refused_on)),
        of_logs(_oldest(now, a_day), NEVER),
        of_logs(_oldest(at_end, a_day), NEVER),
        of_logs(sums.trimmed_to.astype(np.int64), NEVER),
    ]


def _oldest(tables: ReclaimTables, a_day: Int64Column) -> Int64Column:
    """Of each log: about when its oldest record was made; -1 where nobody can tell, and for a log without segments.

    That is the age of its first segment, which is that of the newest record in it, less the time that so much takes to
    be written. Growth is told of an hour at least; of a log whose first segment ended later than that, what came since
    tells how long it took. If nothing has, it may have been begun at any time.
    """
    oldest = np.full(len(tables.logs), NEVER, dtype=np.int64)
    for columns in each_device(tables):
        facts, rows = columns.facts, np.flatnonzero(columns.count > 0)
        first, logs = columns.begin[rows], columns.log_row(rows)
        segments = columns.segments
        last = columns.end[rows] - 1
        age, newest = (
            kernel.ages(
                segments.newest_timestamp_ms[each],
                segments.modified_ns[each],
                facts.now_ms,
                facts.policy.future_tolerance_ms,
            )
            for each in (first, last)
        )
        days = segments.allocated_bytes[first] / np.maximum(a_day[logs], 1)
        filling = np.where(a_day[logs] > 0, np.minimum(days, _LONGEST_FILLING_DAYS), 0) * DAY_MS
        later = columns.allocated_before[last + 1] - columns.allocated_before[first + 1]
        is_young = facts.now_ms - age < AN_HOUR_MS
        own = np.maximum(newest - age, 0) * segments.allocated_bytes[first] / np.maximum(later, 1)
        made = np.maximum(age - np.where(is_young, own, filling).astype(np.int64), 0)
        oldest[logs] = np.where(is_young & (later == 0), NEVER, made)
    return oldest
