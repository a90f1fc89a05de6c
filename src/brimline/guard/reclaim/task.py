"""KIP-61's ceiling held on one device: look, decide, have it carried out, and again.

**Cycles overlap.** What was trimmed comes back only after the broker's retention pass and its delay. Meanwhile it
counts as going, whoever trimmed it, so the next cycle is decided at its time and takes what has come on top. To wait
for the files would let a device grow for as long as they take, each time.

**Before every batch** files, log starts and disk are looked at again. When enough is going by then, since the guards of
other brokers trim the same partitions, nothing more is sent.

**A device has one task.** There is one for each log dir, and the one of the device's first log dir speaks for it; a
file system that hangs holds up its own task alone. While cycles are under way the device's lock is held, because a
broker that shares the volume cannot see what of it is going. When that broker's guard waits for its turn, nothing more
is planned before those cycles are over, and it gets it. A pause lets go of the lock, too.
"""

import math
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from brimline.act.device_lock import CannotLock, DeviceLock, DeviceTurn
from brimline.act.ledger.entries import PlannedTrim
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import Pause
from brimline.act.seen_settings import SeenFile
from brimline.act.trims.trims import TrimmedCluster
from brimline.decide.disk_state import DiskState
from brimline.decide.reclaim.floor import Floor
from brimline.decide.reclaim.holding import Hold, Seen, next_hold
from brimline.decide.reclaim.summary import blast_radius
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.guard.reclaim.cycles import FilesLeft, ReclaimCycles
from brimline.guard.reclaim.report import Doing, ReclaimReport
from brimline.guard.reclaim.settings import JITTER, ReclaimSettings
from brimline.guard.reclaim.survey import ReclaimSurvey, Surveyor
from brimline.guard.reclaim.trims import cycle_plan, doomed_range, planned_trims
from brimline.guard.reclaim.words import ReclaimNews, no_longer_needed
from brimline.model import BrimlineError, Failure, FailureKind, ObservationFailed, TopicPartition
from brimline.model.blast_radius import BlastRadius, GroupsSeen
from brimline.model.reclaim_plan import DeviceOutcome, DevicePlan
from brimline.observe.volumes import LogDirReading, VolumeReading
from brimline.service.clock import Clock
from brimline.service.durable_files import NotRecorded

RETRY = 5.0
_LOOK_FOR_PAUSE = 5.0
_WHILE_OFF = 60.0
_INTERVALS_WHILE_UNDER = 10
"""Below its ceiling nothing has to be decided about a device; how high its floor is, is looked up now and then."""

_OF_DISKS = (FailureKind.GONE, FailureKind.UNREADABLE, FailureKind.STALLED)

_OTHER_SETTINGS = "the configuration changed since it was planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimParts:
    """What a task works with. ``groups``: what consumer groups have committed."""

    surveyor: Surveyor
    ledger: Ledger
    cluster: TrimmedCluster
    files_left: FilesLeft
    groups: Callable[[Collection[TopicPartition]], GroupsSeen]
    lock: DeviceLock
    seen: SeenFile
    chance: Callable[[], float]
    """Between 0 and 1, another one each time."""
    by: str


class ReclaimTask:
    """For one thread, but for ``decided``. ``changed`` is told of every step."""

    def __init__(
        self,
        log_dir: str,
        settings: Callable[[], ReclaimSettings],
        parts: ReclaimParts,
        clock: Clock,
        wake: Callable[[], None],
        news: ReclaimNews,
        changed: Callable[[], None],
    ) -> None:
        self._log_dir = log_dir
        self._settings = settings
        self._parts = parts
        self._clock = clock
        self._wake = wake
        self._news = news
        self._changed = changed
        self._turn = DeviceTurn(parts.lock, self._delay, clock.seconds)
        self._cycles = ReclaimCycles(
            parts.ledger, parts.cluster, parts.files_left, clock.seconds, self._objection, news
        )
        self._disks: DiskReport | None = None
        self._was_above = False
        self._is_urgent = False
        self._due = clock.seconds()
        self._decided_by: ReclaimSettings | None = None
        self._begun_with: tuple[ReclaimSettings, ReclaimSurvey] | None = None
        self._survey: ReclaimSurvey | None = None
        self._floor: Floor | None = None
        self._is_waiting = False
        self._hold: Hold | None = None
        self._has_looked_back = False
        self._begun = -math.inf
        self._pause: Pause | None = None
        self.report: ReclaimReport | None = None
        """``None`` where another log dir speaks for the device, and before the first step."""

    def decided(self, disks: DiskReport) -> None:
        """From the disks' thread; returns at once. A device that crosses its ceiling, up or down, is looked at soon."""
        self._disks = disks
        volume = self._volume()
        is_above = volume is not None and _is_above(volume.reading, self._settings())
        if is_above != self._was_above:
            self._is_urgent = True
            self._wake()
        self._was_above = is_above

    def step(self) -> float:
        """Do what is due; returns how many seconds later to come back at the latest."""
        volume, settings = self._volume(), self._settings()
        if volume is None:
            self._leave_to_others()
            return RETRY
        if volume.state is DiskState.OFFLINE:
            self._let_go()
            why = f"the broker holds {', '.join(sorted(volume.offline))} offline: nothing there is counted or deleted"
            return self._told(volume, settings, Doing.UNWATCHED, why, RETRY)
        if volume.state is DiskState.UNKNOWN:
            if self._is_seen_by_others(volume):
                self._let_go()
            return self._told(volume, settings, Doing.UNWATCHED, str(volume.reading.failure), RETRY)
        if settings.is_off and not self._cycles and not self._may_be_left_behind():
            return self._told(volume, settings, Doing.OFF, None, _WHILE_OFF)
        try:
            wait = self._stepped(volume, settings)
        except NotRecorded as error:
            return self._in_trouble(volume, settings, Doing.NOT_RECORDED, error)
        except CannotLock as error:
            return self._in_trouble(volume, settings, Doing.CANNOT_LOCK, error)
        except ObservationFailed as error:
            is_disk = error.failure.kind in _OF_DISKS
            return self._in_trouble(volume, settings, Doing.UNWATCHED if is_disk else Doing.BROKER_SILENT, error)
        held = None if self._hold is None else self._hold.sentence(settings.hold, self._clock.seconds())
        return self._told(volume, settings, self._doing(settings), held, wait)

    # What is due ------------------------------------------------------------------------------------------------------

    def _stepped(self, volume: VolumeStatus, settings: ReclaimSettings) -> float:
        self._read_ledger(volume, settings)
        waits = [_LOOK_FOR_PAUSE, *self._cycles.step()]
        if settings.is_off:
            self._survey, self._decided_by, self._hold = None, settings, None
        else:
            waits.append(self._decide(volume, settings))
        if not self._is_waiting and (not self._cycles or self._pause is not None):
            self._turn.end()
        return min(waits)

    def _read_ledger(self, volume: VolumeStatus, settings: ReclaimSettings) -> None:
        """Somebody may have paused or resumed, and cycles may be left that nobody carries out: of a guard that was
        killed, or begun by hand. Who works by hand at this moment has the lock, and is left alone."""
        ledger = self._parts.ledger
        ledger.refresh()
        self._news.warnings(ledger.warnings)
        ledger.warnings.clear()
        pause = ledger.pause
        if pause != self._pause:
            self._pause = pause
            self._news.pause(pause)
            self._is_urgent = self._is_urgent or pause is None
            self._cycles.retire()  # the device is let go: what is needed after a pause is planned anew
        for record in self._cycles.left_behind(volume.log_dirs):
            if self._parts.lock.take():
                self._cycles.adopt(record, settings.pace(record.plan.total_bytes))
        self._has_looked_back = True

    def _decide(self, volume: VolumeStatus, settings: ReclaimSettings) -> float:
        now = self._clock.seconds()
        if self._is_urgent:
            # Not sooner than an interval after the last plan: a limit on what a cycle takes is one for that time.
            self._is_urgent, self._due = False, max(now, self._begun + settings.interval)
        if settings != self._decided_by:
            self._due, self._decided_by = now, settings
        if now < self._due:
            return self._due - now
        if self._parts.lock.is_wanted_by_others:
            return RETRY  # it is their turn as soon as what we sent is back
        is_above = _is_above(self._parts.surveyor.look(self._log_dir), settings)
        acts = is_above and settings.is_applied and self._pause is None
        was_held = self._hold is not None  # then the device is left to whoever confirms it by hand
        wait = self._turn.wait() if acts and not was_held else 0.0
        self._is_waiting = wait > 0
        if wait > 0:
            return wait
        if is_above:
            self._look(volume, settings)
        elif self._survey is None or self._is_outdated(self._survey, settings):
            with suppress(ObservationFailed):  # nothing has to be decided: a broker may be silent
                self._look(volume, settings)
        self._due = self._clock.seconds() + settings.interval
        self._look_for_changes(settings, acts=acts)
        if was_held and self._hold is None:
            self._due = self._clock.seconds()  # once more, in our turn
            return 0.0
        may_begin = acts and self._hold is None and self._parts.ledger.pause is None  # the survey may have found one
        is_begun = may_begin and self._begin(volume, settings)
        return 0.0 if is_begun else settings.interval

    def _look_for_changes(self, settings: ReclaimSettings, *, acts: bool) -> None:
        """Raises ``NotRecorded``: what cannot be remembered is held against nobody, and deletes nothing."""
        survey, seen = self._survey, self._parts.seen.read()
        if not settings.is_applied or self._pause is not None:
            self._hold = None
            return
        foreign = seen.foreign_bytes if survey is None or self._floor is None else self._floor.foreign_bytes
        now, hold = Seen(settings=settings.text, foreign_bytes=foreign), None
        if acts and survey is not None:
            facts, plan = survey.tables.tables.devices[0], survey.plan.devices[0]
            hold = next_hold(self._hold, seen, now, facts, plan, settings.hold, self._clock.seconds())
        self._hold = hold
        if hold is None:
            self._parts.seen.write(now)

    def _look(self, volume: VolumeStatus, settings: ReclaimSettings) -> None:
        """At everything. What was seen before does not count any more, even if this fails."""
        self._survey = None
        found = self._parts.surveyor.survey(settings.policy, volume.log_dirs)
        if [each.device for each in found.volumes] != [volume.reading.device]:
            message = f"{', '.join(volume.log_dirs)} are no longer on the device {volume.reading.device}"
            raise ObservationFailed(Failure(kind=FailureKind.GONE, message=message))
        self._survey, self._floor = found, found.floor(0)
        self._news.floor(self._floor)
        self._news.clock(found.tables.tables.devices[0])

    def _begin(self, volume: VolumeStatus, settings: ReclaimSettings) -> bool:
        """Whether there is anything to send."""
        survey, device = self._survey, volume.reading.device
        assert survey is not None
        trims = planned_trims(survey, device)
        if not trims:
            return False
        losses = self._blast_radius(trims)
        cycle = self._parts.ledger.new_cycle_id(device)
        plan = cycle_plan(survey, device, cycle, self._parts.by, losses)
        self._begun, self._begun_with = self._clock.seconds(), (settings, survey)
        self._cycles.begin(plan, settings.pace(plan.total_bytes, survey.took))
        self._news.begun(plan, survey.plan.devices[0], losses)
        return True

    def _blast_radius(self, trims: Sequence[PlannedTrim]) -> BlastRadius | None:
        """Not to know who reads is no reason to let a disk fill up."""
        try:
            seen = self._parts.groups([trim.partition for trim in trims])
        except ObservationFailed as error:
            self._news.no_blast_radius(error.failure)
            return None
        return blast_radius([doomed_range(trim) for trim in trims], seen)

    def _objection(self) -> str | None:
        """Why nothing more of the newest plan is to be sent; raises ``ObservationFailed`` where that is not known."""
        assert self._begun_with is not None
        settings, survey = self._begun_with
        if settings != self._settings():
            return _OTHER_SETTINGS
        return no_longer_needed(self._parts.surveyor.again(survey).plan.devices[0])

    # What is there ----------------------------------------------------------------------------------------------------

    def _volume(self) -> VolumeStatus | None:
        """The device, if this log dir speaks for it."""
        volumes = () if self._disks is None else self._disks.volumes
        return next((volume for volume in volumes if volume.log_dirs[0] == self._log_dir), None)

    def _is_outdated(self, survey: ReclaimSurvey, settings: ReclaimSettings) -> bool:
        """Of a device that was above its ceiling then and is not now, and of any from time to time."""
        is_old = self._clock.seconds() - survey.seconds >= _INTERVALS_WHILE_UNDER * settings.interval
        return is_old or survey.plan.devices[0].outcome is not DeviceOutcome.UNDER_CEILING

    def _may_be_left_behind(self) -> bool:
        """Cycles on record of a time with a ceiling. It is looked for them once."""
        if self._has_looked_back:
            return False
        try:
            return self._parts.ledger.files.current.exists()
        except OSError:  # a state dir that this user may not enter: whoever sets a ceiling is told of it
            return False

    def _delay(self) -> float:
        return self._settings().interval * JITTER * self._parts.chance()

    def _is_seen_by_others(self, volume: VolumeStatus) -> bool:
        """Only this log dir is out of sight: another one speaks for the device meanwhile, and needs its lock."""
        volumes = () if self._disks is None else self._disks.volumes
        return any(
            each.reading.device == volume.reading.device and each.state is not DiskState.UNKNOWN for each in volumes
        )

    def _let_go(self) -> None:
        self._cycles.forget()
        self._turn.end()
        self._survey = None

    def _leave_to_others(self) -> None:
        self._let_go()
        if self.report is not None:
            self.report = None
            self._changed()

    # What is told -----------------------------------------------------------------------------------------------------

    def _in_trouble(self, volume: VolumeStatus, settings: ReclaimSettings, doing: Doing, error: BrimlineError) -> float:
        if not self._cycles:
            self._turn.end()
        return self._told(volume, settings, doing, str(error), RETRY)

    def _told(
        self, volume: VolumeStatus, settings: ReclaimSettings, doing: Doing, problem: str | None, wait: float
    ) -> float:
        survey = self._survey
        self.report = ReclaimReport(
            device=volume.reading.device,
            log_dirs=volume.log_dirs,
            ceiling_percent=settings.policy.ceiling_percent,
            is_applied=settings.is_applied,
            doing=doing,
            problem=problem,
            pause=self._pause,
            brakes=() if survey is None else survey.brakes,
            plan=None if survey is None else survey.plan.devices[0],
            hung_bytes=None if survey is None else sum(each.bytes for each in survey.hanging),
            floor=None if survey is None else self._floor,
            surveyed=None if survey is None else survey.seconds,
            surveyed_at=None if survey is None else survey.made_at,
            under_way=self._cycles.figures,
            last=self._cycles.last,
            since_start=self._cycles.totals,
        )
        self._news.doing(self.report)
        self._changed()
        return wait

    def _doing(self, settings: ReclaimSettings) -> Doing:
        if settings.is_off:
            return Doing.OFF
        if self._pause is not None:
            return Doing.PAUSED
        if self._hold is not None:
            return Doing.HELD
        if self._cycles.is_sending:
            return Doing.TRIMMING
        if self._is_waiting:
            return Doing.WAITING_FOR_TURN
        return Doing.UNDER_CEILING if self._survey is None else _after(self._survey.plan.devices[0], settings)


def _is_above(reading: VolumeReading | LogDirReading, settings: ReclaimSettings) -> bool:
    if reading.total_bytes is None or reading.usable_bytes is None or settings.is_off:
        return False
    return reading.total_bytes - reading.usable_bytes > reading.total_bytes * settings.policy.ceiling_percent // 100


def _after(plan: DevicePlan, settings: ReclaimSettings) -> Doing:
    """What there is to do when everything that a plan wants is sent, or only said."""
    match plan.outcome:
        case DeviceOutcome.UNDER_CEILING | DeviceOutcome.NO_CEILING:
            return Doing.UNDER_CEILING
        case DeviceOutcome.SPACE_UNKNOWN:
            return Doing.UNWATCHED
        case DeviceOutcome.GOING_SUFFICES:
            return Doing.WAITING_FOR_SPACE
    if not plan.taken_segments or plan.outcome in (DeviceOutcome.FLOOR_REACHED, DeviceOutcome.NO_CURE):
        return Doing.STUCK
    return Doing.WAITING_FOR_SPACE if settings.is_applied else Doing.PLANNED
