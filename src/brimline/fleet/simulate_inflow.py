"""How much is written to every log a day, as its own segments tell.

Bytes that are there were written between two moments that are known: the newest record before them, and now. So of the
segments of the last seven days the sum is divided by the time since the one before them. A log that is younger, or
that retention keeps shorter, is measured over what it has; one of a single segment, of which nobody knows when it was
begun, is taken to have been filled in seven days. Compaction is taken to keep pace: a log that is only compacted stays
as large as it is.
"""

from dataclasses import dataclass

import numpy as np

from brimline.decide import reclaim_kernel as kernel
from brimline.decide.reclaim_device import each_device
from brimline.model.reclaim import AN_HOUR_MS, ReclaimTables, TopicFacts
from brimline.model.scan import FolderKind, Int64Column

DAY_MS = 24 * AN_HOUR_MS
WINDOW_MS = 7 * DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Inflow:
    """Bytes a day of every log, as Kafka counts and as the disk does; 0 for what is no current replica."""

    log_bytes: Int64Column
    allocated_bytes: Int64Column


def inflow(tables: ReclaimTables) -> Inflow:
    is_compacted = np.array([*(_is_compacted(topic) for topic in tables.topics), False])  # the last for "no topic"
    log_bytes = np.zeros(len(tables.logs), dtype=np.int64)
    allocated = np.zeros(len(tables.logs), dtype=np.int64)
    for columns in each_device(tables):
        if not len(columns.segments):
            continue
        facts, segments = columns.facts, columns.segments
        age = kernel.ages(
            segments.newest_timestamp_ms, segments.modified_ns, facts.now_ms, facts.policy.future_tolerance_ms
        )
        key = kernel.monotone(age, columns.log_of_segment)
        log = np.arange(len(columns.logs), dtype=np.int64)
        from_window = (log << kernel.AGE_BITS) + max(facts.now_ms - WINDOW_MS, 0)
        first = np.searchsorted(key, from_window)  # of each log, in the window
        # The one before the window says since when; without one, the log's first segment does, and does not count.
        first = np.where(first == columns.begin, np.minimum(columns.begin + 1, columns.end), first)
        before = kernel.age_of(key[np.maximum(first - 1, 0)])
        is_single = columns.count <= 1
        first = np.where(is_single, columns.begin, first)
        span = np.where(is_single, WINDOW_MS, np.maximum(facts.now_ms - before, AN_HOUR_MS))
        is_current = (columns.logs.kind == FolderKind.CURRENT) & (columns.count > 0)
        is_written = is_current & ~is_compacted[columns.logs.topic]
        for rate, sums in ((log_bytes, columns.log_bytes_before), (allocated, columns.allocated_before)):
            written = (sums[columns.end] - sums[first]) * (DAY_MS / span)
            rate[columns.log_rows] = np.where(is_written, written, 0).astype(np.int64)
    return Inflow(log_bytes=log_bytes, allocated_bytes=allocated)


def _is_compacted(topic: TopicFacts) -> bool:
    return topic.rules is not None and topic.rules.compacts and not topic.rules.deletes
