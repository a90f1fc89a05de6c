"""The throttle is put on and taken off, and whatever the operator had is there again; however often we are killed."""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.act.move_pause import PAUSED, Hold
from brimline.model import Failure, FailureKind, ObservationFailed
from tests.act.settings import NOW, Killed, MortalGuard, SettingInMemory

OPERATORS = "20000000"
REFUSED = ObservationFailed(Failure(kind=FailureKind.NOT_AUTHORIZED, message="no"))
befores = pytest.mark.parametrize("before", [None, OPERATORS])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "move-pause-1.json"


@befores
def test_what_was_there_is_there_again(path: Path, before: str | None) -> None:
    setting = SettingInMemory(before)
    guard = MortalGuard(setting, path)

    held = guard.moves.hold()
    while_held, on_record = setting.value, path.exists()
    guard.moves.release()

    assert (held, while_held, on_record) == (Hold.SET, PAUSED, True)
    assert setting.value == before
    assert not path.exists()
    assert guard.moves.pause is None


def test_it_is_on_disk_before_the_broker_is_told(path: Path) -> None:
    setting = SettingInMemory(OPERATORS)
    guard = MortalGuard(setting, path, steps=1)

    with pytest.raises(Killed):
        guard.moves.hold()

    found = MortalGuard(setting, path).moves.pause
    assert setting.value == OPERATORS
    assert found is not None
    assert (found.before, found.since) == (OPERATORS, NOW)


@befores
def test_another_guard_goes_on_where_one_was_killed(path: Path, before: str | None) -> None:
    setting = SettingInMemory(before)
    MortalGuard(setting, path).moves.hold()

    heir = MortalGuard(setting, path)
    stands = heir.moves.hold()
    heir.moves.release()

    assert stands is Hold.STANDS
    assert setting.altered == [PAUSED, before]


@pytest.mark.parametrize("theirs", [None, "5000000"], ids=["cleared", "changed"])
def test_what_somebody_else_sets_meanwhile_is_held_up_again_and_is_theirs_afterwards(
    path: Path, theirs: str | None
) -> None:
    setting = SettingInMemory(OPERATORS)
    guard = MortalGuard(setting, path)
    guard.moves.hold()

    setting.value = theirs
    again = guard.moves.hold()
    while_held = setting.value
    guard.moves.release()

    assert (again, while_held) == (Hold.SET_AGAIN, PAUSED)
    assert setting.value == theirs


def test_what_somebody_else_sets_just_before_the_release_is_left_alone(path: Path) -> None:
    setting = SettingInMemory(OPERATORS)
    guard = MortalGuard(setting, path)
    guard.moves.hold()

    setting.value = "5000000"
    guard.moves.release()

    assert setting.value == "5000000"
    assert not path.exists()


def test_a_pause_that_is_not_ours_is_left_alone(path: Path) -> None:
    setting = SettingInMemory(PAUSED)
    guard = MortalGuard(setting, path)

    held = guard.moves.hold()
    guard.moves.release()

    assert held is Hold.NOT_OURS
    assert setting.altered == []
    assert not path.exists()


def test_without_a_pause_a_release_asks_nobody(path: Path) -> None:
    setting = SettingInMemory()

    MortalGuard(setting, path).moves.release()

    assert setting.asked == 0


def test_a_broker_that_refuses_is_asked_again_and_nothing_is_lost(path: Path) -> None:
    setting = SettingInMemory(OPERATORS)
    guard = MortalGuard(setting, path)
    guard.moves.hold()
    setting.problem = REFUSED

    with pytest.raises(ObservationFailed):
        guard.moves.release()
    still_there = path.exists()
    setting.problem = None
    guard.moves.release()

    assert still_there
    assert setting.value == OPERATORS


values = st.sampled_from([None, "2", OPERATORS])
acts = st.lists(
    st.one_of(
        st.tuples(st.just("hold"), st.integers(0, 3)),
        st.tuples(st.just("release"), st.integers(0, 3)),
        st.tuples(st.just("operator"), values),
    ),
    max_size=12,
)


@given(values, acts, st.booleans())
def test_the_operators_last_word_counts_wherever_guards_are_killed(
    before: str | None,
    script: list[tuple[str, int | str | None]],
    is_still_full: bool,  # noqa: FBT001 (drawn)
) -> None:
    """Every act is of a new guard, killed after so many steps. The last one lives."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "move-pause-1.json"
        setting, wanted = SettingInMemory(before), before
        for act, argument in script:
            if act == "operator":
                assert argument is None or isinstance(argument, str)
                setting.value = wanted = argument
                continue
            assert isinstance(argument, int)
            guard = MortalGuard(setting, path, steps=argument)
            with suppress(Killed):
                guard.moves.hold() if act == "hold" else guard.moves.release()
        survivor = MortalGuard(setting, path)
        if is_still_full:
            survivor.moves.hold()
            assert setting.value == PAUSED
        survivor.moves.release()

        assert setting.value == wanted
        assert not path.exists()
