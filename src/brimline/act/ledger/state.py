"""The ledger replayed: cycles under way, how far every trim is, what is paused or cordoned, where ballast lies.

**Invariant.** The state is a function of the entries alone, in their order. A guard that goes on after a crash and the
one that never crashed have the same state, because both get it from here: the living one applies what it has written.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from brimline.act.ledger.entries import (
    Answered,
    BallastEntry,
    CameBack,
    CordonAct,
    CordonEntry,
    CycleEnded,
    CycleEntry,
    CycleId,
    GivenUp,
    Paused,
    Plan,
    PlannedTrim,
    Recorded,
    Requested,
    Resumed,
    ShedAct,
    ShedEntry,
    TrimNumber,
)
from brimline.model import BrokerId, Bytes, Offset, TopicPartition


class TrimPhase(Enum):
    """The value is the stable name in JSON and CSV."""

    PLANNED = "planned"
    REQUESTED = "requested"
    """Perhaps sent, perhaps answered; its files may be there."""
    DONE = "done"
    ABANDONED = "abandoned"
    WITHDRAWN = "withdrawn"
    """Not wanted any more."""

    @property
    def is_over(self) -> bool:
        return self in (TrimPhase.DONE, TrimPhase.ABANDONED, TrimPhase.WITHDRAWN)


@dataclass(slots=True, kw_only=True)
class TrimRecord:
    """What the ledger tells of one trim. ``present_bytes``: its blocks before the first request for it."""

    planned: PlannedTrim
    phase: TrimPhase = TrimPhase.PLANNED
    requests: int = 0
    requested_at: datetime | None = None
    present_bytes: Bytes | None = None
    low_watermark: Offset | None = None
    error: str | None = None
    """Of the last answer."""
    why: str | None = None
    """It was abandoned or withdrawn."""
    freed_bytes: int = 0
    ended_at: datetime | None = None

    @property
    def was_done_by_others(self) -> bool:
        return self.phase is TrimPhase.DONE and not self.requests


@dataclass(slots=True, kw_only=True)
class CycleRecord:
    plan: Plan
    begun_at: datetime
    trims: list[TrimRecord]
    last_at: datetime
    ended_at: datetime | None = None

    def numbers(self, *phases: TrimPhase) -> Iterator[TrimNumber]:
        """The trims in any of these phases, in the order of the plan."""
        return (TrimNumber(number) for number, trim in enumerate(self.trims) if trim.phase in phases)

    def count(self, *phases: TrimPhase) -> int:
        return sum(trim.phase in phases for trim in self.trims)

    @property
    def freed_bytes(self) -> Bytes:
        return Bytes(sum(trim.freed_bytes for trim in self.trims))

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    by: str
    reason: str
    since: datetime
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedRecord:
    entry: ShedEntry
    at: datetime


@dataclass(slots=True, kw_only=True)
class LedgerState:
    """``cycles``: those under way, or all where ``keeps_ended``. ``ballast``: the last act of each file.

    ``cordoned``: the log dirs that we put, or were about to put, into the broker's ``cordoned.log.dirs``.
    ``shed``: the replicas that we took, or were about to take, out of their assignments, as far as that is not over.
    ``is_damaged``: a line could not be read, and nobody has resumed since. It may have been a pause.
    """

    keeps_ended: bool = False
    cycles: dict[CycleId, CycleRecord] = field(default_factory=dict)
    pause: Pause | None = None
    ballast: dict[str, BallastEntry] = field(default_factory=dict)
    cordoned: dict[str, CordonEntry] = field(default_factory=dict)
    shed: dict[tuple[TopicPartition, BrokerId], ShedRecord] = field(default_factory=dict)
    last_sequence: int = 0
    is_damaged: bool = False

    def apply(self, recorded: Recorded) -> bool:
        """Whether it was news. A rotated ledger begins with copies of entries that count already."""
        if recorded.sequence <= self.last_sequence:
            return False
        self.last_sequence = recorded.sequence
        match recorded.entry:
            case Paused() as entry:
                self.pause = Pause(by=entry.by, reason=entry.reason, since=recorded.at, sequence=recorded.sequence)
            case Resumed():
                self.pause = None
                self.is_damaged = False
            case BallastEntry() as entry:
                self.ballast[entry.path] = entry
            case CordonEntry(act=CordonAct.CORDONED) as entry:
                self.cordoned[entry.log_dir] = entry
            case CordonEntry() as entry:
                self.cordoned.pop(entry.log_dir, None)
            case ShedEntry(act=ShedAct.SHED) as entry:
                self.shed[entry.partition, entry.follower] = ShedRecord(entry=entry, at=recorded.at)
            case ShedEntry() as entry:
                self.shed.pop((entry.partition, entry.follower), None)
            case entry:
                self._apply_to_cycle(entry, recorded.at)
        return True

    def carries(self, recorded: Recorded) -> bool:
        """Whether a new file must begin with it, because what is under way depends on it."""
        if isinstance(recorded.entry, BallastEntry):
            return recorded.entry == self.ballast.get(recorded.entry.path)
        if isinstance(recorded.entry, CordonEntry):
            return recorded.entry == self.cordoned.get(recorded.entry.log_dir)
        if isinstance(recorded.entry, ShedEntry):
            shed = self.shed.get((recorded.entry.partition, recorded.entry.follower))
            return shed is not None and shed.entry == recorded.entry
        if isinstance(recorded.entry, Paused | Resumed):
            return self.pause is not None and recorded.sequence == self.pause.sequence
        cycle = self.cycles.get(recorded.entry.cycle)
        return cycle is not None and not cycle.has_ended

    def _apply_to_cycle(self, entry: CycleEntry, at: datetime) -> None:
        if isinstance(entry, Plan):
            trims = [TrimRecord(planned=trim) for trim in entry.trims]
            self.cycles[entry.cycle] = CycleRecord(plan=entry, begun_at=at, trims=trims, last_at=at)
            return
        cycle = self.cycles.get(entry.cycle)
        if cycle is None:
            return  # its plan was on a line that is damaged: without it nothing can be done, nor be done too often
        cycle.last_at = at
        if isinstance(entry, CycleEnded):
            cycle.ended_at = at
            if not self.keeps_ended:
                del self.cycles[entry.cycle]
            return
        _apply_to_trims(entry, cycle.trims, at)


def _apply_to_trims(entry: Requested | Answered | CameBack | GivenUp, trims: list[TrimRecord], at: datetime) -> None:
    match entry:
        case Requested():
            for requested in entry.trims:
                trim = trims[requested.number]
                trim.phase = TrimPhase.REQUESTED
                trim.requests += 1
                trim.requested_at = at
                if trim.present_bytes is None:
                    trim.present_bytes = requested.present_bytes
        case Answered():
            for answered in entry.trims:
                trim = trims[answered.number]
                trim.low_watermark, trim.error = answered.low_watermark, answered.error
        case CameBack():
            for freed in entry.trims:
                trim = trims[freed.number]
                trim.phase, trim.freed_bytes, trim.ended_at = TrimPhase.DONE, freed.freed_bytes, at
        case GivenUp():
            phase = TrimPhase(entry.act.value)
            for given_up in entry.trims:
                trim = trims[given_up.number]
                trim.phase, trim.why, trim.ended_at = phase, given_up.why, at
                trim.freed_bytes = given_up.freed_bytes
