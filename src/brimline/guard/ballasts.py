"""The ballasts of all volumes: a task, a thread and a ledger of its own for every log dir."""

import time
from collections.abc import Callable, Sequence

from brimline.act.ledger import Ledger
from brimline.guard.ballast_news import BallastNews
from brimline.guard.ballast_task import BallastStatus, BallastTask
from brimline.guard.clock import Clock
from brimline.guard.config import GuardConfig
from brimline.guard.disk_task import DiskReport
from brimline.guard.worker import Worker
from brimline.model import Bytes


class Ballasts:
    """``look`` has the disks read again; ``publish`` is told of all ballasts whenever one has been looked after."""

    def __init__(
        self,
        config: GuardConfig,
        clock: Clock,
        wanted: Callable[[], Bytes],
        look: Callable[[], None],
        publish: Callable[[Sequence[BallastStatus], Bytes], None],
    ) -> None:
        self._wanted = wanted
        self._publish = publish
        self._tasks: list[BallastTask] = []
        self.workers = [self._worker(path, config, clock, look) for path in config.broker.log_dirs]

    @property
    def statuses(self) -> tuple[BallastStatus, ...]:
        """A volume's each; none before the first look."""
        return tuple(status for task in self._tasks if (status := task.status) is not None)

    def decided(self, disks: DiskReport) -> None:
        """From the disks' thread; returns at once."""
        for task in self._tasks:
            task.decided(disks)

    def _worker(self, path: str, config: GuardConfig, clock: Clock, look: Callable[[], None]) -> Worker:
        assert config.broker.node_id is not None
        news = BallastNews()

        def changed(status: BallastStatus) -> None:
            self._publish(self.statuses, self._wanted())
            news.tell(status)

        worker = Worker(f"ballast of {path}", lambda: task.step())
        task = BallastTask(
            path,
            config.broker.log_dirs,
            Ledger(config.state_dir, config.broker.node_id, clock.now, sleep=_impatiently),
            clock,
            self._wanted,
            worker.wake,
            look,
            changed,
        )
        self._tasks.append(task)
        return worker


def _impatiently(seconds: float) -> None:
    """A release does not wait for long for a ledger that somebody else holds: it comes first, and its entry is late."""
    time.sleep(seconds / 10)
