"""How far the reading of remote log metadata has come: one line on a terminal's stderr, nothing anywhere else."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

_EVERY_SECONDS = 0.1
_TO_LINE_START_AND_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Draws ``done of total`` over itself, at most ten times a second."""

    def __init__(self, terminal: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal = terminal
        self._clock = clock
        self._drawn_at: float | None = None

    def __call__(self, done: int, total: int) -> None:
        now = self._clock()
        if self._drawn_at is not None and now - self._drawn_at < _EVERY_SECONDS:
            return
        self._drawn_at = now
        percent = f"{done * 100 // total:3d} %, " if total else ""
        line = f"Reading __remote_log_metadata: {percent}{done:,} of {total:,} records"
        self._terminal.write(f"{_TO_LINE_START_AND_CLEAR}{line}")
        self._terminal.flush()

    def clear(self) -> None:
        if self._drawn_at is not None:
            self._terminal.write(_TO_LINE_START_AND_CLEAR)
            self._terminal.flush()


@contextmanager
def progress_on(stream: TextIO) -> Iterator[ProgressLine | None]:
    """A progress line that is gone again afterwards; ``None`` where nobody would see it."""
    if not stream.isatty():
        yield None
        return
    line = ProgressLine(stream)
    try:
        yield line
    finally:
        line.clear()
