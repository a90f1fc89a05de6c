"""Snapshots for the fleet, as the guard has them: one task, its figures, and its lines in the log."""

import logging
from collections.abc import Mapping, Sequence

from brimline.documents.codec import like
from brimline.documents.guard_state import LandingDocument, SpoolDocument
from brimline.guard.broker_client import BrokerClient
from brimline.guard.feature import Core, Feature
from brimline.guard.landing.child import SnapshotWriter
from brimline.guard.landing.facts import snapshot_sections
from brimline.guard.landing.task import LandingReport, LandingSettings, LandingTask
from brimline.guard.survey import BrokerSurveyor, Survey
from brimline.landing.sections import Sections
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily
from brimline.model.secrets import without_login
from brimline.observe.cluster.topics import written_cluster_id
from brimline.service.log_lines import say
from brimline.service.worker import Worker
from brimline.settings import keys


def landing_document(report: LandingReport | None, uri: str, seconds: float) -> LandingDocument | None:
    """``None`` where no snapshots are wanted."""
    if report is None:
        return None
    return like(
        LandingDocument,
        report,
        uri=without_login(uri),
        last=report.name,
        last_bytes=report.bytes,
        last_seconds=None if report.took is None else round(report.took, 3),
        age_seconds=None if report.landed is None else round(seconds - report.landed, 3),
        spool=SpoolDocument(snapshots=report.waiting, bytes=report.waiting_bytes),
    )


class LandingNews:
    """A line when snapshots stop reaching the landing place, and one when they do again."""

    def __init__(self, uri: str) -> None:
        self._uri = without_login(uri)
        self._before = LandingReport()

    def tell(self, report: LandingReport) -> None:
        before, self._before = self._before, report
        if report.failure is not None and (before.failure is None or report.dropped > before.dropped):
            say(
                logging.WARNING,
                "landing-fails",
                f"snapshots cannot be written to {self._uri}: {report.failure}; {_fate(report)}",
                waiting=report.waiting,
                waiting_bytes=report.waiting_bytes,
                dropped=report.dropped,
                failed=report.failed,
            )
        if report.failure is None and (before.failure is not None or before.landed is None):
            say(
                logging.INFO,
                "landing-works",
                f"snapshots are written to {self._uri} again; the last one is {report.name}",
                sent=report.sent,
                bytes=report.bytes,
            )


def _fate(report: LandingReport) -> str:
    if report.dropped:
        return f"{report.waiting} waiting in the state dir, {report.dropped} were dropped"
    return f"{report.waiting} waiting in the state dir"


class Landing(Feature):
    """Nothing without a landing place, else one task and its news."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        uri = core.config.text(keys.LANDING_URI)
        self._news = LandingNews(uri)
        # A client and scanners of its own: a survey may take long, and nobody waits for another's.
        client = BrokerClient(core.config.admin, core.broker, core.clock, core.may_read)
        self._surveyor = BrokerSurveyor(client, core.clock)
        self._task = self._landing_task(uri) if uri else None
        self.workers = [] if self._task is None else [Worker("landing", self._task.step)]

    def current(self) -> Sequence[MetricFamily]:
        return [] if self._task is None else landing_age(self._task.report, self.core.clock.seconds())

    def document(self, seconds: float) -> Mapping[str, object]:
        report = None if self._task is None else self._task.report
        return {"landing": landing_document(report, self.core.config.text(keys.LANDING_URI), seconds)}

    def _landing_task(self, uri: str) -> LandingTask:
        return LandingTask(
            self.core.broker,
            self._cluster_id,
            self._survey,
            self._sections,
            SnapshotWriter(uri, self.core.config.state_dir, self.core.broker),
            self.core.clock,
            self._settings,
            self._changed,
        )

    def _settings(self) -> LandingSettings:
        config = self.core.config
        return LandingSettings(
            interval=config.seconds(keys.LANDING_INTERVAL), spool_bytes=config.number(keys.LANDING_SPOOL_BYTES)
        )

    def _cluster_id(self) -> str | None:
        return written_cluster_id(self._readable())

    def _survey(self) -> Survey:
        return self._surveyor.inspect(self.core.config.reclaim_policy, self._readable())

    def _readable(self) -> list[str]:
        return [path for path in self.core.config.broker.log_dirs if self.core.may_read(path)]

    def _sections(self, survey: Survey) -> Sections:
        return snapshot_sections(survey, self.core.disks, self.core.percents, self.core.broker)

    def _changed(self, report: LandingReport) -> None:
        self.core.board.put(*landing_families(report, self.core.clock.seconds()))
        self._news.tell(report)


def landing_families(report: LandingReport, seconds: float) -> list[MetricFamily]:
    outcomes = (("sent", report.sent), ("dropped", report.dropped), ("failed", report.failed))
    families = [
        catalogue.LANDING_SNAPSHOTS.family(tuple((name,) for name, _ in outcomes), [count for _, count in outcomes]),
        catalogue.LANDING_SPOOL_SNAPSHOTS.single(report.waiting),
        catalogue.LANDING_SPOOL_BYTES.single(report.waiting_bytes),
    ]
    if report.bytes is not None and report.took is not None:
        families += [
            catalogue.LANDING_SNAPSHOT_BYTES.single(report.bytes),
            catalogue.LANDING_DURATION.single(report.took),
        ]
    return [*families, *landing_age(report, seconds)]


def landing_age(report: LandingReport, seconds: float) -> list[MetricFamily]:
    return [] if report.landed is None else [catalogue.LANDING_AGE.single(seconds - report.landed)]
