"""The ballast: a file that does nothing but take space, so that there is something to give back when all else failed.

A volume with 0 bytes free kills even an idle broker, and what is deleted then is not remembered. A broker with a little
room lives, and its retention and our trims can work.

**Invariant.** The ballast is released exactly when the volume has less than ``release_below`` left, or when it is no
longer wanted in this size. It is allocated only when that leaves at least ``room`` usable and breaches no limit of
KIP-1201: a ballast never makes a disk full. Between the two lies the ballast's own size and more, so it cannot be
released because it was allocated. A volume that cannot be read is left alone.

The ceiling of KIP-61 does not keep a ballast away: a disk that is held at its ceiling is always there, and the ballast
is part of what is used.
"""

from dataclasses import dataclass
from enum import Enum

from brimline.decide.disk_state import DiskLimits, DiskState, Space, next_state
from brimline.model import Bytes

_SMALLEST_RESERVE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BallastRule:
    """``size`` is ``brimline.ballast.bytes``; 0: no ballast is wanted."""

    size: Bytes
    limits: DiskLimits

    @property
    def release_below(self) -> Bytes:
        """A quarter of the ballast: the larger it is, the sooner it goes, and the faster a disk may fill meanwhile."""
        return Bytes(max(self.size // 4, _SMALLEST_RESERVE))

    @property
    def room(self) -> Bytes:
        return Bytes(4 * self.release_below)


class BallastDecision(Enum):
    """The value is the stable name in JSON and in logs."""

    KEEP = "keep"
    ALLOCATE = "allocate"
    WAIT_FOR_ROOM = "wait-for-room"
    RELEASE_RUNNING_OUT = "running-out"
    RELEASE_NOT_WANTED = "not-wanted"

    @property
    def releases(self) -> bool:
        return self in (BallastDecision.RELEASE_RUNNING_OUT, BallastDecision.RELEASE_NOT_WANTED)


def decide_ballast(length: Bytes, space: Space | None, rule: BallastRule) -> BallastDecision:
    """``length`` is that of the file as it is, 0 without one; ``space`` is ``None`` where it could not be read."""
    if space is None:
        return BallastDecision.KEEP
    if length and space.usable < rule.release_below:
        return BallastDecision.RELEASE_RUNNING_OUT
    if length > rule.size:
        return BallastDecision.RELEASE_NOT_WANTED
    if length == rule.size:
        return BallastDecision.KEEP
    left = Bytes(space.usable - (rule.size - length))
    # As if it had been full: the release margin counts.
    state = next_state(DiskState.FULL, Space(total=space.total, usable=left), rule.limits)
    has_room = left >= rule.room and state is DiskState.OK
    return BallastDecision.ALLOCATE if has_room else BallastDecision.WAIT_FOR_ROOM
