"""Cordons a broker's own log dirs and opens them again, and never opens what an operator has cordoned.

**Invariant.** What we put into ``cordoned.log.dirs`` is in the ledger before it is there, and is out of it before the
ledger says so. So a guard that is killed between any two steps finds out, when it is started again, what is its own:

=============  ==============  ===================================  =======================================
in the ledger  in the setting  to cordon                            to open
=============  ==============  ===================================  =======================================
no             yes             leave it: an operator's              leave it: an operator's
no             no              ledger, then setting                 nothing to do
yes            yes             it stands                            out of the setting, then the ledger
yes            no              into the setting (we were killed,    the ledger alone
                               or somebody took it out)
=============  ==============  ===================================  =======================================

An operator who has cordoned everything (``*``) has cordoned every log dir.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from brimline.act.broker_setting import EVERY_LOG_DIR
from brimline.act.ledger.entries import CordonAct, CordonEntry
from brimline.act.ledger.ledger import Ledger

HAS_ROOM = "it has room again"


class LogDirSetting(Protocol):
    """What is asked of the broker; ``CordonSetting`` asks a real one."""

    def cordoned(self) -> Collection[str]: ...

    def add(self, log_dirs: Collection[str]) -> None: ...

    def remove(self, log_dirs: Collection[str]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordoned:
    """After ``apply``: what is cordoned, by whom, and what there was to do for it."""

    ours: frozenset[str] = frozenset()
    theirs: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    opened: frozenset[str] = frozenset()


NOTHING_CORDONED = Cordoned()


class Cordon:
    """For one thread. Methods raise ``ObservationFailed`` or ``NotRecorded``; the next call goes on from there."""

    def __init__(self, setting: LogDirSetting, ledger: Ledger, log_dirs: Collection[str]) -> None:
        self._setting = setting
        self._ledger = ledger
        self._log_dirs = tuple(log_dirs)

    @property
    def ours(self) -> frozenset[str]:
        """As of the ledger's last reading."""
        return frozenset(path for path in self._log_dirs if path in self._ledger.state.cordoned)

    def refresh(self) -> None:
        """Read the ledger again."""
        self._ledger.refresh()

    def apply(
        self, decide: Callable[[Cordoned], Mapping[str, str]], why_opened: Callable[[str], str] = lambda _: HAS_ROOM
    ) -> Cordoned:
        """``decide``: what is to be cordoned, each with the reason, given what is; what else is ours is opened."""
        self.refresh()
        effective = self._setting.cordoned()
        before = self._told(effective)
        wanted = decide(before)
        new = wanted.keys() - before.ours - before.theirs
        if new:
            self._ledger.append(*(_entry(CordonAct.CORDONED, path, wanted[path]) for path in sorted(new)))
        missing = frozenset(path for path in wanted if not _covers(effective, path))
        if missing:
            self._setting.add(sorted(missing))
        gone = before.ours - wanted.keys()
        if gone:
            self._setting.remove(sorted(gone))
            self._ledger.append(*(_entry(CordonAct.UNCORDONED, path, why_opened(path)) for path in sorted(gone)))
        return Cordoned(ours=(before.ours | new) - gone, theirs=before.theirs, added=missing, opened=gone)

    def _told(self, effective: Collection[str]) -> Cordoned:
        ours = self.ours
        theirs = frozenset(path for path in self._log_dirs if path not in ours and _covers(effective, path))
        return Cordoned(ours=ours, theirs=theirs)


def _covers(effective: Collection[str], path: str) -> bool:
    return path in effective or EVERY_LOG_DIR in effective


def _entry(act: CordonAct, log_dir: str, why: str) -> CordonEntry:
    return CordonEntry(act=act, log_dir=log_dir, why=why)
