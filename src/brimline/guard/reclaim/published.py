"""Reclaim in ``/v1/state`` and in metrics. Pure: reports in, documents and families out.

A device has one row of metrics, under its first log dir: sums over devices are right.
"""

from collections.abc import Callable, Sequence

from brimline.decide.reclaim.brakes import Brakes
from brimline.decide.reclaim.floor import Floor
from brimline.documents.codec import like
from brimline.documents.guard_state import (
    CycleDocument,
    DeviceDocument,
    FloorDocument,
    FloorPartDocument,
    PausedReclaim,
    PlanDocument,
    ReclaimDocument,
    TopicShareDocument,
    TrimCounts,
)
from brimline.guard.reclaim.report import CycleFigures, Doing, ReclaimReport
from brimline.guard.reclaim.settings import ReclaimSettings
from brimline.guard.reclaim.words import does
from brimline.metrics import catalogue
from brimline.metrics.metric import Metric, MetricFamily
from brimline.model.reclaim_plan import DeviceOutcome, DevicePlan


def reclaim_document(
    reports: Sequence[ReclaimReport], settings: ReclaimSettings, seconds: float
) -> ReclaimDocument | None:
    """``None`` without a ceiling, once nothing is under way any more."""
    if settings.is_off and not any(report.under_way for report in reports):
        return None
    pause = next((report.pause for report in reports if report.pause is not None), None)
    return ReclaimDocument(
        ceiling_percent=settings.policy.ceiling_percent,
        mode="apply" if settings.is_applied else "plan",
        interval_ms=round(settings.interval * 1000),
        paused=None if pause is None else PausedReclaim(by=pause.by, reason=pause.reason, since=pause.since),
        brakes=tuple(dict.fromkeys(line for report in reports for line in report.brakes)),
        keeps=Brakes.of(settings.policy),
        devices=tuple(_device(report, seconds) for report in reports),
    )


def _device(report: ReclaimReport, seconds: float) -> DeviceDocument:
    return like(
        DeviceDocument,
        report,
        state=report.doing.value,
        troubled=report.is_troubled,
        does=does(report),
        decided_at=report.surveyed_at,
        age_seconds=None if report.surveyed is None else round(seconds - report.surveyed, 3),
        plan=None if report.plan is None else _plan(report.plan),
        floor=None if report.floor is None else _floor(report.floor),
        cycles=tuple(_cycle(cycle) for cycle in report.under_way),
        last_cycle=None if report.last is None else _cycle(report.last),
    )


def _plan(plan: DevicePlan) -> PlanDocument:
    return like(PlanDocument, plan, outcome=plan.outcome.label, going_bytes=plan.going.total)


def _floor(floor: Floor) -> FloorDocument:
    parts = tuple(
        like(
            FloorPartDocument,
            part,
            kind=part.kind.value,
            percent=round(part.percent, 3),
            what_helps=part.kind.cure,
            topics=tuple(like(TopicShareDocument, share) for share in part.topics),
        )
        for part in floor.parts
    )
    percent = round(floor.percent, 3)
    return like(FloorDocument, floor, percent=percent, impossible=floor.is_impossible, parts=parts)


def _cycle(cycle: CycleFigures) -> CycleDocument:
    return like(CycleDocument, cycle, trims=like(TrimCounts, cycle), given_up_because=cycle.reasons)


_OF_A_PLAN: tuple[tuple[Metric, Callable[[DevicePlan], int | None]], ...] = (
    (catalogue.RECLAIM_EXCESS, lambda plan: plan.excess_bytes),
    (catalogue.RECLAIM_GOING, lambda plan: plan.going.total),
    (catalogue.RECLAIM_TAKEN_BYTES, lambda plan: plan.taken_bytes),
    (catalogue.RECLAIM_TAKEN_SEGMENTS, lambda plan: plan.taken_segments),
    (catalogue.RECLAIM_MISSING, lambda plan: plan.missing_bytes),
    (catalogue.RECLAIM_REMOVABLE, lambda plan: plan.removable_bytes),
)
_COUNTED: tuple[tuple[Metric, Callable[[ReclaimReport], int]], ...] = (
    (catalogue.RECLAIM_CYCLES, lambda report: report.since_start.cycles),
    (catalogue.RECLAIM_PLANNED_BYTES, lambda report: report.since_start.planned_bytes),
    (catalogue.RECLAIM_PLANNED_SEGMENTS, lambda report: report.since_start.planned_segments),
    (catalogue.RECLAIM_FREED_BYTES, lambda report: report.since_start.freed_bytes),
    (catalogue.RECLAIM_FREED_SEGMENTS, lambda report: report.since_start.freed_segments),
)


def reclaim_families(reports: Sequence[ReclaimReport]) -> list[MetricFamily]:
    rows = tuple(_row(report) for report in reports)
    return [
        _states(catalogue.RECLAIM_STATE, reports, [doing.value for doing in Doing], lambda report: report.doing.value),
        _states(
            catalogue.RECLAIM_OUTCOME,
            [report for report in reports if report.plan is not None],
            [outcome.label for outcome in DeviceOutcome],
            lambda report: report.plan.outcome.label if report.plan is not None else "",
        ),
        catalogue.RECLAIM_PAUSED.single(int(any(report.pause is not None for report in reports))),
        catalogue.RECLAIM_CEILING.family(rows, [report.ceiling_percent for report in reports]),
        *(
            _if_known(metric, [(each, None if each.plan is None else figure(each.plan)) for each in reports])
            for metric, figure in _OF_A_PLAN
        ),
        _if_known(
            catalogue.RECLAIM_FLOOR, [(each, None if each.floor is None else each.floor.bytes) for each in reports]
        ),
        _if_known(catalogue.RECLAIM_HUNG, [(each, each.hung_bytes) for each in reports]),
        *(metric.family(rows, [figure(report) for report in reports]) for metric, figure in _COUNTED),
        _trims(catalogue.RECLAIM_TRIMS, reports, _ended_trims, _ENDS),
        _trims(catalogue.RECLAIM_OPEN_TRIMS, reports, _open_trims, _PHASES),
    ]


def reclaim_ages(reports: Sequence[ReclaimReport], seconds: float) -> MetricFamily:
    """Ages grow between steps, so they are worked out when somebody asks."""
    known = [(report, report.surveyed) for report in reports if report.surveyed is not None]
    return catalogue.RECLAIM_AGE.family(
        tuple(_row(report) for report, _ in known), [seconds - surveyed for _, surveyed in known]
    )


_ENDS = ("done", "abandoned", "withdrawn")
_PHASES = ("unsent", "waiting")


def _ended_trims(report: ReclaimReport) -> tuple[int, int, int]:
    now = report.since_start
    return now.trims_done, now.trims_abandoned, now.trims_withdrawn


def _open_trims(report: ReclaimReport) -> tuple[int, int]:
    return sum(each.unsent for each in report.under_way), sum(each.waiting for each in report.under_way)


def _row(report: ReclaimReport) -> tuple[str, str]:
    return report.log_dirs[0], report.device


def _states(
    metric: Metric, reports: Sequence[ReclaimReport], names: Sequence[str], now: Callable[[ReclaimReport], str]
) -> MetricFamily:
    """1 for the one that is, 0 for the others: so that a change does not leave the old one standing."""
    cells = [(report, name) for report in reports for name in names]
    rows = tuple((*_row(report), name) for report, name in cells)
    return metric.family(rows, [int(now(report) == name) for report, name in cells])


def _if_known(metric: Metric, figures: Sequence[tuple[ReclaimReport, int | None]]) -> MetricFamily:
    """What is not known is left out, not 0."""
    known = [(_row(report), value) for report, value in figures if value is not None]
    return metric.family(tuple(row for row, _ in known), [value for _, value in known])


def _trims(
    metric: Metric,
    reports: Sequence[ReclaimReport],
    counts: Callable[[ReclaimReport], Sequence[int]],
    names: Sequence[str],
) -> MetricFamily:
    cells = [(report, at) for report in reports for at in range(len(names))]
    rows = tuple((*_row(report), names[at]) for report, at in cells)
    return metric.family(rows, [counts(report)[at] for report, at in cells])
