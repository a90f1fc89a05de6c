"""From a survey to what goes on record: the trims of one device, oldest first, and the entry that begins a cycle."""

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from brimline.act.ledger.entries import CycleId, PassedOver, Plan, PlannedTrim, SegmentRange
from brimline.guard.reclaim.survey import ReclaimSurvey
from brimline.model import Bytes, Offset, TopicPartition, counted
from brimline.model.blast_radius import BlastRadius, DoomedRange
from brimline.model.reclaim import Views
from brimline.model.reclaim_plan import ReclaimReason

_NAMED = 5
_NOT_NOW = (
    ReclaimReason.TOPIC_UNKNOWN,
    ReclaimReason.MOVING,
    ReclaimReason.VIEWS_DISAGREE,
    ReclaimReason.OFFSETS_UNKNOWN,
)


def planned_trims(survey: ReclaimSurvey, device: str) -> tuple[PlannedTrim, ...]:
    """One for every log that loses something, those with the oldest records first."""
    row = survey.device_row(device)
    logs = survey.tables.tables.logs
    rows = [log for log in survey.plan.trimmed_logs.tolist() if logs.device[log] == row]
    outcomes = survey.plan.logs
    return tuple(_trim(survey, log) for log in sorted(rows, key=lambda log: int(outcomes.oldest_ms[log])))


def doomed_range(trim: PlannedTrim) -> DoomedRange:
    """What is below the first segment that goes is lost already, or goes by ordinary retention."""
    return DoomedRange(
        partition=trim.partition,
        begin=Offset(max(trim.segments.first, trim.log_start)),
        end=trim.target,
        segments=trim.segments.count,
        bytes=trim.allocated_bytes,
        oldest_ms=trim.oldest_ms,
        newest_ms=trim.newest_ms,
    )


def cycle_plan(survey: ReclaimSurvey, device: str, cycle: CycleId, by: str, losses: BlastRadius | None = None) -> Plan:
    """For a device whose space is known, with a ceiling. Who loses by a trim stands in its reason."""
    row = survey.device_row(device)
    facts, planned, volume = survey.tables.tables.devices[row], survey.plan.devices[row], survey.volumes[row]
    assert facts.total_bytes is not None
    assert planned.used_bytes is not None
    assert planned.excess_bytes is not None
    return Plan(
        cycle=cycle,
        device=device,
        log_dirs=volume.log_dirs,
        total_bytes=facts.total_bytes,
        used_bytes=planned.used_bytes,
        ceiling_percent=facts.policy.ceiling_percent,
        excess_bytes=planned.excess_bytes,
        going_bytes=planned.going.total,
        by=by,
        trims=tuple(_with_losses(trim, losses) for trim in planned_trims(survey, device)),
        passed_over=tuple(_passed_over(survey, row)),
    )


def guard_name(node_id: int) -> str:
    return f"guard of broker {node_id} (pid {os.getpid()})"


def _passed_over(survey: ReclaimSurvey, device: int) -> Iterator[PassedOver]:
    """Logs of which too little is known at this moment: what is younger than theirs goes before it."""
    tables, reasons = survey.tables.tables, survey.plan.reason
    undecided = np.flatnonzero(np.isin(reasons, _NOT_NOW))
    rows, firsts = np.unique(np.searchsorted(tables.logs.segments_begin, undecided, "right") - 1, return_index=True)
    for log, first in zip(rows.tolist(), firsts.tolist(), strict=True):
        partition = tables.topic_partition(log)
        if partition is None or tables.logs.device[log] != device:
            continue
        reason = ReclaimReason(int(reasons[undecided[first]]))
        views = Views(int(tables.logs.views[log]))
        why = views.sentence if reason is ReclaimReason.VIEWS_DISAGREE else reason.sentence
        yield PassedOver(partition=partition, why=why)


def _with_losses(trim: PlannedTrim, losses: BlastRadius | None) -> PlannedTrim:
    named = [] if losses is None else list(_losers(losses, trim.partition))
    if not named:
        return trim
    rest = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return replace(trim, reason=f"{trim.reason}; not read yet by {', '.join(named[:_NAMED])}{rest}")


def _losers(losses: BlastRadius, partition: TopicPartition) -> Iterator[str]:
    for group in losses.groups:
        for loss in group.partitions:
            if loss.partition == partition:
                yield f"group {group.group} ({counted(loss.records, 'record')})"


def _trim(survey: ReclaimSurvey, log: int) -> PlannedTrim:
    tables, outcomes = survey.tables.tables, survey.plan.logs
    partition = tables.topic_partition(log)
    assert partition is not None, "only replicas are trimmed"
    first, count = int(outcomes.first_taken[log]), int(outcomes.taken_segments[log])
    base = tables.segments.base_offset
    return PlannedTrim(
        partition=partition,
        topic_id=survey.topic_id(partition.topic),
        log_dir=survey.tables.log_dir(log),
        log_start=Offset(int(tables.logs.log_start_offset[log])),
        target=Offset(int(outcomes.new_log_start_offset[log])),
        segments=SegmentRange(first=Offset(int(base[first])), last=Offset(int(base[first + count - 1])), count=count),
        allocated_bytes=Bytes(int(outcomes.taken_bytes[log])),
        oldest_ms=int(outcomes.oldest_ms[log]),
        newest_ms=int(outcomes.newest_ms[log]),
        reason=ReclaimReason.TAKEN.sentence,
    )
