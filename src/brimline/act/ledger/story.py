"""The ledger as a story: every cycle with what became of it, and the other acts between them, in their order."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from brimline.act.ledger.entries import BallastEntry, CordonEntry, Paused, Plan, Recorded, Resumed, ShedEntry
from brimline.act.ledger.files import Damage, LedgerFiles, read_history
from brimline.act.ledger.state import CycleRecord, LedgerState, TrimPhase, TrimRecord
from brimline.model import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What was done apart from cycles."""

    at: datetime
    entry: BallastEntry | CordonEntry | ShedEntry | Paused | Resumed


Chapter: TypeAlias = CycleRecord | Act


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """``damage``: places at which the ledger does not tell what it should."""

    chapters: tuple[Chapter, ...]
    damage: tuple[Damage, ...]

    @property
    def cycles(self) -> tuple[CycleRecord, ...]:
        return tuple(chapter for chapter in self.chapters if isinstance(chapter, CycleRecord))

    @property
    def freed_bytes(self) -> Bytes:
        return Bytes(sum(cycle.freed_bytes for cycle in self.cycles))


def tell(files: LedgerFiles, since: datetime | None = None) -> Story:
    """What went on at ``since`` or later. Raises ``BrimlineError`` where there is no ledger."""
    state = LedgerState(keeps_ended=True)
    order: list[Chapter] = []
    damage: list[Damage] = []
    for found in read_history(files, since):
        if isinstance(found, Damage):
            damage.append(found)
            continue
        state.apply(found)
        order += _begun_by(found, state)
    chapters = tuple(chapter for chapter in order if since is None or _last_at(chapter) >= since)
    return Story(chapters=chapters, damage=tuple(damage))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSum:
    """The trims of one topic in one cycle. ``freed_bytes`` of ``planned_bytes`` came back; times in ms, -1 unknown."""

    topic: str
    partitions: int
    segments: int
    planned_bytes: Bytes
    freed_bytes: Bytes
    oldest_ms: int
    newest_ms: int


def by_topic(cycle: CycleRecord) -> list[TopicSum]:
    """The largest first."""
    topics: dict[str, list[TrimRecord]] = {}
    for trim in cycle.trims:
        topics.setdefault(trim.planned.partition.topic, []).append(trim)
    sums = [_sum(topic, trims) for topic, trims in topics.items()]
    return sorted(sums, key=lambda each: (-each.planned_bytes, each.topic))


def given_up(cycle: CycleRecord) -> list[TrimRecord]:
    """What was abandoned, and after it what was withdrawn."""
    return [trim for phase in (TrimPhase.ABANDONED, TrimPhase.WITHDRAWN) for trim in cycle.trims if trim.phase is phase]


def _begun_by(recorded: Recorded, state: LedgerState) -> Iterable[Chapter]:
    if isinstance(recorded.entry, Plan):
        yield state.cycles[recorded.entry.cycle]
    elif isinstance(recorded.entry, BallastEntry | CordonEntry | ShedEntry | Paused | Resumed):
        yield Act(at=recorded.at, entry=recorded.entry)


def _last_at(chapter: Chapter) -> datetime:
    return chapter.last_at if isinstance(chapter, CycleRecord) else chapter.at


def _sum(topic: str, trims: list[TrimRecord]) -> TopicSum:
    return TopicSum(
        topic=topic,
        partitions=len(trims),
        segments=sum(trim.planned.segments.count for trim in trims),
        planned_bytes=Bytes(sum(trim.planned.allocated_bytes for trim in trims)),
        freed_bytes=Bytes(sum(trim.freed_bytes for trim in trims)),
        oldest_ms=min((trim.planned.oldest_ms for trim in trims if trim.planned.oldest_ms >= 0), default=-1),
        newest_ms=max(trim.planned.newest_ms for trim in trims),
    )
