"""Rates, and the next look: within its bounds whatever the readings are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.fill_rate import (
    SHARE_OF_TIME_LEFT,
    Pace,
    UsableAt,
    fill_rate,
    next_look,
    pacing_rate,
    seconds_left,
)
from brimline.model import Bytes

PACE = Pace(interval=60.0, floor=0.1)


def readings(*pairs: tuple[float, int]) -> list[UsableAt]:
    return [UsableAt(seconds, Bytes(usable)) for seconds, usable in pairs]


some_readings = st.lists(st.tuples(st.floats(0, 1e6, allow_nan=False), st.integers(0, 2**50)), max_size=20).map(
    lambda pairs: readings(*sorted(pairs))
)
paces = st.builds(Pace, interval=st.floats(0.001, 1e6), floor=st.floats(0.1, 10.0), fast=st.booleans())
distances = st.none() | st.integers(-(2**50), 2**50).map(Bytes)


@given(some_readings, distances, paces)
def test_never_below_the_floor_and_never_above_the_interval(
    seen: list[UsableAt], distance: Bytes | None, pace: Pace
) -> None:
    wait = next_look(seen, distance, pace)

    assert wait <= pace.interval
    assert wait >= min(pace.floor, pace.interval)


@given(some_readings, distances)
def test_never_longer_than_its_share_of_the_time_left(seen: list[UsableAt], distance: Bytes | None) -> None:
    left = seconds_left(distance, pacing_rate(seen))

    if left is not None and left > 0:
        assert next_look(seen, distance, PACE) <= max(left * SHARE_OF_TIME_LEFT, PACE.floor)


def test_a_steady_rate_is_found() -> None:
    assert fill_rate(readings((0, 1000), (1, 900), (2, 800), (3, 700))) == 100


def test_the_rate_is_negative_while_space_comes_back() -> None:
    assert fill_rate(readings((0, 100), (10, 1100))) == -100


def test_one_reading_has_no_rate() -> None:
    assert fill_rate(readings((0, 1000))) is None


def test_a_few_odd_readings_do_not_move_the_rate() -> None:
    """A temporary file came and went; the disk fills as before."""
    seen = [(second, 1000 - 10 * second) for second in range(16)]
    seen[5], seen[11] = (5, 100), (11, 5000)

    assert fill_rate(readings(*seen)) == pytest.approx(10)


def test_what_comes_in_lumps_is_a_rate_all_the_same() -> None:
    """File systems allocate late: nothing for a while, then much at once."""
    seen = [(second, 1000 - 100 * (second // 4)) for second in range(16)]

    assert fill_rate(readings(*seen)) == pytest.approx(25, abs=5)


def test_two_readings_of_one_moment_are_no_rate() -> None:
    assert fill_rate(readings((5, 1000), (5, 900))) is None


def test_a_burst_is_remembered_for_the_pace() -> None:
    seen = readings((0, 10_000), (60, 10_000), (120, 4_000), (180, 4_000), (240, 4_000))

    assert fill_rate(seen) == pytest.approx(0, abs=40)
    assert pacing_rate(seen) == 100


def test_time_left_is_distance_over_rate() -> None:
    assert seconds_left(Bytes(1000), 10) == 100


@pytest.mark.parametrize("rate", [None, 0.0, -5.0])
def test_a_volume_that_does_not_fill_has_no_time_left(rate: float | None) -> None:
    assert seconds_left(Bytes(1000), rate) is None


def test_beyond_the_limit_no_time_is_left() -> None:
    assert seconds_left(Bytes(-1), 10) == 0


def test_a_calm_volume_is_looked_at_every_interval() -> None:
    assert next_look(readings((0, 1000), (60, 1000)), Bytes(500 << 30), PACE) == 60


def test_a_filling_volume_is_looked_at_after_a_tenth_of_its_time() -> None:
    assert next_look(readings((0, 1000 << 30), (1, 900 << 30)), Bytes(900 << 30), PACE) == pytest.approx(0.9)


def test_at_the_brim_the_floor_holds() -> None:
    assert next_look(readings((0, 1000), (1, 1)), Bytes(1), PACE) == 0.1


def test_a_full_volume_is_looked_at_every_second() -> None:
    assert next_look(readings((0, 5), (60, 5)), Bytes(-5), PACE) == 1.0


def test_switched_off_it_is_the_interval_always() -> None:
    slow = Pace(interval=60.0, fast=False)

    assert next_look(readings((0, 1000), (1, 1)), Bytes(1), slow) == 60


def test_without_a_limit_there_is_no_hurry() -> None:
    assert next_look(readings((0, 1000), (1, 1)), None, PACE) == 60


def test_the_first_reading_is_followed_soon_by_a_second() -> None:
    assert next_look(readings((0, 1000)), Bytes(500 << 30), PACE) == 1.0


def test_no_burst_out_of_a_calm_is_missed() -> None:
    calm = readings((0, 1 << 40), (60, 1 << 40))

    assert [next_look(calm, Bytes(left), PACE) for left in (1 << 40, 8 << 30, 1 << 20)] == [60, 8, 0.1]
