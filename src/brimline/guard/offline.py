"""Log dirs that the broker itself holds offline: after an I/O error, until it is restarted.

**Invariant.** What the broker said last holds: a broker that gives no answer, because it is down or busy, changes
nothing, and its first answer after a restart does. Asked with DescribeLogDirs for no topic: a hundred bytes.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from brimline.disks.task import DiskReport
from brimline.documents.notices import Notice, Weight
from brimline.guard.feature import Core, Feature
from brimline.model import BrokerId, ObservationFailed
from brimline.model.failures import KAFKA_STORAGE_ERROR
from brimline.observe.client.connection import Deadline, Reconnecting
from brimline.observe.cluster.log_dirs import ask_volumes
from brimline.service.worker import Worker

_LOOK, _LOOK_CLOSELY = 5.0, 1.0
_PATIENCE = timedelta(seconds=10)


def offline_notice(log_dir: str, broker: BrokerId) -> Notice:
    return Notice(
        feature="offline",
        key=log_dir,
        weight=Weight.PROBLEM,
        word="OFFLINE",
        headline=f"OFFLINE: {log_dir}",
        text=f"the broker holds {log_dir} offline after a disk error: its partitions here are neither written nor "
        "read, and free space does not bring it back",
        cure=f"make room on it, then restart broker {broker}",
        facts={"logDir": log_dir},
    )


class OfflineClient(Reconnecting):
    def offline(self, broker: BrokerId, core: Core) -> frozenset[str]:
        """Raises ``ObservationFailed``."""
        with self.connected() as connection:
            answer = ask_volumes(connection, [broker], Deadline(_PATIENCE), core.clock.now)[broker]
            errors = {path: found.error for path, found in answer.answer().items() if found.error is not None}
            return frozenset(path for path, error in errors.items() if error.code == KAFKA_STORAGE_ERROR)


class Offline(Feature):
    name = "offline"

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._client = OfflineClient(core.config.admin)
        self._is_close = False
        self._worker = Worker(self.name, self.step)
        self.workers = [self._worker]

    def decided(self, disks: DiskReport) -> None:
        """A disk that is not well is when a log dir goes offline."""
        is_close = any(each.breaches or each.offline or each.reading.failure for each in disks.volumes)
        if is_close and not self._is_close:
            self._worker.wake()
        self._is_close = is_close

    def step(self) -> float:
        # What it said before holds; that it does not answer is told by those who need its answers
        with suppress(ObservationFailed):
            self.core.set_offline(self._client.offline(self.core.broker, self.core))
        return _LOOK_CLOSELY if self._is_close else _LOOK

    def notices(self) -> Sequence[Notice]:
        return [
            offline_notice(path, self.core.broker)
            for volume in self.core.disks.volumes
            for path in sorted(volume.offline)
        ]
