"""How old the bytes of a topic are: sums per topic and days of age, which is what history keeps of the segments.

A segment is as old as its newest record, as retention has it: without a timestamp, as the file's last change. One from
the future, beyond what is tolerated of clocks, has no age.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from brimline.fleet import columns as c
from brimline.model.reclaim import AN_HOUR_MS, ReclaimTables
from brimline.model.scan import FolderKind, Int64Column

_DAY_MS = 24 * AN_HOUR_MS
AGES_DAYS = (0, 1, 2, 3, 4, 5, 6, 7, 14, 30, 60, 90, 180, 365)
"""Where each bucket begins. Day by day for a week, where most retention is, and bounded however old a log is."""
_NO_AGE = len(AGES_DAYS)
_BUCKETS = len(AGES_DAYS) + 1


def age_columns(tables: ReclaimTables, now_ms: int) -> dict[str, pa.Array]:
    """A row for each topic and bucket that has a segment, of the current replicas' folders."""
    logs, segments = tables.logs, tables.segments
    counts = np.diff(logs.segments_begin)
    is_counted = np.repeat((logs.kind == FolderKind.CURRENT) & (logs.topic >= 0), counts)
    topic = np.repeat(logs.topic, counts)[is_counted].astype(np.int64)
    bucket = _bucket(segments.newest_timestamp_ms[is_counted], segments.modified_ns[is_counted], now_ms)
    key = topic * _BUCKETS + bucket
    order = np.argsort(key, kind="stable")
    keys, first = np.unique(key[order], return_index=True)
    names = pa.array([each.name for each in tables.topics], pa.string())
    begins = pa.array([*AGES_DAYS, None], pa.int32())
    return {
        c.TOPIC: names.take(pa.array(keys // _BUCKETS)),
        c.MIN_AGE_DAYS: begins.take(pa.array(keys % _BUCKETS)),
        c.SEGMENTS: pa.array(np.diff(np.append(first, len(key)))),
        c.LOG_BYTES: pa.array(_sums(segments.log_bytes[is_counted][order], first)),
        c.ALLOCATED_BYTES: pa.array(_sums(segments.allocated_bytes[is_counted][order], first)),
    }


def _bucket(newest_ms: Int64Column, modified_ns: Int64Column, now_ms: int) -> Int64Column:
    at_ms = np.where(newest_ms >= 0, newest_ms, modified_ns // 1_000_000)
    # Compared, not subtracted: a timestamp may be any 64-bit number
    is_future = at_ms > now_ms + AN_HOUR_MS
    age_days = (now_ms - np.clip(at_ms, 0, now_ms)) // _DAY_MS
    found = np.searchsorted(np.array(AGES_DAYS), age_days, side="right") - 1
    return np.where(is_future | (at_ms < 0), _NO_AGE, found)


def _sums(values: Int64Column, first: npt.NDArray[np.int64]) -> Int64Column:
    return np.add.reduceat(values, first) if len(first) else np.zeros(0, dtype=np.int64)
