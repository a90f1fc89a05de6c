"""When the cleaner is held, ended, let run in a window, and let go."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.cleaner_hold import CleanedVolume, HoldMemory, HoldState, next_hold

MIB = 1 << 20
KEPT = 1024 * MIB
PATIENCE = 75.0
FREE = HoldMemory()


def volume(usable_mib: int, groups_mib: int = 100, fill_rate: float = 0.0, passes_mib: int = 800) -> CleanedVolume:
    return CleanedVolume(
        usable=usable_mib * MIB, kept=KEPT, groups=groups_mib * MIB, passes=passes_mib * MIB, fill_rate=fill_rate
    )


def after(memory: HoldMemory, *volumes: CleanedVolume, now: float = 0.0) -> HoldMemory:
    return next_hold(memory, volumes, now, PATIENCE)


def stuck(memory: HoldMemory, usable_mib: int, now: float) -> HoldMemory:
    """Two looks later: before a window whatever still runs is ended."""
    held = replace(memory, state=HoldState.HELD)
    ended = after(held, volume(usable_mib), now=now)
    assert ended.state is HoldState.ENDED
    return after(ended, volume(usable_mib), now=now + 0.5)


def test_nothing_near_its_limit_nothing_held() -> None:
    assert after(FREE, volume(2000)) is FREE
    assert after(FREE) is FREE


def test_it_is_held_a_quarter_of_what_is_kept_before_the_limit() -> None:
    assert after(FREE, volume(1281)).state is HoldState.FREE
    assert after(FREE, volume(1279)).state is HoldState.ENDED


def test_a_disk_that_fills_fast_has_it_held_earlier() -> None:
    assert after(FREE, volume(1500, fill_rate=200 * MIB)).state is HoldState.ENDED


def test_one_volume_is_enough() -> None:
    assert after(FREE, volume(9000), volume(1000)).state is HoldState.ENDED


def test_what_a_guard_before_left_running_is_ended_only_where_its_next_groups_might_not_fit() -> None:
    held = HoldMemory(state=HoldState.HELD, usable=1000 * MIB)

    assert after(held, volume(613)).state is HoldState.HELD
    assert after(held, volume(611)).state is HoldState.ENDED


def test_it_is_let_go_well_clear_of_the_limit_and_not_before() -> None:
    for state in (HoldState.HELD, HoldState.ENDED, HoldState.WINDOW):
        held = HoldMemory(state=state)
        assert after(held, volume(1535)).state is state
        assert after(held, volume(1536)).state is HoldState.FREE


def test_a_full_volume_without_a_reading_lets_nothing_go() -> None:
    unread = CleanedVolume(usable=-1)

    assert after(FREE, unread) is FREE
    for state in (HoldState.HELD, HoldState.ENDED, HoldState.WINDOW):
        assert after(HoldMemory(state=state), volume(3000), unread, now=1000.0).state is state


def test_where_nothing_is_compacted_any_more_nothing_is_held() -> None:
    assert after(HoldMemory(state=HoldState.ENDED)).state is HoldState.FREE


def test_a_disk_that_gets_no_emptier_gets_a_window() -> None:
    held = after(FREE, volume(800))

    assert after(held, volume(800), now=PATIENCE).state is HoldState.ENDED
    assert after(held, volume(800), now=PATIENCE + 1).state is HoldState.WINDOW
    assert stuck(held, 800, now=PATIENCE + 1).state is HoldState.WINDOW


def test_a_window_has_a_pace_that_leaves_time_to_delete_what_was_replaced() -> None:
    held = HoldMemory(state=HoldState.ENDED, usable=9000 * MIB)

    large = CleanedVolume(usable=9000 * MIB, kept=8000 * MIB, groups=100 * MIB, passes=800 * MIB)
    assert after(held, large, now=PATIENCE + 1).pace == (9000 - 100 - 1000) * MIB // 8
    assert after(held, large, volume(1400), now=PATIENCE + 1).pace == 256 * MIB


def test_it_is_no_pace_that_kafka_would_sleep_out_for_long() -> None:
    small = CleanedVolume(usable=30 * MIB, kept=32 * MIB, groups=MIB, passes=20 * MIB)

    window = after(HoldMemory(state=HoldState.ENDED, usable=30 * MIB), small, now=PATIENCE + 1)

    assert (window.state, window.pace) == (HoldState.WINDOW, 256 * MIB)


def test_a_window_ends_before_what_fills_the_disk_has_filled_it() -> None:
    window = HoldMemory(state=HoldState.WINDOW)

    assert after(window, volume(429, fill_rate=100 * MIB), now=1.0).state is HoldState.WINDOW
    assert after(window, volume(427, fill_rate=100 * MIB), now=1.0).state is HoldState.ENDED


def test_so_does_one_that_stays_just_above_its_limit() -> None:
    held = after(FREE, volume(1200))

    assert after(held, volume(1300), now=1.0).state is HoldState.ENDED
    assert stuck(after(held, volume(1300), now=1.0), 1300, now=PATIENCE + 2).state is HoldState.WINDOW


def test_what_was_ended_late_is_waited_for_from_then_on() -> None:
    held = replace(after(FREE, volume(1200)), state=HoldState.HELD)
    ended = after(held, volume(400), now=PATIENCE - 1)

    assert ended.state is HoldState.ENDED
    assert after(ended, volume(400), now=PATIENCE + 1).state is HoldState.ENDED


def test_one_that_gets_emptier_by_itself_waits_for_it() -> None:
    held = after(FREE, volume(800))

    emptier = after(held, volume(900), now=PATIENCE)

    assert after(emptier, volume(900), now=PATIENCE + 1).state is HoldState.ENDED
    assert stuck(emptier, 900, now=2 * PATIENCE + 1).state is HoldState.WINDOW


def test_no_window_without_room_for_the_groups() -> None:
    held = HoldMemory(state=HoldState.ENDED, usable=612 * MIB)

    assert after(held, volume(611), now=PATIENCE + 1).state is HoldState.ENDED
    assert held.is_stuck(PATIENCE + 1, PATIENCE)
    assert after(held, volume(612), now=PATIENCE + 1).state is HoldState.WINDOW


def test_where_there_is_little_to_clean_little_room_is_enough() -> None:
    held = HoldMemory(state=HoldState.ENDED, usable=612 * MIB)

    assert after(held, volume(428, passes_mib=200), now=PATIENCE + 1).state is HoldState.WINDOW
    assert after(held, volume(427, passes_mib=200), now=PATIENCE + 1).state is HoldState.ENDED
    assert after(held, volume(356, passes_mib=0), now=PATIENCE + 1).state is HoldState.WINDOW


def test_a_window_ends_at_its_floor_and_another_comes_later() -> None:
    window = HoldMemory(state=HoldState.WINDOW)

    assert after(window, volume(128), now=500.0).state is HoldState.WINDOW
    ended = after(window, volume(127), now=500.0)
    assert ended.state is HoldState.ENDED
    assert after(ended, volume(900), now=510.0).state is HoldState.ENDED
    assert after(ended, volume(900), now=510.0 + PATIENCE).state is HoldState.ENDED
    again = after(after(ended, volume(900), now=510.0), volume(900), now=511.0 + PATIENCE)
    assert again.state is HoldState.WINDOW


@given(
    st.sampled_from(HoldState),
    st.lists(st.integers(0, 4000), max_size=3),
    st.floats(0, 1000),
)
def test_a_full_disk_never_has_the_cleaner_let_go(state: HoldState, usable: list[int], now: float) -> None:
    volumes = [volume(each) for each in usable]

    found = after(HoldMemory(state=state), *volumes, now=now)

    if any(each.usable < each.kept for each in volumes):
        assert found.state is not HoldState.FREE
