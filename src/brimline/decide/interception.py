"""When clients are turned aside to the gateway, and when they go to the broker directly again.

**Invariant.** Nobody is turned aside without a need: a disk near its limit or full, or a fence by hand. While there is
one and the gateway answers, every client passes through the gateway. Each arming cuts connections, so that it ends only
after there was no need for ``disarm_seconds`` in a row. A gateway that does not answer never keeps clients from a
broker whose disks have room.

========  ==============================  ========  ===============================================================
phase     seen                            next      done
========  ==============================  ========  ===============================================================
IDLE      a need, the gateway answers     ARMING    rules for new connections
IDLE      a need, the gateway is silent   IDLE      nothing: clients go directly (this is told)
ARMING,   the gateway answers             ARMED     rules renewed; direct connections ended, some at a time: ARMED
ARMED                                               when none is left
ARMED     no need for disarm_seconds      DRAINING  rules removed; the gateway ends its connections between requests
ARMING,   the gateway is silent,          IDLE      rules removed, its connections ended: clients go directly
ARMED     nothing is full
ARMING,   the gateway is silent,          the same  new connections are refused for ``grace`` seconds; then as
ARMED     a disk is full, or a fence                ``is_closed`` says: still refused, or IDLE as above
DRAINING  a need                          ARMING    as from IDLE
DRAINING  nobody is left, or too late     IDLE      what is left is ended
========  ==============================  ========  ===============================================================

From the moment at which a disk is full until DRAINING this broker's own fetches from leaders are turned aside as well:
the gateway leaves out what there is no room for. Not before, because each cut costs replication a second; not only
while it is full, because a disk at its limit is full and not full by turns.
"""

from dataclasses import dataclass, replace
from enum import Enum, IntEnum

from brimline.decide.disk_state import DiskLimits, Space, bytes_to_limit

MARK = 0x62726D6C
"""On the gateway's connections to the broker, which come from a client's address: answers stay on this machine."""
CLIENT_MARK = 0x62726D6E
"""On the gateway's connections to clients and to leaders. Another one: what is sent there leaves the machine."""
FETCH_MARK = 0x62726D6D
"""On packets of this broker's own fetches, which are turned aside on their way out."""
OWN_MARK = 0x62726D6F
"""On packets of the guard's own client: what frees a full disk must not depend on a gateway."""


class Need(IntEnum):
    NONE = 0
    NEAR = 1
    FENCED = 2
    """By hand, or for a follower."""
    FULL = 3


class Phase(Enum):
    """The value is the stable name in JSON and in metrics."""

    IDLE = "idle"
    ARMING = "arming"
    ARMED = "armed"
    DRAINING = "draining"

    @property
    def turns_aside(self) -> bool:
        return self in (Phase.ARMING, Phase.ARMED)


class Turn(Enum):
    ARM = "arm"
    """New connections go to the gateway, for a few seconds: it is said again and again."""
    HOLD = "hold"
    """New connections that no gateway takes are refused, for a few seconds."""
    TURN_FETCHES = "turn-fetches"
    """This broker's own, from leaders."""
    CUT_DIRECT = "cut-direct"
    DISARM = "disarm"
    LET_GO = "let-go"
    """The gateway ends its connections, each between two requests."""
    CUT_PROXIED = "cut-proxied"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterceptionSettings:
    arm_percent: float = 5.0
    arm_seconds: float = 10.0
    disarm_seconds: float = 60.0
    drain_seconds: float = 15.0
    grace: float = 5.0
    """How long new connections are refused while a gateway is started again and a disk is full."""
    is_closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """``direct``, ``proxied``: open connections of clients. ``now``: seconds of a clock that never jumps."""

    now: float
    need: Need
    gateway_answers: bool
    direct: int
    proxied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Interception:
    """``room_since``: no need since then; ``lost_since``: the gateway is silent since then."""

    phase: Phase = Phase.IDLE
    since: float = 0.0
    room_since: float | None = None
    lost_since: float | None = None
    turns_fetches: bool = False

    def _becomes(self, phase: Phase, now: float) -> "Interception":
        if phase is self.phase:
            return self
        return Interception(phase=phase, since=now, turns_fetches=self.turns_fetches and phase.turns_aside)


def need_of(space: Space, limits: DiskLimits, rate: float | None, settings: InterceptionSettings) -> Need:
    """Of one volume that is not full. ``rate``: bytes a second that it fills by."""
    distance = bytes_to_limit(space, limits)
    if distance is None:
        return Need.NONE
    ahead = max(settings.arm_percent / 100 * space.total, settings.arm_seconds * max(rate or 0.0, 0.0))
    return Need.NEAR if distance < ahead else Need.NONE


def next_step(
    before: Interception, seen: Seen, settings: InterceptionSettings
) -> tuple[Interception, tuple[Turn, ...]]:
    """The next phase, and what is to be done now, in this order."""
    if before.phase.turns_aside:
        return _while_armed(before, seen, settings) if seen.gateway_answers else _gateway_lost(before, seen, settings)
    if seen.need and seen.gateway_answers:
        return _armed(before._becomes(Phase.ARMING, seen.now), seen)
    if before.phase is Phase.IDLE:
        return before, ()
    if not seen.proxied:
        return before._becomes(Phase.IDLE, seen.now), ()
    if not seen.gateway_answers or seen.now - before.since >= settings.drain_seconds:
        return before._becomes(Phase.IDLE, seen.now), (Turn.CUT_PROXIED,)
    return before, (Turn.LET_GO,)


def _while_armed(
    before: Interception, seen: Seen, settings: InterceptionSettings
) -> tuple[Interception, tuple[Turn, ...]]:
    room_since = None if seen.need else seen.now if before.room_since is None else before.room_since
    if room_since is not None and seen.now - room_since >= settings.disarm_seconds:
        return before._becomes(Phase.DRAINING, seen.now), (Turn.DISARM, Turn.LET_GO)
    phase = Phase.ARMING if seen.direct else Phase.ARMED
    return _armed(replace(before._becomes(phase, seen.now), room_since=room_since, lost_since=None), seen)


def _armed(now: Interception, seen: Seen) -> tuple[Interception, tuple[Turn, ...]]:
    after = replace(now, turns_fetches=now.turns_fetches or seen.need is Need.FULL)
    acts = [Turn.ARM]
    if seen.need >= Need.FENCED:
        acts.append(Turn.HOLD)
    if after.turns_fetches:
        acts.append(Turn.TURN_FETCHES)
    if seen.direct:
        acts.append(Turn.CUT_DIRECT)
    return after, tuple(acts)


def _gateway_lost(
    before: Interception, seen: Seen, settings: InterceptionSettings
) -> tuple[Interception, tuple[Turn, ...]]:
    lost_since = seen.now if before.lost_since is None else before.lost_since
    may_wait = settings.is_closed or seen.now - lost_since < settings.grace
    if seen.need < Need.FENCED or not may_wait:
        return before._becomes(Phase.IDLE, seen.now), (Turn.DISARM, Turn.CUT_PROXIED)
    # Its connections may hang with it: their clients come again, and are refused until somebody takes them.
    fetches = (Turn.TURN_FETCHES,) if before.turns_fetches else ()
    return replace(before, lost_since=lost_since), (Turn.HOLD, *fetches, Turn.CUT_PROXIED, Turn.CUT_DIRECT)
