"""A fresh look at all log dirs, for whoever names a partition that nobody here has seen yet.

The log dirs are looked at several times a second while something is fenced, each by a thread of its own, which a disk
that hangs may hold up. Who asks waits for looks that are due anyway, so that asking costs nobody anything, and for
``LONGEST_WAIT`` at most.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from brimline.gateway.net.loop import EventLoop

LONGEST_WAIT = 2.0
"""Seconds. A client waits for its answer for thirty."""
_LOOKS = 2
"""The first may miss a folder that was made in the same tick of the clock as another one before (``placement``)."""


class _Waiting(NamedTuple):
    until: dict[str, int]
    then: Callable[[], None]


class FolderLooks:
    """``when_fresh`` is for the loop's thread; ``begin`` and ``end`` are for the thread of their log dir."""

    def __init__(self, loop: EventLoop, log_dirs: Iterable[str]) -> None:
        self._loop = loop
        self._begun = dict.fromkeys(log_dirs, 0)
        self._ended = dict(self._begun)
        self._waiting: dict[int, _Waiting] = {}
        self._asked = 0

    def when_fresh(self, then: Callable[[], None]) -> None:
        """Calls when every log dir has been looked at from now on, or the time is up; never at once."""
        self._asked += 1
        number = self._asked
        self._waiting[number] = _Waiting({path: begun + _LOOKS for path, begun in self._begun.items()}, then)
        self._loop.later(LONGEST_WAIT, lambda: self._serve([number]))

    def begin(self, log_dir: str) -> None:
        self._begun[log_dir] += 1

    def end(self, log_dir: str) -> None:
        self._ended[log_dir] = self._begun[log_dir]
        if self._waiting:
            self._loop.call_soon_from_thread(self._serve_due)

    def _serve_due(self) -> None:
        ended = self._ended
        self._serve(
            [
                number
                for number, waiting in self._waiting.items()
                if all(ended[path] >= until for path, until in waiting.until.items())
            ]
        )

    def _serve(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            waiting = self._waiting.pop(number, None)
            if waiting is not None:
                waiting.then()
