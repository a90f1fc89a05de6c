"""From which time on the minimum retention counts, when the clock of this machine may be ahead.

**Invariant.** The believed time is never later than the clock's, so it never protects less than the clock would. It
runs no faster than a clock that cannot jump (a second a look is forgiven, which corrections of a good clock stay
within), and where it begins, the records must agree: until something newer was written, it is not later than the newest
of them plus the time that has passed here. So a clock that jumps ahead makes no record old, before the guard was
started or after. What it costs: after a long silence, or a correction of a clock that was behind, more stays than has
to, until new records come or the guard is restarted.

Records of Kafka's own topics say nothing: the broker gives them its own time, which is this machine's.
"""

from dataclasses import dataclass

import numpy as np

from brimline.model.reclaim import ReclaimTables
from brimline.model.scan import FolderKind

_FORGIVEN_MS = 1000
_FORGIVEN_DRIFT = 1000
"""One part in so many: twice what a clock may be slewed by."""
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
