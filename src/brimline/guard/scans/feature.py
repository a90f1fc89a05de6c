"""A scan task and a thread for every log dir, and what all of them found."""

import threading
from collections.abc import Sequence

from brimline.guard.feature import Core, Feature
from brimline.guard.scans.published import scan_ages, scan_families
from brimline.guard.scans.task import ScanReport, ScanTask
from brimline.metrics.metric import MetricFamily
from brimline.observe.scan.scanner import LogDirScanner
from brimline.service.worker import Worker
from brimline.settings import keys


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
