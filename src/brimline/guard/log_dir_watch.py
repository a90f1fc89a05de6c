"""One log dir, looked at from a thread of its own.

**Invariant.** A file system that never answers costs exactly one thread, for ever, and nothing else: no other log dir
waits for it, no second look is started while one is under way, and the process can still end (the thread is a daemon).
Whoever asks for the reading gets one at once, always: the last answer, or, when a look has been under way for longer
than the stall timeout, a reading that says so. When the file system comes back, so do its readings, by themselves.

A thread cannot be cancelled while it is inside a system call, so waiting for it with a timeout and starting another
would pile up threads until the process is out of them. Therefore nothing here waits.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from brimline.guard.clock import Clock
from brimline.observe.volumes import LogDirReading, look_at, stalled

Look = Callable[[str, str | None, datetime, float], LogDirReading]


class LogDirWatch:
    """``answered`` is called, from the watch's thread, whenever a look is over."""

    def __init__(self, path: str, clock: Clock, answered: Callable[[], None], look: Look = look_at) -> None:
        self.path = path
        self._clock = clock
        self._look = look
        self._answered = answered
        self._lock = threading.Lock()
        self._asked = threading.Semaphore(0)
        self._begun: float | None = None
        self._last: LogDirReading | None = None
        self._device: str | None = None
        threading.Thread(target=self._run, name=f"look-at-{path}", daemon=True).start()

    @property
    def is_looking(self) -> bool:
        with self._lock:
            return self._begun is not None

    def ask(self) -> bool:
        """Begin a look; ``False``, and nothing happens, while the last one is still under way."""
        with self._lock:
            if self._begun is not None:
                return False
            self._begun = self._clock.seconds()
        self._asked.release()
        return True

    def reading(self, stall_timeout: float) -> LogDirReading | None:
        """What is known now; ``None`` only before the first answer, as long as that is not overdue."""
        with self._lock:
            waited = 0.0 if self._begun is None else self._clock.seconds() - self._begun
            if waited >= stall_timeout:
                overdue = stalled(self.path, self._device, self._clock.now(), self._clock.seconds(), waited)
                return replace(overdue, answered=self._last.answered if self._last else None)
            return self._last

    def _run(self) -> None:
        while True:
            self._asked.acquire()
            begun = self._clock.seconds()
            reading = self._look(self.path, self._device, self._clock.now(), begun)
            answered = self._clock.seconds()
            with self._lock:
                self._last = replace(reading, answered=answered, took=answered - begun)
                self._device = reading.device
                self._begun = None
            self._answered()
