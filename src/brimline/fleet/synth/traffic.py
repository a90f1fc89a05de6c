"""How records come in, made up: shapes of traffic with daily and weekly rhythm, and what was written until when.

A **shape** is traffic over time, around 1; its integral, in days of mean traffic, is its **clock**: a shape's clock
goes fast at noon and slowly at night. What a partition has written is its rate times how far its topic's clock has
come. So the bytes at any moment, and the moment of any byte, are one look-up each, for all partitions at once.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from brimline.model.scan import Int64Column

AN_HOUR_MS = 3_600_000
A_DAY_MS = 24 * AN_HOUR_MS
_HOURS_A_DAY = 24
_MONDAY_MS = 4 * A_DAY_MS
"""The epoch was a Thursday."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shapes:
    begin_ms: int
    clock: Floats
    """A row per shape: its clock at ``begin_ms`` and every hour after. Strictly ascending."""

    @property
    def hours(self) -> int:
        return int(self.clock.shape[1]) - 1

    def at(self, shape: Int64Column, ms: Int64Column | Floats) -> Floats:
        """What each shape's clock shows; before the beginning it went steadily."""
        hour = (np.asarray(ms, dtype=np.float64) - self.begin_ms) / AN_HOUR_MS
        whole = np.clip(np.floor(hour).astype(np.int64), 0, self.hours - 1)
        before, after = self.clock[shape, whole], self.clock[shape, whole + 1]
        inside = before + (hour - whole) * (after - before)
        return np.where(hour < 0, self.clock[shape, 0] + hour / _HOURS_A_DAY, inside)

    def when(self, shape: Int64Column, shown: Floats) -> Floats:
        """At which millisecond each shape's clock showed this."""
        width = float(self.clock[:, -1].max()) + 1.0
        lanes = np.arange(len(self.clock), dtype=np.float64)[:, np.newaxis] * width
        first = self.clock[shape, 0]
        held = np.clip(shown, first, self.clock[shape, -1])
        hour = np.interp(
            held + shape * width, (self.clock + lanes).ravel(), np.tile(np.arange(self.hours + 1.0), len(self.clock))
        )
        return np.asarray(
            self.begin_ms + np.where(shown < first, (shown - first) * A_DAY_MS, hour * AN_HOUR_MS), dtype=np.float64
        )


def make_shapes(generator: np.random.Generator, count: int, begin_ms: int, hours: int) -> Shapes:
    """Busy days and quiet nights, weekends, slow growth or decline, and noise."""

    def of_each(least: float, most: float) -> Floats:
        return generator.uniform(least, most, (count, 1))

    ms = begin_ms + np.arange(hours, dtype=np.int64) * AN_HOUR_MS
    day = ms / A_DAY_MS
    daily = 1 + of_each(0.1, 0.8) * np.sin(2 * np.pi * (day + of_each(0.0, 1.0)))
    is_weekend = ((ms - _MONDAY_MS) // A_DAY_MS) % 7 >= 5
    weekly = np.where(is_weekend, of_each(0.3, 1.05), 1.0)
    growth = np.exp(of_each(-0.002, 0.006) * (day - day[0]))
    wandering = np.exp(np.cumsum(generator.normal(0, 0.005, (count, hours)), axis=1))
    noise = generator.lognormal(0, 0.1, (count, hours))
    traffic = np.maximum(daily * weekly * growth * wandering * noise, 0.02)
    traffic /= traffic.mean(axis=1, keepdims=True)
    clock = np.concatenate([np.zeros((count, 1)), np.cumsum(traffic, axis=1)], axis=1) / _HOURS_A_DAY
    return Shapes(begin_ms=begin_ms, clock=clock)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Courses:
    """Of every topic: which clock it follows, from where on, and where its traffic changed by a factor.

    ``progress`` is in days of the topic's first traffic, 0 when it was created.
    """

    shapes: Shapes
    shape: Int64Column
    born: Floats
    """What the shape's clock showed when the topic was created."""
    turn: Floats
    """What it showed when the traffic changed; infinite for most."""
    factor: Floats

    def progress(self, topic: Int64Column, ms: Int64Column | Floats) -> Floats:
        shown = np.maximum(self.shapes.at(self.shape[topic], ms), self.born[topic])
        turn = self.turn[topic]
        return np.asarray(
            np.minimum(shown, turn) - self.born[topic] + self.factor[topic] * np.maximum(shown - turn, 0.0),
            dtype=np.float64,
        )

    def when(self, topic: Int64Column, progress: Floats) -> Floats:
        """At which millisecond a topic had come so far."""
        until_turn = self.turn[topic] - self.born[topic]
        past = np.maximum(progress - until_turn, 0.0)
        shown = self.born[topic] + np.minimum(progress, until_turn) + past / self.factor[topic]
        return self.shapes.when(self.shape[topic], shown)
