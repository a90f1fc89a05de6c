"""How far off is a forecast? A back-test on made-up volumes, against linear regression and "as it is now".

Thirty days are seen, then each rule says how much of the volume is used 7 days later; the error is in points of used
percent. What is seen is what a fleet's tables hold: readings about every hour, some volumes with a gap in between. The
rule in ``brimline.decide.forecast`` was tuned on the tuning families and seeds alone. What was set aside before that,
and what was written later, are scored apart (``forecast_families`` says which is which).

``python -m bench.forecast --tuning`` scores the tuning set only: what one looks at while changing the rule.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.forecast_families import (
    HELD_OUT_FAMILIES,
    HELD_OUT_SEEDS,
    HOURS_A_DAY,
    LATER_FAMILIES,
    TUNING_FAMILIES,
    TUNING_SEEDS,
    Family,
    Shares,
)
from brimline.decide.forecast import A_DAY_MS, Forecasts, Readings, forecast

DAYS_SEEN = 30
DAYS_TO_COME = 14
DAYS_AHEAD = 7
HORIZONS = (1, 3, 7, 14)
VOLUMES = 400
TOTAL_BYTES = 4_000_000_000_000
BEGIN_MS = 1_760_000_000_000
HOUR_MS = 3_600_000
NOT_FULL_YET = 0.98
HEADER = (
    "| volumes | linear regression, 7 days | linear regression, 30 days | as it is now | Brimline"
    " | its 80 % interval holds, 1, 3, 7, 14 days ahead | width at 7 days |\n|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A row per volume: the hours of the readings, with NaN where one is missing, and what is used at each."""

    hour: Shares
    used: Shares
    truth: Shares
    """The used share, hour by hour, past the end of what is seen."""

    def __len__(self) -> int:
        return len(self.used)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Of one family: errors in points of used percent, at ``DAYS_AHEAD``, and how often the interval held."""

    what: str
    errors: dict[str, Shares]
    held: dict[int, Shares]
    width: Shares

    def row(self) -> str:
        errors = " | ".join(f"{np.mean(each):.2f}" for each in self.errors.values())
        held = ", ".join(f"{100 * np.mean(each):.0f} %" for each in self.held.values())
        return f"| {self.what} | {errors} | {held} | {np.mean(self.width):.1f} |"


def rows() -> Iterator[Scores]:
    """For `make bench`: everything, each group with its own sum."""
    yield from tuning_rows()
    yield from _scored("other seeds: ", TUNING_FAMILIES, HELD_OUT_SEEDS)
    yield from _scored("set aside: ", HELD_OUT_FAMILIES, HELD_OUT_SEEDS)
    yield from _scored("written later: ", LATER_FAMILIES, HELD_OUT_SEEDS)


def tuning_rows() -> Iterator[Scores]:
    yield from _scored("tuned on: ", TUNING_FAMILIES, TUNING_SEEDS)


def _scored(prefix: str, families: Sequence[Family], seeds: Iterable[int]) -> Iterator[Scores]:
    together = []
    for family in families:
        scores = joined(f"{prefix}{family.name}", [score(family.name, seen(family, seed)) for seed in seeds])
        together.append(scores)
        yield scores
    yield joined(f"**{prefix}all**", together)


def joined(what: str, parts: Sequence[Scores]) -> Scores:
    return Scores(
        what=what,
        errors={name: np.concatenate([part.errors[name] for part in parts]) for name in parts[0].errors},
        held={days: np.concatenate([part.held[days] for part in parts]) for days in HORIZONS},
        width=np.concatenate([part.width for part in parts]),
    )


def seen(family: Family, seed: int) -> Seen:
    generator = np.random.default_rng([seed, *family.name.encode()])
    hours = (DAYS_SEEN + DAYS_TO_COME) * HOURS_A_DAY + 1
    truth = family.make(generator, VOLUMES, hours)
    known = DAYS_SEEN * HOURS_A_DAY
    truth = truth[truth[:, : known + 1].max(axis=1) < NOT_FULL_YET]
    hour = np.arange(known) + generator.uniform(0, 0.2, (len(truth), known))
    used = np.stack([np.interp(at, np.arange(hours), row) for at, row in zip(hour, truth, strict=True)])
    begins = generator.integers(0, known - 100, (len(truth), 1))
    missing = np.where(generator.random((len(truth), 1)) < 0.1, generator.integers(3, 60, (len(truth), 1)), 0)
    is_missing = (np.arange(known) >= begins) & (np.arange(known) < begins + missing)
    return Seen(hour=np.where(is_missing, np.nan, hour), used=np.where(is_missing, np.nan, used), truth=truth)


def score(what: str, volumes: Seen) -> Scores:
    ours = _forecasts(volumes)
    last = volumes.hour[:, -1]
    truth = {days: _at(volumes.truth, last + days * HOURS_A_DAY) for days in HORIZONS}
    foreseen = {
        "linear regression, 7 days": regression(volumes, 7),
        "linear regression, 30 days": regression(volumes, 30),
        "as it is now": volumes.used[:, -1],
        "Brimline": ours.used_after(DAYS_AHEAD) / TOTAL_BYTES,
    }
    margins = {days: ours.error_after(days) / TOTAL_BYTES for days in HORIZONS}
    middles = {days: ours.used_after(days) / TOTAL_BYTES for days in HORIZONS}
    return Scores(
        what=what,
        errors={name: 100 * np.abs(each - truth[DAYS_AHEAD]) for name, each in foreseen.items()},
        held={days: (np.abs(middles[days] - truth[days]) <= margins[days]).astype(np.float64) for days in HORIZONS},
        width=200 * margins[DAYS_AHEAD],
    )


def _forecasts(volumes: Seen) -> Forecasts:
    is_read = ~np.isnan(volumes.hour)
    counts = np.count_nonzero(is_read, axis=1)
    readings = Readings(
        begin=np.concatenate(([0], np.cumsum(counts))),
        at_ms=BEGIN_MS + (volumes.hour[is_read] * HOUR_MS).astype(np.int64),
        used_bytes=(volumes.used[is_read] * TOTAL_BYTES).astype(np.int64),
        limit_bytes=np.full(len(volumes), TOTAL_BYTES, dtype=np.int64),
    )
    return forecast(readings, BEGIN_MS + DAYS_SEEN * A_DAY_MS)


def regression(volumes: Seen, days: int) -> Shares:
    """Ordinary least squares over the last days, read off a week ahead."""
    last = volumes.hour[:, -1:]
    hour = np.where(volumes.hour > last - days * HOURS_A_DAY, volumes.hour - last, np.nan)
    used = np.where(np.isnan(hour), np.nan, volumes.used)
    middle, level = np.nanmean(hour, axis=1, keepdims=True), np.nanmean(used, axis=1, keepdims=True)
    slope = np.nansum((hour - middle) * (used - level), axis=1) / np.nansum((hour - middle) ** 2, axis=1)
    return np.asarray(level[:, 0] + slope * (DAYS_AHEAD * HOURS_A_DAY - middle[:, 0]), dtype=np.float64)


def _at(truth: Shares, hour: Shares) -> Shares:
    whole = np.arange(truth.shape[1])
    return np.array([np.interp(at, whole, row) for at, row in zip(hour, truth, strict=True)])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.forecast")
    parser.add_argument("--tuning", action="store_true", help="only the families and seeds that are tuned by")
    options = parser.parse_args()
    made: Callable[[], Iterator[Scores]] = tuning_rows if options.tuning else rows
    print(HEADER)
    for scores in made():
        print(scores.row(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
