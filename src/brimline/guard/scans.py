"""Scans of the log dirs, as the guard has them, and their figures. A log dir that could not be read has none.

Each has an interval and a thread of its own: a hung file system delays its own scan only.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brimline.guard.feature import Core, Feature
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily
from brimline.model.scan import FileKind, FolderKind, FolderState, LogDirScan
from brimline.observe.scan.scanner import LogDirScanner
from brimline.service.clock import Clock
from brimline.service.worker import Worker
from brimline.settings import keys

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


def scan_families(reports: Sequence[ScanReport], seconds: float) -> list[MetricFamily]:
    read = _read(reports)
    paths = tuple((report.scan.path,) for report in read)
    sizes = [(report.scan.path, kind, size) for report in read for kind, size in _bytes_by_kind(report.scan)]
    return [
        catalogue.LOG_DIR_BYTES.family(tuple((path, kind) for path, kind, _ in sizes), [size for _, _, size in sizes]),
        catalogue.PARTITIONS.family(
            paths, [len(list(report.scan.folders.rows_of(FolderKind.CURRENT))) for report in read]
        ),
        catalogue.SCAN_DURATION.family(paths, [report.took for report in read]),
        *scan_ages(reports, seconds),
    ]


def scan_ages(reports: Sequence[ScanReport], seconds: float) -> list[MetricFamily]:
    read = _read(reports)
    paths = tuple((report.scan.path,) for report in read)
    return [catalogue.SCAN_AGE.family(paths, [seconds - report.seconds for report in read])]


def _read(reports: Sequence[ScanReport]) -> list[ScanReport]:
    return [report for report in reports if report.scan.state is FolderState.READ]


def _bytes_by_kind(scan: LogDirScan) -> list[tuple[str, int]]:
    """The disk's own bytes, each once: live partitions by kind of file, everything else by kind of folder."""
    live = (FolderKind.LOG_DIR, FolderKind.CURRENT)
    found = [(file.name, sum(scan.allocated_of(folder, file) for folder in live)) for file in FileKind]
    found += [(f"{folder.name}_folder", scan.allocated_of(folder)) for folder in FolderKind if folder not in live]
    return [(name.lower().replace("_", "-"), size) for name, size in found if size]


class Scans(Feature):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._reports: dict[str, ScanReport] = {}
        self._lock = threading.Lock()
        self.workers = [Worker(f"scan of {path}", self._task(path).step) for path in core.config.broker.log_dirs]

    def current(self) -> Sequence[MetricFamily]:
        return scan_ages(list(self._reports.values()), self.core.clock.seconds())

    def _task(self, path: str) -> ScanTask:
        core = self.core
        return ScanTask(path, LogDirScanner(path).scan, core.clock, self._interval, core.may_read, self._done)

    def _interval(self) -> float:
        return self.core.config.seconds(keys.SCAN_INTERVAL)

    def _done(self, report: ScanReport) -> None:
        with self._lock:
            self._reports = {**self._reports, report.scan.path: report}  # replaced, never changed: others read it
            self.core.board.put(*scan_families(list(self._reports.values()), self.core.clock.seconds()))
