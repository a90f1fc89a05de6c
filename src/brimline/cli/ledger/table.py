"""The ledger for people: cycle by cycle, what went, why, what came back of it, and what did not come to pass."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.text import Text

from brimline.act.ledger.entries import BallastAct, BallastEntry, CordonAct, CordonEntry, Paused, ShedAct, ShedEntry
from brimline.act.ledger.files import LedgerFiles
from brimline.act.ledger.state import CycleRecord, TrimPhase, TrimRecord
from brimline.act.ledger.story import Act, Story, TopicSum, by_topic, given_up
from brimline.cli.ledger.for_programs import moment_text
from brimline.cli.shared.glyphs import Glyphs, glyphs_for, printable
from brimline.cli.shared.output import console_on, print_hanging
from brimline.model import counted, human_bytes, human_count, human_percent, human_span, used_percent

_INDENT = 12
_SHOWN = 10
"""Of the topics, and of the trims that were given up, of each cycle; the other outputs have them all."""
_BALLAST = {
    BallastAct.ALLOCATED: ("BALLAST", "bold green", "allocated"),
    BallastAct.RELEASED: ("BALLAST", "bold red", "released"),
    BallastAct.RESTORED: ("BALLAST", "bold green", "restored"),
}


def write_ledger_table(story: Story, files: LedgerFiles, out: TextIO) -> None:
    console = console_on(out)
    glyphs = glyphs_for(out)
    for line in ledger_lines(story, files, glyphs):
        print_hanging(console, line, _INDENT)


def ledger_lines(story: Story, files: LedgerFiles, glyphs: Glyphs) -> Iterator[Text]:
    cycles = len(story.cycles)
    freed = f"{counted(cycles, 'cycle')}, {human_bytes(story.freed_bytes)} freed"
    yield Text.assemble((f"Broker {files.node_id}", "bold"), "  ", freed)
    yield Text(f"  {printable(str(files.current))}", "dim")
    for chapter in story.chapters:
        yield Text()
        yield from _cycle_lines(chapter, glyphs) if isinstance(chapter, CycleRecord) else _act_lines(chapter)


def _cycle_lines(cycle: CycleRecord, glyphs: Glyphs) -> Iterator[Text]:
    plan = cycle.plan
    word, style = ("ENDED", "bold green") if cycle.has_ended else ("UNDER WAY", "bold yellow")
    yield _head(word, style, f"{cycle.begun_at:%Y-%m-%d %H:%M:%S} UTC  cycle {plan.cycle}, by {plan.by}")
    yield _more(f"device {plan.device}: {', '.join(plan.log_dirs)}", "dim")
    used = human_percent(used_percent(plan.total_bytes, plan.total_bytes - plan.used_bytes))
    going = f", {human_bytes(plan.going_bytes)} being deleted already" if plan.going_bytes else ""
    yield _more(
        f"{used} used, {human_bytes(plan.excess_bytes)} over the ceiling of {plan.ceiling_percent} %{going}", "dim"
    )
    yield _more(_outcome(cycle))
    for reason in dict.fromkeys(trim.planned.reason for trim in cycle.trims):
        yield _more(reason, "dim")
    topics = by_topic(cycle)
    yield from (_more(line) for line in _topic_lines(topics[:_SHOWN]))
    if len(topics) > _SHOWN:
        yield _more(f"{glyphs.ellipsis} and {human_count(len(topics) - _SHOWN)} more topics: --output csv", "dim")
    for why, partitions in Counter(each.why for each in plan.passed_over).items():
        yield _more(f"{counted(partitions, 'partition')} skipped: {why}", "dim")
    left = given_up(cycle)
    for trim in left[:_SHOWN]:
        is_failure = trim.phase is TrimPhase.ABANDONED
        yield _more(
            f"{glyphs.cross if is_failure else glyphs.dot} {_given_up(trim)}", "yellow" if is_failure else "dim"
        )
    if len(left) > _SHOWN:
        yield _more(f"{glyphs.ellipsis} and {human_count(len(left) - _SHOWN)} more: --output csv", "dim")


def _outcome(cycle: CycleRecord) -> str:
    done, by_others = cycle.count(TrimPhase.DONE), sum(trim.was_done_by_others for trim in cycle.trims)
    under_way = cycle.count(TrimPhase.PLANNED, TrimPhase.REQUESTED)
    parts = [f"{counted(done, 'trim')} done" + (f" ({human_count(by_others)} by others)" if by_others else "")]
    for phase in (TrimPhase.ABANDONED, TrimPhase.WITHDRAWN):
        if count := cycle.count(phase):
            parts.append(f"{human_count(count)} {phase.value}")
    if under_way:
        parts.append(f"{human_count(under_way)} in progress")
    span = f" in {human_span((cycle.ended_at - cycle.begun_at).total_seconds())}" if cycle.ended_at else ""
    return (
        f"planned {human_bytes(cycle.plan.planned_bytes)}, freed {human_bytes(cycle.freed_bytes)}{span}: "
        f"{', '.join(parts)}"
    )


def _topic_lines(topics: Sequence[TopicSum]) -> Iterator[str]:
    rows = [
        (
            printable(each.topic),
            counted(each.partitions, "partition"),
            counted(each.segments, "segment"),
            f"{human_bytes(each.freed_bytes)} of {human_bytes(each.planned_bytes)}",
            _ages(each),
        )
        for each in topics
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(5)]
    for topic, partitions, segments, sizes, ages in rows:
        numbers = f"{partitions:>{widths[1]}}  {segments:>{widths[2]}}  {sizes:>{widths[3]}}"
        yield f"{topic:<{widths[0]}}  {numbers}  {ages}".rstrip()


def _ages(topic: TopicSum) -> str:
    oldest, newest = moment_text(topic.oldest_ms), moment_text(topic.newest_ms)
    first, last = ((moment or "")[:16].replace("T", " ") for moment in (oldest, newest))
    return first if first == last else f"{first} to {last}" if first and last else ""


def _given_up(trim: TrimRecord) -> str:
    came_back = f" ({human_bytes(trim.freed_bytes)} freed)" if trim.freed_bytes else ""
    return f"{printable(str(trim.planned.partition))}: {printable(trim.why or '')}{came_back}"


def _act_lines(act: Act) -> Iterator[Text]:
    at = f"{act.at:%Y-%m-%d %H:%M:%S} UTC"
    entry = act.entry
    if isinstance(entry, BallastEntry):
        word, style, done = _BALLAST[entry.act]
        yield _head(word, style, f"{at}  {human_bytes(entry.size)} {done}: {entry.path}")
        late = "; recorded later, when the disk had room" if entry.was_late else ""
        yield _more(f"{entry.why}{late}")
        return
    if isinstance(entry, CordonEntry):
        style = "bold yellow" if entry.act is CordonAct.CORDONED else "bold green"
        yield _head(entry.act.value.upper(), style, f"{at}  {entry.log_dir}")
        yield _more(entry.why)
        return
    if isinstance(entry, ShedEntry):
        style = "bold yellow" if entry.act is ShedAct.SHED else "bold green"
        replicas = f"replicas before: {', '.join(map(str, entry.before))}"
        what = f"{entry.partition} removed from broker {entry.follower} ({human_bytes(entry.size)}), {replicas}"
        yield _head(entry.act.value.upper(), style, f"{at}  {what}")
        yield _more(entry.why)
        return
    word, style = ("PAUSED", "bold yellow") if isinstance(entry, Paused) else ("RESUMED", "bold green")
    yield _head(word, style, f"{at}  by {entry.by}{f': {entry.reason}' if entry.reason else ''}")


def _head(word: str, style: str, text: str) -> Text:
    return Text.assemble((f"{word:<{_INDENT}}", style), (printable(text), "bold"))


def _more(text: str, style: str = "") -> Text:
    return Text(" " * _INDENT + printable(text), style)
