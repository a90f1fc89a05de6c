"""How far the reading of remote log metadata has come: one line on a terminal's stderr, nothing anywhere else."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

_EVERY_SECONDS = 0.1
_USUAL_WIDTH = 80  # of a terminal that does not say
_TO_LINE_START_AND_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Draws ``done of total`` over itself, at most ten times a second."""

    def __init__(self, terminal: TextIO, width: int, clock: Callable[[], float] = time.monotonic) -> None:
        """``width`` is the terminal's: a line that ran over could not be cleared whole."""
        self._terminal = terminal
        self._width = width
        self._clock = clock
        self._drawn_at: float | None = None

    def __call__(self, done: int, total: int) -> None:
        now = self._clock()
        if self._drawn_at is not None and now - self._drawn_at < _EVERY_SECONDS:
            return
        self._drawn_at = now
        percent = f"{done * 100 // total:3d} %, " if total else ""
        line = f"Reading __remote_log_metadata: {percent}{done:,} of {total:,} records"
        self._terminal.write(f"{_TO_LINE_START_AND_CLEAR}{line[: self._width - 1]}")
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
    line = ProgressLine(stream, os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH)
    try:
        yield line
    finally:
        line.clear()
