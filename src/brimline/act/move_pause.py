"""Holds up the moves between a broker's log dirs (AlterReplicaLogDirs), and lets them go on as if nothing had been.

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
"""

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Protocol

from brimline.act.pause_record import Pause, PauseRecord

KEY = "replica.alter.log.dirs.io.max.bytes.per.second"
PAUSED = "1"


class Setting(Protocol):
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

    def __init__(self, setting: Setting, record: PauseRecord, now: Callable[[], datetime]) -> None:
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
