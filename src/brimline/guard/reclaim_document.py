"""The part of ``/v1/state`` about reclaim: its ceiling, and every device with what is done about it."""

from collections.abc import Mapping, Sequence

from brimline.decide.reclaim_floor import Floor
from brimline.guard.gateway_document import time_text
from brimline.guard.reclaim_report import CycleFigures, ReclaimReport
from brimline.guard.reclaim_sentences import does
from brimline.guard.reclaim_settings import ReclaimSettings
from brimline.model.reclaim_plan import DevicePlan

Json = Mapping[str, object]


def reclaim_document(reports: Sequence[ReclaimReport], settings: ReclaimSettings, seconds: float) -> Json | None:
    """``None`` without a ceiling, once nothing is under way any more."""
    if settings.is_off and not any(report.under_way for report in reports):
        return None
    pause = next((report.pause for report in reports if report.pause is not None), None)
    return {
        "ceilingPercent": settings.policy.ceiling_percent,
        "mode": "apply" if settings.is_applied else "plan",
        "intervalMs": round(settings.interval * 1000),
        "paused": None if pause is None else {"by": pause.by, "reason": pause.reason, "since": time_text(pause.since)},
        "devices": [_device(report, seconds) for report in reports],
    }


def _device(report: ReclaimReport, seconds: float) -> Json:
    totals = report.totals
    return {
        "device": report.device,
        "logDirs": list(report.log_dirs),
        "state": report.doing.value,
        "troubled": report.is_troubled,
        "problem": report.problem,
        "does": does(report),
        "decidedAt": None if report.surveyed_at is None else time_text(report.surveyed_at),
        "ageSeconds": None if report.surveyed is None else round(seconds - report.surveyed, 3),
        "plan": None if report.plan is None else _plan(report.plan),
        "floor": None if report.floor is None else _floor(report.floor),
        "cycles": [_cycle(cycle) for cycle in report.under_way],
        "lastCycle": None if report.last is None else _cycle(report.last),
        "sinceStart": {
            "cycles": totals.cycles,
            "plannedBytes": totals.planned_bytes,
            "plannedSegments": totals.planned_segments,
            "trimsDone": totals.done,
            "trimsAbandoned": totals.abandoned,
            "trimsWithdrawn": totals.withdrawn,
            "freedBytes": totals.freed_bytes,
            "freedSegments": totals.freed_segments,
        },
    }


def _plan(plan: DevicePlan) -> Json:
    return {
        "outcome": plan.outcome.label,
        "usedBytes": plan.used_bytes,
        "limitBytes": plan.limit_bytes,
        "goingBytes": plan.going.total,
        "excessBytes": plan.excess_bytes,
        "takenBytes": plan.taken_bytes,
        "takenSegments": plan.taken_segments,
        "missingBytes": plan.missing_bytes,
        "removableBytes": plan.removable_bytes,
        "localRetentionBytes": plan.local_retention_bytes,
    }


def _floor(floor: Floor) -> Json:
    return {
        "bytes": floor.bytes,
        "percent": round(floor.percent, 3),
        "impossible": floor.is_impossible,
        "sentence": floor.sentence,
        "parts": [
            {
                "kind": part.kind.value,
                "bytes": part.bytes,
                "percent": round(part.percent, 3),
                "whatHelps": part.kind.cure,
                "topics": [{"topic": share.topic, "bytes": share.bytes} for share in part.topics],
            }
            for part in floor.parts
        ],
    }


def _cycle(cycle: CycleFigures) -> Json:
    return {
        "cycle": cycle.cycle,
        "by": cycle.by,
        "begunAt": time_text(cycle.begun_at),
        "endedAt": None if cycle.ended_at is None else time_text(cycle.ended_at),
        "excessBytes": cycle.excess_bytes,
        "plannedBytes": cycle.planned_bytes,
        "plannedSegments": cycle.planned_segments,
        "trims": {
            "unsent": cycle.unsent,
            "waiting": cycle.waiting,
            "done": cycle.done,
            "abandoned": cycle.abandoned,
            "withdrawn": cycle.withdrawn,
        },
        "freedBytes": cycle.freed_bytes,
        "freedSegments": cycle.freed_segments,
        "givenUpBecause": list(cycle.reasons),
    }
