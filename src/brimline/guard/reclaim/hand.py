"""One cycle by hand: what was shown to a person, and nothing else, carried out and looked after.

**Invariant.** The plan that was shown is held against a survey that is made after the devices are locked
(``recheck``), so a person may take all night to say yes: the guard is not held up meanwhile, and nothing goes
that need not go any more. From there on it is a cycle like any other: on record before it is sent, looked at again
before every batch, ended by the files being gone. Whoever interrupts it leaves a cycle under way: the guard, or the
next one by hand, looks after what was sent of it, and what was not is decided anew.
"""

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from brimline.act.device_lock import DeviceLock
from brimline.act.ledger.entries import Plan, PlannedTrim
from brimline.act.ledger.files import LedgerFiles
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import CycleRecord, TrimPhase, TrimRecord
from brimline.act.plan_file import CeilingFrom
from brimline.act.seen_settings import SeenFile
from brimline.act.trims.cluster import TrimCluster
from brimline.act.trims.files import files_left
from brimline.act.trims.trims import TrimExecutor
from brimline.decide.reclaim.holding import Seen
from brimline.guard.reclaim.cycles import LEFT_BEHIND
from brimline.guard.reclaim.preview import Preview, Wanted, broker_client
from brimline.guard.reclaim.recheck import LeftOut, recheck
from brimline.guard.reclaim.settings import ReclaimSettings, settings_text
from brimline.guard.reclaim.survey import ReclaimSurvey, Surveyor
from brimline.guard.reclaim.trims import cycle_plan
from brimline.guard.reclaim.words import no_longer_needed
from brimline.model import BrimlineError, Bytes, ObservationFailed
from brimline.model.blast_radius import BlastRadius
from brimline.service.clock import Clock
from brimline.service.durable_files import NotRecorded
from brimline.settings.config import GuardConfig

_LONGEST_SLEEP = 1.0
"""Whoever watches wants to see that it is alive."""


class Refused(BrimlineError):
    """Nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleProgress:
    """Of all cycles that are being carried out. ``sent``: asked for at least once, or ended."""

    trims: int
    sent: int
    ended: int
    planned_bytes: Bytes
    freed_bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOut:
    """``cycles``: those that were left behind, then the new ones. ``left_out``: was true when it was shown, and is not
    any more. ``broken_off``: why nothing more could be done in the middle of it."""

    cycles: tuple[CycleRecord, ...]
    left_out: tuple[LeftOut, ...]
    broken_off: str | None = None

    @property
    def abandoned(self) -> int:
        return sum(cycle.count(TrimPhase.ABANDONED) for cycle in self.cycles)


class HandCycles:
    """For one thread. ``by``: who says so."""

    def __init__(self, config: GuardConfig, clock: Clock, by: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._config = config
        self._clock = clock
        self._by = by
        self._sleep = sleep
        self._ledger = Ledger(config.state_dir, config.node_id, clock.now)
        self._client = broker_client(config, clock)
        self._surveyor = Surveyor.of(config, self._client, clock, writes=True)

    @property
    def files(self) -> LedgerFiles:
        return self._ledger.files

    def close(self) -> None:
        self._client.close()
        self._ledger.close()

    def refuse_while_paused(self) -> None:
        """Raises ``Refused``, or ``NotRecorded`` when the ledger cannot be used."""
        self._ledger.refresh()
        if (pause := self._ledger.pause) is not None:
            raise Refused(
                f"reclaim is paused by {pause.by} since {pause.since:%Y-%m-%d %H:%M:%S} UTC ({pause.reason}): nothing "
                f"was deleted; brimline reclaim resume --config {self._config.path}"
            )

    def left_behind(self, shown: Preview) -> tuple[CycleRecord, ...]:
        """Cycles in these log dirs that somebody began and nobody has ended. Perhaps somebody is at it."""
        self._ledger.refresh()
        return tuple(self._left_behind({path for device in shown.devices for path in device.log_dirs}))

    def carry_out(self, shown: Preview, *, is_waiting: bool, report: Callable[[CycleProgress], None]) -> CarriedOut:
        """``is_waiting``: until the space is back; else until every leader has answered.

        Raises ``Refused`` or ``NotRecorded``: then nothing was deleted.
        """
        self.refuse_while_paused()
        policy = Wanted(plan=shown.filed).policy(self._config.reclaim_policy)
        with ExitStack() as stack:
            ours = self._lock(stack, shown)
            cluster = stack.enter_context(closing(TrimCluster(self._config.admin)))
            surveyor = self._surveyor
            survey = surveyor.survey(policy, self._config.broker.log_dirs)
            self.refuse_while_paused()
            cluster.spares_transactions = lambda: (surveyor.policy or policy).spares_transactions
            still = recheck(shown.trims, survey)

            def objection(plan: Plan) -> str | None:
                try:
                    return no_longer_needed(surveyor.again(survey).device_plan(plan.device))
                except ObservationFailed as failed:
                    return f"whether it is still needed is unknown: {failed}"

            self._confirm(shown, survey)
            executors = [self._executor(each, cluster, _is_left_behind) for each in self._left_behind(ours)]
            for device, trims in still.trims.items():
                begun = self._begin(self._plan(device, survey, trims, shown.radius))
                executors.append(self._executor(begun, cluster, objection, survey.took))
            broken_off = self._run(executors, _is_over if is_waiting else _is_answered, report)
        return CarriedOut(
            cycles=tuple(each.cycle for each in executors), left_out=still.left_out, broken_off=broken_off
        )

    def _confirm(self, shown: Preview, survey: ReclaimSurvey) -> None:
        """Who says yes to what the file's own settings delete ends the hold of the guard. Raises ``NotRecorded``."""
        if shown.filed.ceiling_from is not CeilingFrom.PROPERTIES:
            return
        for device in shown.devices:
            floor = survey.floor(survey.device_row(device.device))
            foreign = None if floor is None else int(floor.foreign_bytes)
            file = SeenFile(self._config.state_dir, self._config.node_id, device.log_dirs[0])
            file.write(Seen(settings=settings_text(self._config.reclaim_policy), foreign_bytes=foreign))

    def _lock(self, stack: ExitStack, shown: Preview) -> set[str]:
        """The log dirs that are ours now. Raises ``Refused`` for those that somebody else is at work on."""
        ours: set[str] = set()
        for device in shown.devices:
            lock = DeviceLock(device.log_dirs[0])
            stack.callback(lock.release)
            if lock.take():
                ours.update(device.log_dirs)
            elif device.trims:
                raise Refused(
                    f"another cycle is running on the volume of "
                    f"{', '.join(device.log_dirs)}: nothing was deleted; brimline ledger shows it. To delete more "
                    "while the guard runs, lower the ceiling in the properties file and send the guard SIGHUP"
                )
        return ours

    def _left_behind(self, log_dirs: Collection[str]) -> list[CycleRecord]:
        wanted = set(log_dirs)
        return [cycle for cycle in self._ledger.state.cycles.values() if wanted.intersection(cycle.plan.log_dirs)]

    def _plan(self, device: str, survey: ReclaimSurvey, trims: Sequence[PlannedTrim], losses: BlastRadius) -> Plan:
        """What is in both, with the reasons of now."""
        plan = cycle_plan(survey, device, self._ledger.new_cycle_id(device), self._by, losses)
        reasons = {trim.partition: trim.reason for trim in plan.trims}
        return replace(plan, trims=tuple(replace(trim, reason=reasons[trim.partition]) for trim in trims))

    def _begin(self, plan: Plan) -> CycleRecord:
        self._ledger.append(plan)
        return self._ledger.state.cycles[plan.cycle]

    def _executor(
        self,
        cycle: CycleRecord,
        cluster: TrimCluster,
        objection: Callable[[Plan], str | None],
        look_took: float = 0.0,
    ) -> TrimExecutor:
        plan = cycle.plan
        pace = ReclaimSettings.of(self._config).pace(plan.total_bytes, look_took)
        return TrimExecutor(self._ledger, plan.cycle, cluster, files_left, self._clock.seconds, pace, objection)

    def _run(
        self,
        executors: Sequence[TrimExecutor],
        is_enough: Callable[[TrimRecord], bool],
        report: Callable[[CycleProgress], None],
    ) -> str | None:
        """Until it is enough for every trim, or why it could not go on. Raises ``NotRecorded`` if nothing was sent."""
        while True:
            try:
                waits = [wait for executor in executors if (wait := executor.step()) is not None]
            except NotRecorded as error:
                if not any(trim.requests for executor in executors for trim in executor.cycle.trims):
                    raise
                return error.why
            report(_progress(executors))
            if all(is_enough(trim) for executor in executors for trim in executor.cycle.trims):
                return None
            self._sleep(min(min(waits, default=_LONGEST_SLEEP), _LONGEST_SLEEP))


def _is_left_behind(_: Plan) -> str:
    return LEFT_BEHIND


def _is_answered(trim: TrimRecord) -> bool:
    return trim.phase.is_over or (trim.phase is TrimPhase.REQUESTED and trim.low_watermark is not None)


def _is_over(trim: TrimRecord) -> bool:
    return trim.phase.is_over


def _progress(executors: Sequence[TrimExecutor]) -> CycleProgress:
    trims = [trim for executor in executors for trim in executor.cycle.trims]
    return CycleProgress(
        trims=len(trims),
        sent=sum(trim.phase is not TrimPhase.PLANNED for trim in trims),
        ended=sum(trim.phase.is_over for trim in trims),
        planned_bytes=Bytes(sum(trim.planned.allocated_bytes for trim in trims)),
        freed_bytes=Bytes(sum(trim.freed_bytes for trim in trims)),
    )
