"""The reclaim of one device in the guard's log: a line for every deletion and for every change, none in between."""

import logging
from collections.abc import Callable, Sequence

from brimline.act.ledger_entries import Plan
from brimline.act.ledger_state import Pause
from brimline.decide.reclaim_floor import Floor
from brimline.guard.log_lines import say
from brimline.guard.reclaim_report import TROUBLES, CycleFigures, Doing, ReclaimReport
from brimline.guard.reclaim_sentences import begun_sentence, does, ended_sentence, floor_sentence
from brimline.model import Failure, human_span
from brimline.model.blast_radius import BlastRadius
from brimline.model.reclaim import AN_HOUR_MS, DeviceFacts
from brimline.model.reclaim_plan import DevicePlan

_ABOVE = (Doing.PLANNED, Doing.WAITING_FOR_TURN, Doing.TRIMMING, Doing.WAITING_FOR_SPACE, Doing.STUCK)


class ReclaimNews:
    """``count`` hears of every step that failed, by what stood in the way."""

    def __init__(self, count: Callable[[str], None] = lambda _: None) -> None:
        self._count = count
        self._doing = Doing.UNDER_CEILING
        self._was_impossible = False
        self._was_ahead = False

    def begun(self, plan: Plan, device: DevicePlan, losses: BlastRadius | None) -> None:
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
            f"the ledger has a cycle that nobody carries out: {cycle.waiting} of its trims were sent and are watched, "
            f"{cycle.unsent} were not and are decided anew (cycle {cycle.cycle}, by {cycle.by})",
            cycle=cycle.cycle,
        )

    def pause(self, pause: Pause | None) -> None:
        if pause is None:
            say(logging.WARNING, "reclaim-resumed", "reclaim goes on: the ceiling is held again")
        else:
            say(
                logging.WARNING,
                "reclaim-paused",
                f"reclaim is paused by {pause.by}: {pause.reason}; nothing more is sent, and the ceiling is not held",
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
                f"the clock is {human_span((device.now_ms - believed) / 1000)} ahead of what the newest records and "
                "the time since the guard's start say, so the minimum retention counts from there: new records bring "
                "it forward, and if the clock was corrected, so does a restart of the guard",
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
        say(logging.WARNING, "reclaim-readers-unknown", f"who has not read what goes is not known: {failure}")

    def warnings(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            say(logging.WARNING, "ledger", warning)

    def doing(self, report: ReclaimReport) -> None:
        """Troubles, and their end; what is told by lines of its own is not told here."""
        was, self._doing = self._doing, report.doing
        if report.doing in TROUBLES:
            self._count(report.doing.value)
        if report.doing is was:
            return
        if report.doing in TROUBLES:
            say(logging.ERROR, f"reclaim-{report.doing.value}", does(report), device=report.device)
        elif was in TROUBLES:
            say(logging.INFO, "reclaim-works-again", does(report), device=report.device)
        elif report.doing is Doing.STUCK:
            say(logging.ERROR, "reclaim-stuck", does(report), device=report.device)
        elif report.doing is Doing.PLANNED:
            say(logging.WARNING, "reclaim-planned", does(report), device=report.device)
        elif report.doing is Doing.UNDER_CEILING and was in _ABOVE:
            say(logging.INFO, "reclaim-under-ceiling", does(report), device=report.device)
