from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.cordon import OwnLogDir, log_dirs_to_cordon
from brimline.decide.disk_state import DiskState
from brimline.model import Bytes

OK, FULL, UNKNOWN, OFFLINE = DiskState.OK, DiskState.FULL, DiskState.UNKNOWN, DiskState.OFFLINE


def log_dir(path: str, state: DiskState, usable: int = 100) -> OwnLogDir:
    return OwnLogDir(path=path, state=state, usable=None if state is UNKNOWN else Bytes(usable))


def decided(*log_dirs: OwnLogDir, ours: str = "", theirs: str = "", others_have_room: bool = True) -> frozenset[str]:
    return log_dirs_to_cordon(log_dirs, ours=set(ours), theirs=set(theirs), others_have_room=others_have_room)


def test_what_is_full_is_cordoned_and_what_has_room_is_not() -> None:
    assert decided(log_dir("a", FULL), log_dir("b", OK)) == {"a"}
    assert decided(log_dir("a", OK), log_dir("b", OK), ours="a") == set()


def test_what_cannot_be_watched_stays_as_it_is() -> None:
    assert decided(log_dir("a", UNKNOWN), log_dir("b", OK), ours="a") == {"a"}
    assert decided(log_dir("a", UNKNOWN), log_dir("b", OK)) == set()


def test_what_the_broker_holds_offline_stays_as_it_is_and_is_no_place_for_a_replica() -> None:
    assert decided(log_dir("a", OFFLINE), log_dir("b", OK), ours="a") == {"a"}
    assert decided(log_dir("a", OFFLINE, usable=9), log_dir("b", FULL), ours="ab", others_have_room=False) == {"a"}


def test_an_operators_own_is_not_ours_to_cordon() -> None:
    assert decided(log_dir("a", FULL), log_dir("b", FULL), theirs="a") == {"b"}


def test_all_of_a_broker_while_another_has_room() -> None:
    assert decided(log_dir("a", FULL), log_dir("b", FULL)) == {"a", "b"}


def test_the_last_place_of_the_cluster_stays_open() -> None:
    both_full = (log_dir("a", FULL, usable=7), log_dir("b", FULL, usable=3))

    assert decided(*both_full, others_have_room=False) == {"b"}
    assert decided(*both_full, ours="ab", others_have_room=False) == {"b"}
    assert decided(log_dir("a", FULL), others_have_room=False) == set()
    assert decided(log_dir("a", FULL), log_dir("b", OK), theirs="b", others_have_room=False) == set()


@given(
    st.dictionaries(st.sampled_from("abcd"), st.tuples(st.sampled_from(DiskState), st.integers(0, 9)), min_size=1),
    st.sets(st.sampled_from("abcd")),
    st.sets(st.sampled_from("abcd")),
)
def test_without_others_there_is_always_a_place_unless_an_operator_closed_it(
    states: dict[str, tuple[DiskState, int]], ours: set[str], theirs: set[str]
) -> None:
    log_dirs = [log_dir(path, state, usable) for path, (state, usable) in states.items()]
    ours -= theirs

    wanted = log_dirs_to_cordon(log_dirs, ours=ours, theirs=theirs, others_have_room=False)

    assert not wanted & theirs
    places = {path for path, (state, _) in states.items() if state is not DiskState.OFFLINE} - theirs
    assert not places or places - wanted
