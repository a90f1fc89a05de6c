"""The signals of guard and gateway, from the first moment: SIGHUP would end a process that is still starting."""

import signal
from collections.abc import Callable
from types import FrameType

_early: list[int] = []


def note_early_reloads() -> None:
    """Until somebody listens."""
    signal.signal(signal.SIGHUP, lambda number, _: _early.append(number))


def listen(notice: Callable[[int, FrameType | None], None]) -> None:
    """``notice`` is told of every signal, and of the reloads that were asked for before."""
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, notice)
    while _early:
        notice(_early.pop(), None)
