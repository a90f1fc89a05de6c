"""What people see of the demo: two clusters side by side, what happens, and a scoreboard of what was observed.

On a terminal it is a live view below the lines of what happened; in a pipe plain lines say the same.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

PATIENCE_SECONDS = 300
"""A machine that has other things to do shows the same, later."""
_LINE_SECONDS = 3.0
"""How often plain lines tell how full the disks are."""
_LONG_SECONDS = 10.0
"""So long nothing changes until plain lines tell what is waited for."""


_UNSEEN = "not observed"


class Unsettled(RuntimeError):
    """What was to be shown did not happen."""


@dataclass(slots=True)
class _Row:
    title: str
    fact: str = _UNSEEN
    mark: str = "✗"


class Scoreboard:
    """What is to be observed, and what was. A row holds only by a fact; one that cannot be shown here says why."""

    def __init__(self, titles: Mapping[str, str]) -> None:
        self._rows = {key: _Row(title) for key, title in titles.items()}

    def observed(self, key: str, fact: str, *, holds: bool) -> None:
        self._rows[key].fact = fact
        self._rows[key].mark = "✓" if holds else "✗"

    def title(self, key: str) -> str:
        return self._rows[key].title

    def not_here(self, key: str, why: str) -> None:
        self._rows[key].fact, self._rows[key].mark = f"not shown: {why}", "-"

    @property
    def missing(self) -> list[str]:
        """Titles of what did not hold or was never seen."""
        return [row.title for row in self._rows.values() if row.mark == "✗"]

    def table(self, *, is_over: bool) -> Table:
        """While it goes on, what was not seen yet is only named, and a row is one line."""
        grid = Table.grid(padding=(0, 1))
        for row in self._rows.values():
            is_open = row.mark == "✗" and not is_over and row.fact == _UNSEEN
            style = "dim" if is_open or row.mark == "-" else "green" if row.mark == "✓" else "bold red"
            mark, fact = ("·", "") if is_open else (row.mark, row.fact)
            grid.add_row(
                Text(mark, style),
                Text(row.title, style, no_wrap=True),
                Text(fact, no_wrap=not is_over, overflow="fold" if is_over else "ellipsis"),
            )
        return grid


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    name: str
    percent: float
    text: str
    style: str = "green"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A cluster at a moment."""

    title: str
    disks: Sequence[Disk]
    facts: Mapping[str, Text]

    def panel(self, width: int) -> Panel:
        grid = Table.grid(padding=(0, 1))
        for disk in self.disks:
            room = max(width - len(disk.name) - len(disk.text) - 6, 4)
            full = min(round(room * disk.percent / 100), room)
            grid.add_row(disk.name, Text("█" * full, disk.style) + Text("░" * (room - full), "dim") + f" {disk.text}")
        for name, fact in self.facts.items():
            grid.add_row(name, fact)
        return Panel(grid, title=self.title, title_align="left", width=width, border_style="dim")

    @property
    def line(self) -> str:
        facts = ", ".join(f"{name} {fact.plain}" for name, fact in self.facts.items())
        disks = ", ".join(f"{disk.name} {disk.text.strip()}" for disk in self.disks[:1])
        return f"{self.title}: {disks}, {facts}"


@dataclass(slots=True)
class Stage:
    console: Console
    board: Scoreboard
    on_frame: Callable[[float, RenderableType], None] | None = None
    """For a recording: is given what is to be seen whenever something happened."""
    looks: list[Callable[[], Seen]] = field(default_factory=list)
    """One for each cluster."""
    title: str = ""
    _began: float = field(default_factory=time.monotonic)
    _said: list[RenderableType] = field(default_factory=list)
    _told: str = ""
    _waits_for: str = ""
    _last: float = 0.0
    """When the last line was said."""
    _live: Live | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live = Live(get_renderable=lambda: self, console=self.console, refresh_per_second=3)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Leaves the scoreboard as the last thing to be seen."""
        self.looks = []
        if self._live is not None:
            self._live.transient = True
            self._live.stop()
        if kind is not KeyboardInterrupt:
            self._print(Text())
            self.console.print(self.board.table(is_over=True))
            self._frame(is_over=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def act(self, title: str) -> None:
        self.title = title
        self._print(Text())
        self._print(Text(f"── {title}", "bold"))

    def say(self, line: str, style: str = "") -> None:
        self._print(Text(line, style), at=Text(f"{self.seconds:4.0f} s", "dim"))

    def draw(self, lines: Sequence[Text]) -> None:
        for line in lines:
            self._print(line)

    def observed(self, key: str, fact: str, *, holds: bool = True) -> None:
        self.board.observed(key, fact, holds=holds)
        self.say(f"{'✓' if holds else '✗'} {self.board.title(key)}: {fact}", "green" if holds else "bold red")

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        began = told = time.monotonic()
        while not condition():
            now = time.monotonic()
            if now - began > PATIENCE_SECONDS:
                raise Unsettled(f"not seen within {PATIENCE_SECONDS} s: {what}")
            if now - told > _LINE_SECONDS:
                told = now
                self._waits_for = f"waiting until {what}: {now - began:.0f} s"
                self._tell()
            time.sleep(0.1)
        self._waits_for = ""

    def watch(self, seconds: float) -> None:
        """Only look on."""
        until = time.monotonic() + seconds
        self.wait_for(lambda: time.monotonic() > until, "time goes by")

    def _tell(self) -> None:
        line = " │ ".join(look().line for look in self.looks)
        is_long = self.seconds - self._last > _LONG_SECONDS
        if self._live is None and (line != self._told or is_long):
            shown = self._waits_for if line == self._told else line
            self.console.print(Text(f"{self.seconds:4.0f} s    {shown}"), soft_wrap=True)
            self._last = self.seconds
        self._told = line
        self._frame()

    def _print(self, line: Text, at: Text | None = None) -> None:
        """Hanging behind its time, on a terminal."""
        hanging = Table.grid(padding=(0, 2))
        hanging.add_row(*(part for part in (at, line) if part is not None))
        self._said.append(hanging)
        self._last = self.seconds
        if self._live is None:
            self.console.print(line if at is None else at + Text("  ") + line, soft_wrap=True)
        else:
            self.console.print(hanging)
        self._frame()

    def _frame(self, *, is_over: bool = False) -> None:
        if self.on_frame is not None:
            below = self.board.table(is_over=True) if is_over else self
            self.on_frame(self.seconds, Group(*self._said[-40:], Text(), below))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """The live view: every cluster, and the scoreboard."""
        if self.looks:
            width = min(options.max_width, 120) // len(self.looks)
            sides = Table.grid()
            sides.add_row(*(look().panel(width) for look in self.looks))
            yield sides
        if self._waits_for:
            yield Text(self._waits_for, "dim")
        yield self.board.table(is_over=False)


def chart(
    title: str, readings: Sequence[tuple[float, bool]], marks: Mapping[int, str], *, low: float = 0, high: float = 100
) -> list[Text]:
    """Readings from left to right, red where the second is true; ``marks`` are lines across, with their words."""
    rows, blocks = 10, " ▁▂▃▄▅▆▇█"
    step = (high - low) / rows or 1
    wide = max(60 // len(readings), 1)
    lines = [Text(f"       {title}", "bold")]
    for row in reversed(range(rows)):
        bottom = low + row * step
        word = next((word for mark, word in marks.items() if bottom <= mark < bottom + step), None)
        line = Text(f"{bottom:5.0f} ┤" if word or row == 0 else "      │", "dim")
        for value, is_full in readings:
            eighths = min(max(ceil((value - bottom) / step * 8), 0), 8)
            empty = "┄" if word else " "
            colour = "dim" if not eighths else "red" if is_full else "blue"
            line.append((blocks[eighths] if eighths else empty) * wide, colour)
        lines.append(line + Text(f" {word or ''}", "dim"))
    return lines
