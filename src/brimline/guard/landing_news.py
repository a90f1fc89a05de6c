"""Snapshots in the guard's log: a line when they stop reaching the landing place, and one when they do again."""

import logging

from brimline.guard.landing_task import LandingReport
from brimline.guard.log_lines import say
from brimline.model.secrets import without_login


class LandingNews:
    def __init__(self, uri: str) -> None:
        self._uri = without_login(uri)
        self._before = LandingReport()

    def tell(self, report: LandingReport) -> None:
        before, self._before = self._before, report
        if report.failure is not None and (before.failure is None or report.dropped > before.dropped):
            say(
                logging.WARNING,
                "landing-fails",
                f"snapshots do not reach {self._uri}: {report.failure}; {_fate(report)}",
                waiting=report.waiting,
                waiting_bytes=report.waiting_bytes,
                dropped=report.dropped,
                failed=report.failed,
            )
        if report.failure is None and (before.failure is not None or before.landed is None):
            say(
                logging.INFO,
                "landing-works",
                f"snapshots reach {self._uri}; the last one is {report.name}",
                sent=report.sent,
                bytes=report.bytes,
            )


def _fate(report: LandingReport) -> str:
    if report.dropped:
        return f"{report.waiting} wait in the state dir, and {report.dropped} were dropped to make room"
    return f"{report.waiting} wait in the state dir"
