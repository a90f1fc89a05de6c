"""The scan of one log dir, at its own interval and in its own thread: a hung file system delays its own scan only."""

from collections.abc import Callable
from dataclasses import dataclass

from brimline.model.scan import LogDirScan
from brimline.service.clock import Clock

_WHILE_OFF = 60.0
"""A reload may switch the scan on."""
_WHILE_UNREADABLE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScanReport:
    """The last whole scan. Times are on the monotonic clock."""

    scan: LogDirScan
    seconds: float
    took: float


class ScanTask:
    """``interval`` and ``may_read`` are asked before every scan; ``done`` is told of each."""

    def __init__(
        self,
        path: str,
        scan: Callable[[], LogDirScan],
        clock: Clock,
        interval: Callable[[], float],
        may_read: Callable[[str], bool],
        done: Callable[[ScanReport], None],
    ) -> None:
        self.path = path
        self._scan = scan
        self._clock = clock
        self._interval = interval
        self._may_read = may_read
        self._done = done
        self._due = clock.seconds()

    def step(self) -> float:
        interval = self._interval()
        if interval <= 0:
            return _WHILE_OFF
        if not self._may_read(self.path):
            return _WHILE_UNREADABLE
        now = self._clock.seconds()
        # A shorter interval takes effect at once, not after the longer one is over.
        self._due = min(self._due, now + interval)
        if now < self._due:
            return self._due - now
        found = self._scan()
        ended = self._clock.seconds()
        self._due = ended + interval
        self._done(ScanReport(scan=found, seconds=ended, took=ended - now))
        return interval
