"""When the ballast goes, and when it may come back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.ballast import BallastDecision, BallastRule, decide_ballast
from brimline.decide.disk_state import DiskLimits, DiskState, Space, next_state
from brimline.model import Bytes

MIB = 1 << 20
TOTAL = Bytes(1000 * MIB)
NO_LIMITS = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0))
RULE = BallastRule(size=Bytes(40 * MIB), limits=NO_LIMITS)


def decision(length: int, usable: int | None, rule: BallastRule = RULE) -> BallastDecision:
    space = None if usable is None else Space(total=TOTAL, usable=Bytes(usable))
    return decide_ballast(Bytes(length), space, rule)


@pytest.mark.parametrize(
    ("length_mib", "usable", "expected"),
    [
        pytest.param(0, 80 * MIB, BallastDecision.ALLOCATE, id="there is room for it and as much again"),
        pytest.param(0, 80 * MIB - 1, BallastDecision.WAIT_FOR_ROOM, id="not quite"),
        pytest.param(0, 0, BallastDecision.WAIT_FOR_ROOM, id="full without one"),
        pytest.param(40, 10 * MIB, BallastDecision.KEEP, id="little left"),
        pytest.param(40, 10 * MIB - 1, BallastDecision.RELEASE_RUNNING_OUT, id="too little left"),
        pytest.param(40, 0, BallastDecision.RELEASE_RUNNING_OUT, id="nothing left"),
        pytest.param(10, 70 * MIB, BallastDecision.ALLOCATE, id="the rest of one that was killed half-way"),
        pytest.param(10, 70 * MIB - 1, BallastDecision.WAIT_FOR_ROOM, id="no room for the rest"),
        pytest.param(50, 500 * MIB, BallastDecision.RELEASE_NOT_WANTED, id="a smaller one is wanted"),
        pytest.param(40, None, BallastDecision.KEEP, id="not known"),
        pytest.param(0, None, BallastDecision.KEEP, id="not known, without one"),
    ],
)
def test_the_rule(length_mib: int, usable: int | None, expected: BallastDecision) -> None:
    assert decision(length_mib * MIB, usable) is expected


def test_none_is_wanted() -> None:
    off = BallastRule(size=Bytes(0), limits=NO_LIMITS)

    assert decision(0, 500 * MIB, off) is BallastDecision.KEEP
    assert decision(40 * MIB, 500 * MIB, off) is BallastDecision.RELEASE_NOT_WANTED


def test_a_small_ballast_goes_before_the_last_blocks_do() -> None:
    small = BallastRule(size=Bytes(64 * 1024), limits=NO_LIMITS)

    assert decision(64 * 1024, MIB - 1, small) is BallastDecision.RELEASE_RUNNING_OUT


@pytest.mark.parametrize(
    "limits",
    [
        DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0)),
        DiskLimits(max_used_percent=100, min_free_bytes=Bytes(100 * MIB)),
        DiskLimits(max_used_percent=95, min_free_bytes=Bytes(0), release_margin_percent=5),
    ],
)
def test_it_never_makes_a_disk_full(limits: DiskLimits) -> None:
    rule = BallastRule(size=Bytes(40 * MIB), limits=limits)

    assert decision(0, 140 * MIB, rule) is BallastDecision.ALLOCATE
    assert decision(0, 140 * MIB - 1, rule) is BallastDecision.WAIT_FOR_ROOM


@given(st.integers(0, 200 * MIB), st.integers(0, 1000 * MIB), st.integers(0, 50))
def test_what_was_allocated_is_not_released_because_of_that(size: int, usable: int, margin: int) -> None:
    limits = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(10 * MIB), release_margin_percent=margin)
    rule = BallastRule(size=Bytes(size), limits=limits)

    if decision(0, usable, rule) is BallastDecision.ALLOCATE:
        left = Space(total=TOTAL, usable=Bytes(usable - size))
        assert decision(size, left.usable, rule) is BallastDecision.KEEP
        assert next_state(DiskState.OK, left, limits) is DiskState.OK
