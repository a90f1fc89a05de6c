"""What another ceiling would delete from one device: all of it, however many cycles that takes.

**Invariant.** The rules are the plan's own; only the ceiling is another one, and the limit of a cycle is lifted. So it
tells what would be gone in the end if nothing more were written, and ``first_cycle_bytes`` is what goes at once.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from brimline.decide.reclaim.plan import plan
from brimline.decide.reclaim.summary import AgeSpan, ReasonSum, ages_of, blast_radius, reason_sums, rows_of_heads
from brimline.model import Bytes, Offset, used_percent
from brimline.model.blast_radius import BlastRadius, DoomedRange, GroupsSeen
from brimline.model.reclaim import DeviceFacts, ReclaimTables
from brimline.model.reclaim_plan import GOING, DeviceOutcome, DevicePlan, ReclaimPlan, ReclaimReason

_MOST_SPANS = 8
TAKEN = ReclaimReason.TAKEN


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """``knows_groups``: whether ``loss`` says anything about consumer groups."""

    ceiling: int
    taken_at: datetime
    facts: DeviceFacts
    planned: DevicePlan
    first_cycle_bytes: Bytes
    ages: tuple[AgeSpan, ...]
    loss: BlastRadius
    stays: tuple[ReasonSum, ...]
    """Why the rest does, the largest first."""
    knows_groups: bool

    @property
    def percent_after(self) -> float | None:
        total, used = self.facts.total_bytes, self.facts.used_bytes
        if total is None or used is None:
            return None
        return used_percent(total, total - max(used - self.planned.going.total - self.planned.taken_bytes, 0))

    @property
    def is_held(self) -> bool:
        return self.percent_after is not None and self.planned.outcome not in (
            DeviceOutcome.FLOOR_REACHED,
            DeviceOutcome.NO_CURE,
        )


def dry_run(
    tables: ReclaimTables, device: int, ceiling: int, taken_at: datetime, groups: GroupsSeen | None = None
) -> DryRun:
    """``groups``: what they have committed; ``None`` where that is not known. Raises ``ValueError`` for tables that
    contradict each other."""
    limited = _with_ceiling(tables, ceiling)
    whole = _without_cycles(limited)
    planned = plan(whole)
    doomed = _doomed(whole, planned, device)
    heads = [(int(planned.logs.first_taken[log]), int(planned.logs.taken_segments[log])) for log, _ in doomed]
    ages = ages_of(whole, device, rows_of_heads(heads))
    return DryRun(
        ceiling=ceiling,
        taken_at=taken_at,
        facts=whole.devices[device],
        planned=planned.devices[device],
        first_cycle_bytes=plan(limited).devices[device].taken_bytes,
        ages=ages.fitting_spans(_MOST_SPANS) if heads else (),
        loss=blast_radius([each for _, each in doomed], groups or GroupsSeen(groups=(), asked=0)),
        stays=tuple(each for each in reason_sums(whole, planned, device) if each.reason not in (*GOING, TAKEN)),
        knows_groups=groups is not None,
    )


def _with_ceiling(tables: ReclaimTables, ceiling: int) -> ReclaimTables:
    devices = [replace(each, policy=replace(each.policy, ceiling_percent=ceiling)) for each in tables.devices]
    return replace(tables, devices=devices)


def _without_cycles(tables: ReclaimTables) -> ReclaimTables:
    policies = [replace(each.policy, max_bytes_per_cycle=None, max_percent_per_cycle=None) for each in tables.devices]
    devices = [replace(each, policy=policy) for each, policy in zip(tables.devices, policies, strict=True)]
    return replace(tables, devices=devices)


def _doomed(tables: ReclaimTables, planned: ReclaimPlan, device: int) -> list[tuple[int, DoomedRange]]:
    """With the row of each log."""
    outcomes, found = planned.logs, []
    for log in planned.trimmed_logs.tolist():
        partition = tables.topic_partition(log)
        if partition is None or tables.logs.device[log] != device:
            continue
        taken = DoomedRange(
            partition=partition,
            begin=Offset(int(outcomes.from_offset[log])),
            end=Offset(int(outcomes.new_log_start_offset[log])),
            segments=int(outcomes.taken_segments[log]),
            bytes=Bytes(int(outcomes.taken_bytes[log])),
            oldest_ms=int(outcomes.oldest_ms[log]),
            newest_ms=int(outcomes.newest_ms[log]),
        )
        found.append((log, taken))
    return found
