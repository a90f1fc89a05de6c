"""A volume's readings and its forecast as SVG, without any library: points, a line ahead, and the span of the interval.

Bytes are drawn as percent of the volume, times from left to right. Ahead is drawn as far as the interval reaches, a
week at least and two months at most.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 900, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 60, 40
_LEAST, _MOST = timedelta(days=7), timedelta(days=60)
_MARKS = 8
_READING, _AHEAD, _LIMIT, _INK, _GRID = "#1f6feb", "#bc4c00", "#cf222e", "#24292f", "#d0d7de"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    row: Mapping[str, object]
    """Of the table ``forecast``."""
    readings: Sequence[tuple[datetime, int]]
    """When, and used bytes; in the order of time."""

    def number(self, name: str) -> float | None:
        value = self.row[name]
        return float(value) if isinstance(value, int | float) else None

    @property
    def title(self) -> str:
        return f"broker {self.row['broker_id']} of {self.row['cluster_id']}: {self.row['log_dirs_of_device']}"

    @property
    def verdict(self) -> str:
        days, soonest, latest = map(self.number, ("days_to_full", "soonest_days", "latest_days"))
        if days is None:
            return str(self.row["outlook"])
        until = "more than a year" if latest is None else f"{latest:.1f}"
        return f"{self.row['outlook']}: full in {days:.1f} days ({soonest or 0.0:.1f} to {until})"


class _Frame:
    """From times and bytes to places on the sheet."""

    def __init__(self, picture: Picture) -> None:
        limit, total = picture.number("limit_bytes") or 0.0, picture.number("total_bytes") or 0.0
        self.now = picture.row["as_of"] if isinstance(picture.row["as_of"], datetime) else _last(picture)
        days = picture.number("latest_days") or picture.number("days_to_full") or 0.0
        self.begin = picture.readings[0][0] if picture.readings else self.now - _LEAST
        self.end = self.now + min(max(timedelta(days=days * 1.1), _LEAST), _MOST)
        self.whole = max(total, limit, *(used for _, used in picture.readings), 1.0)

    def x(self, at: datetime) -> float:
        return _LEFT + (at - self.begin) / (self.end - self.begin) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, used: float) -> float:
        return _HEIGHT - _BOTTOM - min(max(used / self.whole, 0.0), 1.0) * (_HEIGHT - _TOP - _BOTTOM)


def svg(picture: Picture) -> str:
    frame = _Frame(picture)
    parts = (_head(picture), _grid(frame), _limit(picture, frame), _ahead(picture, frame), _readings(picture, frame))
    return "\n".join([line for part in parts for line in part] + ["</svg>\n"])


def _last(picture: Picture) -> datetime:
    return picture.readings[-1][0] if picture.readings else datetime.fromtimestamp(0, UTC)


def _head(picture: Picture) -> Iterator[str]:
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13" fill="{_INK}">'
    yield f"<title>{escape(picture.title)}</title>"
    yield f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>'
    yield f'<text x="{_LEFT}" y="24" font-weight="bold">{escape(picture.title)}</text>'
    yield f'<text x="{_LEFT}" y="44">{escape(picture.verdict)}</text>'


def _grid(frame: _Frame) -> Iterator[str]:
    for percent in range(0, 101, 20):
        y = frame.y(frame.whole * percent / 100)
        yield _line((_LEFT, y), (_WIDTH - _RIGHT, y), _GRID)
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>'
    span = frame.end - frame.begin
    for mark in range(_MARKS + 1):
        at = frame.begin + span * mark / _MARKS
        text = at.astimezone(UTC).strftime("%b %d")
        yield f'<text x="{frame.x(at):.1f}" y="{_HEIGHT - 16}" text-anchor="middle">{text}</text>'


def _limit(picture: Picture, frame: _Frame) -> Iterator[str]:
    limit = picture.number("limit_bytes")
    if limit is not None:
        y = frame.y(limit)
        yield _line((_LEFT, y), (_WIDTH - _RIGHT, y), _LIMIT, "6 4")
        yield f'<text x="{_LEFT + 6}" y="{y - 5:.1f}" fill="{_LIMIT}">writes are refused above</text>'


def _ahead(picture: Picture, frame: _Frame) -> Iterator[str]:
    """From the newest reading on, at the forecast's growth; and where the limit is reached, soonest and latest."""
    growth, limit = picture.number("growth_bytes_per_day"), picture.number("limit_bytes")
    if growth is None or not picture.readings:
        return
    used = picture.readings[-1][1]
    days, soonest, latest = map(picture.number, ("days_to_full", "soonest_days", "latest_days"))
    here = (frame.x(frame.now), frame.y(used))
    if days is not None and limit is not None:
        ends = [frame.x(min(frame.now + timedelta(days=each or 0.0), frame.end)) for each in (soonest, latest or 366.0)]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in (here, *((x, frame.y(limit)) for x in ends)))
        yield f'<polygon points="{corners}" fill="{_AHEAD}" fill-opacity="0.15"/>'
    until = (frame.end - frame.now) / timedelta(days=1)
    until = min(until, days) if days is not None else until
    there = (frame.x(frame.now + timedelta(days=until)), frame.y(used + growth * until))
    yield _line(here, there, _AHEAD, "3 3")


def _readings(picture: Picture, frame: _Frame) -> Iterator[str]:
    if picture.readings:
        points = " ".join(f"{frame.x(at):.1f},{frame.y(used):.1f}" for at, used in picture.readings)
        yield f'<polyline points="{points}" fill="none" stroke="{_READING}" stroke-width="1.5"/>'


def _line(begin: tuple[float, float], end: tuple[float, float], colour: str, dashes: str = "") -> str:
    places = f'x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {places} stroke="{colour}"' + (f' stroke-dasharray="{dashes}"' if dashes else "") + "/>"
