"""A disk's use over time, with the forecast's band, as SVG: within a page, or as a file that any browser shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from brimline.model import human_percent, human_span
from brimline.pages.html import STYLE_TAG, Html, tag

WIDTH, HEIGHT = 800, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 12, 10, 28
_HEAD = 56
"""Above the chart of a file: its title and its verdict."""
_MOST_POINTS = 400
_TICKS = 5
_DAY = 86_400.0
_LEAST_AHEAD, _MOST_AHEAD = 0.25, 90.0
"""What is drawn of the future: at least this share of the past, at most so many days."""


@dataclass(frozen=True, slots=True)
class Reading:
    at: datetime
    used_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Days from the newest reading until the disk is full. ``latest`` is ``None`` where it may never be."""

    days: float
    soonest: float | None
    latest: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UseChart:
    """``readings``: the oldest first, at least one. ``fence`` and ``ceiling`` in percent."""

    readings: Sequence[Reading]
    fence: float | None = None
    ceiling: float | None = None
    expected: Expectation | None = None
    is_observed: bool = False
    """Nothing is refused."""

    def drawn(self) -> Html:
        return tag(
            "svg", self._parts(), class_="chart", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=self.label
        )

    def as_file(self, title: str, verdict: str) -> str:
        """A whole SVG, with its style."""
        head = (("bold", title, 22), (None, verdict, 44))
        return tag(
            "svg",
            tag("title", title),
            STYLE_TAG,
            tag("rect", class_="paper", width=WIDTH, height=HEIGHT + _HEAD),
            (tag("text", text, x=_LEFT, y=y, font_weight=weight) for weight, text, y in head),
            tag("g", self._parts(), transform=f"translate(0 {_HEAD})"),
            xmlns="http://www.w3.org/2000/svg",
            class_="chart",
            width=WIDTH,
            height=HEIGHT + _HEAD,
            viewBox=f"0 0 {WIDTH} {HEIGHT + _HEAD}",
            font_family="sans-serif",
        )

    @property
    def label(self) -> str:
        first, last = self.readings[0], self.readings[-1]
        style = "%Y-%m-%d" if last.at - first.at > timedelta(days=2) else "%Y-%m-%d %H:%M"
        told = (
            f"{human_percent(first.used_percent)} used on {first.at:{style}}, "
            f"{human_percent(last.used_percent)} on {last.at:{style}}"
        )
        return told if self.expected is None else f"{told}; full in {human_span(self.expected.days * _DAY)}"

    @property
    def has_band(self) -> bool:
        """An interval, and not one line alone."""
        return self.expected is not None and self.expected.soonest != self.expected.latest

    @property
    def _begin(self) -> datetime:
        return self.readings[0].at

    @property
    def _now(self) -> datetime:
        return self.readings[-1].at

    @property
    def _ahead(self) -> float:
        """Days."""
        if self.expected is None:
            return 0.0
        furthest = self.expected.latest or 2 * self.expected.days
        past = (self._now - self._begin) / timedelta(days=1)
        return min(max(furthest * 1.1, past * _LEAST_AHEAD), _MOST_AHEAD)

    @property
    def _end(self) -> datetime:
        return max(self._now + timedelta(days=self._ahead), self._begin + timedelta(minutes=1))

    def _parts(self) -> list[Html]:
        return [*self._axes(), *self._band(), tag("path", class_="used", d=self._line()), *self._marks()]

    def _x(self, at: datetime) -> float:
        share = (at - self._begin) / (self._end - self._begin)
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)

    def _y(self, percent: float) -> float:
        return _TOP + (1 - min(max(percent, 0.0), 100.0) / 100) * (HEIGHT - _TOP - _BOTTOM)

    def _line(self) -> str:
        apart = -(-len(self.readings) // _MOST_POINTS)
        # The newest is always one of them.
        kept = self.readings[::-1][::apart][::-1]
        return "M" + " L".join(f"{self._x(each.at):.1f},{self._y(each.used_percent):.1f}" for each in kept)

    def _after(self, days: float) -> str:
        """Where a line that is at the fence after so many days leaves the picture, or meets the fence."""
        now, full = self.readings[-1].used_percent, 100.0 if self.fence is None else self.fence
        drawn = min(days, self._ahead)
        percent = now + (full - now) * (drawn / days if days > 0 else 1.0)
        return f"{self._x(self._now + timedelta(days=drawn)):.1f},{self._y(percent):.1f}"

    def _band(self) -> list[Html]:
        if self.expected is None:
            return []
        now = f"{self._x(self._now):.1f},{self._y(self.readings[-1].used_percent):.1f}"
        soonest = self.expected.days if self.expected.soonest is None else self.expected.soonest
        flat = f"{self._x(self._end):.1f},{self._y(self.readings[-1].used_percent):.1f}"
        corner = f"{self._x(self._end):.1f},{self._y(100.0 if self.fence is None else self.fence):.1f}"
        late = f"{corner} {flat}" if self.expected.latest is None else self._after(self.expected.latest)
        return [
            tag("path", class_="band", d=f"M{now} L{self._after(soonest)} {late} Z"),
            tag("path", class_="middle", d=f"M{now} L{self._after(self.expected.days)}"),
        ]

    def _marks(self) -> list[Html]:
        """Names stand above their line; where two lines are close, the lower one's below it."""
        marks = [
            ("limit", self.fence, f"full: writes {'would be ' if self.is_observed else ''}refused"),
            ("ceiling", self.ceiling, "ceiling: oldest segments deleted"),
        ]
        found = [(kind, self._y(place), name) for kind, place, name in marks if place is not None]
        lowest = max((y for _, y, _ in found), default=0.0) if len(found) > 1 else None
        return [
            part
            for kind, y, name in found
            for part in (
                tag("line", class_=kind, x1=_LEFT, x2=WIDTH - _RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}"),
                tag("text", name, x=_LEFT + 6, y=f"{y + 14:.1f}" if y == lowest or y < 2 * _TOP else f"{y - 4:.1f}"),
            )
        ]

    def _axes(self) -> list[Html]:
        parts = []
        for percent in (0, 25, 50, 75, 100):
            y = f"{self._y(percent):.1f}"
            parts.append(tag("line", class_="axis", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y))
            parts.append(tag("text", f"{percent} %", x=_LEFT - 6, y=f"{float(y) + 4:.1f}", text_anchor="end"))
        span = self._end - self._begin
        style = "%m-%d" if span > timedelta(days=4) else "%m-%d %H:%M" if span > timedelta(days=1) else "%H:%M"
        style = "%H:%M:%S" if span < timedelta(minutes=10) else style
        for tick in range(_TICKS + 1):
            at = (self._begin + span * tick / _TICKS).astimezone(UTC)
            anchor = "start" if tick == 0 else "end" if tick == _TICKS else "middle"
            x = f"{self._x(at):.1f}"
            parts.append(tag("text", at.strftime(style), x=x, y=HEIGHT - 8, text_anchor=anchor))
        return parts
