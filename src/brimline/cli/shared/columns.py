"""Columns side by side in a given room: numbers are never cut, names give way, and then the spare columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from brimline.cli.shared.glyphs import Glyphs

_GAP = "  "
_NARROWEST_NAME = 10


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """``is_name``: may be shortened, and stands left. ``is_spare``: may be left out, the last one first.

    ``styles``: one for each cell, if any.
    """

    title: str
    cells: Sequence[str]
    is_name: bool = False
    is_left: bool = False
    is_spare: bool = False
    styles: Sequence[str] = ()

    @property
    def width(self) -> int:
        return max(len(self.title), *(len(cell) for cell in self.cells)) if self.cells else len(self.title)

    @property
    def narrowest(self) -> int:
        return min(self.width, _NARROWEST_NAME) if self.is_name else self.width

    def padded(self, text: str, width: int) -> str:
        return text.ljust(width) if self.is_name or self.is_left else text.rjust(width)

    def style(self, row: int) -> str:
        return self.styles[row] if self.styles else ""


def column_lines(columns: Sequence[Column], glyphs: Glyphs, room: int) -> Iterator[Text]:
    """The titles, a rule, a line for each row, and what had to be left out."""
    kept = _kept(columns, room)
    widths = _widths(kept, room - len(_GAP) * len(kept))
    titles = [column.padded(column.title, width) for column, width in zip(kept, widths, strict=True)]
    yield Text(_GAP + _GAP.join(titles).rstrip(), "bold")
    yield Text(_GAP + glyphs.rule * (sum(widths) + len(_GAP) * (len(kept) - 1)), "dim")
    for row in range(len(kept[0].cells)):
        line = Text()
        for column, width in zip(kept, widths, strict=True):
            cell = glyphs.without_middle(column.cells[row], width) if column.is_name else column.cells[row]
            line.append(_GAP)
            line.append(column.padded(cell, width), column.style(row))
        line.rstrip()
        yield line
    left_out = [column.title for column in columns if column not in kept]
    if left_out:
        named = " and ".join([*([", ".join(left_out[:-1])] if left_out[1:] else []), left_out[-1]])
        yield Text(f"{_GAP}{named} would need a wider terminal", "dim")


def _kept(columns: Sequence[Column], room: int) -> list[Column]:
    kept = list(columns)
    for column in reversed(columns):
        if sum(len(_GAP) + each.narrowest for each in kept) <= room:
            break
        if column.is_spare:
            kept.remove(column)
    return kept


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """What is missing is taken from the names, the widest first, down to a floor."""
    widths = [column.width for column in columns]
    while sum(widths) > room:
        names = [place for place, column in enumerate(columns) if widths[place] > column.narrowest]
        if not names:
            break
        widths[max(names, key=widths.__getitem__)] -= 1
    return widths
