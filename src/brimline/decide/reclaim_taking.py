"""How much of each log is taken: the excess of the device, and the oldest segments that make it up."""

from dataclasses import dataclass

import numpy as np

from brimline.decide import reclaim_kernel as kernel
from brimline.decide.reclaim_device import DeviceColumns
from brimline.decide.reclaim_runs import LogRuns
from brimline.model import Bytes
from brimline.model.reclaim import DeviceFacts
from brimline.model.reclaim_plan import DeviceOutcome, Going
from brimline.model.scan import FolderKind, Int64Column

_EMPTIED_BY_BROKER = (FolderKind.CURRENT, FolderKind.FUTURE, FolderKind.METADATA_LOG)
"""Where a live broker removes its ``.deleted`` files. It does not know of a stray folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    outcome: DeviceOutcome
    going: Going
    excess: int | None
    removable_bytes: Bytes
    taken: Int64Column
    """Of every log, after what is going: how many segments are taken."""
    held_back: Int64Column
    """After those: how many would be taken, but for the limit of a cycle."""


def taking_from(runs: LogRuns) -> Taking:
    columns, facts = runs.columns, runs.columns.facts
    going = _going(runs)
    removable = _sum(columns.allocated(runs.going.until, runs.removable))
    over = _over(facts)
    excess = None if over is None else max(over - going.total, 0)
    if over is None or not excess:
        outcome = _idle_outcome(facts, over)
        taken = needed = np.zeros(len(columns.logs), dtype=np.int64)
    else:
        taken, needed = _oldest(runs, excess)
        outcome = _outcome(excess, removable, is_held_back=bool((taken < needed).any()))
    return Taking(
        outcome=outcome,
        going=going,
        excess=excess,
        removable_bytes=removable,
        taken=taken,
        held_back=needed - taken,
    )


def deleted_bytes(columns: DeviceColumns) -> Int64Column:
    """Of every log: the ``.deleted`` files that the broker removes."""
    return np.where(np.isin(columns.logs.kind, _EMPTIED_BY_BROKER), columns.logs.deleted_bytes, 0)


def folder_bytes(columns: DeviceColumns) -> Int64Column:
    logs = columns.logs
    in_segments = columns.allocated(np.zeros_like(columns.count), columns.count)
    return in_segments + logs.deleted_bytes + logs.foreign_bytes + logs.other_bytes


def _oldest(runs: LogRuns, excess: int) -> tuple[Int64Column, Int64Column]:
    """How many segments of each log are taken, and how many are needed: fewer only if the limit is in the way."""
    columns, start = runs.columns, runs.going.until
    rows = kernel.rows_of_ranges(columns.begin + start, runs.removable - start)
    log, sizes = columns.log_of_segment[rows], columns.segments.allocated_bytes[rows]
    age, rank = kernel.age_of(runs.key[rows]), _ranks(runs)[log]
    is_needed = kernel.cut_oldest(age, rank, sizes, excess).reaching()
    needed = np.bincount(log[is_needed], minlength=len(columns.logs))
    limit = columns.facts.policy.max_bytes_per_cycle
    if limit is None or int(sizes[is_needed].sum()) <= limit:
        return needed, needed
    is_taken = kernel.cut_oldest(age, rank, sizes, limit + 1).below()
    return np.bincount(log[is_taken], minlength=len(columns.logs)), needed


def _ranks(runs: LogRuns) -> Int64Column:
    """Each log's place by topic name, partition and row."""
    ranks = np.empty(len(runs.name_rank), dtype=np.int64)
    ranks[np.lexsort((runs.columns.logs.partition, runs.name_rank))] = np.arange(len(ranks))
    return ranks


def _going(runs: LogRuns) -> Going:
    columns, going = runs.columns, runs.going
    return Going(
        log_start=_sum(columns.allocated(np.zeros_like(going.log_start), going.log_start)),
        retention_bytes=_sum(columns.allocated(going.log_start, going.retention_bytes)),
        retention_ms=_sum(columns.allocated(going.retention_bytes, going.retention_ms)),
        deleted_files=_sum(deleted_bytes(columns)),
        delete_folders=_sum(folder_bytes(columns)[columns.logs.kind == FolderKind.DELETE]),
    )


def _over(facts: DeviceFacts) -> int | None:
    used, limit = facts.used_bytes, facts.limit_bytes
    return None if used is None or limit is None else max(used - limit, 0)


def _idle_outcome(facts: DeviceFacts, over: int | None) -> DeviceOutcome:
    if over is None:
        return DeviceOutcome.SPACE_UNKNOWN if facts.used_bytes is None else DeviceOutcome.NO_CEILING
    return DeviceOutcome.GOING_SUFFICES if over else DeviceOutcome.UNDER_CEILING


def _outcome(excess: int, removable: int, *, is_held_back: bool) -> DeviceOutcome:
    if is_held_back:
        return DeviceOutcome.CYCLE_LIMIT
    return DeviceOutcome.ENOUGH_TAKEN if removable >= excess else DeviceOutcome.FLOOR_REACHED


def _sum(column: Int64Column) -> Bytes:
    return Bytes(int(column.sum()))
