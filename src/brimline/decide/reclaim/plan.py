"""KIP-61's plan: which segments go, so that a device is not used beyond its ceiling, and why each goes or stays.

**Invariant.** For every device that is used beyond its ceiling the plan takes the globally oldest segments that may be
taken, and no more of them than it must:

- *Excess* is ``used - floor(total x percent / 100)``, used being what anyone uses, minus everything that is on its way
  out already: ``.deleted`` files, ``-delete`` folders, closed segments below their log's present start, and what
  ordinary retention removes at its next pass (``rules``). Guards that fill together see each other's trims
  there, so none frees what another has freed.
- *Age* is the largest record timestamp (``kernel.ages`` has the rule for every odd value), made monotone along
  the log. So a log is only ever trimmed from its head.
- *Order* is by age, then topic name, partition and base offset (and, should two brokers share the device, the row), so
  that any two planners agree to the byte.
- The plan takes in this order, and stops as soon as what is taken reaches the excess: without the last one it would
  not. Bytes are allocated blocks, which is what comes back. The limit of a cycle is never passed: what does not fit
  into it ends the plan.
- *What deleting cannot cure* (``only_curable``): where what is not Kafka's is above the ceiling by itself, a plan takes
  no more than keeps the device below its fence. Else all that may go goes, though it may not be enough.
- *On the last reserve* (``DeviceFacts.reserve_bytes``), where nothing refuses writes, minimum age and limit of a cycle
  yield if they keep a plan from freeing it: then as much goes as makes two of it, and not more.
- Never taken: the active segment, what ends above the high watermark or the first open transaction, what the brakes
  keep (``ReclaimPolicy``), any log that is not a current replica, is of a protected topic (``decide.reclaim.rules``),
  or whose two views disagree.

Every segment gets one reason, the first of: its folder is no current replica; it is going; it is active; its log is
left out; it ends above the high watermark; a transaction is open below its end; it is younger than the minimum; it is
within the minimum of bytes; it is taken, or what kept it from being taken.
"""

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from brimline.decide.reclaim import kernel
from brimline.decide.reclaim.device import columns_of_device, few_devices
from brimline.decide.reclaim.rules import TopicColumns
from brimline.decide.reclaim.taking import (
    LogRuns,
    Taking,
    deleted_bytes,
    folder_bytes,
    runs_of,
    short_of_reserve,
    taking_from,
)
from brimline.model import Bytes
from brimline.model.reclaim import ReclaimTables
from brimline.model.reclaim_plan import DeviceOutcome, DevicePlan, LogOutcomes, ReclaimPlan, ReclaimReason
from brimline.model.scan import FolderKind, Int64Column, UInt8Column

_NOT_NEEDED = {
    DeviceOutcome.NO_CEILING: ReclaimReason.NO_CEILING,
    DeviceOutcome.SPACE_UNKNOWN: ReclaimReason.SPACE_UNKNOWN,
    DeviceOutcome.UNDER_CEILING: ReclaimReason.UNDER_CEILING,
    DeviceOutcome.GOING_SUFFICES: ReclaimReason.GOING_SUFFICES,
    DeviceOutcome.NO_CURE: ReclaimReason.NO_CURE,
}
_NOT_KNOWN = ("first_taken", "from_offset", "new_log_start_offset", "oldest_ms", "newest_ms")
_AFTER_GOING, _BEFORE_ACTIVE = 3, -1


def reasons(runs: LogRuns, taking: Taking) -> UInt8Column:
    """Along a log the reasons stand in runs, in this order."""
    going = runs.going
    end_of_taken = going.until + taking.taken
    not_needed = [_NOT_NEEDED.get(each.outcome, ReclaimReason.ENOUGH_TAKEN) for each in taking.devices]
    in_order: tuple[tuple[kernel.Each, Int64Column], ...] = (
        (ReclaimReason.GOING_LOG_START, going.log_start),
        (ReclaimReason.GOING_RETENTION_BYTES, going.retention_bytes),
        (ReclaimReason.GOING_RETENTION_MS, going.retention_ms),
        (ReclaimReason.TAKEN, end_of_taken),
        (ReclaimReason.CYCLE_LIMIT, end_of_taken + taking.held_back),
        (runs.columns.of_log(not_needed), runs.removable),
        (ReclaimReason.MIN_RETENTION_BYTES, runs.old_enough),
        (ReclaimReason.MIN_RETENTION_MS, runs.stable),
        (ReclaimReason.OPEN_TRANSACTION, runs.below_watermark),
        (ReclaimReason.ABOVE_HIGH_WATERMARK, runs.closed),
        (ReclaimReason.ACTIVE, runs.columns.count),
    )
    codes = np.empty((len(runs.standing), len(in_order)), dtype=np.uint8)
    for place, (code, _) in enumerate(in_order):
        codes[:, place] = code
    left_out = np.flatnonzero(runs.is_current & (runs.standing != ReclaimReason.CANDIDATE))
    codes[left_out, _AFTER_GOING:_BEFORE_ACTIVE] = runs.standing[left_out, np.newaxis]
    no_replica = np.flatnonzero(~runs.is_current)
    codes[no_replica] = runs.standing[no_replica, np.newaxis]
    ends = np.stack([end for _, end in in_order], axis=1)
    lengths: Int64Column = np.diff(ends, axis=1, prepend=0)
    return np.repeat(codes.ravel(), lengths.ravel())


def _no_outcomes(logs: int) -> LogOutcomes:
    numbers = [field.name for field in fields(LogOutcomes) if field.name != "standing"]
    columns = {name: np.empty(logs, dtype=np.int64) for name in numbers}
    return LogOutcomes(standing=np.empty(logs, dtype=np.uint8), **columns)


def write_outcomes(outcomes: LogOutcomes, runs: LogRuns, taking: Taking) -> None:
    columns, rows = runs.columns, runs.columns.log_rows
    logs, going = columns.logs, runs.going.until
    leaving = columns.allocated(np.zeros_like(going), going) + deleted_bytes(columns)
    outcomes.standing[rows] = runs.standing
    outcomes.going_bytes[rows] = np.where(logs.kind == FolderKind.DELETE, folder_bytes(columns), leaving)
    outcomes.taken_segments[rows] = taking.taken
    outcomes.taken_bytes[rows] = columns.allocated(going, going + taking.taken)
    outcomes.local_retention_bytes[rows] = runs.local_retention_bytes
    outcomes.blocked_bytes[rows] = _blocked_bytes(runs)
    for name in _NOT_KNOWN:
        getattr(outcomes, name)[rows] = -1
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


def device_plans(runs: LogRuns, taking: Taking) -> Iterator[DevicePlan]:
    columns, going = runs.columns, runs.going.until
    of_logs = {
        "taken_bytes": columns.allocated(going, going + taking.taken),
        "taken_segments": taking.taken,
        "local_retention_bytes": runs.local_retention_bytes,
        "wanted_bytes": columns.allocated(going, going + taking.taken + taking.held_back),
    }
    figures = zip(*map(columns.by_device, of_logs.values()), strict=True)
    for facts, excess, of_device in zip(columns.devices, taking.devices, figures, strict=True):
        used, limit = facts.used_bytes, facts.limit_bytes
        yield DevicePlan(
            outcome=excess.outcome,
            used_bytes=None if used is None else Bytes(used),
            limit_bytes=None if limit is None else Bytes(limit),
            going=excess.going,
            excess_bytes=None if excess.bytes is None else Bytes(excess.bytes),
            removable_bytes=excess.removable_bytes,
            **dict(zip(of_logs, map(Bytes, of_device), strict=True)),
        )


def _blocked_bytes(runs: LogRuns) -> Int64Column:
    if runs.stable is runs.below_watermark:  # nobody spares transactions
        return np.zeros_like(runs.stable)
    kept = runs.columns.allocated(runs.stable, runs.below_watermark)
    return np.where(runs.is_current & (runs.standing == ReclaimReason.CANDIDATE), kept, 0)


def plan(tables: ReclaimTables, *, is_explained: bool = True) -> ReclaimPlan:
    """``ValueError`` for tables that are out of order. ``is_explained``: with the reason of every segment."""
    topics = TopicColumns(tables.topics)
    reason = np.empty(len(tables.segments) if is_explained else 0, dtype=np.uint8)
    logs = _no_outcomes(len(tables.logs))
    devices: list[DevicePlan] = []
    for columns in few_devices(tables):
        runs = runs_of(columns, topics)
        taking = taking_from(runs)
        plans = list(device_plans(runs, taking))
        _write(reason, logs, runs, taking)
        for number, (facts, plan) in enumerate(zip(columns.devices, plans, strict=True)):
            if needed := short_of_reserve(facts, plan.going, plan.taken_bytes):
                runs = runs_of(columns_of_device(tables, len(devices) + number), topics, yields=True)
                taking = taking_from(runs, needed)
                (plans[number],) = device_plans(runs, taking)
                _write(reason, logs, runs, taking)
        devices.extend(plans)
    return ReclaimPlan(reason=reason, logs=logs, devices=tuple(devices))


def _write(reason: UInt8Column, logs: LogOutcomes, runs: LogRuns, taking: Taking) -> None:
    if len(reason):
        reason[runs.columns.segment_rows] = reasons(runs, taking)
    write_outcomes(logs, runs, taking)
