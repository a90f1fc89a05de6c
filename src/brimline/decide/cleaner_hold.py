"""When the broker's log cleaner is held, when it is let go, and when it may run on a full disk.

**Invariant.** While a volume with compacted logs has no more than it must keep free, or would have within seconds, no
cleaning begins: what it writes is not stopped by any fence. One that is under way is ended, too. That leaves its
``.cleaned`` behind, which counts as used; but a cleaner that sleeps between two rounds (15 s, by Kafka's default) wakes
by nothing else, and nobody can refuse the commits that it must compact meanwhile: at 300 MB/s of them a broker whose
cleaner was woken three seconds later was lost. It is let go when every such volume is well clear of that again.

What must be kept free is what the limits keep, but no more than the reserve and ``disk.min.free.bytes``: one percent of
10 TB is room enough for a cleaner.

**A window.** A disk may be full of what only compaction can remove. So when it is held for longer than the deletion
delay while the volume has not become any emptier, and there is room, the cleaner may run, while replaced segments are
deleted after a second. It gets a pace: a cleaner in page cache writes 400 MB/s, and a gigabyte of segments that wait
for their deletion ended brokers. The pace is no slow one: Kafka looks every 300 ms how much was read, and sleeps out
what was too much in one piece; who creates a topic or stops the broker waits for that (55 s at 4 MiB/s). Room is: for
the largest groups, an eighth of what is kept free, and some seconds at that pace. Whatever is under way is ended before
the pace is set, since Kafka would sleep that out, too. A pass begins with a log's first segment, so it is left to its
end; only where no more than an eighth of what is kept free is left, and three seconds of whatever fills the disk, it is
ended as well.

A full volume that gives no reading lets nothing go.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

NEAR_SHARE = 0.25
NEAR_SECONDS = 3.0
CLEAR_TIMES = 2
FLOOR_SHARE = 1 / 8
WINDOW_LASTS, WINDOW_LASTS_AT_LEAST = 8.0, 1.5
"""Seconds that the room of a window would last if nothing of what the cleaner replaces were deleted."""
SLOWEST_PACE = 256 << 20
"""Bytes a second: what 300 ms at full speed read (a gigabyte was seen) is slept out in four seconds. Every byte counts
two to three times, since it is read twice and written."""
_EMPTIER = 1 << 20


class HoldState(Enum):
    FREE = "free"
    HELD = "held"
    """As a guard before this one left it: whatever is under way goes on."""
    ENDED = "ended"
    """Held, and what was under way was ended."""
    WINDOW = "window"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedVolume:
    """A volume with compacted logs. ``usable``: -1 where it is full and gives no reading; ``kept``: what must stay
    free; ``groups``: what the cleaner needs for one round, and the coordinators meanwhile; ``passes``: what it writes
    within seconds at full speed, which is no more than there is to clean."""

    usable: int
    kept: int = 0
    groups: int = 0
    passes: int = 0
    fill_rate: float = 0.0

    @property
    def margin(self) -> float:
        return max(self.kept * NEAR_SHARE, self.fill_rate * NEAR_SECONDS)

    @property
    def is_near(self) -> bool:
        return 0 <= self.usable < self.kept + self.margin

    @property
    def is_clear(self) -> bool:
        return self.usable >= self.kept + CLEAR_TIMES * self.margin

    @property
    def room(self) -> float:
        """For a window."""
        return self.usable - self.groups - self.kept * FLOOR_SHARE

    @property
    def has_room_for_window(self) -> bool:
        return self.room >= min(SLOWEST_PACE * WINDOW_LASTS_AT_LEAST, max(self.passes, self.kept * FLOOR_SHARE))

    @property
    def pace(self) -> int:
        """What the cleaner may read and write in a second."""
        return max(int(self.room / WINDOW_LASTS), SLOWEST_PACE)

    @property
    def needs_end(self) -> bool:
        return self.is_near and self.usable < self.groups + self.kept / 2

    @property
    def is_at_floor(self) -> bool:
        return 0 <= self.usable < self.kept * FLOOR_SHARE + max(self.fill_rate, 0.0) * NEAR_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldMemory:
    """``since``: of this state. ``usable``: the most that was left in it; ``emptier``: when that was. ``pace``: of a
    window, in bytes a second; a change of it would end what runs."""

    state: HoldState = HoldState.FREE
    since: float = 0.0
    usable: int = 0
    emptier: float = 0.0
    pace: int = 0

    def is_stuck(self, now: float, patience: float) -> bool:
        """Held, and no disk becomes emptier by itself."""
        return self.state in (HoldState.HELD, HoldState.ENDED) and now - self.emptier > patience


def next_hold(memory: HoldMemory, volumes: Iterable[CleanedVolume], now: float, patience: float) -> HoldMemory:
    """``patience``: seconds without any more room before a window opens."""
    found = list(volumes)
    must_end = any(each.needs_end for each in found)
    if memory.state is HoldState.FREE:
        return _begun(HoldState.ENDED, found, now) if any(each.is_near for each in found) else memory
    if all(each.is_clear for each in found):
        return HoldMemory(state=HoldState.FREE, since=now)
    if memory.state is HoldState.WINDOW:
        return _begun(HoldState.ENDED, found, now) if any(each.is_at_floor for each in found) else memory
    if memory.state is HoldState.HELD and must_end:
        return _begun(HoldState.ENDED, found, now)
    usable = _least(found)
    if usable > memory.usable + _EMPTIER:
        return replace(memory, usable=usable, emptier=now)
    if not memory.is_stuck(now, patience) or not all(each.has_room_for_window for each in found):
        return memory
    if memory.state is HoldState.HELD:
        return replace(memory, state=HoldState.ENDED, since=now)
    pace = min((each.pace for each in found if not each.is_clear), default=SLOWEST_PACE)
    return replace(_begun(HoldState.WINDOW, found, now), pace=pace)


def _begun(state: HoldState, volumes: list[CleanedVolume], now: float) -> HoldMemory:
    return HoldMemory(state=state, since=now, usable=_least(volumes), emptier=now)


def _least(volumes: list[CleanedVolume]) -> int:
    return min((each.usable for each in volumes if not each.is_clear), default=0)
