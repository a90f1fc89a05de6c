"""How fast a device has been written to lately, told by the segments that lie there.

**Invariant.** The rate is never more than what was written. A segment was written between the last write to the one
before it and its own last write, and counts for the part of that time which lies in the window. What has no segment
before it, because it is the first of its log or the others are gone, does not count: so the rate is a lower bound.
"""

import numpy as np

from brimline.decide.reclaim_device import columns_of_device
from brimline.model.reclaim import AN_HOUR_MS, ReclaimTables

_NS = 1_000_000


def written_per_second(tables: ReclaimTables, device: int, window_ms: int = AN_HOUR_MS) -> float:
    columns = columns_of_device(tables, device)
    segments, first = columns.segments, columns.begin[columns.count > 0]
    follows = np.ones(len(segments), dtype=np.bool_)
    follows[first] = False
    rows = np.flatnonzero(follows)
    if not len(rows):
        return 0.0
    now = columns.facts.now_ms * _NS
    begun, ended = segments.modified_ns[rows - 1], np.minimum(segments.modified_ns[rows], now)
    # A segment that was copied or touched may seem to end before it began; and one moment is no time to divide by.
    took = np.maximum(ended - begun, 1)
    in_window = np.clip(ended - np.maximum(begun, now - window_ms * _NS), 0, took)
    return float((segments.log_bytes[rows] * (in_window / took)).sum() * 1000 / window_ms)
