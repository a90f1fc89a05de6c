"""``--output table``: the cluster for people. Volumes first, then what fills them, then the sums.

A terminal's width is kept from 60 columns on: bars and names give way, sums take another line, and when nothing else
helps the replicas' lag and log dir are left out and it says so. No number is ever cut. Without a terminal there is no
width to keep and no colour, so nothing is cut at all.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rich.console import Console, RenderableType
from rich.text import Text

from brimline.cli.console import console_on
from brimline.cli.glyphs import Glyphs, glyphs_for, printable, wrapped
from brimline.cli.report import LogDirsReport
from brimline.cli.table_replicas import replica_lines
from brimline.cli.table_volumes import level_style, volume_lines
from brimline.model import BrokerLogDirs, ClusterTotals, Reason, human_bytes, human_count, human_percent, totals_of

_NARROWEST = 60
_UNBOUNDED = 1_000_000
_INDENT = " " * len("Cluster  ")


def write_table(report: LogDirsReport, out: TextIO, *, top: int | None) -> None:
    """``top`` replicas, or all of them with ``None``."""
    console = console_on(out)
    room = max(console.width, _NARROWEST) if console.is_terminal else _UNBOUNDED
    draw_table(report, console, glyphs_for(out), room=room, top=top)


def draw_table(report: LogDirsReport, console: Console, glyphs: Glyphs, *, room: int, top: int | None) -> None:
    totals = totals_of(report.answers, report.topics)
    for answer in report.answers:
        _print(console, _broker_lines(answer, glyphs, room))
    replicas, notes = replica_lines(report, totals, glyphs, room, top)
    _print(console, replicas)
    _print(console, _note_lines(notes, glyphs, room))
    _print(console, _total_lines(report, totals, glyphs, room))


def _print(console: Console, lines: Iterable[RenderableType]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True)


def _broker_lines(answer: BrokerLogDirs, glyphs: Glyphs, room: int) -> Iterator[Text]:
    head = f"Broker {answer.broker}"
    address = glyphs.without_middle(printable(answer.address), room - len(head) - 2)
    yield Text.assemble((head, "bold"), "  ", (address, "dim"))
    if answer.failure is None:
        yield from volume_lines(answer, glyphs, room)
    else:
        for line in wrapped(f"{glyphs.cross} ", answer.failure.message, room - 2):
            yield Text(f"  {line}", "red")
    yield Text()


def _note_lines(notes: Sequence[Reason], glyphs: Glyphs, room: int) -> Iterator[Text]:
    for number, reason in enumerate(notes, start=1):
        for line in wrapped(f"{glyphs.note_mark(number)} ", reason.sentence, room):
            yield Text(line, "dim")
    if notes:
        yield Text()


def _total_lines(report: LogDirsReport, totals: ClusterTotals, glyphs: Glyphs, room: int) -> Iterator[Text]:
    separator = f" {glyphs.dot} "
    volumes = [Text(_counted(totals.brokers, "broker")), Text(_counted(totals.volumes, "volume"))]
    if totals.used_percent is not None:
        percent = (human_percent(totals.used_percent), level_style(totals.used_percent))
        volumes.append(Text.assemble(percent, " used"))
        volumes.append(Text(f"{human_bytes(totals.usable_bytes)} usable of {human_bytes(totals.total_bytes)}"))
    yield from _flowed(Text.assemble(("Cluster", "bold"), "  "), volumes, separator, room)
    of_topics = "" if report.topics is None else f" of {_counted(len(report.topics), 'topic')}"
    replicas = [Text(_counted(totals.replicas, "replica") + of_topics), Text(human_bytes(totals.replica_bytes))]
    if report.include_remote_info:
        replicas.append(Text(f"{human_bytes(totals.remote_bytes)} remote"))
        replicas.append(Text(f"{human_bytes(totals.only_local_bytes)} only local"))
    yield from _flowed(Text(_INDENT), replicas, separator, room)
    left_out = [
        _counted(totals.failed_brokers, "broker") + " without an answer" if totals.failed_brokers else "",
        _counted(totals.unknown_volumes, "volume") + " of unknown size" if totals.unknown_volumes else "",
    ]
    if any(left_out):
        for line in wrapped(_INDENT, f"not counted: {', '.join(part for part in left_out if part)}", room):
            yield Text(line, "yellow")


def _flowed(head: Text, parts: Sequence[Text], separator: str, room: int) -> Iterator[Text]:
    """The parts one behind the other, on as few lines as there is room for."""
    line = head + parts[0]
    for part in parts[1:]:
        if len(line) + len(separator) + len(part) <= room:
            line = line + separator + part
        else:
            yield line
            line = Text(_INDENT) + part
    yield line


def _counted(number: int, noun: str) -> str:
    return f"{human_count(number)} {noun}{'' if number == 1 else 's'}"
