"""A task with a thread of its own: steps, then waits until something is due or somebody wakes it."""

import threading
import time
from collections.abc import Callable, Sequence


class Worker:
    """``step`` does what is due and returns the seconds until more is.

    A step that raises is a bug: its thread ends, and Python's ``threading.excepthook`` tells. Whoever started the
    worker finds it not alive and may start it again; the other tasks never notice.
    """

    def __init__(self, name: str, step: Callable[[], float]) -> None:
        self.name = name
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


def end_all(workers: Sequence[Worker], patience: float) -> None:
    """Waits for all of them together, a moment."""
    for worker in workers:
        worker.end()
    give_up_at = time.monotonic() + patience
    for worker in workers:
        worker.join(max(give_up_at - time.monotonic(), 0.0))
