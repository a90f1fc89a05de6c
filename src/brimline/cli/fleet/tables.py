"""The rows of a table, for people and for programs."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TextIO

from rich.console import Console
from rich.text import Text

from brimline.cli.shared.glyphs import Glyphs, glyphs_for, printable
from brimline.cli.shared.output import console_on, print_hanging
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.show import Shown
from brimline.model import Bytes, human_bytes, human_count
from brimline.model.times import time_text

_NARROWEST_TEXT = 14
_UPRIGHT = 4
"""So many rows of a table that is too wide for the terminal are drawn as columns."""
_GAP = "  "
_FIRST = {
    Table.VOLUME_PRESSURE: ("cluster_id", "broker_id", "log_dir", "state", "used_percent", "days_to_fence"),
    Table.FORECAST: ("cluster_id", "broker_id", "log_dirs_of_device", "outlook", "days_to_full", "used_percent"),
    Table.TIER_OVERLAP: ("cluster_id", "topic", "only_local_bytes", "stalled_partitions"),
    Table.RECLAIM_PLAN: ("cluster_id", "broker_id", "topic", "partition", "freed_bytes", "device_outcome", "device"),
    Table.FLEET_HISTORY: ("day", "cluster_id", "used_percent", "worst_used_percent", "days_to_fence"),
}
"""What a narrow terminal shows: the answer to the question of the table."""


def write_shown(shown: Shown, out: TextIO, output: str, sorted_by: Sequence[str] = ()) -> None:
    """``sorted_by``: columns that a narrow terminal keeps."""
    if output == "json":
        _write_json(shown, out)
    elif output == "csv":
        _write_csv(shown, out)
    else:
        draw(shown, console_on(out), glyphs_for(out), sorted_by)


def at_a_glance(shown: Shown, table: str) -> Shown:
    """The columns that answer the table's question come first; the others stay in their order."""
    first = [name for name in _FIRST.get(Table(table), ()) if name in shown.columns]
    columns = (*first, *(name for name in shown.columns if name not in first))
    places = [shown.columns.index(name) for name in columns]
    return replace(shown, columns=columns, rows=[tuple(row[place] for place in places) for row in shown.rows])


def write_list(tables: Sequence[tuple[Table, int]], out: TextIO, output: str) -> None:
    rows = [(table.value, rows, table.sentence) for table, rows in tables]
    write_shown(Shown(columns=("table", "rows", "answers"), rows=rows, total=len(rows)), out, output)


def _write_json(shown: Shown, out: TextIO) -> None:
    lines = (
        json.dumps(dict(zip(shown.columns, map(_plain, row), strict=True)), ensure_ascii=False) for row in shown.rows
    )
    out.write("[\n" + ",\n".join(lines) + "\n]\n" if shown.rows else "[]\n")


def _write_csv(shown: Shown, out: TextIO) -> None:
    writer = csv.writer(out)
    if shown.columns:
        writer.writerow(shown.columns)
    writer.writerows([_plain(value) for value in row] for row in shown.rows)


def _plain(value: object) -> object:
    """As programs read it: times in UTC by ISO 8601, everything else as it is."""
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def draw(shown: Shown, console: Console, glyphs: Glyphs, sorted_by: Sequence[str] = ()) -> None:
    """A terminal's width is kept: columns that do not fit are left out, and it says which."""
    cells = [[_cell(name, row[place]) for row in shown.rows] for place, name in enumerate(shown.columns)]
    is_number = [all(isinstance(row[place], int | float | None) for row in shown.rows) for place in range(len(cells))]
    widths = [max([len(name), *map(len, column)]) for name, column in zip(shown.columns, cells, strict=True)]
    fitting = list(range(len(widths)))
    if console.is_terminal:
        kept = [shown.columns.index(name) for name in sorted_by if name in shown.columns]
        fitting = _fitting(_narrow(shown.columns, widths, is_number), console.width, kept)
        widths = _widened(_narrow(shown.columns, widths, is_number), widths, fitting, console.width)
    if len(fitting) < len(widths) and 0 < len(shown.rows) <= _UPRIGHT:
        _draw_upright(shown, cells, console, glyphs)
        return
    lines = [list(shown.columns), *map(list, zip(*cells, strict=True))] if shown.rows else [list(shown.columns)]
    for number, line in enumerate(lines):
        drawn = _GAP.join(
            _aligned(glyphs.without_middle(line[place], widths[place]), widths[place], right=is_number[place])
            for place in fitting
        )
        console.print(Text(drawn.rstrip(), "" if number else "bold"), soft_wrap=True)
    _write_notes(shown, fitting, console)


def _draw_upright(shown: Shown, cells: list[list[str]], console: Console, glyphs: Glyphs) -> None:
    """A line for each column: a few rows of a wide table, whole."""
    name_width = max(map(len, shown.columns))
    room = (console.width - name_width) // len(shown.rows) - len(_GAP)
    widths = [min(max(len(column[row]) for column in cells), max(room, 1)) for row in range(len(shown.rows))]
    for name, column in zip(shown.columns, cells, strict=True):
        line = Text(name.ljust(name_width), "bold")
        for cell, width in zip(column, widths, strict=True):
            line.append(_GAP + glyphs.without_middle(cell, width).ljust(width), "not bold")
        line.rstrip()
        console.print(line, soft_wrap=True)
    _write_notes(shown, range(len(shown.columns)), console)


def _write_notes(shown: Shown, fitting: Sequence[int], console: Console) -> None:
    notes = []
    if len(shown.rows) < shown.total:
        notes.append(f"{human_count(len(shown.rows))} of {human_count(shown.total)} rows; --all shows the others")
    left_out = [name for place, name in enumerate(shown.columns) if place not in fitting]
    if left_out:
        notes.append(f"no room for {', '.join(left_out)}; --columns chooses")
    for note in notes:
        print_hanging(console, Text(note, "dim"), len(_GAP))


def _narrow(titles: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> list[int]:
    """A name may be cut so that one more number can be shown."""
    return [
        width if number else min(width, max(len(title), _NARROWEST_TEXT))
        for title, width, number in zip(titles, widths, is_number, strict=True)
    ]


def _widened(narrow: Sequence[int], wanted: Sequence[int], fitting: Sequence[int], room: int) -> list[int]:
    """What the columns that fit leave of the room goes to those that lack least: a name is whole before a sentence."""
    widths = list(narrow)
    left = room - sum(narrow[place] + len(_GAP) for place in fitting) + len(_GAP)
    while left > 0 and (cut := [place for place in fitting if widths[place] < wanted[place]]):
        widths[min(cut, key=lambda place: wanted[place] - widths[place])] += 1
        left -= 1
    return widths


def _fitting(widths: Sequence[int], room: int, kept: Sequence[int]) -> list[int]:
    """Which columns fit: the first ones, and ``kept``; the very first is always shown."""
    chosen = {0, *kept}
    used = sum(widths[place] + len(_GAP) for place in chosen) - len(_GAP)
    for place, width in enumerate(widths):
        if place in chosen:
            continue
        used += width + len(_GAP)
        if used > room:
            break
        chosen.add(place)
    return sorted(chosen)


def _aligned(text: str, width: int, *, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def _cell(name: str, value: object) -> str:
    """As people read it."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name.endswith("_bytes") and value >= 0:
        return human_bytes(Bytes(value))
    if isinstance(value, int) and not name.endswith("_id"):
        return human_count(value)
    if isinstance(value, float):
        return f"{value:,.2f}"
    return printable(str(_plain(value)))
