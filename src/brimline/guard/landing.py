"""Snapshots for the fleet, as the guard has them: nothing without a landing place, else one task and its news."""

from collections.abc import Callable, Sequence

from brimline.guard import keys
from brimline.guard.broker_client import BrokerClient
from brimline.guard.clock import Clock
from brimline.guard.config import GuardConfig
from brimline.guard.disk_task import DiskReport
from brimline.guard.landing_child import SnapshotWriter
from brimline.guard.landing_facts import snapshot_sections
from brimline.guard.landing_news import LandingNews
from brimline.guard.landing_task import LandingReport, LandingSettings, LandingTask
from brimline.guard.percent_task import PercentReport
from brimline.guard.reclaim_survey import ReclaimSurvey, Surveyor
from brimline.guard.worker import Worker
from brimline.landing.columns import Sections
from brimline.model import BrokerId
from brimline.observe.cluster_id import written_cluster_id


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
        assert begun_with.broker.node_id is not None
        self._config = config
        self._may_read = may_read
        self._disks = disks
        self._percents = percents
        self._publish = publish
        self._broker = BrokerId(begun_with.broker.node_id)
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
