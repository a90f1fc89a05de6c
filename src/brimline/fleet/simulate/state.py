"""A broker's disks from day to day, and how much is written to every log.

How much is written to every log a day, as its own segments tell.

Bytes that are there were written between two moments that are known: the newest record before them, and now. So of the
segments of the last seven days the sum is divided by the time since the one before them. A log that is younger, or
that retention keeps shorter, is measured over what it has; one of a single segment, of which nobody knows when it was
begun, is taken to have been filled in seven days. Compaction is taken to keep pace: a log that is only compacted stays
as large as it is.

A broker's disks from day to day: what is written comes, what retention and the ceiling take goes.

**The model.** A step is a day. What a log gets in a day is one more closed segment, and its active segment stays as
large as it is; replication and uploads keep pace. Then the broker's retention and the guard's ceiling act, by the very
kernel that plans real trims, and as often as they need: the limit of a cycle is for cycles, of which a day has many.
What then is still above the fence was not let in: it was refused, in proportion to what each log would have got.

Each broker is by itself, as its guard is; what the trims of others free here is in ``reclaim_plan``, not here.
"""

from dataclasses import dataclass, replace

import numpy as np

from brimline.decide.reclaim import kernel
from brimline.decide.reclaim.device import each_device
from brimline.decide.reclaim.plan import plan
from brimline.model.quantities import Bytes
from brimline.model.reclaim import AN_HOUR_MS, ReclaimTables, SegmentTable, TopicFacts
from brimline.model.reclaim_plan import GOING, ReclaimPlan, ReclaimReason
from brimline.model.scan import BoolColumn, FolderKind, Int64Column

DAY_MS = 24 * AN_HOUR_MS
WINDOW_MS = 7 * DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Inflow:
    """Bytes a day of every log, as Kafka counts and as the disk does; 0 for what is no current replica."""

    log_bytes: Int64Column
    allocated_bytes: Int64Column


def inflow(tables: ReclaimTables) -> Inflow:
    is_compacted = np.array([*(_is_compacted(topic) for topic in tables.topics), False])  # the last for "no topic"
    log_bytes = np.zeros(len(tables.logs), dtype=np.int64)
    allocated = np.zeros(len(tables.logs), dtype=np.int64)
    for columns in each_device(tables):
        if not len(columns.segments):
            continue
        facts, key = columns.facts, columns.age_keys()
        log = np.arange(len(columns.logs), dtype=np.int64)
        from_window = (log << kernel.AGE_BITS) + max(facts.now_ms - WINDOW_MS, 0)
        first = np.searchsorted(key, from_window)  # of each log, in the window
        # The one before the window says since when; without one, the log's first segment does, and does not count.
        first = np.where(first == columns.begin, np.minimum(columns.begin + 1, columns.end), first)
        before = kernel.age_of(key[np.maximum(first - 1, 0)])
        is_single = columns.count <= 1
        first = np.where(is_single, columns.begin, first)
        span = np.where(is_single, WINDOW_MS, np.maximum(facts.now_ms - before, AN_HOUR_MS))
        is_current = (columns.logs.kind == FolderKind.CURRENT) & (columns.count > 0)
        is_written = is_current & ~is_compacted[columns.logs.topic]
        for rate, sums in ((log_bytes, columns.log_bytes_before), (allocated, columns.allocated_before)):
            written = (sums[columns.end] - sums[first]) * (DAY_MS / span)
            rate[columns.log_rows] = np.where(is_written, written, 0).astype(np.int64)
    return Inflow(log_bytes=log_bytes, allocated_bytes=allocated)


def _is_compacted(topic: TopicFacts) -> bool:
    return topic.rules is not None and topic.rules.compacts and not topic.rules.deletes


_EVERYTHING_REPLICATED = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Day:
    """What a day did, a row per log."""

    tables: ReclaimTables
    """As they are at its end."""
    plan: ReclaimPlan
    by_retention: Int64Column
    by_ceiling: Int64Column
    refused: Int64Column


def first_day(tables: ReclaimTables) -> Day:
    """Today: nothing new comes, and what the rules say goes."""
    nothing = np.zeros(len(tables.logs), dtype=np.int64)
    return _cleaned(tables, nothing, ())


def next_day(tables: ReclaimTables, inflow: Inflow, fences: tuple[int | None, ...]) -> Day:
    """``fences``: of each device, how many bytes may be used before Produce is refused; ``None`` for no fence."""
    later = _written(_a_day_later(tables, inflow), inflow)
    return _cleaned(later, inflow.allocated_bytes, fences)


def _a_day_later(tables: ReclaimTables, inflow: Inflow) -> ReclaimTables:
    added = np.bincount(tables.logs.device, weights=inflow.allocated_bytes, minlength=len(tables.devices))
    devices = tuple(
        replace(
            device,
            now_ms=device.now_ms + DAY_MS,
            usable_bytes=None if device.usable_bytes is None else Bytes(device.usable_bytes - int(size)),
        )
        for device, size in zip(tables.devices, added.tolist(), strict=True)
    )
    return replace(tables, devices=devices)


def _written(tables: ReclaimTables, inflow: Inflow) -> ReclaimTables:
    """A closed segment more in every log that is written to, before its active one."""
    logs, segments = tables.logs, tables.segments
    count = np.diff(logs.segments_begin)
    written = np.flatnonzero((inflow.allocated_bytes > 0) & (count > 0))
    active = logs.segments_begin[written + 1] - 1
    now_ms = np.array([device.now_ms for device in tables.devices], dtype=np.int64)[logs.device[written]]
    base_offset, newest = segments.base_offset.copy(), segments.newest_timestamp_ms.copy()
    modified = segments.modified_ns.copy()
    base_offset[active] += 1
    newest[active], modified[active] = now_ms, now_ms * 1_000_000
    added = {
        "base_offset": base_offset[active] - 1,
        "log_bytes": inflow.log_bytes[written],
        "allocated_bytes": inflow.allocated_bytes[written],
        "newest_timestamp_ms": now_ms,
        "modified_ns": now_ms * 1_000_000,
    }
    changed = replace(segments, base_offset=base_offset, newest_timestamp_ms=newest, modified_ns=modified)
    count[written] += 1
    return replace(
        tables,
        logs=replace(
            logs,
            segments_begin=np.concatenate(([0], np.cumsum(count))),
            high_watermark=_caught_up(logs.high_watermark, written, np.full_like(active, _EVERYTHING_REPLICATED)),
            last_stable_offset=_caught_up(
                logs.last_stable_offset, written, np.full_like(active, _EVERYTHING_REPLICATED)
            ),
            highest_remote_offset=_caught_up(logs.highest_remote_offset, written, base_offset[active] - 1),
        ),
        segments=SegmentTable(
            **{name: np.insert(getattr(changed, name), active, values) for name, values in added.items()}
        ),
    )


def _caught_up(offset: Int64Column, written: Int64Column, reached: Int64Column) -> Int64Column:
    """Replication and uploads keep pace; where one is not known it stays so."""
    after = offset.copy()
    after[written] = np.where(offset[written] < 0, offset[written], np.maximum(offset[written], reached))
    return after


def _cleaned(tables: ReclaimTables, inflow: Int64Column, fences: tuple[int | None, ...]) -> Day:
    unhurried = replace(
        tables,
        devices=tuple(
            replace(device, policy=replace(device.policy, max_bytes_per_cycle=None, max_percent_per_cycle=None))
            for device in tables.devices
        ),
    )
    planned = plan(unhurried)
    freed = [int(each.going.total) + int(each.taken_bytes) for each in planned.devices]
    after = _without(_freed(unhurried, freed), planned)
    refused = _refused(after, inflow, fences)
    return Day(
        tables=_let_out(after, refused),
        plan=planned,
        by_retention=planned.logs.going_bytes,
        by_ceiling=planned.logs.taken_bytes,
        refused=refused,
    )


def _freed(tables: ReclaimTables, sizes: list[int]) -> ReclaimTables:
    devices = tuple(
        device if device.usable_bytes is None else replace(device, usable_bytes=Bytes(device.usable_bytes + size))
        for device, size in zip(tables.devices, sizes, strict=True)
    )
    return replace(tables, devices=devices)


def _without(tables: ReclaimTables, planned: ReclaimPlan) -> ReclaimTables:
    logs, segments = tables.logs, tables.segments
    stays: BoolColumn = ~np.isin(planned.reason, (*GOING, ReclaimReason.TAKEN))
    begins = np.concatenate(([0], np.cumsum(stays)))[logs.segments_begin]
    kept = SegmentTable(
        **{name: getattr(segments, name)[stays] for name in ("base_offset", "log_bytes", "allocated_bytes")},
        newest_timestamp_ms=segments.newest_timestamp_ms[stays],
        modified_ns=segments.modified_ns[stays],
    )
    is_deleted = logs.kind == FolderKind.DELETE
    first = np.append(kept.base_offset, 0)[np.minimum(begins[:-1], len(kept.base_offset))]
    is_moved = (np.diff(begins) > 0) & (logs.log_start_offset >= 0)
    log_start = np.where(is_moved, np.maximum(logs.log_start_offset, first), logs.log_start_offset)
    return replace(
        tables,
        logs=replace(
            logs,
            segments_begin=begins,
            log_start_offset=log_start,
            deleted_bytes=np.zeros_like(logs.deleted_bytes),
            foreign_bytes=np.where(is_deleted, 0, logs.foreign_bytes),
            other_bytes=np.where(is_deleted, 0, logs.other_bytes),
        ),
        segments=kept,
    )


def _refused(tables: ReclaimTables, inflow: Int64Column, fences: tuple[int | None, ...]) -> Int64Column:
    """Of what came today: what found no room below the fence of its device."""
    came = np.bincount(tables.logs.device, weights=inflow, minlength=len(tables.devices))
    share = np.zeros(len(tables.devices))
    for row, fence in enumerate(fences):
        used = tables.devices[row].used_bytes
        if fence is not None and used is not None and came[row] > 0:
            share[row] = min(max(used - fence, 0) / came[row], 1.0)
    return np.ceil(inflow * share[tables.logs.device]).astype(np.int64)


def _let_out(tables: ReclaimTables, refused: Int64Column) -> ReclaimTables:
    """What was refused is not in the day's segment, which stands before the active one."""
    logs, segments = tables.logs, tables.segments
    rows = np.flatnonzero((refused > 0) & (np.diff(logs.segments_begin) > 1))
    if not len(rows):
        return tables
    todays = logs.segments_begin[rows + 1] - 2
    log_bytes, allocated = segments.log_bytes.copy(), segments.allocated_bytes.copy()
    left = np.maximum(allocated[todays] - refused[rows], 0)
    log_bytes[todays] = (log_bytes[todays] * (left / np.maximum(allocated[todays], 1))).astype(np.int64)
    given_back = np.bincount(logs.device[rows], weights=allocated[todays] - left, minlength=len(tables.devices))
    allocated[todays] = left
    after = replace(tables, segments=replace(segments, log_bytes=log_bytes, allocated_bytes=allocated))
    return _freed(after, given_back.astype(np.int64).tolist())
