"""A disk's use over time, with the forecast's band, as SVG: no script draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from brimline.model import human_percent
from brimline.pages.html import Html, tag

WIDTH, HEIGHT = 800, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 10, 28
_MOST_POINTS = 400
_TICKS = 5
_LEAST_AHEAD, _MOST_AHEAD = 3.0, 90.0
"""Days that are drawn of the future."""


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

    def drawn(self) -> Html:
        return tag(
            "svg",
            self._axes(),
            self._band(),
            tag("path", class_="used", d=self._line()),
            self._marks(),
            class_="chart",
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            aria_label=self.label,
        )

    @property
    def label(self) -> str:
        first, last = self.readings[0], self.readings[-1]
        told = (
            f"{human_percent(first.used_percent)} used on {first.at:%Y-%m-%d}, "
            f"{human_percent(last.used_percent)} on {last.at:%Y-%m-%d}"
        )
        return told if self.expected is None else f"{told}; full in {self.expected.days:.1f} days"

    @property
    def _begin(self) -> datetime:
        return self.readings[0].at

    @property
    def _now(self) -> datetime:
        return self.readings[-1].at

    @property
    def _ahead(self) -> float:
        if self.expected is None:
            return 0.0
        furthest = self.expected.latest or 2 * self.expected.days
        return min(max(furthest * 1.1, _LEAST_AHEAD), _MOST_AHEAD)

    @property
    def _end(self) -> datetime:
        return max(self._now + timedelta(days=self._ahead), self._begin + timedelta(hours=1))

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
        marks = [("limit", self.fence, "full"), ("ceiling", self.ceiling, "ceiling")]
        found = [(kind, self._y(place), name) for kind, place, name in marks if place is not None]
        return [
            part
            for kind, y, name in found
            for part in (
                tag("line", class_=kind, x1=_LEFT, x2=WIDTH - _RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}"),
                tag("text", name, x=_LEFT + 6, y=f"{y - 4:.1f}" if y > 2 * _TOP else f"{y + 13:.1f}"),
            )
        ]

    def _axes(self) -> list[Html]:
        parts = []
        for percent in (0, 25, 50, 75, 100):
            y = f"{self._y(percent):.1f}"
            parts.append(tag("line", class_="axis", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y))
            parts.append(tag("text", f"{percent} %", x=_LEFT - 6, y=f"{float(y) + 4:.1f}", text_anchor="end"))
        span = self._end - self._begin
        style = "%m-%d" if span > timedelta(days=2) else "%H:%M"
        for tick in range(_TICKS + 1):
            at = (self._begin + span * tick / _TICKS).astimezone(UTC)
            anchor = "start" if tick == 0 else "end" if tick == _TICKS else "middle"
            x = f"{self._x(at):.1f}"
            parts.append(tag("text", at.strftime(style), x=x, y=HEIGHT - 8, text_anchor=anchor))
        return parts
