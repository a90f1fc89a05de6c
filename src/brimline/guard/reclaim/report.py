"""What the guard tells of the reclaim of one device: what it does about it now, and what came of it so far."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from brimline.act.ledger.entries import CycleId
from brimline.act.ledger.state import CycleRecord, Pause, TrimPhase
from brimline.decide.reclaim.floor import Floor
from brimline.documents.guard_state import SinceStart
from brimline.model import Bytes
from brimline.model.reclaim_plan import DevicePlan


class Doing(Enum):
    """What is done about a device now. The value is the stable name in JSON and metrics."""

    OFF = "off"
    UNWATCHED = "unwatched"
    NOT_RECORDED = "not-recorded"
    BROKER_SILENT = "broker-silent"
    CANNOT_LOCK = "cannot-lock"
    PAUSED = "paused"
    UNDER_CEILING = "under-ceiling"
    HELD = "held"
    """It is above its ceiling, and a change that may be a mistake is waited on."""
    PLANNED = "planned"
    """It is above its ceiling, and the mode is plan: it is only said what would go."""
    WAITING_FOR_TURN = "waiting-for-turn"
    TRIMMING = "trimming"
    WAITING_FOR_SPACE = "waiting-for-space"
    """Everything that must go is on its way out."""
    STUCK = "stuck"
    """It is above its ceiling, and nothing more may be taken."""


TROUBLES = (Doing.NOT_RECORDED, Doing.BROKER_SILENT, Doing.CANNOT_LOCK)
"""The ceiling is not held while one of these lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleFigures:
    """A cycle in numbers, under way or over. Its trims: not sent, sent and waited for, done, given up or withdrawn."""

    cycle: CycleId
    by: str
    begun_at: datetime
    ended_at: datetime | None
    excess_bytes: Bytes
    planned_bytes: Bytes
    planned_segments: int
    unsent: int
    waiting: int
    done: int
    abandoned: int
    withdrawn: int
    freed_bytes: Bytes
    freed_segments: int
    reasons: tuple[str, ...]
    """Why trims were given up or withdrawn, each once."""

    @property
    def trims(self) -> int:
        return self.unsent + self.waiting + self.done + self.abandoned + self.withdrawn


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimReport:
    """``plan`` and ``floor`` are of the last look at everything, at ``surveyed`` on the monotonic clock."""

    device: str
    log_dirs: tuple[str, ...]
    ceiling_percent: int
    is_applied: bool
    doing: Doing
    problem: str | None = None
    pause: Pause | None = None
    brakes: tuple[str, ...] = ()
    """What there is to say of those that other guards left here."""
    plan: DevicePlan | None = None
    floor: Floor | None = None
    surveyed: float | None = None
    surveyed_at: datetime | None = None
    hung_bytes: int | None = None
    """What transactions keep that have been open for too long."""
    under_way: tuple[CycleFigures, ...] = ()
    last: CycleFigures | None = None
    since_start: SinceStart = field(default_factory=SinceStart)

    @property
    def is_troubled(self) -> bool:
        """The ceiling cannot be held, and somebody should know."""
        return self.doing in TROUBLES or self.doing in (Doing.STUCK, Doing.HELD)


def figures_of(record: CycleRecord) -> CycleFigures:
    plan, trims = record.plan, record.trims
    return CycleFigures(
        cycle=plan.cycle,
        by=plan.by,
        begun_at=record.begun_at,
        ended_at=record.last_at if all(trim.phase.is_over for trim in trims) else None,
        excess_bytes=plan.excess_bytes,
        planned_bytes=plan.planned_bytes,
        planned_segments=sum(trim.segments.count for trim in plan.trims),
        unsent=record.count(TrimPhase.PLANNED),
        waiting=record.count(TrimPhase.REQUESTED),
        done=record.count(TrimPhase.DONE),
        abandoned=record.count(TrimPhase.ABANDONED),
        withdrawn=record.count(TrimPhase.WITHDRAWN),
        freed_bytes=record.freed_bytes,
        freed_segments=sum(trim.planned.segments.count for trim in trims if trim.phase is TrimPhase.DONE),
        reasons=tuple(dict.fromkeys(trim.why for trim in trims if trim.why is not None)),
    )
