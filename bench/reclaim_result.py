"""What planners are compared by: the row of every log that loses something, to the byte."""

import hashlib
from dataclasses import dataclass, fields

import numpy as np

from bench.reclaim_columns import TOPICS, Fleet, is_compacted, retention_of_topic
from brimline.model.reclaim_plan import ReclaimPlan
from brimline.model.scan import BoolColumn, Int64Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Ordered by log."""

    log: Int64Column
    new_start: Int64Column
    segments: Int64Column
    bytes: Int64Column
    oldest: Int64Column
    newest: Int64Column

    def digest(self) -> str:
        columns = [np.ascontiguousarray(getattr(self, field.name), dtype=np.int64) for field in fields(self)]
        return hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()


def result_of(planned: ReclaimPlan) -> Result:
    rows, logs = planned.trimmed_logs, planned.logs
    return Result(
        log=rows,
        new_start=logs.new_log_start_offset[rows],
        segments=logs.taken_segments[rows],
        bytes=logs.taken_bytes[rows],
        oldest=logs.oldest_ms[rows],
        newest=logs.newest_ms[rows],
    )


def limits_of_logs(fleet: Fleet) -> dict[str, Int64Column | BoolColumn]:
    """What the rules say of each log, looked up beforehand, so that nobody pays for it. Topics are in order of name."""
    limits = np.array([retention_of_topic(topic) for topic in range(TOPICS)], dtype=np.int64)
    candidate = np.array([not is_compacted(topic) for topic in range(TOPICS)], dtype=np.bool_)
    topic = fleet.logs["topic"]
    bytes_, milliseconds = limits[topic, 1], limits[topic, 0]
    return {
        "log": np.arange(len(topic), dtype=np.int64),
        "device": fleet.logs["device"],
        "topic": topic,
        "part": fleet.logs["partition"],
        "candidate": candidate[topic],
        "log_start_offset": fleet.logs["log_start_offset"],
        "high_watermark": fleet.logs["high_watermark"],
        "retention_ms": np.where(candidate[topic], milliseconds, -1),
        "retention_bytes": np.where(candidate[topic], bytes_, -1),
    }
