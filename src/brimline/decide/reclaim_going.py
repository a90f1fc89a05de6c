"""What leaves a log without us: Kafka's own rules, applied one pass ahead.

**Invariant.** The segments named here are those that the broker's next retention pass removes, given the facts: a run
from the log's head. Three rules, each going on where the one before stopped, and each stopping at the first segment
that it does not remove:

1. **log start**: the next segment begins at or below the log start, whoever moved it there;
2. **retention.bytes**: what is left without the segment is still at least so much (sizes as Kafka counts them);
3. **retention.ms**: the segment's largest timestamp, or the time of its last write if it has none, is more than so long
   ago. A timestamp in the future is believed here, since the broker does.

No rule removes a segment that ends above the high watermark, or, of a tiered topic, above what is uploaded. Rules 2 and
3 hold for topics with ``delete`` in their ``cleanup.policy`` and for tiered ones that upload. They may reach the active
segment, for which the broker then begins a new one; from outside that is foreseen only where the log's end is known,
for topics that are not tiered.

A replica that is being moved to another log dir is left out by the broker's passes until the move has ended, so nothing
of it is going. Where a fact is not known, nothing is expected to go. Whether the two views of a log agree does not
matter: they often differ because a pass has just been there, and what it marked is going indeed.
"""

from dataclasses import dataclass

import numpy as np

from brimline.decide.reclaim_device import DeviceColumns
from brimline.decide.reclaim_topics import TopicColumns
from brimline.model.scan import BoolColumn, FolderKind, Int64Column

_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingRuns:
    """Of every log: up to which of its segments each rule removes."""

    log_start: Int64Column
    retention_bytes: Int64Column
    retention_ms: Int64Column

    @property
    def until(self) -> Int64Column:
        return self.retention_ms


def going_runs(columns: DeviceColumns, topics: TopicColumns) -> GoingRuns:
    logs = columns.logs
    is_visited = (logs.kind == FolderKind.CURRENT) & ~logs.is_moving
    by_log_start = np.where(is_visited, columns.ends_up_to(logs.log_start_offset), 0)
    most = np.maximum(np.where(is_visited, _reach(columns, topics), 0), by_log_start)
    by_bytes = np.clip(_beyond_bytes(columns, topics.retention_bytes[logs.topic]), by_log_start, most)
    by_ms = np.clip(_beyond_ms(columns, topics.retention_ms[logs.topic], by_bytes), by_bytes, most)
    return GoingRuns(log_start=by_log_start, retention_bytes=by_bytes, retention_ms=by_ms)


def beyond_bytes(columns: DeviceColumns, kept: Int64Column) -> Int64Column:
    """How many segments may leave each log's head so that at least ``kept`` bytes of it are left."""
    sums = columns.log_bytes_before
    return np.asarray(np.searchsorted(sums, sums[columns.end] - kept, side="right") - 1 - columns.begin, dtype=np.int64)


def _reach(columns: DeviceColumns, topics: TopicColumns) -> Int64Column:
    """How many segments of each log retention could remove at most."""
    logs = columns.logs
    reach = columns.below_high_watermark
    is_copying = topics.is_copying[logs.topic]
    if is_copying.any():
        reach = np.where(is_copying, np.minimum(reach, columns.uploaded), reach)
    return np.where(_active_may_go(columns) & ~topics.is_tiered[logs.topic], columns.count, reach)


def _active_may_go(columns: DeviceColumns) -> BoolColumn:
    """Everything in the log is replicated, and something is in its active segment: an empty one is left alone."""
    logs, sums = columns.logs, columns.log_bytes_before
    if not len(columns.segments) or (logs.log_end_offset < 0).all():
        return np.zeros(len(logs), dtype=np.bool_)
    active = columns.begin + columns.closed
    last = np.minimum(active, len(columns.segments) - 1)  # a log without segments may stand at the very end
    end_of_log = np.maximum(logs.log_end_offset, columns.segments.base_offset[last])
    is_replicated = (logs.log_end_offset >= 0) & (logs.high_watermark >= end_of_log)
    return np.asarray(is_replicated & (sums[columns.end] > sums[active]), dtype=np.bool_)


def _beyond_bytes(columns: DeviceColumns, retention: Int64Column) -> Int64Column:
    return np.where(retention >= 0, beyond_bytes(columns, retention), 0)


def _beyond_ms(columns: DeviceColumns, retention: Int64Column, after: Int64Column) -> Int64Column:
    """Numbers of the first segments from ``after`` on that are not old enough to go."""
    is_limited = retention >= 0
    if not is_limited.any():
        return after
    segments = columns.segments
    timestamp = segments.newest_timestamp_ms
    without = np.flatnonzero(timestamp < 0)
    if len(without):
        timestamp = timestamp.copy()
        timestamp[without] = segments.modified_ns[without] // _NS_PER_MS
    too_young = np.where(is_limited, columns.facts.now_ms - retention, np.iinfo(np.int64).min)
    staying = np.flatnonzero(timestamp >= too_young[columns.log_of_segment])
    first = np.searchsorted(staying, columns.begin + after)
    return np.append(staying, len(timestamp))[first] - columns.begin
