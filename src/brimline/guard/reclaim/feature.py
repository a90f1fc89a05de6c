"""The reclaim of all devices: a task, a thread, a client and a ledger of its own for every log dir."""

import random
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta

from brimline.act.device_lock import DeviceLock
from brimline.act.ledger.ledger import Ledger
from brimline.act.trims.cluster import TrimCluster
from brimline.act.trims.files import files_left
from brimline.disks.task import DiskReport
from brimline.guard.broker_client import BrokerClient
from brimline.guard.reclaim.report import ReclaimReport
from brimline.guard.reclaim.settings import ReclaimSettings
from brimline.guard.reclaim.survey import Surveyor
from brimline.guard.reclaim.task import ReclaimParts, ReclaimTask
from brimline.guard.reclaim.trims import guard_name
from brimline.guard.reclaim.words import ReclaimNews
from brimline.model import TopicPartition
from brimline.model.blast_radius import GroupsSeen
from brimline.service.clock import Clock
from brimline.service.worker import Worker
from brimline.settings.config import GuardConfig

_PATIENCE_FOR_GROUPS = timedelta(seconds=5)
"""Whom it hits is told as far as it is known by then: the disk fills meanwhile."""


class Reclaims:
    """``settings`` are those that count now; ``publish`` is told of all devices after every step of one, ``count`` of
    every step that failed, by what stood in the way.
    """

    def __init__(
        self,
        config: GuardConfig,
        clock: Clock,
        settings: Callable[[], ReclaimSettings],
        publish: Callable[[Sequence[ReclaimReport]], None],
        count: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._publish = publish
        self._count = count
        self._tasks: list[ReclaimTask] = []
        self.workers = [self._worker(path, config, clock) for path in config.broker.log_dirs]

    @property
    def reports(self) -> tuple[ReclaimReport, ...]:
        """One for each device; none before its first step."""
        return tuple(report for task in self._tasks if (report := task.report) is not None)

    def decided(self, disks: DiskReport) -> None:
        """From the disks' thread; returns at once."""
        for task in self._tasks:
            task.decided(disks)

    def _worker(self, path: str, config: GuardConfig, clock: Clock) -> Worker:
        worker = Worker(f"reclaim of {path}", lambda: task.step())
        task = ReclaimTask(
            path,
            self._settings,
            _parts(path, config, clock),
            clock,
            worker.wake,
            ReclaimNews(self._count),
            lambda: self._publish(self.reports),
        )
        self._tasks.append(task)
        return worker


def _parts(path: str, config: GuardConfig, clock: Clock) -> ReclaimParts:
    client = BrokerClient(config.admin, config.node_id, clock)

    def groups(partitions: Collection[TopicPartition]) -> GroupsSeen:
        return client.group_offsets(partitions, _PATIENCE_FOR_GROUPS)

    return ReclaimParts(
        surveyor=Surveyor(client, clock),
        ledger=Ledger(config.state_dir, config.node_id, clock.now),
        cluster=TrimCluster(config.admin),
        files_left=files_left,
        groups=groups,
        lock=DeviceLock(path),
        chance=random.random,
        by=guard_name(config.node_id),
    )
