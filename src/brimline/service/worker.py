"""A task with a thread of its own: steps, then waits until something is due or somebody wakes it."""

import threading
import time
from collections.abc import Callable, Sequence

_FOR_WHAT_IS_LEFT = 5.0
"""Seconds; systemd ends a guard by force after ten."""


class Worker:
    """``step`` does what is due and returns the seconds until more is.

    A step that raises is a bug: its thread ends, and Python's ``threading.excepthook`` tells. Whoever started the
    worker finds it not alive and may start it again; the other tasks never notice.
    """

    def __init__(self, name: str, step: Callable[[], float], at_end: Callable[[], None] | None = None) -> None:
        """``at_end`` is the last thing that its thread does when it is asked to end."""
        self.name = name
        self.at_end = at_end
        self._step = step
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def wake(self) -> None:
        """From any thread; returns at once."""
        self._wake.set()

    def end(self) -> None:
        """Ask it to end; returns at once."""
        self._ending.set()
        self._wake.set()

    def join(self, patience: float) -> None:
        """Wait for its end, a moment: one that hangs in a system call is left behind (a daemon thread)."""
        if self._thread is not None:
            self._thread.join(patience)

    def _run(self) -> None:
        while not self._ending.is_set():
            self._wake.wait(self._step())
            self._wake.clear()
        if self.at_end is not None:
            self.at_end()


def end_all(workers: Sequence[Worker], patience: float) -> None:
    """Waits for all of them together, a moment; for those that have something to do at their end a little longer."""
    for worker in workers:
        worker.end()
    begun = time.monotonic()
    for worker in sorted(workers, key=lambda each: each.at_end is not None):
        longest = patience if worker.at_end is None else patience + _FOR_WHAT_IS_LEFT
        worker.join(max(begun + longest - time.monotonic(), 0.0))
