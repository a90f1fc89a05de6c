"""The reclaim of all devices: a task, a thread, a client and a ledger of its own for every log dir."""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta

from brimline.act.device_lock import DeviceLock
from brimline.act.ledger.ledger import Ledger, PauseFile
from brimline.act.seen_settings import SeenFile
from brimline.act.trims.cluster import TrimCluster
from brimline.act.trims.files import files_left
from brimline.decide.reclaim.brakes import Brakes
from brimline.disks.task import DiskReport
from brimline.documents.notices import Notice, Weight
from brimline.guard.broker_client import BrokerClient
from brimline.guard.feature import Core, Feature, Finding, Looked
from brimline.guard.reclaim.findings import (
    TOPIC,
    changed_defaults,
    explain_ceiling,
    explain_rights,
    explain_survey,
    reclaim_finding,
)
from brimline.guard.reclaim.others import ask_others, compare
from brimline.guard.reclaim.published import reclaim_ages, reclaim_document, reclaim_families
from brimline.guard.reclaim.report import ReclaimReport
from brimline.guard.reclaim.settings import ReclaimSettings
from brimline.guard.reclaim.survey import Surveyor
from brimline.guard.reclaim.task import ReclaimParts, ReclaimTask
from brimline.guard.reclaim.trims import guard_name
from brimline.guard.reclaim.words import ReclaimNews, pause_sentence
from brimline.metrics import catalogue
from brimline.model import ObservationFailed, TopicPartition
from brimline.model.blast_radius import GroupsSeen
from brimline.observe.client.connection import Connection
from brimline.observe.cluster.topics import may_delete_records
from brimline.service.clock import Clock
from brimline.service.worker import Worker
from brimline.settings.config import GuardConfig

_PATIENCE_FOR_RIGHTS = timedelta(seconds=10)
_PATIENCE_FOR_GROUPS = timedelta(seconds=5)
"""Whom it hits is told as far as it is known by then: the disk fills meanwhile."""
_COMPARED_EVERY = 900.0


class Reclaims(Feature):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._tasks: list[ReclaimTask] = []
        self._others: Sequence[Notice] = ()
        self.workers = [
            *(self._worker(path) for path in core.config.broker.log_dirs),
            Worker("brakes of other guards", self._compare),
        ]

    @property
    def warnings(self) -> Sequence[str]:
        return tuple(changed_defaults(self.core.config))

    @property
    def reports(self) -> tuple[ReclaimReport, ...]:
        """One for each device; none before its first step."""
        return tuple(report for task in self._tasks if (report := task.report) is not None)

    def decided(self, disks: DiskReport) -> None:
        for task in self._tasks:
            task.decided(disks)

    def document(self, seconds: float) -> Mapping[str, object]:
        return {"reclaim": reclaim_document(self.reports, self._settings(), seconds)}

    def notices(self) -> Sequence[Notice]:
        return self._others

    def _compare(self) -> float:
        config = self.core.config
        try:
            self._others = tuple(_compared(config, self.core.clock)) if config.has_ceiling else ()
        except ObservationFailed:  # whoever plans says it
            self._others = ()
        return _COMPARED_EVERY

    def _settings(self) -> ReclaimSettings:
        return ReclaimSettings.of(self.core.config)

    def _publish(self) -> None:
        reports = self.reports
        self.core.board.put(*reclaim_families(reports), reclaim_ages(reports, self.core.clock.seconds()))

    def _failed(self, kind: str) -> None:
        self.core.count(catalogue.RECLAIM_ERRORS, kind)

    def _worker(self, path: str) -> Worker:
        worker = Worker(f"reclaim of {path}", lambda: task.step())
        task = ReclaimTask(
            path,
            self._settings,
            _parts(path, self.core),
            self.core.clock,
            worker.wake,
            ReclaimNews(self._failed),
            self._publish,
        )
        self._tasks.append(task)
        return worker

    @classmethod
    def findings(cls, looked: Looked) -> Iterator[Finding]:
        yield from explain_ceiling(looked.config, looked.disks)
        pause = PauseFile(looked.config.state_dir, looked.config.node_id).read()
        if pause is not None and looked.config.has_ceiling:
            yield reclaim_finding(Weight.WARNING, f"{pause_sentence(pause)}: nothing is deleted until then")
        if looked.broker_answers and looked.config.has_ceiling:
            yield from _first_cycle(looked)


def _first_cycle(looked: Looked) -> Iterator[Finding]:
    """The same look, and the same plan, as the first cycle of a guard that were started now."""
    config = looked.config
    client = BrokerClient(config.admin, config.node_id, looked.clock)
    try:
        surveyor = Surveyor.of(config, client, looked.clock, writes=False)
        survey = surveyor.survey(config.reclaim_policy, looked.readable)
        apart = list(_compared(config, looked.clock))
    except ObservationFailed as error:
        yield reclaim_finding(Weight.PROBLEM, f"what reclaim would do is unknown: {error.failure}")
        return
    finally:
        client.close()
    yield from explain_survey(config, survey)
    yield from (reclaim_finding(Weight.WARNING, sentence) for sentence in survey.brakes)
    yield from (Finding.of(notice, TOPIC) for notice in apart)
    try:
        with closing(Connection(config.admin)) as connection:
            may_delete = may_delete_records(connection, survey.facts.topics, _PATIENCE_FOR_RIGHTS)
    except ObservationFailed as error:
        sentence = f"permission to delete records is unknown: {error.failure}"
        yield Finding(topic="permissions", weight=Weight.NOTE, sentence=sentence)
        return
    yield from explain_rights(config, survey, may_delete)


def _compared(config: GuardConfig, clock: Clock) -> Iterator[Notice]:
    """Raises ``ObservationFailed``."""
    with closing(BrokerClient(config.admin, config.node_id, clock)) as client:
        holders = client.replica_holders()
    is_paused = PauseFile(config.state_dir, config.node_id).read() is not None
    return compare(Brakes.of(config.reclaim_policy), is_paused=is_paused, others=ask_others(config, holders))


def _parts(path: str, core: Core) -> ReclaimParts:
    config, clock = core.config, core.clock
    client = BrokerClient(config.admin, config.node_id, clock)
    cluster = TrimCluster(config.admin)
    surveyor = Surveyor.of(config, client, clock, writes=True)
    cluster.spares_transactions = lambda: (surveyor.policy or core.config.reclaim_policy).spares_transactions

    def groups(partitions: Collection[TopicPartition]) -> GroupsSeen:
        return client.group_offsets(partitions, _PATIENCE_FOR_GROUPS)

    return ReclaimParts(
        surveyor=surveyor,
        ledger=Ledger(config.state_dir, config.node_id, clock.now),
        cluster=cluster,
        files_left=files_left,
        groups=groups,
        lock=DeviceLock(path),
        seen=SeenFile(config.state_dir, config.node_id, path),
        chance=random.random,
        by=guard_name(config.node_id),
    )
