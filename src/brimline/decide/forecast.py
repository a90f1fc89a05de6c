"""When is a volume full, how sure is that, and how far off would the same rule have been until now?

**Invariant.** An answer rests on readings only: a volume that cannot be read, has no limit, or is not known for long
enough has no forecast, which is not the same as "it does not fill". Days are counted from the newest reading.

The rule, for many volumes at once:

1. **Levels** are what was used at the newest reading and whole days before it: daily rhythm cancels out. Across a gap
   of more than a day there is no level.
2. **Slope** is the mean of the last seven daily differences without steps, so that weekly rhythm cancels out too (the
   last seven that are known, of two weeks). A step, such as a topic deleted or a replica moved in, is a difference far
   from the median that did not happen a week before either: quiet weekends do happen every week.
3. **Trust**: the same rule is applied to the volume's own past, and the slope counts as much as would have been best
   there. Where retention holds a log, every rise is followed by a fall and no slope would have helped; where nothing
   is deleted, all of it. A slope that would fill the volume is doubted only by a past of more than a week: where the
   volume rises and there was no back-test yet, there is no forecast.
4. **Interval**: the errors of that back-test, scaled by the horizon to the power of 0.75. It covers 80 % of what came.

A resized volume needs no rule: what is used stays what it is, and the limit is the newest one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from brimline.decide.reclaim import kernel
from brimline.model.quantities import Labelled
from brimline.model.scan import Int64Column

A_DAY_MS = 86_400_000
DAYS_LOOKED_BACK = 30
FARTHEST_DAYS = 365.0
"""What is full later than this is not filling."""
BACK_TEST_DAYS = 7
"""The horizon of the error that is told."""

_WEEK = 7
_LONGEST_GAP_MS = A_DAY_MS
_STALE_MS = A_DAY_MS
_FEWEST_DIFFERENCES = 2
_FEWEST_ERRORS = 5
_OUTLYING = 4.0
"""Of the median deviation, scaled as for normal noise."""
_NORMAL = 1.4826
_STEP_SHARE = 0.001
"""Of the limit: what is smaller is noise, whatever the median deviation is."""
_REPEATED = 0.5
_ORIGINS = 20
_HORIZONS = (1, 3, 7)
_TRUSTS = np.linspace(0.0, 1.0, 11)
_GROWTH_OF_ERROR = 0.75
_ERROR_QUANTILE = 0.85
_BISECTIONS = 40

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Outlook(Labelled):
    """The label is the stable name in tables; the number is not."""

    FULL = 0
    """The limit is reached now."""
    FILLING = 1
    NOT_FILLING = 2
    """At this slope it is not full within a year, or never."""
    TOO_SHORT = 3
    """Fewer than two days are known, or too few to tell whether a rise goes on."""
    STALE = 4
    """The newest reading is more than a day old."""
    UNREADABLE = 5
    """The newest look failed, or there was none."""
    NO_LIMIT = 6

    @property
    def is_known(self) -> bool:
        return self <= Outlook.NOT_FILLING


_WORDS = {
    Outlook.TOO_SHORT: "history too short",
    Outlook.STALE: "last reading more than a day old",
    Outlook.UNREADABLE: "cannot be read",
}


def outlook_words(label: str) -> str:
    """What a table calls ``too-short``, as people say it."""
    return {outlook.label: words for outlook, words in _WORDS.items()}.get(label, label.replace("-", " "))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Readings:
    """Readings of many volumes, volume by volume, in any order of time. -1 stands for unknown."""

    begin: Int64Column
    """Volume v owns the readings from ``begin[v]`` up to, not including, ``begin[v + 1]``."""
    at_ms: Int64Column
    used_bytes: Int64Column
    limit_bytes: Int64Column
    """Of every volume, not of every reading: at how many used bytes it is full."""

    @property
    def volumes(self) -> int:
        return len(self.begin) - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forecasts:
    """A row per volume. NaN stands for "no such number": unknown, or never."""

    outlook: npt.NDArray[np.uint8]
    as_of_ms: Int64Column
    """The newest reading; -1 without one."""
    used_bytes: Floats
    bytes_per_day: Floats
    error_of_a_day: Floats
    """Half the width of the interval a day ahead; at h days it is ``h ** 0.75`` times as wide."""
    days_to_full: Floats
    soonest_days: Floats
    latest_days: Floats
    back_test_error_bytes: Floats
    """Mean absolute error of this very rule, ``BACK_TEST_DAYS`` ahead, in the volume's own past.

    Trust was chosen by that same past, so the error to come is somewhat larger.
    """
    back_tests: Int64Column
    days_known: Int64Column

    def used_after(self, days: float) -> Floats:
        return np.asarray(self.used_bytes + self.bytes_per_day * days, dtype=np.float64)

    def error_after(self, days: float) -> Floats:
        return np.asarray(self.error_of_a_day * days**_GROWTH_OF_ERROR, dtype=np.float64)


def forecast(readings: Readings, now_ms: int) -> Forecasts:
    levels, as_of = _levels(readings)
    limit = np.where(readings.limit_bytes >= 0, readings.limit_bytes.astype(np.float64), np.nan)
    differences = levels[:, :-1] - levels[:, 1:]
    slopes = _slopes(differences, np.nan_to_num(limit) * _STEP_SHARE)
    trust = _trust(levels, slopes)
    error = _error_of_a_day(levels, slopes, trust)
    back_test = _errors(levels, slopes, trust, BACK_TEST_DAYS)
    level, rise, slope = levels[:, 0], slopes[:, 0], trust * slopes[:, 0]
    is_doubted = _is_filling(level, rise, limit) & ~_is_filling(level, slope, limit)
    slope = np.where(is_doubted & np.isnan(back_test).all(axis=1), np.nan, slope)
    outlook = _outlook(level, slope, limit, now_ms - as_of)
    gap = np.where(outlook <= Outlook.NOT_FILLING, np.maximum(limit - level, 0.0), np.nan)
    soonest, latest = _crossing(gap, slope, error), _crossing(gap, slope, -error)
    return Forecasts(
        outlook=outlook,
        as_of_ms=as_of,
        used_bytes=level,
        bytes_per_day=slope,
        error_of_a_day=error,
        days_to_full=_crossing(gap, slope, np.zeros_like(slope)),
        soonest_days=soonest,
        latest_days=latest,
        back_test_error_bytes=_mean(back_test),
        back_tests=np.count_nonzero(~np.isnan(back_test), axis=1),
        days_known=np.count_nonzero(~np.isnan(differences), axis=1),
    )


def _levels(readings: Readings) -> tuple[Floats, Int64Column]:
    """Used bytes at the newest reading (column 0) and 1, 2, … days before; and when the newest reading was.

    Where the newest look failed there is no level, whatever was known before.
    """
    volumes = readings.volumes
    levels = np.full((volumes, DAYS_LOOKED_BACK + 1), np.nan)
    volume = np.repeat(np.arange(volumes, dtype=np.int64), np.diff(readings.begin))
    at_ms, used = readings.at_ms, readings.used_bytes
    if (np.diff(at_ms) < 0)[np.diff(volume) == 0].any():
        order = np.lexsort((at_ms, volume))
        volume, at_ms, used = volume[order], at_ms[order], used[order]
    newest = np.full(volumes, -1, dtype=np.int64)
    newest[volume] = np.arange(len(volume))
    is_read = (newest >= 0) & (np.append(used, -1)[newest] >= 0)
    known = np.flatnonzero(used >= 0)
    as_of = np.full(volumes, -1, dtype=np.int64)
    as_of[volume[known]] = at_ms[known]
    if len(known) and is_read.any():
        rows = np.flatnonzero(is_read)
        levels[rows] = _interpolated(volume[known], at_ms[known], used[known], rows, as_of[rows])
    return levels, as_of


def _interpolated(
    volume: Int64Column, at_ms: Int64Column, used: Int64Column, rows: Int64Column, as_of: Int64Column
) -> Floats:
    """Between the readings on both sides of each wanted moment, if they are close enough to each other."""
    if at_ms.min() < 0 or at_ms.max() >= kernel.END_OF_TIME_MS or rows[-1] >= kernel.MOST_LOGS:
        raise ValueError("a reading's time, or the number of volumes, is beyond what a forecast can count with")
    wanted = as_of[:, np.newaxis] - np.arange(DAYS_LOOKED_BACK + 1, dtype=np.int64) * A_DAY_MS
    keys = (volume << kernel.AGE_BITS) | at_ms
    after = np.searchsorted(keys, (rows[:, np.newaxis] << kernel.AGE_BITS) | np.maximum(wanted, 0))
    before = np.where(at_ms[after] == wanted, after, np.maximum(after - 1, 0))
    gap = at_ms[after] - at_ms[before]
    share = (wanted - at_ms[before]) / np.maximum(gap, 1)
    level = used[before] + share * (used[after] - used[before])
    is_near = (volume[before] == rows[:, np.newaxis]) & (gap <= _LONGEST_GAP_MS) & (wanted >= at_ms[before])
    return np.where(is_near, level, np.nan)


def _slopes(differences: Floats, smallest_step: Floats) -> Floats:
    """Bytes a day, as seen today (column 0) and 1, 2, … days before."""
    volumes, days = differences.shape
    padded = np.full((volumes, max(_ORIGINS + 3 * _WEEK, days)), np.nan)
    padded[:, :days] = differences
    fortnights = np.lib.stride_tricks.sliding_window_view(padded, 2 * _WEEK, axis=1)
    fortnight, week_before = fortnights[:, :_ORIGINS], fortnights[:, _WEEK : _WEEK + _ORIGINS]
    is_among_last = np.cumsum(~np.isnan(fortnight), axis=2) <= _WEEK
    week = np.where(is_among_last, fortnight, np.nan)
    middle = _median(week)[:, :, np.newaxis]
    distance = np.abs(week - middle)
    usual = _OUTLYING * _NORMAL * _median(distance)
    is_usual = distance <= np.maximum(usual, smallest_step[:, np.newaxis])[:, :, np.newaxis]
    is_repeated = np.abs(week - week_before) <= _REPEATED * distance
    kept = np.where(is_usual | is_repeated, week, np.nan)
    enough = np.count_nonzero(~np.isnan(week), axis=2) >= _FEWEST_DIFFERENCES
    return np.where(enough, _mean(kept), np.nan)


def _trust(levels: Floats, slopes: Floats) -> Floats:
    """The share of its slope that would have done best in each volume's past; all of it where nothing is known."""
    costs = np.stack([_cost(levels, slopes, np.full(len(levels), share)) for share in _TRUSTS])
    # The largest share among equals: a volume that has never moved will not mind.
    best = len(_TRUSTS) - 1 - np.argmin(costs[::-1], axis=0)
    return _TRUSTS[np.where(np.isnan(costs).any(axis=0), len(_TRUSTS) - 1, best)]


def _cost(levels: Floats, slopes: Floats, trust: Floats) -> Floats:
    """Errors of all horizons, each counted by its length; NaN where there are none."""
    errors = [_errors(levels, slopes, trust, days) for days in _HORIZONS]
    together = sum(np.nansum(each, axis=1) / days for each, days in zip(errors, _HORIZONS, strict=True))
    counted = sum(
        np.count_nonzero(~np.isnan(each), axis=1) / days for each, days in zip(errors, _HORIZONS, strict=True)
    )
    return _divided(np.asarray(together), np.asarray(counted))


def _errors(levels: Floats, slopes: Floats, trust: Floats, days: int) -> Floats:
    """What a forecast made 1, 2, … days ago for ``days`` later was off by, for those that are over."""
    origins = np.arange(days, slopes.shape[1])
    foreseen = levels[:, origins] + trust[:, np.newaxis] * slopes[:, origins] * days
    return np.asarray(np.abs(foreseen - levels[:, origins - days]), dtype=np.float64)


def _error_of_a_day(levels: Floats, slopes: Floats, trust: Floats) -> Floats:
    errors = np.concatenate(
        [_errors(levels, slopes, trust, days) / days**_GROWTH_OF_ERROR for days in _HORIZONS], axis=1
    )
    return _quantile(errors, _ERROR_QUANTILE, fewest=_FEWEST_ERRORS)


def _is_filling(level: Floats, slope: Floats, limit: Floats) -> Bools:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((slope > 0) & ((limit - level) / slope <= FARTHEST_DAYS), dtype=np.bool_)


def _outlook(level: Floats, slope: Floats, limit: Floats, age_ms: Int64Column) -> npt.NDArray[np.uint8]:
    outlook = np.where(_is_filling(level, slope, limit), Outlook.FILLING, Outlook.NOT_FILLING).astype(np.uint8)
    # The strongest comes last.
    outlook[np.isnan(slope)] = Outlook.TOO_SHORT
    outlook[level >= limit] = Outlook.FULL
    outlook[age_ms > _STALE_MS] = Outlook.STALE
    outlook[np.isnan(limit)] = Outlook.NO_LIMIT
    outlook[np.isnan(level)] = Outlook.UNREADABLE
    return outlook


def _crossing(gap: Floats, slope: Floats, error: Floats) -> Floats:
    """The first day on which ``slope * days + error * days ** 0.75`` reaches the gap; NaN if not within a year.

    With a falling slope and an error upwards the sum rises to a peak and falls again, so it is looked for before the
    peak. With a rising slope and an error downwards it falls first, and then passes the gap once.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = (_GROWTH_OF_ERROR * error / -slope) ** (1 / (1 - _GROWTH_OF_ERROR))
    has_peak = (slope < 0) & (error > 0)
    low, high = np.zeros_like(gap), np.where(has_peak, np.minimum(peak, FARTHEST_DAYS), FARTHEST_DAYS)

    def reached(days: Floats) -> Bools:
        return np.asarray(slope * days + error * days**_GROWTH_OF_ERROR >= gap, dtype=np.bool_)

    is_reached = reached(high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_beyond = reached(middle)
        low, high = np.where(is_beyond, low, middle), np.where(is_beyond, middle, high)
    return np.where(gap <= 0, 0.0, np.where(is_reached, high, np.nan))


def _median(values: Floats) -> Floats:
    """Along the last axis, without NaN; numpy's own is slow for many short rows."""
    in_order = np.sort(values, axis=-1)  # NaN comes last
    count = np.count_nonzero(~np.isnan(values), axis=-1)
    lower, upper = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, values.shape[-1] - 1)
    picked = [np.take_along_axis(in_order, at[..., np.newaxis], axis=-1)[..., 0] for at in (lower, upper)]
    return np.asarray((picked[0] + picked[1]) / 2, dtype=np.float64)


def _quantile(values: Floats, share: float, fewest: int) -> Floats:
    """Along the last axis, without NaN, by interpolation; NaN where there are fewer values."""
    in_order = np.sort(values, axis=-1)
    count = np.count_nonzero(~np.isnan(values), axis=-1)
    place = np.maximum(count - 1, 0) * share
    lower = np.floor(place).astype(np.int64)
    upper = np.minimum(lower + 1, np.maximum(count - 1, 0))
    below, above = (np.take_along_axis(in_order, at[..., np.newaxis], axis=-1)[..., 0] for at in (lower, upper))
    return np.where(count >= fewest, below + (place - lower) * (above - below), np.nan)


def _mean(values: Floats) -> Floats:
    """Along the last axis, without NaN; NaN where there is nothing."""
    return _divided(np.nansum(values, axis=-1), np.count_nonzero(~np.isnan(values), axis=-1))


def _divided(numerator: Floats, denominator: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> Floats:
    quotient = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator > 0)
    return quotient
