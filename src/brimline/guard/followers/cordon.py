"""Full log dirs of one's own broker: cordoned while they are full, so that no new replica is put there.

**Invariant.** While the guard enforces and ``brimline.cordon`` is on, what is cordoned by us is what ``decide.cordon``
makes of the last look at the disks, here and on the other brokers. Switched off, or only observing, it opens what it
had cordoned. A broker before Kafka 4.3 is never asked for anything; which it is, its DescribeLogDirs answers tell.

The broker is asked only while something is, or is to be, cordoned. ``decided`` and ``heard`` only leave a note and wake
the task.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from brimline.act.cordon import HAS_ROOM, NOTHING_CORDONED, Cordoned
from brimline.decide.cordon import OwnLogDir, log_dirs_to_cordon
from brimline.disks.sentences import reasons_of_full_log_dirs
from brimline.disks.task import DiskReport
from brimline.guard.followers.holding import LOOK, UNTIL_WOKEN, HoldingTask
from brimline.guard.followers.report import PeerReport
from brimline.model import Failure

_CANNOT_BE_WATCHED = "it was full when last read"


class CordonHolder(Protocol):
    """What cordons; ``Cordon`` does it on a real broker."""

    @property
    def ours(self) -> frozenset[str]: ...

    def refresh(self) -> None: ...

    def apply(self, decide: Callable[[Cordoned], Mapping[str, str]], why_opened: Callable[[str], str]) -> Cordoned: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonReport:
    """``is_supported``: ``None`` while the broker has not told. ``kept_open``: full, but the last place of all."""

    is_wanted: bool = True
    is_supported: bool | None = None
    cordoned: Cordoned = NOTHING_CORDONED
    kept_open: frozenset[str] = frozenset()
    failure: Failure | None = None

    @property
    def is_quiet(self) -> bool:
        return not self.cordoned.ours and not self.kept_open and self.failure is None


class CordonTask(HoldingTask[CordonHolder, CordonReport]):
    _disks: DiskReport | None = None
    _peers = PeerReport()
    _is_ledger_read = False

    def _first_report(self) -> CordonReport:
        return CordonReport(is_wanted=self._is_wanted())

    def decided(self, disks: DiskReport) -> None:
        """From any thread; returns at once."""
        is_news = disks.states != ({} if self._disks is None else self._disks.states)
        self._disks = disks
        if is_news:
            self._wake()

    def heard(self, peers: PeerReport) -> None:
        """From any thread; returns at once."""
        is_news = _is_supported(peers) != _is_supported(self._peers)
        is_news = is_news or peers.others_have_room != self._peers.others_have_room
        self._peers = peers
        if is_news:
            self._wake()

    def step(self) -> float:
        """Do what is due; returns the seconds until more is."""
        disks, is_wanted = self._disks, self._is_wanted()
        if disks is None:
            return UNTIL_WOKEN
        wait = self._seconds_to_wait()
        if wait > 0:
            return wait
        self._tell(self._tried(lambda: self._looked(disks, is_wanted=is_wanted), self._failed))
        return UNTIL_WOKEN if self.report.is_quiet else LOOK

    def _looked(self, disks: DiskReport, *, is_wanted: bool) -> CordonReport:
        self._read_ledger()
        report = CordonReport(is_wanted=is_wanted, is_supported=_is_supported(self._peers))
        is_to_begin = is_wanted and report.is_supported is True and bool(disks.full_log_dirs)
        return self._applied(disks, report) if is_to_begin or self._holder.ours else report

    def _applied(self, disks: DiskReport, report: CordonReport) -> CordonReport:
        full = frozenset(disks.full_log_dirs)

        def decide(cordoned: Cordoned) -> Mapping[str, str]:
            return self._wanted(disks, cordoned) if report.is_wanted else {}

        def why_opened(path: str) -> str:
            if not report.is_wanted:
                return "cordoning was switched off"
            return "it is the last place for new replicas" if path in full else HAS_ROOM

        cordoned = self._holder.apply(decide, why_opened)
        kept_open = full - cordoned.ours - cordoned.theirs if report.is_wanted else frozenset()
        return CordonReport(
            is_wanted=report.is_wanted, is_supported=True, cordoned=cordoned, kept_open=frozenset(kept_open)
        )

    def _wanted(self, disks: DiskReport, cordoned: Cordoned) -> Mapping[str, str]:
        own = [
            OwnLogDir(path=path, state=volume.state_of(path), usable=volume.reading.usable_bytes)
            for volume in disks.volumes
            for path in volume.log_dirs
        ]
        wanted = log_dirs_to_cordon(
            own, ours=cordoned.ours, theirs=cordoned.theirs, others_have_room=self._peers.others_have_room
        )
        reasons = reasons_of_full_log_dirs(disks)
        return {path: reasons.get(path, _CANNOT_BE_WATCHED) for path in wanted}

    def _read_ledger(self) -> None:
        """What an earlier guard has cordoned stands there."""
        if not self._is_ledger_read:
            self._holder.refresh()
            self._is_ledger_read = True

    def _failed(self, failure: Failure) -> CordonReport:
        before = self.report
        return CordonReport(
            is_wanted=before.is_wanted,
            is_supported=before.is_supported,
            cordoned=Cordoned(ours=self._holder.ours, theirs=before.cordoned.theirs),
            failure=failure,
        )


def _is_supported(peers: PeerReport) -> bool | None:
    """Since 4.3 a broker tells of every log dir whether it is cordoned."""
    if peers.own is None or not peers.own.log_dirs:
        return None
    return any(each.is_cordoned is not None for each in peers.own.log_dirs.values())
