"""Moves into full log dirs in plain words, for the log, ``/v1/state`` and ``status``. One wording for all.

The part of ``/v1/state`` about moves into full log dirs.

Moves into full log dirs in the guard's log: a line when they are held up, one when they go on, none in between.
"""

import json
import logging
import shlex
from collections.abc import Iterable
from itertools import islice

from brimline.act.move_pause import KEY, Hold, Pause
from brimline.documents.guard_state import FailureDocument, MovesDocument, MovingInto
from brimline.guard.moves.task import MoveReport, Moves
from brimline.model import BrokerId, TopicPartition
from brimline.service.log_lines import say

_SHOWN = 10
TRICKLE = "about 1 MiB every 11 s still gets through (replica.fetch.max.bytes), for all moves on this broker together"


def named_moves(moves: Moves) -> str:
    return " and ".join(f"{_some(found)} into {log_dir}" for log_dir, found in moves.items())


def move_sentence(report: MoveReport, *, enforced: bool) -> str:
    """What is done about the moves now, or would be. Not for a quiet report."""
    if not report.moves:
        return _without_moves(report)
    what = f"the move of {named_moves(report.moves)}, which is full"
    if report.is_held:
        return f"holds up {what} ({KEY}=1); {TRICKLE}"
    if report.failure is not None and enforced:
        return f"cannot hold up {what}: {report.failure}"
    return f"would hold up {what} ({KEY}=1)"


def _without_moves(report: MoveReport) -> str:
    if report.pause is None:
        return str(report.failure)
    if report.is_held:
        return f"holds moves up ({KEY}=1), since it is not known whether one goes into a full log dir"
    return f"cannot let moves go on ({KEY}=1), though none goes into a full log dir: {report.failure}"


def value_before(value: str | None) -> str:
    return "no value of the broker's own" if value is None else f"{KEY}={value}"


def how_to_cancel(moves: Moves, broker: BrokerId, servers: str) -> str:
    """Cancelling gives back what was copied so far. The other replicas of a partition are not named: they stay."""
    shown = list(islice(((log_dir, each) for log_dir, found in moves.items() for each in found), _SHOWN))
    partitions = [
        {"topic": each.topic, "partition": each.partition, "replicas": [broker], "log_dirs": [log_dir]}
        for log_dir, each in shown
    ]
    document = json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))
    rest = " (and likewise for the others)" if sum(map(len, moves.values())) > _SHOWN else ""
    return (
        f"make room there, or cancel the move, which frees what it has copied{rest}: echo {shlex.quote(document)} | "
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
