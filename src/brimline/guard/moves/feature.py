"""Moves into full log dirs, as the guard has them: one task, its words for log and ``status``, its metrics."""

import json
import logging
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from brimline.act.broker_setting import BrokerSetting
from brimline.act.move_pause import KEY, PAUSED, Hold, MovePause, Pause, PauseRecord
from brimline.disks.task import DiskReport
from brimline.documents.guard_state import FailureDocument, MovesDocument, MovingInto
from brimline.documents.notices import Weight
from brimline.guard.feature import Core, Feature, Finding, Looked
from brimline.guard.moves.task import MovePauseTask, MoveReport, MovesInto
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily
from brimline.model import BrokerId, ObservationFailed, TopicPartition
from brimline.observe.scan.names import partitions_moving_into
from brimline.service.log_lines import say
from brimline.service.worker import Worker

_SHOWN = 10
TRICKLE = "about 1 MiB every 11 s still gets through for all moves on this broker (replica.fetch.max.bytes)"


def named_moves(moves: MovesInto) -> str:
    return " and ".join(f"{_some(found)} into {log_dir}" for log_dir, found in moves.items())


def move_sentence(report: MoveReport, *, enforced: bool) -> str:
    """What is done about the moves now, or would be. Not for a quiet report."""
    if not report.moves:
        return _without_moves(report)
    what = f"the move of {named_moves(report.moves)}, which is full"
    if report.is_held:
        return f"pauses {what} ({KEY}=1); {TRICKLE}"
    if report.failure is not None and enforced:
        return f"cannot pause {what}: {report.failure}"
    return f"would pause {what} ({KEY}=1)"


def _without_moves(report: MoveReport) -> str:
    if report.pause is None:
        return str(report.failure)
    if report.is_held:
        return f"pauses moves ({KEY}=1): a move into a full log dir cannot be ruled out"
    return f"cannot resume moves ({KEY}=1), although no target log dir is full: {report.failure}"


def value_before(value: str | None) -> str:
    return "no value of the broker's own" if value is None else f"{KEY}={value}"


def how_to_cancel(moves: MovesInto, broker: BrokerId, servers: str) -> str:
    """Cancelling gives back what was copied so far. The other replicas of a partition are not named: they stay."""
    shown = list(islice(((log_dir, each) for log_dir, found in moves.items() for each in found), _SHOWN))
    partitions = [
        {"topic": each.topic, "partition": each.partition, "replicas": [broker], "log_dirs": [log_dir]}
        for log_dir, each in shown
    ]
    document = json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))
    rest = " (the others likewise)" if sum(map(len, moves.values())) > _SHOWN else ""
    return (
        f"make room there, or cancel the move and free what it has copied{rest}: echo {shlex.quote(document)} | "
        f"kafka-reassign-partitions.sh --bootstrap-server {shlex.quote(servers)} --cancel --preserve-throttles "
        "--reassignment-json-file /dev/stdin"
    )


def _some(partitions: Iterable[TopicPartition]) -> str:
    names = [str(each) for each in partitions]
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest


def move_document(report: MoveReport, broker: BrokerId, servers: str, *, enforced: bool) -> MovesDocument | None:
    if report.is_quiet:
        return None
    return MovesDocument(
        paused=report.is_held,
        since=None if report.pause is None else report.pause.since,
        value_before=None if report.pause is None else report.pause.before,
        log_dirs=tuple(
            MovingInto(log_dir=log_dir, partitions=tuple(str(each) for each in found))
            for log_dir, found in report.moves.items()
        ),
        failure=FailureDocument.of(report.failure),
        does=move_sentence(report, enforced=enforced),
        what_to_do=how_to_cancel(report.moves, broker, servers) if report.moves else None,
    )


class MoveNews:
    """``pause`` is what an earlier guard left behind."""

    def __init__(self, broker: BrokerId, servers: str, pause: Pause | None, *, is_enforced: bool) -> None:
        self._broker = broker
        self._servers = servers
        self._is_enforced = is_enforced
        self._said: frozenset[tuple[str, TopicPartition]] = frozenset()
        self._failure: str | None = None
        self._pause = pause

    def tell(self, report: MoveReport) -> None:
        self._tell_failure(report)
        if report.moves and (report.is_held or report.failure is None):
            self._tell_moves(report)
        if not report.moves:
            self._said = frozenset()
        if report.hold is Hold.SET_AGAIN and report.pause is not None:
            say(
                logging.WARNING,
                "moves-paused-again",
                f"{KEY} was changed by someone else: set to 1 again; {value_before(report.pause.before)} is "
                "restored later",
            )
        if self._pause is not None and report.pause is None:
            say(
                logging.INFO,
                "moves-resumed",
                f"moves resumed: no target log dir is full; {KEY} restored ({value_before(self._pause.before)})",
                before=self._pause.before,
            )
        self._pause = report.pause

    def _tell_moves(self, report: MoveReport) -> None:
        said, self._said = self._said, report.partitions
        if report.partitions <= said:
            return
        whose = " (set by someone else, left unchanged)" if report.hold is Hold.NOT_OURS else ""
        say(
            logging.WARNING,
            "moves-paused" if report.is_held else "observe",
            f"{move_sentence(report, enforced=self._is_enforced)}{whose}; "
            f"{how_to_cancel(report.moves, self._broker, self._servers)}",
            log_dirs=",".join(report.moves),
            partitions=len(report.partitions),
        )

    def _tell_failure(self, report: MoveReport) -> None:
        failure = None if report.failure is None else str(report.failure)
        if failure == self._failure:
            return
        self._failure = failure
        if report.failure is None:
            return
        self._said = frozenset()  # when it works again, that is news
        does = str(report.failure) if report.is_held else move_sentence(report, enforced=self._is_enforced)
        say(logging.ERROR, "moves-failed", f"{does}; retrying", kind=report.failure.kind.value)


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
            sentence = f"moves into a full log dir cannot be paused: {error}"
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
