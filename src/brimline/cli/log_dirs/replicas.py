"""The largest replicas, in aligned columns; unknown sizes point to numbered notes, each reason told once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.segment import Segment, Segments
from rich.text import Text

from brimline.cli.log_dirs.report import LogDirsReport, ShownReplica
from brimline.cli.shared.glyphs import Glyphs, printable
from brimline.model import Bytes, ClusterTotals, Reason, human_bytes, human_count

_GAP = "  "
_NARROWEST_PATH = 8
_NARROWEST_NAME = 16
_FUTURE = " (future)"
_LOG_DIR, _PARTITION, _LAG = "Log dir", "Partition", "Lag"
_LEFT_OUT = ((), (_LAG,), (_LAG, _LOG_DIR))  # the first of these that makes the rest fit


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    cells: list[str]
    left: bool = False

    @property
    def width(self) -> int:
        return max(len(self.title), max((len(cell) for cell in self.cells), default=0))

    @property
    def narrowest(self) -> int:
        floors = {_LOG_DIR: _NARROWEST_PATH, _PARTITION: _NARROWEST_NAME}
        return min(self.width, floors.get(self.title, self.width))

    def fitted(self, width: int, shorten: Callable[[str, int], str]) -> "_Column":
        return _Column(self.title, [shorten(cell, width) for cell in self.cells], self.left)

    def padded(self) -> Iterator[str]:
        width = self.width
        for cell in [self.title, *self.cells]:
            yield cell.ljust(width) if self.left else cell.rjust(width)


class _Notes:
    """Which reasons have been met, in the order of their first mention."""

    def __init__(self, glyphs: Glyphs) -> None:
        self.reasons: list[Reason] = []
        self._glyphs = glyphs

    def size(self, size: Bytes | None, reason: Reason) -> str:
        if size is not None:
            return human_bytes(size)
        if reason not in self.reasons:
            self.reasons.append(reason)
        return human_bytes(None) + self._glyphs.note_mark(self.reasons.index(reason) + 1)


def replica_lines(
    report: LogDirsReport, totals: ClusterTotals, glyphs: Glyphs, room: int, top: int | None
) -> tuple[Sequence[RenderableType], Sequence[Reason]]:
    """The lines, and the reasons that their note marks stand for."""
    shown = list(report.largest(top))
    notes = _Notes(glyphs)
    lines: list[RenderableType] = []
    if shown:
        columns, left_out = _fitted(_columns(shown, report, notes), glyphs, room)
        rows = [_GAP.join(cells).rstrip() for cells in zip(*(column.padded() for column in columns), strict=True)]
        lines.append(Text(rows[0], "bold"))
        lines.append(Text(glyphs.rule * min(room, max(len(row) for row in rows)), "dim"))
        lines.append(Segments([Segment("\n".join([*rows[1:], ""]))]))  # Text would measure every row again
        if left_out:
            lines.append(Text(f"{' and '.join(left_out)} would need a wider terminal", "dim"))
    elif report.topics is not None and len(report.failed) < len(report.brokers):
        lines.append(Text("No replica of these topics.", "dim"))
    hidden = totals.replicas - len(shown)
    if hidden > 0:
        hidden_bytes = Bytes(totals.replica_bytes - sum(replica.info.size for replica in shown))
        more = f"{human_count(hidden)} more ({human_bytes(hidden_bytes)}): --all shows them"
        lines.append(Text(f"{glyphs.ellipsis} and {more}", "dim"))
    if lines:
        lines.append(Text())
    return lines, notes.reasons


def _columns(shown: Sequence[ShownReplica], report: LogDirsReport, notes: _Notes) -> list[_Column]:
    columns = [
        _Column("Broker", [str(replica.broker) for replica in shown]),
        _Column(_LOG_DIR, [printable(replica.log_dir) for replica in shown], left=True),
        _Column(_PARTITION, [_name(replica) for replica in shown], left=True),
        _Column("Size", [human_bytes(replica.info.size) for replica in shown]),
        _Column(_LAG, [_lag(replica.info.offset_lag) for replica in shown]),
    ]
    if report.include_remote_info:
        sizes = [
            (
                notes.size(replica.info.remote_size, replica.info.remote_size_reason),
                notes.size(replica.info.only_local_size, replica.info.only_local_size_reason),
            )
            for replica in shown
        ]
        columns.append(_Column("Remote", [remote for remote, _ in sizes]))
        columns.append(_Column("Only local", [only_local for _, only_local in sizes]))
    return columns


def _name(replica: ShownReplica) -> str:
    return printable(str(replica.partition)) + (_FUTURE if replica.info.is_future else "")


def _lag(lag: int) -> str:
    return "-" if lag < 0 else human_count(lag)


def _fitted(columns: list[_Column], glyphs: Glyphs, room: int) -> tuple[list[_Column], Sequence[str]]:
    """The columns that the room has a place for, and the titles of those that are left out.

    Paths give way first, to the last part of each; then names, down to a floor; then a column has to go.
    """
    for left_out in _LEFT_OUT:
        kept = {column.title: column for column in columns if column.title not in left_out}
        left = room - len(_GAP) * (len(kept) - 1)
        if sum(column.narrowest for column in kept.values()) <= left:
            break
    name, path = kept[_PARTITION], kept.get(_LOG_DIR)
    left -= sum(column.width for column in kept.values() if column is not name and column is not path)
    if path is not None:
        path_width = _path_width(path, name, glyphs, left)
        kept[_LOG_DIR] = path.fitted(path_width, glyphs.without_beginning)
        left -= path_width

    def shorten_name(cell: str, width: int) -> str:
        bare = cell.removesuffix(_FUTURE)
        suffix = cell[len(bare) :]
        return glyphs.without_middle(bare, width - len(suffix)) + suffix

    kept[_PARTITION] = name.fitted(left, shorten_name)
    return list(kept.values()), left_out


def _path_width(path: _Column, name: _Column, glyphs: Glyphs, left: int) -> int:
    """Of what is left for both."""
    last_parts = max(len(f"{glyphs.ellipsis}/{cell.rpartition('/')[2]}") for cell in path.cells)
    wanted = max(left - name.width, min(last_parts, left - _NARROWEST_NAME), left // 3, _NARROWEST_PATH)
    return min(path.width, wanted)
