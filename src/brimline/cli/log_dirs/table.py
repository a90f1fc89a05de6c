"""``brimline log-dirs`` for people: how full every volume is, then what fills them, then the sums.

A terminal's width is kept from 60 columns on: bars and names give way, sums take another line, and when nothing else
helps the replicas' lag and log dir are left out and it says so. No number is ever cut. Without a terminal there is no
width to keep and no colour, so nothing is cut at all.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rich.console import Console, RenderableType
from rich.text import Text

from brimline.cli.log_dirs.replicas import replica_lines
from brimline.cli.log_dirs.report import LogDirsReport
from brimline.cli.shared.glyphs import Glyphs, glyphs_for, printable, wrapped
from brimline.cli.shared.output import console_on, room_on
from brimline.model import (
    BrokerLogDirs,
    ClusterTotals,
    LogDirDescription,
    Percent,
    Reason,
    Volume,
    counted,
    human_bytes,
    human_count,
    human_percent,
    totals_of,
    volumes_of,
)
from brimline.model.failures import KAFKA_STORAGE_ERROR

_WIDEST_BAR = 40
_NARROWEST_BAR = 5
_WIDEST_PATH = 40  # that a column is made for; a longer path moves only its own numbers
_NARROWEST_PATH = 8
_BESIDE_THE_BAR = 56  # indent, percentage and the three sizes at their longest, and a column to spare
_WARN_AT, _ALARM_AT = Percent(80.0), Percent(90.0)


def level_style(percent: Percent) -> str:
    return "green" if percent < _WARN_AT else "yellow" if percent < _ALARM_AT else "red"


def volume_lines(answer: BrokerLogDirs, glyphs: Glyphs, room: int) -> Iterator[Text]:
    bar_width = min(max(room - _BESIDE_THE_BAR, _NARROWEST_BAR), _WIDEST_BAR)
    held = _held(answer)
    path_width = min(max((len(path) for path in answer.log_dirs), default=0), _WIDEST_PATH)
    for volume in volumes_of(answer.log_dirs.values()):
        yield from _volume_lines(volume, glyphs, bar_width, room)
        shared = len(volume.log_dirs) > 1
        for position, log_dir in enumerate(volume.log_dirs, start=1):
            branch = glyphs.last_branch if position == len(volume.log_dirs) else glyphs.branch
            mark = f"{branch} " if shared else "  "
            yield _log_dir_line(log_dir, mark, held[log_dir.path], glyphs, path_width, room)
        if shared:
            yield Text(f"    {len(volume.log_dirs)} log dirs share this volume; it is counted once", "dim")


def _held(answer: BrokerLogDirs) -> dict[str, str]:
    """What each log dir holds, the numbers of one broker aligned; empty where the broker could not look."""
    readable = [log_dir for log_dir in answer.log_dirs.values() if log_dir.error is None]
    counts = {log_dir.path: human_count(len(log_dir.replicas)) for log_dir in readable}
    sizes = {log_dir.path: human_bytes(log_dir.replica_bytes) for log_dir in readable}
    count_width = max((len(count) for count in counts.values()), default=0)
    size_width = max((len(size) for size in sizes.values()), default=0)
    return dict.fromkeys(answer.log_dirs, "") | {
        path: f"{count:>{count_width}} {'replica ' if count == '1' else 'replicas'}  {sizes[path]:>{size_width}}"
        for path, count in counts.items()
    }


def _volume_lines(volume: Volume, glyphs: Glyphs, bar_width: int, room: int) -> Iterator[Text]:
    percent = volume.used_percent
    if percent is None:
        error = volume.log_dirs[0].error
        why = "" if error is not None else ": the broker does not say (needs Kafka 3.3)"
        yield from (Text(line, "dim") for line in wrapped("  ", f"volume of unknown size{why}", room))
        return
    full, rest = glyphs.bar(percent / 100, bar_width)
    style = level_style(percent)
    yield Text.assemble(
        "  ",
        (full, style),
        (rest, "dim"),
        "  ",
        (f"{human_percent(percent):>7}", f"bold {style}"),
        f"  {human_bytes(volume.used_bytes)} used of {human_bytes(volume.total_bytes)}, ",
        (f"{human_bytes(volume.usable_bytes)} usable", "bold"),
    )


def _log_dir_line(
    log_dir: LogDirDescription, branch: str, held: str, glyphs: Glyphs, path_width: int, room: int
) -> Text:
    beside = [(f"  {held}", "")] if held else []
    if log_dir.error is not None:
        offline = "offline: " if log_dir.error.code == KAFKA_STORAGE_ERROR else ""
        beside.append((f"  {glyphs.cross} {offline}{log_dir.error}", "red"))
    if log_dir.is_cordoned:
        beside.append(("  cordoned", "yellow"))
    left = room - 2 - len(branch) - sum(len(text) for text, _ in beside)
    path = glyphs.without_beginning(printable(log_dir.path), max(left, _NARROWEST_PATH))
    return Text.assemble("  ", (branch, "dim"), path.ljust(min(path_width, left)), *beside)


_INDENT = " " * len("Cluster  ")


def write_table(report: LogDirsReport, out: TextIO, *, top: int | None) -> None:
    """``top`` replicas, or all of them with ``None``."""
    console = console_on(out)
    draw_table(report, console, glyphs_for(out), room=room_on(console), top=top)


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
    volumes = [Text(counted(totals.brokers, "broker")), Text(counted(totals.volumes, "volume"))]
    if totals.used_percent is not None:
        percent = (human_percent(totals.used_percent), level_style(totals.used_percent))
        volumes.append(Text.assemble(percent, " used"))
        volumes.append(Text(f"{human_bytes(totals.usable_bytes)} usable of {human_bytes(totals.total_bytes)}"))
    yield from _flowed(Text.assemble(("Cluster", "bold"), "  "), volumes, separator, room)
    of_topics = "" if report.topics is None else f" of {counted(len(report.topics), 'topic')}"
    replicas = [Text(counted(totals.replicas, "replica") + of_topics), Text(human_bytes(totals.replica_bytes))]
    if report.include_remote_info:
        replicas.append(Text(f"{human_bytes(totals.remote_bytes)} remote"))
        replicas.append(Text(f"{human_bytes(totals.only_local_bytes)} only local"))
    yield from _flowed(Text(_INDENT), replicas, separator, room)
    left_out = [
        counted(totals.failed_brokers, "broker") + " without an answer" if totals.failed_brokers else "",
        counted(totals.unknown_volumes, "volume") + " of unknown size" if totals.unknown_volumes else "",
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
