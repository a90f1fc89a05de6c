"""Forecasts of volumes: what fills, what does not, and what nobody can know."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.forecast import A_DAY_MS, DAYS_LOOKED_BACK, FARTHEST_DAYS, Forecasts, Outlook, Readings, forecast
from brimline.model.scan import Int64Column

HOUR_MS = A_DAY_MS // 24
NOW_MS = 1_760_000_000_000
GB = 10**9
LIMIT = 1_000 * GB


def hourly(days: int) -> Int64Column:
    return NOW_MS - np.arange(days * 24, -1, -1, dtype=np.int64) * HOUR_MS


def days_ago(at_ms: Int64Column) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return (NOW_MS - at_ms) / A_DAY_MS


def forecast_one(at_ms: Int64Column, used: object, limit: int = LIMIT, now_ms: int = NOW_MS) -> Forecasts:
    readings = Readings(
        begin=np.array([0, len(at_ms)], dtype=np.int64),
        at_ms=at_ms,
        used_bytes=np.asarray(used).astype(np.int64),
        limit_bytes=np.array([limit], dtype=np.int64),
    )
    return forecast(readings, now_ms)


def test_steady_growth_is_full_when_arithmetic_says_so() -> None:
    at = hourly(20)
    found = forecast_one(at, 600 * GB - days_ago(at) * 10 * GB)
    assert found.outlook[0] == Outlook.FILLING
    assert found.bytes_per_day[0] == pytest.approx(10 * GB)
    assert found.days_to_full[0] == pytest.approx(40)
    assert found.back_test_error_bytes[0] == pytest.approx(0, abs=10)


def test_daily_and_weekly_rhythm_do_not_count_as_growth() -> None:
    at = hourly(28)
    day = at / A_DAY_MS
    used = 500 * GB + 30 * GB * np.sin(2 * np.pi * day) + 50 * GB * np.sin(2 * np.pi * day / 7)
    found = forecast_one(at, used)
    assert found.outlook[0] == Outlook.NOT_FILLING
    assert abs(found.bytes_per_day[0]) < 0.01 * GB


def test_quiet_weekends_lower_the_slope_and_are_not_thrown_out() -> None:
    at = hourly(28)
    day = (at // A_DAY_MS) % 7
    grown = np.cumsum(np.where(day < 5, 12 * GB / 24, 0))
    found = forecast_one(at, 100 * GB + grown)
    assert found.bytes_per_day[0] == pytest.approx(12 * GB * 5 / 7, rel=0.02)


@pytest.mark.parametrize("step", [-200 * GB, 200 * GB])
@pytest.mark.parametrize("when", [0.3, 2.5, 6.5])
def test_a_step_moves_the_level_and_not_the_slope(step: int, when: float) -> None:
    at = hourly(20)
    used = 500 * GB - days_ago(at) * 10 * GB + step * (days_ago(at) < when)
    found = forecast_one(at, used)
    assert found.bytes_per_day[0] == pytest.approx(10 * GB, rel=0.02)
    assert found.used_bytes[0] == pytest.approx(500 * GB + step)


def test_a_log_held_by_retention_is_not_filling() -> None:
    """It rises and falls around a plateau; the slope of the last days says nothing about the next ones."""
    at = hourly(30)
    used = 700 * GB + 40 * GB * np.sin(2 * np.pi * at / (9.3 * A_DAY_MS))
    found = forecast_one(at, used)
    assert abs(found.used_after(7)[0] - 700 * GB) < 60 * GB
    assert found.outlook[0] == Outlook.NOT_FILLING or found.days_to_full[0] > 30


def test_a_volume_at_its_limit_is_full() -> None:
    at = hourly(10)
    found = forecast_one(at, np.full(len(at), LIMIT))
    assert found.outlook[0] == Outlook.FULL
    assert found.days_to_full[0] == 0


def test_what_is_full_in_years_is_not_filling() -> None:
    at = hourly(20)
    found = forecast_one(at, 100 * GB - days_ago(at) * GB / 10)
    assert found.outlook[0] == Outlook.NOT_FILLING
    assert np.isnan(found.days_to_full[0])


def test_the_interval_surrounds_the_forecast() -> None:
    at = hourly(30)
    noise = np.random.default_rng(1).normal(0, 2 * GB, len(at))
    found = forecast_one(at, 600 * GB - days_ago(at) * 10 * GB + noise)
    assert found.soonest_days[0] < found.days_to_full[0] < found.latest_days[0]


def test_a_few_days_give_a_slope_and_no_interval() -> None:
    at = hourly(3)
    found = forecast_one(at, 600 * GB - days_ago(at) * 10 * GB)
    assert found.days_to_full[0] == pytest.approx(40)
    assert np.isnan(found.soonest_days[0])
    assert found.back_tests[0] == 0


def daily(*percents: float) -> Forecasts:
    """The oldest first."""
    at = NOW_MS - np.arange(len(percents) - 1, -1, -1, dtype=np.int64) * A_DAY_MS
    return forecast_one(at, np.array(percents) * 10 * GB, limit=900 * GB)


def test_a_rise_within_the_first_days_is_not_called_not_filling() -> None:
    """Distrust rests on a day or two of the past here, and the disk has just risen by 17 points."""
    found = daily(77.5, 75.6, 67.7, 63.5, 67.8, 84.8)

    assert found.back_tests[0] == 0
    assert found.outlook[0] == Outlook.TOO_SHORT
    assert np.isnan([found.bytes_per_day[0], found.days_to_full[0]]).all()


@pytest.mark.parametrize("percents", [(50, 50, 50, 50), (84.8, 67.8, 63.5, 60.0)])
def test_a_few_days_without_a_rise_are_not_filling(percents: tuple[float, ...]) -> None:
    assert daily(*percents).outlook[0] == Outlook.NOT_FILLING


def test_one_day_is_too_short() -> None:
    at = hourly(1)
    found = forecast_one(at, 600 * GB - days_ago(at) * 10 * GB)
    assert found.outlook[0] == Outlook.TOO_SHORT
    assert np.isnan(found.days_to_full[0])


def test_a_volume_that_cannot_be_read_now_has_no_forecast() -> None:
    at = hourly(20)
    used = 600 * GB - days_ago(at) * 10 * GB
    used[-1] = -1
    found = forecast_one(at, used)
    assert found.outlook[0] == Outlook.UNREADABLE
    assert np.isnan(found.days_to_full[0])
    assert found.as_of_ms[0] == at[-2]


def test_failed_looks_in_between_are_gaps() -> None:
    at = hourly(20)
    used = 600 * GB - days_ago(at) * 10 * GB
    used[100:110] = -1
    assert forecast_one(at, used).days_to_full[0] == pytest.approx(40)


@pytest.mark.parametrize("hours", [5, 40, 100])
def test_a_gap_costs_its_own_days_only(hours: int) -> None:
    at = hourly(20)
    keep = (days_ago(at) < 2) | (days_ago(at) > 2 + hours / 24)
    used = 600 * GB - days_ago(at) * 10 * GB
    assert forecast_one(at[keep], used[keep]).days_to_full[0] == pytest.approx(40)


def test_an_old_reading_is_stale() -> None:
    at = hourly(20)
    found = forecast_one(at, 600 * GB - days_ago(at) * 10 * GB, now_ms=NOW_MS + 2 * A_DAY_MS)
    assert found.outlook[0] == Outlook.STALE
    assert np.isnan(found.days_to_full[0])


def test_without_a_limit_there_is_nothing_to_reach() -> None:
    at = hourly(20)
    assert forecast_one(at, np.full(len(at), GB), limit=-1).outlook[0] == Outlook.NO_LIMIT


def test_a_volume_without_readings_is_unreadable_and_its_neighbours_are_not_touched() -> None:
    at = hourly(20)
    used = (600 * GB - days_ago(at) * 10 * GB).astype(np.int64)
    readings = Readings(
        begin=np.array([0, 0, len(at), len(at), 2 * len(at)], dtype=np.int64),
        at_ms=np.concatenate((at, at)),
        used_bytes=np.concatenate((used, used)),
        limit_bytes=np.full(4, LIMIT, dtype=np.int64),
    )
    found = forecast(readings, NOW_MS)
    assert found.outlook.tolist() == [Outlook.UNREADABLE, Outlook.FILLING] * 2
    assert found.days_to_full[1] == found.days_to_full[3] == pytest.approx(40)


def test_no_volumes_at_all() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    found = forecast(
        Readings(begin=np.zeros(1, dtype=np.int64), at_ms=nothing, used_bytes=nothing, limit_bytes=nothing), NOW_MS
    )
    assert len(found.outlook) == 0


def test_the_order_of_readings_does_not_matter() -> None:
    at = hourly(25)
    used = 600 * GB - days_ago(at) * 10 * GB + np.random.default_rng(2).normal(0, GB, len(at))
    mixed = np.random.default_rng(3).permutation(len(at))
    straight, other = forecast_one(at, used), forecast_one(at[mixed], used[mixed])
    assert straight.days_to_full[0] == other.days_to_full[0]
    assert straight.soonest_days[0] == other.soonest_days[0]


def test_a_time_beyond_the_packed_keys_is_refused() -> None:
    with pytest.raises(ValueError, match="beyond"):
        forecast_one(np.array([1 << 50], dtype=np.int64), np.array([GB]))


@given(
    used=st.lists(st.integers(min_value=-1, max_value=2 * LIMIT), min_size=1, max_size=60),
    every=st.integers(min_value=1, max_value=40),
    limit=st.integers(min_value=-1, max_value=LIMIT),
)
def test_whatever_the_readings_an_answer_is_consistent(used: list[int], every: int, limit: int) -> None:
    at = NOW_MS - np.arange(len(used) - 1, -1, -1, dtype=np.int64) * every * HOUR_MS
    found = forecast_one(at, np.array(used), limit)
    outlook = Outlook(int(found.outlook[0]))
    days, soonest, latest = found.days_to_full[0], found.soonest_days[0], found.latest_days[0]
    assert np.isnan(days) or 0 <= days <= FARTHEST_DAYS
    assert np.isnan(days) or outlook in (Outlook.FULL, Outlook.FILLING)
    assert (outlook is Outlook.FILLING) <= bool(days >= 0)
    assert np.isnan(soonest) or np.isnan(days) or soonest <= days + 1e-6
    assert np.isnan(latest) or np.isnan(days) or days <= latest + 1e-6
    assert found.days_known[0] <= DAYS_LOOKED_BACK
