"""A few brokers under one another, so that they are planned at once: a broker's columns are short, and calls are dear.

**Invariant.** No rule looks beyond a device, and a device belongs to one broker: so the plan of a lot is the plans of
its brokers, one after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from brimline.decide.reclaim import kernel
from brimline.fleet.planner.broker_snapshot import BrokerSnapshot
from brimline.landing.header import Header
from brimline.model.reclaim import LogTable, ReclaimTables, RuleColumns, SegmentTable, TopicTable
from brimline.model.scan import Int64Column

Table = TypeVar("Table", LogTable, RuleColumns, SegmentTable)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lot:
    headers: Sequence[Header]
    tables: ReclaimTables
    topic_names: Sequence[str]
    topic_ids: Sequence[str | None]
    log_dirs: Sequence[str]
    log_dir_of_log: Int64Column
    broker_of_device: Int64Column
    """Row in ``headers``."""
    log_dirs_of_device: Sequence[Sequence[str]]


def lot_of(brokers: Sequence[BrokerSnapshot]) -> Lot:
    """At least one."""
    tables = [broker.tables for broker in brokers]
    devices = [len(each.devices) for each in tables]
    topics = _topics([TopicTable.of(each.topics) for each in tables])
    log_dirs = [broker.log_dirs for broker in brokers]
    return Lot(
        headers=[broker.header for broker in brokers],
        tables=ReclaimTables(
            devices=tuple(chain.from_iterable(each.devices for each in tables)),
            topics=topics,
            logs=_logs(tables),
            segments=SegmentTable(**_columns(SegmentTable, [each.segments for each in tables])),
        ),
        topic_names=topics.names,
        topic_ids=list(chain.from_iterable(broker.topic_ids for broker in brokers)),
        log_dirs=list(chain.from_iterable(log_dirs)),
        log_dir_of_log=_moved([broker.log_dir_of_log for broker in brokers], list(map(len, log_dirs))),
        broker_of_device=np.repeat(np.arange(len(brokers)), devices),
        log_dirs_of_device=[
            broker.log_dirs_of(row) for broker, count in zip(brokers, devices, strict=True) for row in range(count)
        ],
    )


def _topics(parts: Sequence[TopicTable]) -> TopicTable:
    names = list(chain.from_iterable(part.names for part in parts))
    rules = RuleColumns(**_columns(RuleColumns, [part.rules for part in parts]))
    return TopicTable(names, rules, [len(part) for part in parts])


def _logs(tables: Sequence[ReclaimTables]) -> LogTable:
    logs = [each.logs for each in tables]
    counts = np.concatenate([np.diff(each.segments_begin) for each in logs])
    moved = {
        "device": _moved([each.device for each in logs], [len(each.devices) for each in tables]),
        "topic": _moved([each.topic for each in logs], [len(each.topics) for each in tables]),
        "segments_begin": kernel.sums(counts),
    }
    return LogTable(**_columns(LogTable, logs, moved))


def _columns(kind: type[Table], tables: Sequence[Table], made: dict[str, Any] | None = None) -> dict[str, Any]:
    """Of a table, those of others under one another; but for those that are made already."""
    found = made or {}
    names = [field.name for field in fields(kind) if field.name not in found]
    return found | {name: np.concatenate([getattr(each, name) for each in tables]) for name in names}


def _moved(columns: Sequence[npt.NDArray[Any]], lengths: Sequence[int]) -> npt.NDArray[Any]:
    """Columns that point into tables of these lengths, for when those stand under one another. -1 points nowhere."""
    begins = accumulate(lengths[:-1], initial=0)
    return np.concatenate([np.where(each < 0, each, each + begin) for each, begin in zip(columns, begins, strict=True)])
