"""What a trim frees on the other brokers: DeleteRecords moves the log start of every replica of a partition.

**Invariant.** On a replica the bytes that come back are those of its own closed segments that hold nothing above the
new log start, and that are not going anyway: a replica has rolled its segments at its own offsets. What is going and
what any trim takes are runs from the head of one log; so of two trims of a partition the further one frees all that the
other does, and what two trims free together is the larger of the two.

A replica that is being moved to another log dir gains nothing yet: the broker deletes nothing from it until that is
over.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from brimline.decide.reclaim import kernel
from brimline.decide.reclaim.device import DeviceColumns, each_device
from brimline.decide.reclaim.rules import TopicColumns, going_runs
from brimline.fleet.planner.broker_snapshot import read_broker_at
from brimline.landing.seal import BadSnapshot
from brimline.model.reclaim import ReclaimTables
from brimline.model.scan import FolderKind, Int64Column

GAIN_ROWS = pa.schema(
    [
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("broker_id", pa.int32(), nullable=False),
        pa.field("log_dir", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("trimmed_by", pa.int32(), nullable=False),
        pa.field("new_log_start_offset", pa.int64(), nullable=False),
        pa.field("gained_segments", pa.int64()),
        pa.field("gained_bytes", pa.int64()),
    ]
)
"""A row for each trim and each other replica of its partition. Null: that broker's snapshot could not be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    segments: Int64Column
    bytes: Int64Column


def gains(tables: ReclaimTables, log: Int64Column, new_log_start: Int64Column) -> Gains:
    """Of each pair of a log and a new start of it. -1 for a log is none: nothing gained."""
    segments, sizes = np.zeros(len(log), dtype=np.int64), np.zeros(len(log), dtype=np.int64)
    topics = TopicColumns(tables.topics)
    for columns in each_device(tables):
        place = np.full(len(tables.logs) + 1, -1, dtype=np.int64)  # one row more, which -1 finds
        place[:-1][columns.log_rows] = np.arange(len(columns.logs))
        pairs = np.flatnonzero(place[log] >= 0)
        if len(pairs):
            segments[pairs], sizes[pairs] = _on_device(columns, topics, place[log[pairs]], new_log_start[pairs])
    return Gains(segments=segments, bytes=sizes)


def _on_device(
    columns: DeviceColumns, topics: TopicColumns, log: Int64Column, new_log_start: Int64Column
) -> tuple[Int64Column, Int64Column]:
    begin, going = columns.begin[log], going_runs(columns, topics).until[log]
    begun = kernel.count_up_to(columns.segments.base_offset, begin, columns.end[log], new_log_start)
    until = np.maximum(np.minimum(begun - 1, columns.closed[log]), going)
    is_trimmed = (columns.logs.kind[log] == FolderKind.CURRENT) & ~columns.logs.is_moving[log]
    before = columns.allocated_before
    return np.where(is_trimmed, until - going, 0), np.where(
        is_trimmed, before[begin + until] - before[begin + going], 0
    )


def gain_rows(asked: pa.Table) -> pa.Table:
    """All trims of others that concern one broker (``path`` is its snapshot) to ``GAIN_ROWS``."""
    known = asked.select([name for name in GAIN_ROWS.names if name in asked.column_names])
    try:
        broker = read_broker_at(asked.column("path")[0].as_py())
        found = gains(broker.tables, _logs(broker.current_logs, asked), _numbers(asked, "new_log_start_offset"))
    except (BadSnapshot, ValueError):
        return _with(known, pa.nulls(len(asked), pa.int64()), pa.nulls(len(asked), pa.int64()))
    return _with(known, pa.array(found.segments), pa.array(found.bytes))


def _with(known: pa.Table, segments: pa.Array, sizes: pa.Array) -> pa.Table:
    return pa.Table.from_arrays([*known.columns, segments, sizes], schema=GAIN_ROWS)


def _logs(rows: Mapping[tuple[str, int], int], asked: pa.Table) -> Int64Column:
    pairs = zip(asked.column("topic_id").to_pylist(), asked.column("partition").to_pylist(), strict=True)
    return np.array([rows.get(pair, -1) for pair in pairs], dtype=np.int64)


def _numbers(asked: pa.Table, name: str) -> Int64Column:
    return np.asarray(asked.column(name).to_numpy(), dtype=np.int64)
