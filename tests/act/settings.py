"""A broker's setting in memory, and a guard that can be killed between any two of its steps."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from brimline.act.move_pause import KEY, MovePause, Pause, PauseRecord

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEVER = 10**9


class Killed(Exception):
    """As ``kill -9``: nothing of this guard runs any more."""


class SettingInMemory:
    """``problem`` is raised instead of any answer."""

    def __init__(self, value: str | None = None) -> None:
        self.value = value
        self.asked = 0
        self.altered: list[str | None] = []
        self.problem: Exception | None = None
        self.before_altering: Callable[[], None] = lambda: None

    def own_value(self) -> str | None:
        self.asked += 1
        self._fail_if_told_to()
        return self.value

    def alter(self, value: str | None) -> None:
        self._fail_if_told_to()
        self.before_altering()
        self.value = value
        self.altered.append(value)

    def _fail_if_told_to(self) -> None:
        if self.problem is not None:
            raise self.problem


class MortalGuard:
    """A ``MovePause`` on a real file that is killed right before its ``steps``-th change of anything."""

    def __init__(self, setting: SettingInMemory, path: Path, steps: int = NEVER) -> None:
        self._steps = steps
        setting.before_altering = self._step
        self.moves = MovePause(setting, _MortalRecord(path, self._step), lambda: NOW)

    def _step(self) -> None:
        if self._steps == 0:
            raise Killed
        self._steps -= 1


class _MortalRecord(PauseRecord):
    def __init__(self, path: Path, step: Callable[[], None]) -> None:
        super().__init__(path, KEY)
        self._step = step

    def write(self, pause: Pause) -> None:
        self._step()
        super().write(pause)

    def remove(self) -> None:
        self._step()
        super().remove()
