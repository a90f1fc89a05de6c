"""When the broker's log cleaner is held, when it is let go, and when it may run on a full disk.

**Invariant.** While a volume with compacted logs is at its limit, or would be within seconds, no cleaning begins: what
it writes is not stopped by any fence. A cleaning under way is ended only where its next groups might not fit, because
it leaves a ``.cleaned`` behind, and Kafka's start after a crash is less safe beside one (docs/reserve.md). The cleaner
is let go when every such volume is well clear of its limit again.

**A window.** A disk may be full of what only compaction can remove. So when a volume has been full for longer than the
deletion delay without getting any emptier, and has room for the largest groups and a quarter of what its limit keeps
free, the cleaner may run, while replaced segments are deleted after a second. A pass begins with a log's first segment,
so it is left to its end; only where no more than an eighth of what the limit keeps free is left it is ended, too.

A volume that cannot be read changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from brimline.decide.disk_state import DiskState

NEAR_SHARE = 0.25
NEAR_SECONDS = 3.0
CLEAR_TIMES = 2
FLOOR_SHARE = 1 / 8
_EMPTIER = 1 << 20


class HoldState(Enum):
    FREE = "free"
    HELD = "held"
    ENDED = "ended"
    """Held, and what was under way was ended."""
    WINDOW = "window"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedVolume:
    """A volume with compacted logs. ``distance``: bytes to its limit; ``kept``: what the limit keeps free; ``groups``:
    what the cleaner needs for one round, and the coordinators meanwhile."""

    fullness: DiskState
    usable: int
    distance: int
    kept: int
    groups: int
    fill_rate: float = 0.0

    @property
    def margin(self) -> float:
        return max(self.kept * NEAR_SHARE, self.fill_rate * NEAR_SECONDS)

    @property
    def is_near(self) -> bool:
        return self.fullness is DiskState.FULL or self.distance < self.margin

    @property
    def is_clear(self) -> bool:
        return self.fullness is DiskState.OK and self.distance >= CLEAR_TIMES * self.margin

    @property
    def has_room_for_groups(self) -> bool:
        return self.usable >= self.groups + self.kept * NEAR_SHARE

    @property
    def needs_end(self) -> bool:
        return self.is_near and self.usable < self.groups + self.kept / 2

    @property
    def is_at_floor(self) -> bool:
        return self.usable < self.kept * FLOOR_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldMemory:
    """``since``: of this state. ``usable``: the most that a full volume has had in it; ``emptier``: when that was."""

    state: HoldState = HoldState.FREE
    since: float = 0.0
    usable: int = 0
    emptier: float = 0.0


def next_hold(memory: HoldMemory, volumes: Iterable[CleanedVolume], now: float, patience: float) -> HoldMemory:
    """``patience``: seconds without any more room before a window opens."""
    found = list(volumes)
    must_end = any(each.needs_end for each in found)
    if memory.state is HoldState.FREE:
        wanted = HoldState.ENDED if must_end else HoldState.HELD
        return _begun(wanted, found, now) if any(each.is_near for each in found) else memory
    if found and all(each.is_clear for each in found):
        return HoldMemory(state=HoldState.FREE, since=now)
    if memory.state is HoldState.WINDOW:
        return _begun(HoldState.ENDED, found, now) if any(each.is_at_floor for each in found) else memory
    if memory.state is HoldState.HELD and must_end:
        return replace(memory, state=HoldState.ENDED)
    usable = _least(found)
    if usable > memory.usable + _EMPTIER:
        return replace(memory, usable=usable, emptier=now)
    is_stuck = any(each.fullness is DiskState.FULL for each in found) and now - memory.emptier > patience
    if is_stuck and all(each.has_room_for_groups for each in found):
        return _begun(HoldState.WINDOW, found, now)
    return memory


def _begun(state: HoldState, volumes: list[CleanedVolume], now: float) -> HoldMemory:
    return HoldMemory(state=state, since=now, usable=_least(volumes), emptier=now)


def _least(volumes: list[CleanedVolume]) -> int:
    return min((each.usable for each in volumes if each.fullness is DiskState.FULL), default=0)
