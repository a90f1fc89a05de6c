"""How deep a follower's full disk is in what its limit leaves free."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.disk_state import DiskLimits, Space
from brimline.decide.fill_rate import UsableAt
from brimline.decide.reserve import LOOKS_AHEAD, Depth, depth_of, reserve_of
from brimline.model import Bytes

TOTAL = Bytes(1000)
AT_80 = DiskLimits(max_used_percent=80, min_free_bytes=Bytes(0))


def space(usable: int) -> Space:
    return Space(total=TOTAL, usable=Bytes(usable))


def readings(*usable: int) -> list[UsableAt]:
    """One a second."""
    return [UsableAt(float(second), Bytes(each)) for second, each in enumerate(usable)]


@pytest.mark.parametrize(
    ("limits", "wish", "reserve"),
    [
        pytest.param(AT_80, None, 100, id="half of what the limit leaves free"),
        pytest.param(DiskLimits(max_used_percent=100, min_free_bytes=Bytes(300)), None, 150, id="by bytes"),
        pytest.param(DiskLimits(max_used_percent=80, min_free_bytes=Bytes(300)), None, 150, id="the nearer limit"),
        pytest.param(AT_80, 40, 40, id="the operator's number"),
        pytest.param(AT_80, 0, 0, id="none"),
        pytest.param(AT_80, 5000, 200, id="never before the limit"),
    ],
)
def test_the_reserve(limits: DiskLimits, wish: int | None, reserve: int) -> None:
    assert reserve_of(space(190), limits, None if wish is None else Bytes(wish), [], 1.0) == reserve


def test_it_is_never_less_than_what_comes_in_until_the_next_looks() -> None:
    steady = readings(220, 210, 200, 190)

    assert reserve_of(space(190), AT_80, Bytes(0), steady, 1.0) == 2 * 10 * LOOKS_AHEAD


def test_one_file_that_appears_is_no_rate() -> None:
    assert reserve_of(space(150), AT_80, Bytes(0), readings(900, 900, 150, 150), 1.0) == 0


def test_what_fills_too_fast_to_be_seen_is_fenced_from_the_limit_on() -> None:
    assert reserve_of(space(190), AT_80, None, readings(490, 390, 290, 190), 60.0) == 200


@pytest.mark.parametrize(
    ("usable", "depth"),
    [(200, Depth.LIMIT), (100, Depth.LIMIT), (99, Depth.RESERVE), (50, Depth.RESERVE), (49, Depth.LAST)],
)
def test_the_depth(usable: int, depth: Depth) -> None:
    assert depth_of(space(usable), Bytes(100)) is depth


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.none() | st.integers(0, 1000))
def test_a_disk_that_fills_evenly_is_wholly_fenced_before_it_is_full(usable: list[int], wish: int | None) -> None:
    """Whatever the operator asks for, the next look comes before the end, if the rate stays what it was."""
    falling = sorted(usable, reverse=True)
    steps = [a - b for a, b in pairwise(falling)]
    if len(falling) < 4 or len(set(steps[-3:])) != 1:
        return
    reserve = reserve_of(space(falling[-1]), AT_80, None if wish is None else Bytes(wish), readings(*falling), 1.0)

    if 0 < falling[-1] < 200 and falling[-1] - steps[-1] < 0:
        assert depth_of(space(falling[-1]), reserve) is Depth.LAST or reserve == 200
