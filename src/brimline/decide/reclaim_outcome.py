"""A device's part of the plan written out: the reason of every segment, the row of every log, the row of the device."""

from dataclasses import fields

import numpy as np

from brimline.decide import reclaim_kernel as kernel
from brimline.decide.reclaim_runs import LogRuns
from brimline.decide.reclaim_taking import Taking, deleted_bytes, folder_bytes
from brimline.model import Bytes
from brimline.model.reclaim_plan import DeviceOutcome, DevicePlan, LogOutcomes, ReclaimReason
from brimline.model.scan import FolderKind, UInt8Column

_NOT_NEEDED = {
    DeviceOutcome.NO_CEILING: ReclaimReason.NO_CEILING,
    DeviceOutcome.SPACE_UNKNOWN: ReclaimReason.SPACE_UNKNOWN,
    DeviceOutcome.UNDER_CEILING: ReclaimReason.UNDER_CEILING,
    DeviceOutcome.GOING_SUFFICES: ReclaimReason.GOING_SUFFICES,
}
_NOT_KNOWN = ("first_taken", "from_offset", "new_log_start_offset", "oldest_ms", "newest_ms")
_AFTER_GOING, _BEFORE_ACTIVE = 3, -1


def reasons(runs: LogRuns, taking: Taking) -> UInt8Column:
    """Along a log the reasons stand in runs, in this order."""
    going = runs.going
    end_of_taken = going.until + taking.taken
    in_order = (
        (ReclaimReason.GOING_LOG_START, going.log_start),
        (ReclaimReason.GOING_RETENTION_BYTES, going.retention_bytes),
        (ReclaimReason.GOING_RETENTION_MS, going.retention_ms),
        (ReclaimReason.TAKEN, end_of_taken),
        (ReclaimReason.CYCLE_LIMIT, end_of_taken + taking.held_back),
        (_NOT_NEEDED.get(taking.outcome, ReclaimReason.ENOUGH_TAKEN), runs.removable),
        (ReclaimReason.MIN_RETENTION_BYTES, runs.old_enough),
        (ReclaimReason.MIN_RETENTION_MS, runs.below_watermark),
        (ReclaimReason.ABOVE_HIGH_WATERMARK, runs.closed),
        (ReclaimReason.ACTIVE, runs.columns.count),
    )
    codes = np.empty((len(runs.standing), len(in_order)), dtype=np.uint8)
    codes[:] = [code for code, _ in in_order]
    left_out = np.flatnonzero(runs.is_current & (runs.standing != ReclaimReason.CANDIDATE))
    codes[left_out, _AFTER_GOING:_BEFORE_ACTIVE] = runs.standing[left_out, np.newaxis]
    no_replica = np.flatnonzero(~runs.is_current)
    codes[no_replica] = runs.standing[no_replica, np.newaxis]
    lengths = np.diff(np.stack([end for _, end in in_order], axis=1), axis=1, prepend=0)
    return np.repeat(codes.ravel(), lengths.ravel())


def nothing_taken(logs: int) -> LogOutcomes:
    numbers = [field.name for field in fields(LogOutcomes) if field.name != "standing"]
    columns = {name: np.full(logs, -1 if name in _NOT_KNOWN else 0, dtype=np.int64) for name in numbers}
    return LogOutcomes(standing=np.zeros(logs, dtype=np.uint8), **columns)


def write_outcomes(outcomes: LogOutcomes, runs: LogRuns, taking: Taking) -> None:
    columns, rows = runs.columns, runs.columns.log_rows
    logs, going = columns.logs, runs.going.until
    leaving = columns.allocated(np.zeros_like(going), going) + deleted_bytes(columns)
    outcomes.standing[rows] = runs.standing
    outcomes.going_bytes[rows] = np.where(logs.kind == FolderKind.DELETE, folder_bytes(columns), leaving)
    outcomes.taken_segments[rows] = taking.taken
    outcomes.taken_bytes[rows] = columns.allocated(going, going + taking.taken)
    outcomes.local_retention_bytes[rows] = runs.local_retention_bytes
    trimmed = np.flatnonzero(taking.taken)
    first = (columns.begin + going)[trimmed]
    kept = first + taking.taken[trimmed]
    at = columns.log_row(trimmed)
    base_offset = columns.segments.base_offset
    outcomes.first_taken[at] = columns.segment_row(first)
    outcomes.from_offset[at] = np.maximum(base_offset[first], logs.log_start_offset[trimmed])
    outcomes.new_log_start_offset[at] = base_offset[kept]
    outcomes.oldest_ms[at] = kernel.age_of(runs.key[first])
    outcomes.newest_ms[at] = kernel.age_of(runs.key[kept - 1])


def device_plan(runs: LogRuns, taking: Taking) -> DevicePlan:
    columns, going = runs.columns, runs.going.until
    used, limit = columns.facts.used_bytes, columns.facts.limit_bytes
    return DevicePlan(
        outcome=taking.outcome,
        used_bytes=None if used is None else Bytes(used),
        limit_bytes=None if limit is None else Bytes(limit),
        going=taking.going,
        excess_bytes=None if taking.excess is None else Bytes(taking.excess),
        removable_bytes=taking.removable_bytes,
        taken_bytes=Bytes(int(columns.allocated(going, going + taking.taken).sum())),
        taken_segments=int(taking.taken.sum()),
        local_retention_bytes=Bytes(int(runs.local_retention_bytes.sum())),
    )
