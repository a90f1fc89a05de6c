"""How far a run has come: what happens, told to whoever shows it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TextIO

from brimline.model import human_count
from brimline.model.secrets import without_login

_ENOUGH_ROWS = 1000
"""Of fewer the rate says nothing."""


@dataclass(slots=True, kw_only=True)
class RunStep:
    """A part of a run, while it goes on and after."""

    name: str
    began: float
    files: int = 0
    rows: int | None = None
    note: str = ""
    failure: str | None = None
    seconds: float | None = None
    """``None`` while it goes on."""

    @property
    def sentence(self) -> str:
        """For people, on one line."""
        if self.failure is not None:
            return without_login(f"{self.name}: failed: {self.failure}")
        parts = [f"{human_count(self.rows)} rows"] if self.rows is not None else []
        parts += [self.note] if self.note else []
        took = "" if self.seconds is None else f" in {self.seconds:.1f} s"
        is_measurable = self.rows is not None and self.rows >= _ENOUGH_ROWS and self.seconds
        rate = f", {human_count(round((self.rows or 0) / (self.seconds or 1)))} rows/s" if is_measurable else ""
        return f"{self.name}: {', '.join(parts) or 'nothing new'}{took}{rate}"


class Display(Protocol):
    def show(self, step: RunStep) -> None:
        """Called when a step begins, moves on or ends."""


class Lines:
    """A line for every step that has ended: for pipes and files."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, step: RunStep) -> None:
        if step.seconds is not None:
            print(step.sentence, file=self._out, flush=True)


class Progress:
    def __init__(self, display: Display, clock: Callable[[], float] = time.monotonic) -> None:
        self._display = display
        self._clock = clock

    @contextmanager
    def step(self, name: str) -> Iterator[RunStep]:
        step = RunStep(name=name, began=self._clock())
        self._display.show(step)
        try:
            yield step
        except BaseException:
            step.failure = step.failure or "given up"
            raise
        finally:
            step.seconds = self._clock() - step.began
            self._display.show(step)

    def ended(self, name: str, began: float, note: str) -> None:
        """Of several steps together, all of them shown already."""
        self._display.show(RunStep(name=name, began=began, note=note, seconds=self._clock() - began))

    def files(self, step: RunStep, count: int) -> None:
        step.files = count
        self._display.show(step)


class _Unseen:
    def show(self, step: RunStep) -> None:
        """Nobody looks."""


UNSEEN = Progress(_Unseen())
