"""The table of the interception: what is seen, what follows, and that nobody is turned aside for nothing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.disk_state import DiskLimits, Space
from brimline.decide.interception import Interception, InterceptionSettings, Need, Phase, Seen, Turn, need_of, next_step
from brimline.model import Bytes

SETTINGS = InterceptionSettings()
LIMITS = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0))
CALM = Seen(now=100.0, need=Need.NONE, gateway_answers=True, direct=3, proxied=0)
NEAR, FULL = replace(CALM, need=Need.NEAR), replace(CALM, need=Need.FULL)
FENCED = replace(CALM, need=Need.FENCED)


def at(phase: Phase) -> Interception:
    return Interception(phase=phase, since=90.0)


@pytest.mark.parametrize(
    ("before", "seen", "phase", "acts"),
    [
        (Phase.IDLE, CALM, Phase.IDLE, ()),
        (Phase.IDLE, NEAR, Phase.ARMING, (Turn.ARM, Turn.CUT_DIRECT)),
        (Phase.IDLE, FENCED, Phase.ARMING, (Turn.ARM, Turn.HOLD, Turn.CUT_DIRECT)),
        (Phase.IDLE, FULL, Phase.ARMING, (Turn.ARM, Turn.HOLD, Turn.TURN_FETCHES, Turn.CUT_DIRECT)),
        (Phase.IDLE, replace(FULL, gateway_answers=False), Phase.IDLE, ()),
        (Phase.ARMING, NEAR, Phase.ARMING, (Turn.ARM, Turn.CUT_DIRECT)),
        (Phase.ARMING, replace(NEAR, direct=0), Phase.ARMED, (Turn.ARM,)),
        (Phase.ARMED, replace(FULL, direct=0), Phase.ARMED, (Turn.ARM, Turn.HOLD, Turn.TURN_FETCHES)),
        (Phase.ARMED, replace(CALM, direct=0), Phase.ARMED, (Turn.ARM,)),
        (Phase.ARMED, replace(NEAR, gateway_answers=False), Phase.IDLE, (Turn.DISARM, Turn.CUT_PROXIED)),
        (
            Phase.ARMED,
            replace(FULL, gateway_answers=False),
            Phase.ARMED,
            (Turn.HOLD, Turn.CUT_PROXIED, Turn.CUT_DIRECT),
        ),
        (Phase.DRAINING, replace(CALM, proxied=2), Phase.DRAINING, (Turn.LET_GO,)),
        (Phase.DRAINING, CALM, Phase.IDLE, ()),
        (Phase.DRAINING, replace(CALM, proxied=2, now=105.0), Phase.IDLE, (Turn.CUT_PROXIED,)),
        (Phase.DRAINING, replace(NEAR, proxied=2), Phase.ARMING, (Turn.ARM, Turn.CUT_DIRECT)),
    ],
)
def test_every_row_of_the_table(before: Phase, seen: Seen, phase: Phase, acts: tuple[Turn, ...]) -> None:
    after, done = next_step(at(before), seen, SETTINGS)

    assert (after.phase, done) == (phase, acts)


def test_it_is_let_go_only_after_there_was_room_for_long_enough() -> None:
    state, acts = next_step(at(Phase.ARMED), replace(CALM, direct=0), SETTINGS)
    state, acts = next_step(state, replace(NEAR, direct=0, now=150.0), SETTINGS)
    state, acts = next_step(state, replace(CALM, direct=0, now=159.0), SETTINGS)
    state, acts = next_step(state, replace(CALM, direct=0, now=218.0), SETTINGS)
    assert (state.phase, acts) == (Phase.ARMED, (Turn.ARM,))

    state, acts = next_step(state, replace(CALM, direct=0, now=219.0), SETTINGS)
    assert (state.phase, acts) == (Phase.DRAINING, (Turn.DISARM, Turn.LET_GO))


def test_a_lost_gateway_of_a_full_disk_is_waited_for_and_then_the_operators_word_counts() -> None:
    silent = replace(FULL, gateway_answers=False)
    waiting, _ = next_step(at(Phase.ARMED), silent, SETTINGS)
    later = replace(silent, now=silent.now + SETTINGS.grace)

    assert next_step(waiting, later, SETTINGS)[0].phase is Phase.IDLE
    state, acts = next_step(waiting, later, replace(SETTINGS, is_closed=True))
    assert (state.phase, Turn.HOLD in acts) == (Phase.ARMED, True)

    back, acts = next_step(waiting, replace(FULL, direct=0), SETTINGS)
    assert (back.lost_since, acts) == (None, (Turn.ARM, Turn.HOLD, Turn.TURN_FETCHES))


def test_near_is_a_share_of_the_volume_or_what_comes_in_meanwhile() -> None:
    def need(usable: int, rate: float | None = None) -> Need:
        return need_of(Space(total=Bytes(1000), usable=Bytes(usable)), LIMITS, rate, SETTINGS)

    assert [need(150), need(149)] == [Need.NONE, Need.NEAR]
    assert [need(300, rate=20.0), need(299, rate=20.0)] == [Need.NONE, Need.NEAR]
    assert need(150, rate=-50.0) is Need.NONE
    without = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0))
    assert need_of(Space(total=Bytes(10), usable=Bytes(0)), without, 9.0, SETTINGS) is Need.NONE


SEEN = st.builds(
    Seen,
    now=st.just(0.0),
    need=st.sampled_from(Need),
    gateway_answers=st.booleans(),
    direct=st.integers(0, 2),
    proxied=st.integers(0, 2),
)


@given(st.lists(st.tuples(st.floats(0, 100), SEEN), max_size=40))
def test_rules_are_there_only_with_a_need_or_shortly_after_one(looks: list[tuple[float, Seen]]) -> None:
    state, now, armed, was_full, needed_at = Interception(), 0.0, False, False, -1000.0
    for wait, look in looks:
        now += wait
        seen = replace(look, now=now)
        state, acts = next_step(state, seen, SETTINGS)
        needed_at = now if seen.need else needed_at
        armed = (armed or Turn.ARM in acts or Turn.HOLD in acts) and Turn.DISARM not in acts
        assert armed == state.phase.turns_aside
        if Turn.ARM in acts:
            assert seen.gateway_answers
        if not seen.gateway_answers and seen.need < Need.FENCED:
            assert not armed
        if Turn.TURN_FETCHES in acts:
            assert armed
            assert was_full or seen.need is Need.FULL
        was_full = armed and (was_full or seen.need is Need.FULL)
        if seen.gateway_answers and seen.need:
            assert armed
