"""Moves into full log dirs in plain words, for the log, ``/v1/state`` and ``status``. One wording for all."""

import json
import shlex
from collections.abc import Iterable
from itertools import islice

from brimline.act.move_pause import KEY
from brimline.guard.move_pause_task import MoveReport, Moves
from brimline.model import BrokerId, TopicPartition

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
