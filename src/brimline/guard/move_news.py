"""Moves into full log dirs in the guard's log: a line when they are held up, one when they go on, none in between."""

import logging

from brimline.act.move_pause import KEY, Hold
from brimline.act.pause_record import Pause
from brimline.guard.log_lines import say
from brimline.guard.move_pause_task import MoveReport
from brimline.guard.move_sentences import how_to_cancel, move_sentence, value_before
from brimline.model import BrokerId, TopicPartition


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
                f"somebody changed {KEY}: it is 1 again, and {value_before(report.pause.before)} is put back later",
            )
        if self._pause is not None and report.pause is None:
            say(
                logging.INFO,
                "moves-resumed",
                f"no partition is moved into a full log dir any more: moves go on, and {KEY} is as it was before "
                f"({value_before(self._pause.before)})",
                before=self._pause.before,
            )
        self._pause = report.pause

    def _tell_moves(self, report: MoveReport) -> None:
        said, self._said = self._said, report.partitions
        if report.partitions <= said:
            return
        whose = " (set by somebody else, and left alone)" if report.hold is Hold.NOT_OURS else ""
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
        say(logging.ERROR, "moves-failed", f"{does}; it is tried again and again", kind=report.failure.kind.value)
