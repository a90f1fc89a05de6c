"""The ballast of one volume: made, given back when the volume runs out, made again when there is room.

**Invariant.** The task acts on readings of the disk task, and on each at most once: after an act it waits for a reading
that was begun later. Every log dir has a task with a thread and a ledger of its own, so a file system that hangs, or a
slow ledger entry for one volume, holds up no other. Of the log dirs on one device the first in ``log.dirs`` has the
ballast; the tasks of the others rest. A first one that cannot be read keeps its place: a second ballast is never made
because the first is out of sight.

What cannot be done is said and tried again: giving back with every reading, making after a pause.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from brimline.act.ballast import NAME, Ballast, BallastFailed, BallastReport
from brimline.act.ledger.entries import BallastAct
from brimline.act.ledger.ledger import Ledger
from brimline.decide.ballast import BallastDecision, BallastRule
from brimline.decide.disk_state import Space
from brimline.disks.task import DiskReport, VolumeStatus, space_of
from brimline.model import Bytes
from brimline.service.clock import Clock
from brimline.service.durable_files import NotRecorded

RETRY = 30.0
"""A missing permission does not come by itself."""
NOTHING = Bytes(0)
_RECORD_LATE = 1.0
_UNTIL_WOKEN = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BallastStatus:
    """A volume's ballast after the last step. ``size`` is what is allocated now, ``wanted`` what should be."""

    device: str
    path: str
    size: Bytes = NOTHING
    wanted: Bytes
    decision: BallastDecision = BallastDecision.KEEP
    act: BallastAct | None = None
    """What the last step did; ``None``: nothing."""
    usable: Bytes | None = None
    """Of the volume, before the last step."""
    releases: int = 0
    """How often this guard gave it back because the volume ran out."""
    unrecorded: int = 0
    """Acts that the ledger does not tell of yet, because it cannot be written."""
    failure: str | None = None
    warnings: tuple[str, ...] = ()
    """Of the ledger, for the log."""

    @property
    def is_quiet(self) -> bool:
        """There is none, and none is wanted."""
        return not self.size and not self.wanted and self.failure is None

    @property
    def is_in_place(self) -> bool:
        return self.size >= self.wanted > 0


class BallastTask:
    """For ``log_dir``, one of ``log_dirs``. ``wanted`` is asked before every step; ``look`` has the disks read again.

    ``changed`` is told after every step. The ledger is used by nobody else.
    """

    def __init__(
        self,
        log_dir: str,
        log_dirs: Sequence[str],
        ledger: Ledger,
        clock: Clock,
        wanted: Callable[[], Bytes],
        wake: Callable[[], None],
        look: Callable[[], None],
        changed: Callable[[BallastStatus], None],
    ) -> None:
        self.status: BallastStatus | None = None
        self._log_dir = log_dir
        self._log_dirs = tuple(log_dirs)
        self._ledger = ledger
        self._clock = clock
        self._wanted = wanted
        self._wake = wake
        self._look = look
        self._changed = changed
        self._disks: DiskReport | None = None
        self._read: float | None = None
        self._ballast: tuple[tuple[str, ...], str, Ballast] | None = None
        self._acted = -1.0
        self._retry_at = clock.seconds()
        self._is_ledger_read = False

    def decided(self, disks: DiskReport) -> None:
        """From any thread; returns at once."""
        self._disks = disks
        volume = self._volume(disks)
        read = None if volume is None else volume.reading.seconds
        if read != self._read:
            self._read = read
            self._wake()

    def step(self) -> float:
        """Do what is due; returns the seconds until more is, unless a new reading comes before."""
        disks = self._disks
        volume = None if disks is None else self._volume(disks)
        if disks is None or volume is None:
            self.status = None
            return _UNTIL_WOKEN
        if volume.reading.failure is not None:
            self._tell(replace(self._status(volume), act=None, failure=str(volume.reading.failure)))
            return _UNTIL_WOKEN
        rule = BallastRule(size=self._wanted(), limits=volume.limits)
        space = space_of(volume.reading)
        is_running_out = space is not None and space.usable < rule.release_below
        if self._clock.seconds() < self._retry_at and not is_running_out:
            return self._retry_at - self._clock.seconds()
        status = self._stepped(volume, disks, None if volume.reading.seconds <= self._acted else space, rule)
        self._tell(status)
        if status.act is not None:
            self._look()
        return _RECORD_LATE if status.unrecorded else _UNTIL_WOKEN

    def _volume(self, disks: DiskReport) -> VolumeStatus | None:
        """The log dir's volume, if it has the ballast."""
        own = next((volume for volume in disks.volumes if self._log_dir in volume.log_dirs), None)
        return own if own is not None and self._same_device(disks, own)[0] == self._log_dir else None

    def _same_device(self, disks: DiskReport, own: VolumeStatus) -> tuple[str, ...]:
        """In the order of ``log.dirs``, those that cannot be read at the moment included."""
        device = own.reading.device
        here = {path for volume in disks.volumes if volume.reading.device == device for path in volume.log_dirs}
        here = here if own.reading.total_bytes is not None else {self._log_dir}
        return tuple(path for path in self._log_dirs if path in here)

    def _stepped(
        self, volume: VolumeStatus, disks: DiskReport, space: Space | None, rule: BallastRule
    ) -> BallastStatus:
        before = self._status(volume)
        self._read_ledger()
        try:
            report = self._ballast_of(self._same_device(disks, volume), volume.reading.device).step(space, rule)
        except BallastFailed as failed:
            self._retry_at = self._clock.seconds() + RETRY
            return replace(before, wanted=rule.size, act=None, failure=str(failed), warnings=self._warnings())
        act = self._act(report)
        if act is not None:
            self._acted = self._clock.seconds()
        ran_out = report.decision is BallastDecision.RELEASE_RUNNING_OUT
        return BallastStatus(
            device=volume.reading.device,
            path=report.path,
            size=report.size,
            wanted=rule.size,
            # A reading that was used already decides nothing: what was decided stands.
            decision=before.decision if space is None else report.decision,
            act=act,
            usable=before.usable if space is None else space.usable,
            releases=before.releases + ran_out,
            unrecorded=report.unrecorded,
            warnings=self._warnings(),
        )

    def _act(self, report: BallastReport) -> BallastAct | None:
        if report.decision.releases:
            return BallastAct.RELEASED
        if report.decision is not BallastDecision.ALLOCATE:
            return None
        last = self._ledger.state.ballast.get(report.path)
        return BallastAct.ALLOCATED if last is None or last.act is BallastAct.RELEASED else last.act

    def _ballast_of(self, log_dirs: tuple[str, ...], device: str) -> Ballast:
        if self._ballast is None or self._ballast[:2] != (log_dirs, device):
            self._ballast = (log_dirs, device, Ballast(log_dirs, device, self._ledger))
        return self._ballast[2]

    def _read_ledger(self) -> None:
        """One that cannot be read tells later; until then nobody knows whether a ballast is the first."""
        if self._is_ledger_read:
            return
        try:
            self._ledger.refresh()
            self._is_ledger_read = True
        except NotRecorded:
            return

    def _warnings(self) -> tuple[str, ...]:
        warnings, self._ledger.warnings = tuple(self._ledger.warnings), []
        return warnings

    def _status(self, volume: VolumeStatus) -> BallastStatus:
        if self.status is not None:
            return replace(self.status, warnings=())
        return BallastStatus(device=volume.reading.device, path=str(Path(self._log_dir, NAME)), wanted=self._wanted())

    def _tell(self, status: BallastStatus) -> None:
        self.status = status
        self._changed(status)
