"""How far a ceiling can be passed, how fast a device fills, and from when the minimum retention counts.

How far beyond its ceiling a device may get, and whether that is still below where producing is refused.

**Invariant.** With the ceiling reached and producers at full rate, a device is never used more than the ceiling plus
the bound: what is written goes into active segments, which cannot be taken, and what is taken comes back only after a
cycle has begun (chance may delay it), looked, decided it and sent it batch by batch, the broker's next retention pass
has marked it, and the delay of its deletion is over. A ceiling
whose bound reaches the limits of KIP-1201 lets the device be fenced although reclaim does all it can.

How fast a device has been written to lately, told by the segments that lie there.

**Invariant.** The rate is never more than what was written. A segment was written between the last write to the one
before it and its own last write, and counts for the part of that time which lies in the window. What has no segment
before it, because it is the first of its log or the others are gone, does not count: so the rate is a lower bound.

From which time on the minimum retention counts, when the clock of this machine may be ahead.

**Invariant.** The believed time is never later than the clock's, so it never protects less than the clock would. It
runs no faster than a clock that cannot jump (a second a look is forgiven, which corrections of a good clock stay
within), and where it begins, the records must agree: until something newer was written, it is not later than the newest
of them plus the time that has passed here. So a clock that jumps ahead makes no record old, before the guard was
started or after. What it costs: after a long silence, or a correction of a clock that was behind, more stays than has
to, until new records come or the guard is restarted.

A guard that starts does not begin with a time that the clock has jumped to since a guard looked last (``begins_at``):
records that the broker gave its own time, which is this machine's, would agree with it.

Records of Kafka's own topics say nothing: the broker gives them its own time, which is this machine's.
"""

import math
from dataclasses import dataclass

import numpy as np

from brimline.decide.disk_state import DiskLimits, Space, bytes_to_limit
from brimline.decide.reclaim.device import columns_of_device
from brimline.model import Bytes
from brimline.model.reclaim import AN_HOUR_MS, DeviceFacts, ReclaimTables
from brimline.model.scan import FolderKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimDelays:
    """Seconds between a byte too many and its return."""

    cycle: float
    jitter: float = 0.0
    """The most that chance adds to a cycle."""
    survey: float = 0.0
    """How long a look at files and cluster takes."""
    trims: float = 0.0
    """How long it takes to send what one cycle trims, batch by batch."""
    retention_check: float
    """``log.retention.check.interval.ms`` of the broker."""
    delete_delay: float
    """``log.segment.delete.delay.ms`` or ``file.delete.delay.ms``."""

    @property
    def total(self) -> float:
        ours = self.cycle + self.jitter + self.survey + self.trims
        return ours + self.retention_check + self.delete_delay


def most_above_ceiling(active_bytes: Bytes, bytes_per_second: float, delays: ReclaimDelays) -> Bytes:
    return Bytes(active_bytes + math.ceil(max(bytes_per_second, 0) * delays.total))


def room_below_fence(device: DeviceFacts, above_ceiling: Bytes, limits: DiskLimits) -> Bytes | None:
    """What may still be written before the fence when the device is that far above its ceiling; negative: too late.

    ``None`` without a ceiling, without a fence, and when the device's size is not known.
    """
    if device.total_bytes is None or device.limit_bytes is None:
        return None
    usable = Bytes(device.total_bytes - device.limit_bytes - above_ceiling)
    return bytes_to_limit(Space(total=device.total_bytes, usable=usable), limits)


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


_FORGIVEN_MS = 1000
_FORGIVEN_DRIFT = 1000
"""One part in so many: twice what a clock may be slewed by."""
_MAY_DIFFER_MS = 60_000
"""So much two good clocks may, and the way between them."""
_KAFKAS_OWN = "__"


@dataclass(frozen=True, slots=True, kw_only=True)
class BelievedTime:
    """As of one look. ``steady_ms``: the clock without its jumps. ``at_ms``: ``None`` while no record was seen."""

    steady_ms: int
    seconds: float
    at_ms: int | None = None

    @property
    def time_ms(self) -> int:
        return self.steady_ms if self.at_ms is None else self.at_ms

    def after(self, now_ms: int, seconds: float, newest_ms: int | None) -> "BelievedTime":
        """``seconds`` is of the clock that never jumps; ``newest_ms`` is the newest record's time, if there is one."""
        passed = int((seconds - self.seconds) * 1000)
        steady = min(now_ms, self.steady_ms + passed + _FORGIVEN_MS + passed // _FORGIVEN_DRIFT)
        before = None if self.at_ms is None else self.at_ms + passed
        known = [each for each in (before, newest_ms) if each is not None]
        return BelievedTime(steady_ms=steady, seconds=seconds, at_ms=min(steady, max(known)) if known else None)


def begins_at(now_ms: int, expected_ms: int | None, second_ms: int | None) -> int:
    """From when a guard that was just started counts: the clock's time, unless it is ahead of what is known of it.

    ``expected_ms``: what it should say, as far as a guard here remembers. ``second_ms``: the clock of another machine.
    With neither, the clock is believed.
    """
    if expected_ms is not None and now_ms <= expected_ms + _FORGIVEN_MS:
        return now_ms
    if second_ms is not None:
        return now_ms if now_ms <= second_ms + _MAY_DIFFER_MS else min(now_ms, max(second_ms, expected_ms or 0))
    return now_ms if expected_ms is None else expected_ms


def newest_record_ms(tables: ReclaimTables) -> int | None:
    """Of users' topics; what is further ahead than a plan believes does not count."""
    logs, segments = tables.logs, tables.segments
    is_own = [topic.name.startswith(_KAFKAS_OWN) for topic in tables.topics]
    of_users = (logs.kind == FolderKind.CURRENT) & (logs.topic >= 0)
    of_users &= ~np.array([*is_own, True], dtype=np.bool_)[logs.topic]
    counts = np.diff(logs.segments_begin)
    latest = max((each.now_ms + each.policy.future_tolerance_ms for each in tables.devices), default=0)
    newest = segments.newest_timestamp_ms[np.repeat(of_users, counts)]
    believable = newest[(newest >= 0) & (newest <= latest)]
    return int(believable.max()) if len(believable) else None
