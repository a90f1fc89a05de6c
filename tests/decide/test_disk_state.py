"""KIP-1201's rule, edge by edge, and what must hold for every volume and every limit."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.disk_state import (
    Breach,
    DiskLimits,
    DiskState,
    Space,
    breaches,
    bytes_to_limit,
    limits_never_met,
    next_state,
)
from brimline.model import Bytes

OFF = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0))
PERCENT_ONLY = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0))
BYTES_ONLY = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(100))

totals = st.integers(0, 2**63 - 1)
limits = st.builds(
    DiskLimits,
    max_used_percent=st.integers(10, 100),
    min_free_bytes=st.integers(0, 2**63 - 1).map(Bytes),
    release_margin_percent=st.integers(0, 50),
)
states = st.sampled_from(DiskState)


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    total = draw(totals)
    return Space(total=Bytes(total), usable=Bytes(draw(st.integers(0, total))))


def space(total: int, usable: int) -> Space:
    return Space(total=Bytes(total), usable=Bytes(usable))


@pytest.mark.parametrize(
    ("usable", "expected"),
    [
        pytest.param(101, (), id="below the limit"),
        pytest.param(100, (), id="exactly at the limit is not more than it"),
        pytest.param(99, (Breach.MAX_USED_PERCENT,), id="one byte beyond"),
        pytest.param(0, (Breach.MAX_USED_PERCENT,), id="nothing left"),
    ],
)
def test_more_than_the_percentage_used_is_full(usable: int, expected: tuple[Breach, ...]) -> None:
    assert breaches(space(1000, usable), PERCENT_ONLY) == expected


@pytest.mark.parametrize(("usable", "expected"), [(100, ()), (99, (Breach.MIN_FREE_BYTES,))])
def test_less_than_the_minimum_usable_is_full(usable: int, expected: tuple[Breach, ...]) -> None:
    assert breaches(space(10_000, usable), BYTES_ONLY) == expected


def test_either_limit_alone_makes_a_volume_full() -> None:
    both = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(500))

    assert breaches(space(1000, 400), both) == (Breach.MIN_FREE_BYTES,)
    assert breaches(space(100_000, 600), both) == (Breach.MAX_USED_PERCENT,)
    assert breaches(space(1000, 50), both) == (Breach.MAX_USED_PERCENT, Breach.MIN_FREE_BYTES)


def test_the_larger_of_the_kips_keys_and_the_reserve_makes_a_volume_full() -> None:
    less, more = (
        DiskLimits(max_used_percent=100, min_free_bytes=Bytes(500), reserve=Bytes(size)) for size in (400, 600)
    )

    assert [breaches(space(1000, usable), less) for usable in (500, 499)] == [(), (Breach.MIN_FREE_BYTES,)]
    assert [breaches(space(1000, usable), more) for usable in (600, 599)] == [(), (Breach.RESERVE,)]
    assert [bytes_to_limit(space(1000, 700), limits) for limits in (less, more)] == [200, 100]


def test_a_reserve_is_released_like_a_limit() -> None:
    limits = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(500), reserve=Bytes(600), release_margin_percent=10)

    assert next_state(DiskState.FULL, space(1000, 699), limits) is DiskState.FULL
    assert next_state(DiskState.FULL, space(1000, 700), limits) is DiskState.OK


def test_without_the_kips_limits_there_is_no_reserve() -> None:
    off = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0), reserve=Bytes(600))

    assert breaches(space(1000, 0), off) == ()
    assert bytes_to_limit(space(1000, 0), off) is None


def test_a_volume_without_inodes_is_full_and_one_that_counts_none_is_not() -> None:
    limits = DiskLimits(min_free_files=100, release_margin_percent=10)

    def left(files: int | None) -> Space:
        return replace(space(100 << 30, 50 << 30), total_files=None if files is None else 1000, usable_files=files)

    assert [breaches(left(files), limits) for files in (100, 99, 0)] == [(), (Breach.INODES,), (Breach.INODES,)]
    assert breaches(left(None), limits) == ()
    assert [next_state(DiskState.FULL, left(files), limits) for files in (109, 110)] == [DiskState.FULL, DiskState.OK]


def test_the_edge_is_not_rounded() -> None:
    """In floating point 99.00000000000001 % of a petabyte is easily 99 %."""
    total = 10**15
    at_the_edge = space(total, total // 100)

    assert breaches(at_the_edge, DiskLimits(max_used_percent=99, min_free_bytes=Bytes(0))) == ()
    beyond = space(total, total // 100 - 1)
    assert breaches(beyond, DiskLimits(max_used_percent=99, min_free_bytes=Bytes(0))) == (Breach.MAX_USED_PERCENT,)


@given(was=states, of=spaces())
def test_100_and_0_switch_it_off(was: DiskState, of: Space) -> None:
    assert next_state(was, of, OFF) is DiskState.OK


@given(was=states, by=limits)
def test_what_is_gone_is_never_full(was: DiskState, by: DiskLimits) -> None:
    assert next_state(was, None, by, is_gone=True) is DiskState.UNKNOWN


@given(was=states, by=limits)
def test_what_gives_no_reading_is_full_only_if_it_was(was: DiskState, by: DiskLimits) -> None:
    stays = was is DiskState.FULL and not by.are_off
    assert next_state(was, None, by) is (DiskState.FULL if stays else DiskState.UNKNOWN)


@given(was=states, of=spaces(), by=limits)
def test_a_breach_is_full_whatever_was(was: DiskState, of: Space, by: DiskLimits) -> None:
    if breaches(of, by):
        assert next_state(was, of, by) is DiskState.FULL


@given(of=spaces(), by=limits)
def test_without_a_breach_only_a_full_volume_stays_full(of: Space, by: DiskLimits) -> None:
    if not breaches(of, by):
        assert next_state(DiskState.OK, of, by) is DiskState.OK
        assert next_state(DiskState.UNKNOWN, of, by) is DiskState.OK


@given(was=states, of=spaces(), percent=st.integers(10, 100), free=st.integers(0, 2**63 - 1))
def test_without_a_margin_the_past_does_not_count(was: DiskState, of: Space, percent: int, free: int) -> None:
    by = DiskLimits(max_used_percent=percent, min_free_bytes=Bytes(free))

    assert next_state(was, of, by) is (DiskState.FULL if breaches(of, by) else DiskState.OK)


@given(of=spaces(), more=st.integers(0, 2**40), by=limits)
def test_more_room_never_makes_a_volume_full(of: Space, more: int, by: DiskLimits) -> None:
    roomier = Space(total=of.total, usable=Bytes(min(of.usable + more, of.total)))

    if next_state(DiskState.FULL, of, by) is DiskState.OK:
        assert next_state(DiskState.FULL, roomier, by) is DiskState.OK


@pytest.mark.parametrize(("usable", "expected"), [(100, "full"), (149, "full"), (150, "ok")])
def test_the_margin_holds_a_full_volume_back(usable: int, expected: str) -> None:
    by = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0), release_margin_percent=5)

    assert next_state(DiskState.FULL, space(1000, usable), by) is DiskState(expected)


@pytest.mark.parametrize(("usable", "expected"), [(100, "full"), (149, "full"), (150, "ok")])
def test_the_margin_counts_for_the_bytes_too(usable: int, expected: str) -> None:
    by = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(100), release_margin_percent=5)

    assert next_state(DiskState.FULL, space(1000, usable), by) is DiskState(expected)


@given(of=spaces(), by=limits)
def test_the_distance_is_what_may_still_be_written(of: Space, by: DiskLimits) -> None:
    distance = bytes_to_limit(of, by)

    if distance is None:
        assert by.are_off
    elif distance >= 0 and of.usable >= distance:
        assert not breaches(Space(total=of.total, usable=Bytes(of.usable - distance)), by)
        if of.usable > distance:
            assert breaches(Space(total=of.total, usable=Bytes(of.usable - distance - 1)), by)
    else:
        assert breaches(of, by)


def test_a_minimum_larger_than_the_volume_is_never_met() -> None:
    assert limits_never_met(Bytes(50), Bytes(0), BYTES_ONLY) == (Breach.MIN_FREE_BYTES,)


def test_reserved_blocks_can_make_a_percentage_impossible() -> None:
    low = DiskLimits(max_used_percent=10, min_free_bytes=Bytes(0))

    assert limits_never_met(Bytes(1000), Bytes(101), low) == (Breach.MAX_USED_PERCENT,)
    assert limits_never_met(Bytes(1000), Bytes(100), low) == ()


def test_a_volume_of_no_bytes_is_full_only_by_the_minimum() -> None:
    assert breaches(space(0, 0), PERCENT_ONLY) == ()
    assert breaches(space(0, 0), BYTES_ONLY) == (Breach.MIN_FREE_BYTES,)
