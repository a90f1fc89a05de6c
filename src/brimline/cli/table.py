"""``--output table``: the cluster for people. Volumes first, then what fills them, then the sums.

A terminal's width is kept: bars and names give way, numbers never do. Without a terminal there is no width to keep and
no colour, so nothing is cut.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rich.console import Console, RenderableType
from rich.text import Text

from brimline.cli.glyphs import Glyphs, glyphs_for, printable
from brimline.cli.report import LogDirsReport
from brimline.cli.table_replicas import replica_lines
from brimline.cli.table_volumes import level_style, volume_lines
from brimline.model import BrokerLogDirs, Reason, human_bytes, human_count, human_percent, totals_of

_NARROWEST = 60
_UNBOUNDED = 1_000_000
_PROSE_WIDTH = 100


def write_table(report: LogDirsReport, out: TextIO, *, top: int | None) -> None:
    """``top`` replicas, or all of them with ``None``."""
    console = Console(file=out, highlight=False, markup=False, emoji=False)
    room = max(console.width, _NARROWEST) if console.is_terminal else _UNBOUNDED
    draw_table(report, console, glyphs_for(out), room=room, top=top)


def draw_table(report: LogDirsReport, console: Console, glyphs: Glyphs, *, room: int, top: int | None) -> None:
    for answer in report.answers:
        _print(console, _broker_lines(answer, glyphs, room))
    replicas, notes = replica_lines(report, glyphs, room, top)
    _print(console, replicas)
    _print(console, _note_lines(notes, glyphs, room))
    _print(console, _total_lines(report, glyphs))


def _print(console: Console, lines: Iterable[RenderableType]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True)


def _broker_lines(answer: BrokerLogDirs, glyphs: Glyphs, room: int) -> Iterator[Text]:
    yield Text.assemble((f"Broker {answer.broker}", "bold"), "  ", (printable(answer.address), "dim"))
    if answer.failure is None:
        yield from volume_lines(answer, glyphs, room)
    else:
        for line in _wrapped(f"{glyphs.cross} ", answer.failure.message, room - 2):
            yield Text(f"  {line}", "red")
    yield Text()


def _note_lines(notes: Sequence[Reason], glyphs: Glyphs, room: int) -> Iterator[Text]:
    for number, reason in enumerate(notes, start=1):
        for line in _wrapped(f"{glyphs.note_mark(number)} ", reason.sentence, room):
            yield Text(line, "dim")
    if notes:
        yield Text()


def _wrapped(mark: str, prose: str, room: int) -> list[str]:
    width = min(room, _PROSE_WIDTH)
    return textwrap.wrap(printable(prose), width, initial_indent=mark, subsequent_indent=" " * len(mark))


def _total_lines(report: LogDirsReport, glyphs: Glyphs) -> Iterator[Text]:
    totals = totals_of(report.answers, report.topics)
    separator = f" {glyphs.dot} "
    left_out = [
        _counted(totals.failed_brokers, "broker") + " without an answer" if totals.failed_brokers else "",
        _counted(totals.unknown_volumes, "volume") + " of unknown size" if totals.unknown_volumes else "",
    ]
    line = Text.assemble(("Cluster", "bold"), "  ")
    line.append(separator.join([_counted(totals.brokers, "broker"), _counted(totals.volumes, "volume")]))
    if totals.used_percent is not None:
        line.append(separator)
        line.append(human_percent(totals.used_percent), level_style(totals.used_percent))
        line.append(f" used{separator}{human_bytes(totals.usable_bytes)} usable of {human_bytes(totals.total_bytes)}")
    yield line
    replicas = [_counted(totals.replicas, "replica"), human_bytes(totals.replica_bytes)]
    if report.topics is not None:
        replicas[0] += f" of {_counted(len(report.topics), 'topic')}"
    if report.include_remote_info:
        replicas.append(f"{human_bytes(totals.remote_bytes)} remote")
        replicas.append(f"{human_bytes(totals.only_local_bytes)} only local")
    yield Text(f"         {separator.join(replicas)}")
    if any(left_out):
        yield Text(f"         not counted: {', '.join(part for part in left_out if part)}", "yellow")


def _counted(number: int, noun: str) -> str:
    return f"{human_count(number)} {noun}{'' if number == 1 else 's'}"
