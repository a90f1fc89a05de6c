"""Moves into full log dirs, as the guard has them: one task, its news, and whether it may do what it would."""

from collections.abc import Iterator, Mapping, Sequence

from brimline.act.broker_setting import BrokerSetting
from brimline.act.move_pause import KEY, PAUSED, MovePause, PauseRecord
from brimline.disks.task import DiskReport
from brimline.guard.feature import Core, Feature, Finding, Looked, Weight
from brimline.guard.moves.task import MovePauseTask, MoveReport
from brimline.guard.moves.words import MoveNews, move_document
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily
from brimline.model import ObservationFailed
from brimline.observe.scan.names import partitions_moving_into
from brimline.service.worker import Worker


class Moves(Feature):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        config, enforced = core.config, core.config.is_enforcing
        setting = BrokerSetting(config.admin, core.broker, KEY)
        record = PauseRecord(config.state_dir / f"move-pause-{core.broker}.json", KEY)
        self._holder = MovePause(setting, record, core.clock.now)
        self._news = MoveNews(core.broker, config.admin_access.servers, self._holder.pause, is_enforced=enforced)
        worker = Worker("moves", lambda: self._task.step())
        self._task = MovePauseTask(
            self._holder, partitions_moving_into, core.clock, worker.wake, self._changed, is_enforced=enforced
        )
        self.workers = [worker]

    @property
    def warnings(self) -> Sequence[str]:
        return self._holder.warnings

    def decided(self, disks: DiskReport) -> None:
        self._task.decided(disks)

    def document(self, seconds: float) -> Mapping[str, object]:
        config = self.core.config
        servers, enforced = config.admin_access.servers, config.is_enforcing
        return {"moves": move_document(self._task.report, self.core.broker, servers, enforced=enforced)}

    def _changed(self, report: MoveReport) -> None:
        self.core.board.put(*move_families(report))
        self._news.tell(report)

    @classmethod
    def findings(cls, looked: Looked) -> Iterator[Finding]:
        """Holding up moves into full log dirs takes rights that nothing else needs: to be missed before, not then."""
        config = looked.config
        if not (looked.broker_answers and config.is_enforcing):
            return
        setting = BrokerSetting(config.admin, config.node_id, KEY)
        try:
            setting.own_value()
            setting.check(PAUSED)
        except ObservationFailed as error:
            sentence = f"moves into a full log dir cannot be held up: {error}"
            yield Finding(topic="permissions", weight=Weight.PROBLEM, sentence=sentence)
        finally:
            setting.close()


def move_families(report: MoveReport) -> list[MetricFamily]:
    rows = tuple((log_dir,) for log_dir in report.moves)
    counts = [len(found) for found in report.moves.values()]
    return [
        catalogue.MOVES_INTO_FULL.family(rows, counts),
        catalogue.MOVES_PAUSED.family(rows, counts if report.is_held else [0] * len(counts)),
    ]
