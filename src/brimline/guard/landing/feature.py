"""The part of ``/v1/state`` about snapshots.

Snapshots in the guard's log: a line when they stop reaching the landing place, and one when they do again.

Snapshots for the fleet, as the guard has them: nothing without a landing place, else one task and its news.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from brimline.disks.task import DiskReport
from brimline.guard.broker_client import BrokerClient
from brimline.guard.landing.child import SnapshotWriter
from brimline.guard.landing.facts import snapshot_sections
from brimline.guard.landing.task import LandingReport, LandingSettings, LandingTask
from brimline.guard.percent.task import PercentReport
from brimline.guard.reclaim.survey import ReclaimSurvey, Surveyor
from brimline.landing.sections import Sections
from brimline.model.secrets import without_login
from brimline.observe.cluster.topics import written_cluster_id
from brimline.service.clock import Clock
from brimline.service.log_lines import say
from brimline.service.worker import Worker
from brimline.settings import keys
from brimline.settings.config import GuardConfig

Json = Mapping[str, object]


def landing_document(report: LandingReport | None, uri: str, seconds: float) -> Json | None:
    """``None`` where no snapshots are wanted."""
    if report is None:
        return None
    return {
        "uri": without_login(uri),
        "last": report.name,
        "lastBytes": report.bytes,
        "lastSeconds": None if report.took is None else round(report.took, 3),
        "ageSeconds": None if report.landed is None else round(seconds - report.landed, 3),
        "sent": report.sent,
        "failed": report.failed,
        "dropped": report.dropped,
        "spool": {"snapshots": report.waiting, "bytes": report.waiting_bytes},
        "failure": report.failure,
    }


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


class Landing:
    """``config``, ``disks`` and ``percents`` are asked for what holds now; ``publish`` is told of every report."""

    def __init__(
        self,
        config: Callable[[], GuardConfig],
        clock: Clock,
        may_read: Callable[[str], bool],
        disks: Callable[[], DiskReport],
        percents: Callable[[], PercentReport],
        publish: Callable[[LandingReport], None],
    ) -> None:
        begun_with = config()
        self._config = config
        self._may_read = may_read
        self._disks = disks
        self._percents = percents
        self._publish = publish
        self._broker = begun_with.node_id
        uri = begun_with.text(keys.LANDING_URI)
        self._news = LandingNews(uri)
        # A client and scanners of its own: a survey may take long, and nobody waits for another's.
        self._surveyor = Surveyor(BrokerClient(begun_with.admin, self._broker, clock, may_read), clock)
        self._task = (
            LandingTask(
                self._broker,
                self._cluster_id,
                self._survey,
                self._sections,
                SnapshotWriter(uri, begun_with.state_dir, self._broker),
                clock,
                self._settings,
                self._changed,
            )
            if uri
            else None
        )

    @property
    def workers(self) -> Sequence[Worker]:
        return [] if self._task is None else [Worker("landing", self._task.step)]

    @property
    def report(self) -> LandingReport | None:
        return None if self._task is None else self._task.report

    def _settings(self) -> LandingSettings:
        config = self._config()
        return LandingSettings(
            interval=config.seconds(keys.LANDING_INTERVAL), spool_bytes=config.number(keys.LANDING_SPOOL_BYTES)
        )

    def _cluster_id(self) -> str | None:
        return written_cluster_id(self._readable())

    def _survey(self) -> ReclaimSurvey:
        return self._surveyor.survey(self._config().reclaim_policy, self._readable())

    def _readable(self) -> list[str]:
        return [path for path in self._config().broker.log_dirs if self._may_read(path)]

    def _sections(self, survey: ReclaimSurvey) -> Sections:
        return snapshot_sections(survey, self._disks(), self._percents(), self._broker)

    def _changed(self, report: LandingReport) -> None:
        self._publish(report)
        self._news.tell(report)
