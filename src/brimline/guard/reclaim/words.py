"""The reclaim of a device in plain words, one wording for the log, ``/v1/state`` and ``status``.

In the guard's log: a line for every deletion and for every change, none in between.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from brimline.act.ledger.entries import Plan, PlannedTrim
from brimline.act.ledger.state import Pause
from brimline.decide.reclaim.floor import Floor
from brimline.guard.reclaim.report import TROUBLES, CycleFigures, Doing, ReclaimReport
from brimline.guard.reclaim.settings import ReclaimSettings
from brimline.model import Failure, counted, human_bytes, human_count, human_span
from brimline.model.blast_radius import BlastRadius
from brimline.model.reclaim import AN_HOUR_MS, DeviceFacts
from brimline.model.reclaim_plan import DeviceOutcome, DevicePlan
from brimline.service.log_lines import say

_NAMED = 3
_NAMED_CURES = 2


def ceiling_sentence(settings: ReclaimSettings) -> str:
    """What the configuration means, at the start."""
    if settings.is_off:
        return "no ceiling: deletes nothing"
    act = "deletes the oldest segments above it" if settings.is_applied else "plans only, deletes nothing"
    return f"ceiling {settings.policy.ceiling_percent} %: {act}"


def no_longer_needed(plan: DevicePlan) -> str | None:
    """Why nothing more has to go; ``None`` while it has to."""
    if plan.used_bytes is None or plan.limit_bytes is None or plan.excess_bytes is None:
        return "the device's use is unknown"
    if plan.outcome is DeviceOutcome.NO_CURE and not plan.taken_segments:
        return "what is not Kafka's is above the ceiling by itself, and the device is below its fence"
    if plan.excess_bytes > 0:
        return None
    return (
        f"no longer needed: {human_bytes(plan.used_bytes)} used, {human_bytes(plan.going.total)} being deleted, "
        f"ceiling {human_bytes(plan.limit_bytes)}"
    )


def pause_sentence(pause: Pause) -> str:
    """paused by root: replay (resume: brimline reclaim resume)"""
    return f"paused by {pause.by}: {pause.reason} (resume: brimline reclaim resume)"


def excess_sentence(log_dirs: Sequence[str], plan: DevicePlan, ceiling_percent: int) -> str:
    """/data/a: 4.30 GiB over its ceiling of 80 %, 1.10 GiB already being deleted"""
    over = max((plan.used_bytes or 0) - (plan.limit_bytes or 0), 0)
    going = f", {human_bytes(min(plan.going.total, over))} already being deleted" if plan.going.total else ""
    return f"{', '.join(log_dirs)}: {human_bytes(over)} over its ceiling of {ceiling_percent} %{going}"


def taking_sentence(plan: DevicePlan, *, is_applied: bool) -> str:
    act = "deletes" if is_applied else "would delete"
    number = plan.taken_segments
    segments = "oldest segment" if number == 1 else f"{human_count(number)} oldest segments"
    rest = f", {human_bytes(plan.missing_bytes)} short of the ceiling" if plan.missing_bytes else ""
    return f"{act} the {segments}, {human_bytes(plan.taken_bytes)}{rest}"


def trims_sentence(trims: Sequence[PlannedTrim]) -> str:
    """of 12 partitions, with records up to 2026-01-30T11:02:13Z; most of orders (2.10 GiB), clicks (1.00 GiB)"""
    by_topic: Counter[str] = Counter()
    for trim in trims:
        by_topic[trim.partition.topic] += trim.allocated_bytes
    most = _named(f"{topic} ({human_bytes(size)})" for topic, size in by_topic.most_common())
    newest = max((trim.newest_ms for trim in trims), default=-1)
    until = f", with records up to {moment(newest)}" if newest >= 0 else ""
    return f"of {counted(len(trims), 'partition')}{until}: {most}"


def losses_sentence(losses: BlastRadius | None) -> str:
    if losses is None:
        return "unread by: unknown"
    unknown = "; some groups unknown" if losses.unknown else ""
    if not losses.groups:
        return f"no consumer group has an offset in them{unknown}"
    groups = _named(f"{each.group} ({counted(each.records, 'record')})" for each in losses.groups)
    return f"not yet read by {groups}{unknown}"


def begun_sentence(plan: Plan, device: DevicePlan, losses: BlastRadius | None) -> str:
    return (
        f"{excess_sentence(plan.log_dirs, device, plan.ceiling_percent)}; {taking_sentence(device, is_applied=True)}, "
        f"{trims_sentence(plan.trims)}; {losses_sentence(losses)} (cycle {plan.cycle})"
    )


def ended_sentence(cycle: CycleFigures) -> str:
    """cycle 8:1-17 finished: 12 of 14 trims done, 3.30 GiB freed; given up: its leader has moved"""
    given_up = f"; given up: {'; '.join(cycle.reasons[:_NAMED])}" if cycle.reasons else ""
    return (
        f"cycle {cycle.cycle} finished: {cycle.done} of {cycle.trims} trims done, {human_bytes(cycle.freed_bytes)} "
        f"freed{given_up}"
    )


def floor_sentence(floor: Floor) -> str:
    """What cannot be removed, whose it is and what would help."""
    cures = [f"{part.kind.value}: {part.kind.cure}" for part in floor.parts[:_NAMED_CURES]]
    topics = _named(f"{share.topic} ({human_bytes(share.bytes)})" for part in floor.parts[:1] for share in part.topics)
    named = f"; the largest: {topics}" if topics else ""
    return f"{floor.sentence}{named}. What helps: {'; '.join(cures)}"


_WHY_NOTHING = {
    Doing.UNWATCHED: "the disk cannot be read: ",
    Doing.NOT_RECORDED: "the ledger cannot be written: ",
    Doing.BROKER_SILENT: "the cluster does not answer: ",
    Doing.CANNOT_LOCK: "",
}


def does(report: ReclaimReport) -> str:
    """What is done about a device now."""
    plan, doing = report.plan, report.doing
    cycles = _cycles_sentence(report.under_way)
    match doing:
        case Doing.OFF:
            return "no ceiling (log.retention.disk.usage.percent is 100)"
        case Doing.UNWATCHED | Doing.NOT_RECORDED | Doing.BROKER_SILENT | Doing.CANNOT_LOCK:
            return f"nothing deleted: {_WHY_NOTHING[doing]}{report.problem}"
        case Doing.PAUSED:
            assert report.pause is not None
            return f"{pause_sentence(report.pause)}{cycles}"
        case Doing.HELD:
            return f"above its ceiling of {report.ceiling_percent} %, {report.problem}{cycles}"
        case Doing.WAITING_FOR_TURN:
            return f"above its ceiling of {report.ceiling_percent} %, waiting for its turn{cycles}"
        case Doing.TRIMMING:
            return f"deletes the oldest segments{cycles}"
    if plan is None or doing is Doing.UNDER_CEILING:
        return f"below its ceiling of {report.ceiling_percent} %{cycles}"
    excess = excess_sentence(report.log_dirs, plan, report.ceiling_percent)
    match doing:
        case Doing.PLANNED:
            return f"{excess}; {taking_sentence(plan, is_applied=False)} (brimline.reclaim.mode is plan)"
        case Doing.WAITING_FOR_SPACE:
            missing = f"{human_bytes(plan.missing_bytes)} short after the last cycle"
            return f"{excess}; {missing if plan.missing_bytes else 'deletions in progress cover it'}{cycles}"
    floor = "" if report.floor is None else f": {floor_sentence(report.floor)}"
    if plan.outcome is DeviceOutcome.NO_CURE:
        kept = (
            f"{human_bytes(plan.removable_bytes - plan.taken_bytes)} that could be deleted stay while it is "
            "below its fence"
        )
        return f"{excess}; what is not Kafka's is above it by itself: {kept}{floor}{cycles}"
    return f"{excess}; nothing more is removable{floor}{cycles}"


def moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _cycles_sentence(cycles: Sequence[CycleFigures]) -> str:
    if not cycles:
        return ""
    unsent, waiting = sum(each.unsent for each in cycles), sum(each.waiting for each in cycles)
    parts = [
        f"{counted(unsent, 'trim')} not sent yet" if unsent else "",
        f"{counted(waiting, 'deletion')} in progress" if waiting else "",
    ]
    told = ", ".join(part for part in parts if part)
    return f" ({told})" if told else ""


def _named(names: Iterable[str]) -> str:
    every = list(names)
    rest = f" and {human_count(len(every) - _NAMED)} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + rest


_ABOVE = (Doing.HELD, Doing.PLANNED, Doing.TRIMMING, Doing.WAITING_FOR_SPACE, Doing.STUCK)


class ReclaimNews:
    """``count`` hears of every step that failed, by what stood in the way."""

    def __init__(self, count: Callable[[str], None] = lambda _: None) -> None:
        self._count = count
        self._doing = Doing.UNDER_CEILING
        self._was_impossible = False
        self._was_ahead = False

    def begun(self, plan: Plan, device: DevicePlan, losses: BlastRadius | None) -> None:
        if device.outcome is DeviceOutcome.BRAKES_YIELD:
            say(
                logging.ERROR,
                "reclaim-brakes-yield",
                f"{', '.join(plan.log_dirs)}: BRAKES OVERRIDDEN: the disk is down to its last reserve and nothing "
                f"refuses writes, so {human_bytes(plan.planned_bytes)} are deleted against minimum retention or the "
                "limit of a cycle; set brimline.enforcement=gateway to refuse writes instead",
                device=plan.device,
                planned_bytes=plan.planned_bytes,
            )
        say(
            logging.WARNING,
            "reclaim",
            begun_sentence(plan, device, losses),
            cycle=plan.cycle,
            device=plan.device,
            excess_bytes=plan.excess_bytes,
            going_bytes=plan.going_bytes,
            planned_bytes=plan.planned_bytes,
            planned_segments=device.taken_segments,
            trims=len(plan.trims),
            groups=None if losses is None else len(losses.groups),
        )

    def ended(self, cycle: CycleFigures) -> None:
        say(
            logging.WARNING if cycle.abandoned else logging.INFO,
            "reclaim-over",
            ended_sentence(cycle),
            cycle=cycle.cycle,
            done=cycle.done,
            abandoned=cycle.abandoned,
            withdrawn=cycle.withdrawn,
            freed_bytes=cycle.freed_bytes,
        )

    def adopted(self, cycle: CycleFigures) -> None:
        say(
            logging.WARNING,
            "reclaim-adopted",
            f"unfinished cycle {cycle.cycle} in the ledger, by {cycle.by}: its "
            f"{counted(cycle.waiting, 'sent trim')} will be watched, its {counted(cycle.unsent, 'unsent trim')} "
            "planned again",
            cycle=cycle.cycle,
        )

    def pause(self, pause: Pause | None) -> None:
        if pause is None:
            say(logging.WARNING, "reclaim-resumed", "reclaim resumed: the ceiling is held again")
        else:
            say(
                logging.WARNING,
                "reclaim-paused",
                f"reclaim is {pause_sentence(pause)}; no more trims are sent, the ceiling is not held",
                by=pause.by,
            )

    def clock(self, device: DeviceFacts) -> None:
        """Said once, when records stay because the clock is not believed."""
        believed = device.now_ms if device.believed_ms is None else device.believed_ms
        is_ahead = device.policy.min_retention_ms > 0 and device.now_ms - believed > AN_HOUR_MS
        if is_ahead and not self._was_ahead:
            say(
                logging.WARNING,
                "clock-ahead",
                f"the clock is {human_span((device.now_ms - believed) / 1000)} ahead of the newest records, or of the "
                "time that has passed since a guard looked last: minimum retention counts from those; if the clock is "
                "right, remove clock-NODE.json from brimline.state.dir",
                device=device.name,
            )
        self._was_ahead = is_ahead

    def floor(self, floor: Floor | None) -> None:
        """Said in advance, whether or not the device is above its ceiling."""
        is_impossible = floor is not None and floor.is_impossible
        if is_impossible == self._was_impossible or floor is None:
            return
        self._was_impossible = is_impossible
        if is_impossible:
            say(logging.WARNING, "reclaim-floor", floor_sentence(floor), floor_bytes=floor.bytes)
        else:
            say(logging.INFO, "reclaim-floor", floor.sentence, floor_bytes=floor.bytes)

    def no_blast_radius(self, failure: Failure) -> None:
        say(logging.WARNING, "reclaim-readers-unknown", f"consumer groups that lose records are unknown: {failure}")

    def warnings(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            say(logging.WARNING, "ledger", warning)

    def doing(self, report: ReclaimReport) -> None:
        """Troubles, and their end; what is told by lines of its own is not told here.

        A device that nothing helps waits for its turn again before every look: what comes of it is no news then.
        """
        if report.doing is Doing.WAITING_FOR_TURN:
            return
        was, self._doing = self._doing, report.doing
        if report.doing in TROUBLES:
            self._count(report.doing.value)
        if report.doing is was:
            return
        if report.doing in TROUBLES:
            say(logging.ERROR, f"reclaim-{report.doing.value}", does(report), device=report.device)
        elif was in TROUBLES:
            say(logging.INFO, "reclaim-works-again", does(report), device=report.device)
        elif report.doing is Doing.HELD:
            say(logging.WARNING, "reclaim-held", does(report), device=report.device)
        elif report.doing is Doing.STUCK:
            say(logging.ERROR, "reclaim-stuck", does(report), device=report.device)
        elif report.doing is Doing.PLANNED:
            say(logging.WARNING, "reclaim-planned", does(report), device=report.device)
        elif report.doing is Doing.UNDER_CEILING and was in _ABOVE:
            say(logging.INFO, "reclaim-under-ceiling", does(report), device=report.device)
