"""Moves between a broker's log dirs (AlterReplicaLogDirs), held up and let go on as if nothing had been.

A move goes on filling a full log dir although Produce is refused there: the broker copies from its other disk. Kafka
cannot pause a move, but it can throttle it to next to nothing: at one byte a second a broker fetches once (1 MiB by
default) every 11 s, for all its moves together. The throttle is the broker's own dynamic setting, so the moves into
its other log dirs wait as well.

**Invariant.** Whatever the broker's own value was before us is on disk before the value is ours, and is put back before
it is forgotten. So a guard that is killed between any two steps finds, when it is started again, either nothing to do
or what to put back:

============================  =========================  =====================================================
on record                     the broker's own value     to hold                  / to release
============================  =========================  =====================================================
nothing                       1                          leave it: not ours       / leave it: not ours
nothing                       anything else, or none     record it, set 1         / leave it
before us                     1                          it stands                / put back, forget
before us                     the same as on record      set 1 (we were killed)   / put back again, forget
before us                     another one                record that one, set 1   / leave it to them, forget
============================  =========================  =====================================================

The last line: the operator has changed the setting meanwhile, or has cleared it, as ``kafka-reassign-partitions
--verify`` does. Before-us is never 1. In the line before it a value that we have just set may not be visible yet, which
is why it is put back though it seems to stand there already.

What must be put back stands in a file, which is removed only after the setting is put back. A file that cannot be
understood still tells that the setting is ours: then nothing was there before, which leaves no broker paused for ever::

    move-pause-1.json   {"version": 1, "key": "replica.alter.log.dirs.…", "before": "20000000" | null, "since": "…Z"}
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Protocol

from brimline.documents.state_files import LaterVersion, read_state_file, remove_state_file, write_state_file

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    before: str | None
    """The broker's own value, which is put back; ``None``: it had none."""
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filed:
    version: int = _VERSION
    key: str
    before: str | None
    since: datetime


class PauseRecord:
    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self._key = key
        self.warnings: list[str] = []
        """Of the last reading."""

    def read(self, now: datetime) -> Pause | None:
        """``None``: nothing is paused. ``now`` stands in for the time that a damaged file does not tell."""
        self.warnings = []
        try:
            return self._understood(read_state_file(_Filed, self.path, _VERSION))
        except FileNotFoundError:
            return None
        except OSError as error:
            self.warnings = [
                f"{self.path} cannot be read ({error.strerror}): a pause by an earlier guard may still be set"
            ]
            return None
        except ValueError as error:
            what = error if isinstance(error, LaterVersion) else "damaged"
            self.warnings = [f"{self.path} is {what}: {self._key} is removed when moves resume"]
            return Pause(before=None, since=now)

    def write(self, pause: Pause) -> None:
        write_state_file(self.path, _Filed(key=self._key, before=pause.before, since=pause.since))

    def remove(self) -> None:
        """A file that stays behind is harmless: it is found again, and once more put back and removed."""
        remove_state_file(self.path)

    def _understood(self, filed: _Filed) -> Pause:
        if filed.key != self._key:
            raise ValueError("of another setting")
        return Pause(before=filed.before, since=filed.since)


KEY = "replica.alter.log.dirs.io.max.bytes.per.second"
PAUSED = "1"


class AlterableSetting(Protocol):
    """What is asked of the broker; ``BrokerSetting`` asks a real one."""

    def own_value(self) -> str | None: ...

    def alter(self, value: str | None) -> None: ...


class Hold(Enum):
    """What there was to do to hold the moves up."""

    SET = "set"
    SET_AGAIN = "set-again"
    """Somebody else had changed it."""
    STANDS = "stands"
    NOT_OURS = "not-ours"
    """Somebody else holds them up."""


class MovePause:
    """For one thread. Methods raise ``ObservationFailed`` or ``NotRecorded``; the next call goes on from there."""

    def __init__(self, setting: AlterableSetting, record: PauseRecord, now: Callable[[], datetime]) -> None:
        self._setting = setting
        self._record = record
        self._now = now
        self.pause = record.read(now())
        """Ours, if there is one: since when, and what is put back."""

    @property
    def warnings(self) -> list[str]:
        return self._record.warnings

    def hold(self) -> Hold:
        found = self._setting.own_value()
        if found == PAUSED:
            return Hold.NOT_OURS if self.pause is None else Hold.STANDS
        was_changed = self.pause is not None and self.pause.before != found
        if self.pause is None or was_changed:
            since = self._now() if self.pause is None else self.pause.since
            pause = Pause(before=found, since=since)
            self._record.write(pause)
            self.pause = pause
        self._setting.alter(PAUSED)
        return Hold.SET_AGAIN if was_changed else Hold.SET

    def release(self) -> None:
        if self.pause is None:
            return
        if self._setting.own_value() in (PAUSED, self.pause.before):
            self._setting.alter(self.pause.before)
        self._record.remove()
        self.pause = None
