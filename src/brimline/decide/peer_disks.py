"""The disks of the other brokers: which of their log dirs count as full here, given what was last heard of them.

**Invariant.** A log dir of another broker begins to count as full with an answer of that broker that says so, and ends
to do so with an answer that says otherwise, by the same limits and the same release margin as a disk of one's own
(``disk_state``). Silence begins nothing. What is full stays so through a silence of ``patience``, so that neither a
lost answer nor a restart of the full broker lets it grow; after that nothing is known of it, and nothing counts (fail
open): a disk that nobody sees must not keep replicas or producers waiting for ever.

===========  ==============================================  ==============================================
state        what was heard                                  what counts
===========  ==============================================  ==============================================
fresh        it answered when it was asked last              its answer
stale        it did not; its last answer is not older        its last answer: what was full stays full,
             than ``patience``                               nothing becomes full
silent       no answer within ``patience``, or never one     nothing: no log dir of it is full
no-volumes   it answers, but tells no bytes (before 3.3)     nothing
===========  ==============================================  ==============================================

**Assumption.** The limits are those of whoever asks: brokers do not tell each other their own. Where brokers have
different ones, a follower is judged by its leader's.

A log dir that is offline on its broker has no bytes and is not full: nobody writes there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from brimline.decide.disk_state import DiskLimits, DiskState, Space, bytes_to_limit, next_state
from brimline.decide.fill_rate import READINGS_KEPT, Pace, UsableAt, next_look
from brimline.model import BrokerId, BrokerLogDirs, Failure, LogDirDescription

CHECKS_MISSED = 3
SHORTEST_PATIENCE = 30.0
"""Seconds: what a broker may well take for a restart."""
SOONEST = 1.0
"""Seconds between two questions to one broker: every other guard of the cluster asks it as well."""
ASK_AGAIN = 5.0
"""Seconds until a broker that did not answer is asked once more."""


class PeerState(Enum):
    """The value is the stable name in JSON and in metrics."""

    FRESH = "fresh"
    STALE = "stale"
    SILENT = "silent"
    NO_VOLUMES = "no-volumes"

    @property
    def counts(self) -> bool:
        return self in (PeerState.FRESH, PeerState.STALE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerLogDir:
    """``readings`` are the last ones of its volume, the newest at the end. ``space``: ``None`` while it is offline."""

    path: str
    state: DiskState
    space: Space | None
    is_cordoned: bool | None = None
    readings: tuple[UsableAt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One other broker. Times are seconds of a clock that never jumps."""

    broker: BrokerId
    state: PeerState = PeerState.SILENT
    log_dirs: Mapping[str, PeerLogDir] = field(default_factory=dict)
    answered: float | None = None
    failure: Failure | None = None
    """Why it did not answer when it was asked last."""

    @property
    def full(self) -> tuple[PeerLogDir, ...]:
        if not self.state.counts:
            return ()
        return tuple(each for each in self.log_dirs.values() if each.state is DiskState.FULL)

    @property
    def has_room(self) -> bool:
        """Whether a new replica could be put there: known for certain, or no."""
        return self.state is PeerState.FRESH and any(
            each.state is DiskState.OK and not each.is_cordoned for each in self.log_dirs.values()
        )


def patience_for(interval: float) -> float:
    """How long the last answer of a silent broker counts, in seconds, where it is asked every ``interval``."""
    return max(CHECKS_MISSED * interval, SHORTEST_PATIENCE)


def heard(before: Peer, answer: BrokerLogDirs, limits: DiskLimits, now: float, patience: float) -> Peer:
    """The broker after it was asked."""
    if answer.failure is not None:
        return aged(replace(before, state=_after_silence(before), failure=answer.failure), now, patience)
    log_dirs = {
        path: _judged(before.log_dirs.get(path), described, limits, now) for path, described in answer.log_dirs.items()
    }
    tells_bytes = any(each.space is not None for each in log_dirs.values())
    all_offline = all(described.error is not None for described in answer.log_dirs.values())
    return Peer(
        broker=before.broker,
        state=PeerState.FRESH if tells_bytes or all_offline else PeerState.NO_VOLUMES,
        log_dirs=log_dirs,
        answered=now,
    )


def aged(peer: Peer, now: float, patience: float) -> Peer:
    """The same broker later, when nothing more was heard of it."""
    is_too_old = peer.answered is None or now - peer.answered > patience
    if not is_too_old or peer.state is PeerState.SILENT:
        return peer
    return replace(peer, state=PeerState.SILENT, log_dirs={})


def next_question(peer: Peer, limits: DiskLimits, pace: Pace) -> float:
    """Seconds until it is asked again: sooner when one of its disks nears a limit, but never all the time."""
    if peer.failure is not None:
        return min(pace.interval, ASK_AGAIN)
    slower = replace(pace, floor=max(pace.floor, SOONEST), bursts=False)  # its own guard watches for those
    waits = [
        next_look(each.readings, bytes_to_limit(each.space, limits), slower)
        for each in peer.log_dirs.values()
        if each.space is not None
    ]
    return min([pace.interval, *waits])


def _after_silence(before: Peer) -> PeerState:
    return PeerState.STALE if before.state is PeerState.FRESH else before.state


def _judged(before: PeerLogDir | None, described: LogDirDescription, limits: DiskLimits, now: float) -> PeerLogDir:
    space = _space(described)
    was = DiskState.UNKNOWN if before is None else before.state
    earlier = () if before is None or space is None else before.readings
    return PeerLogDir(
        path=described.path,
        state=next_state(was, space, limits, is_gone=True),  # offline: nobody writes to it
        space=space,
        is_cordoned=described.is_cordoned,
        readings=(*earlier, UsableAt(now, space.usable))[-READINGS_KEPT:] if space is not None else (),
    )


def _space(described: LogDirDescription) -> Space | None:
    if described.error is not None or described.total_bytes is None or described.usable_bytes is None:
        return None
    return Space(total=described.total_bytes, usable=described.usable_bytes)
