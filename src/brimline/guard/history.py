"""What happened on a broker, put together from the files that guard and gateway leave in the state dir.

The ledger has what was done to data, ballast, cordons and replicas; the journals have what was seen and said; the
gateway's own log has the fences by hand. Nothing is asked of anybody, so it works when everything is down.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from brimline.act.ledger.entries import BallastAct, BallastEntry, CordonAct, CordonEntry, Paused, ShedAct, ShedEntry
from brimline.act.ledger.files import LedgerFiles
from brimline.act.ledger.state import CycleRecord, TrimPhase
from brimline.act.ledger.story import Act, by_topic, tell
from brimline.documents.codec import read_json
from brimline.documents.history import Happening, Timeline
from brimline.documents.journal import GATEWAY, GUARD, journal_path, read_journal
from brimline.gateway.rules.fence_record import FenceRecord
from brimline.model import BrimlineError, counted, human_bytes, human_span
from brimline.service.durable_files import read_state

PAGE_SPAN = timedelta(days=7)
PAGE_EVENTS = 500
_TOPICS_NAMED = 3
_INFO, _WARNING, _ERROR = "info", "warning", "error"


def read_whole_history(folder: Path, node_id: int, since: datetime | None = None) -> Timeline:
    """Raises ``BrimlineError`` where nothing was ever recorded, or where it cannot be read."""
    journals = {process: read_journal(folder, node_id, process) for process in (GUARD, GATEWAY)}
    files = LedgerFiles(folder, node_id)
    if not files.current.exists() and not any(lines for lines, _ in journals.values()):
        raise BrimlineError(f"no records in {folder} yet: no guard or gateway of broker {node_id} has run")
    found: list[Happening] = []
    incomplete: list[str] = []
    for process, (lines, others) in journals.items():
        found += (
            Happening(at=line.at, what=line.event, level=line.level, by=process, sentence=line.sentence)
            for line in lines
        )
        if others:
            where = journal_path(folder, node_id, process)
            incomplete.append(f"{where}: {counted(others, 'line')} truncated or written by a later brimline")
    if files.current.exists():
        story = tell(files, since)
        for chapter in story.chapters:
            found += _cycle(chapter) if isinstance(chapter, CycleRecord) else [_act(chapter)]
        incomplete += map(str, story.damage)
    found += _fences_by_hand(FenceRecord(folder, node_id).log_path, incomplete)
    events = sorted((each for each in found if since is None or each.at >= since), key=lambda each: each.at)
    return Timeline(broker=node_id, events=tuple(events), incomplete=tuple(incomplete))


class KeptHistory:
    """For a page that anybody may ask for again and again: the files are read when one of them has changed."""

    def __init__(self, folder: Path, node_id: int, now: Callable[[], datetime]) -> None:
        self._folder = folder
        self._node_id = node_id
        self._now = now
        self._paths = [
            LedgerFiles(folder, node_id).current,
            FenceRecord(folder, node_id).log_path,
            *(journal_path(folder, node_id, process) for process in (GUARD, GATEWAY)),
        ]
        self._kept: tuple[object, Timeline] | None = None

    def __call__(self) -> Timeline:
        stamps = tuple(map(_stamp, self._paths))
        if self._kept is None or self._kept[0] != stamps:
            self._kept = (stamps, self._read())
        return self._kept[1]

    def _read(self) -> Timeline:
        try:
            whole = read_whole_history(self._folder, self._node_id, self._now() - PAGE_SPAN)
        except BrimlineError as error:
            return Timeline(broker=self._node_id, events=(), incomplete=(str(error),))
        return whole.newest(PAGE_EVENTS)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size


def _cycle(cycle: CycleRecord) -> Iterator[Happening]:
    plan, topics = cycle.plan, by_topic(cycle)
    # "guard of broker 1 (pid 7)" in the ledger; the timeline is of one broker
    by = GUARD if plan.by.startswith(f"{GUARD} of ") else plan.by
    names = ", ".join(each.topic for each in topics[:_TOPICS_NAMED])
    more = f" and {counted(len(topics) - _TOPICS_NAMED, 'more topic')}" if len(topics) > _TOPICS_NAMED else ""
    segments = sum(each.segments for each in topics)
    yield Happening(
        at=cycle.begun_at,
        what="reclaim",
        level=_WARNING,
        by=by,
        sentence=f"{', '.join(plan.log_dirs)} is {human_bytes(plan.excess_bytes)} above its ceiling of "
        f"{plan.ceiling_percent} %: {counted(segments, 'segment')} ({human_bytes(plan.planned_bytes)}) of "
        f"{names}{more} will be deleted (cycle {plan.cycle})",
    )
    if cycle.ended_at is None:
        return
    given_up = cycle.count(TrimPhase.ABANDONED)
    failed = f"; {counted(given_up, 'trim')} given up: brimline ledger" if given_up else ""
    yield Happening(
        at=cycle.ended_at,
        what="reclaim-over",
        level=_WARNING if given_up else _INFO,
        by=by,
        sentence=f"{human_bytes(cycle.freed_bytes)} freed in {', '.join(plan.log_dirs)} within "
        f"{human_span((cycle.ended_at - cycle.begun_at).total_seconds())} (cycle {plan.cycle}){failed}",
    )


def _act(act: Act) -> Happening:
    entry, by = act.entry, GUARD
    if isinstance(entry, BallastEntry):
        what, level = entry.act.value, _WARNING if entry.act is BallastAct.RELEASED else _INFO
        sentence = f"{human_bytes(entry.size)} of ballast, {entry.path}: {entry.why}"
    elif isinstance(entry, CordonEntry):
        what, level = entry.act.value, _WARNING if entry.act is CordonAct.CORDONED else _INFO
        sentence = f"{entry.log_dir}: {entry.why}"
    elif isinstance(entry, ShedEntry):
        what, level = entry.act.value, _ERROR if entry.act is ShedAct.SHED else _INFO
        replica = f"{entry.partition} of broker {entry.follower} ({human_bytes(entry.size)})"
        sentence = f"{replica}, replicas before: {', '.join(map(str, entry.before))}: {entry.why}"
    else:
        is_pause = isinstance(entry, Paused)
        what, level = ("reclaim-paused", _WARNING) if is_pause else ("reclaim-resumed", _INFO)
        by, done = entry.by, "paused" if is_pause else "goes on"
        sentence = f"reclaim {done}: {entry.reason or 'no reason given'}"
    return Happening(at=act.at, what=what, level=level, by=by, sentence=sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FencedByHand:
    """A line of the gateway's log of fences; one without a time cannot be placed."""

    at: datetime
    op: str
    log_dir: str | None = None
    topic: str | None = None
    reason: str = ""
    by: str | None = None


def _fences_by_hand(path: Path, incomplete: list[str]) -> Iterator[Happening]:
    try:
        lines = read_state(path).splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        incomplete.append(f"{path} cannot be read: {error.strerror}")
        return
    for number, line in enumerate(lines, start=1):
        try:
            act = read_json(_FencedByHand, line)
        except ValueError:
            incomplete.append(f"{path} line {number} is damaged")
            continue
        target = act.log_dir if act.log_dir is not None else f"topic {act.topic}"
        yield Happening(
            at=act.at.astimezone(UTC),
            what=act.op,
            level=_WARNING if act.op == "fence" else _INFO,
            by=act.by or "operator",
            sentence=f"{target} {act.op}d by hand{f': {act.reason}' if act.reason else ''}",
        )
