"""Log dirs are cordoned and opened again, and what an operator has cordoned stays so; however often we are killed."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.act.cordon import Cordon, Cordoned
from brimline.act.ledger.entries import CordonEntry, Entry
from brimline.act.ledger.files import LedgerFiles
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.story import Act, tell
from brimline.model import Failure, FailureKind, ObservationFailed
from brimline.service.durable_files import NotRecorded
from tests.act.ledger.entries import NOW
from tests.act.settings import NEVER, Killed

A, B = "/data/a", "/data/b"
REFUSED = ObservationFailed(Failure(kind=FailureKind.NOT_AUTHORIZED, message="no"))


class CordonsInMemory:
    """A broker's ``cordoned.log.dirs``."""

    def __init__(self, *log_dirs: str) -> None:
        self.value = set(log_dirs)
        self.changes = 0
        self.problem: Exception | None = None
        self.before_altering: Callable[[], None] = lambda: None

    def cordoned(self) -> Collection[str]:
        if self.problem is not None:
            raise self.problem
        return set(self.value)

    def add(self, log_dirs: Collection[str]) -> None:
        self._alter(self.value | set(log_dirs))

    def remove(self, log_dirs: Collection[str]) -> None:
        self._alter(self.value - set(log_dirs))

    def _alter(self, value: set[str]) -> None:
        self.before_altering()
        self.value = value
        self.changes += 1


class _MortalLedger(Ledger):
    def __init__(self, folder: Path, step: Callable[[], None]) -> None:
        super().__init__(folder, 1, lambda: NOW)
        self._step = step

    def append(self, *entries: Entry) -> None:
        self._step()
        super().append(*entries)


class MortalGuard:
    """Is killed right before its ``steps``-th change of anything."""

    def __init__(self, setting: CordonsInMemory, folder: Path, steps: int = NEVER) -> None:
        self._steps = steps
        setting.before_altering = self._step
        self._ledger = _MortalLedger(folder, self._step)
        self._cordon = Cordon(setting, self._ledger, [A, B])

    def apply(self, *wanted: str) -> Cordoned:
        """As the guard does, which leaves alone what an operator has cordoned."""

        def decide(cordoned: Cordoned) -> Mapping[str, str]:
            return {path: "it is full" for path in wanted if path not in cordoned.theirs}

        return self._cordon.apply(decide)

    def close(self) -> None:
        self._ledger.close()

    def _step(self) -> None:
        if self._steps == 0:
            raise Killed
        self._steps -= 1


def told(folder: Path) -> list[tuple[str, str]]:
    entries = [chapter.entry for chapter in tell(LedgerFiles(folder, 1)).chapters if isinstance(chapter, Act)]
    return [(each.act.value, each.log_dir) for each in entries if isinstance(each, CordonEntry)]


def test_what_is_cordoned_is_on_record_and_open_again_afterwards(tmp_path: Path) -> None:
    setting = CordonsInMemory()
    guard = MortalGuard(setting, tmp_path)

    first, again = guard.apply(A), guard.apply(A)
    while_full = set(setting.value)
    last = guard.apply()

    assert first.added == last.opened == {A}
    assert again.added == set()
    assert (while_full, setting.value, setting.changes) == ({A}, set(), 2)
    assert told(tmp_path) == [("cordoned", A), ("uncordoned", A)]


@pytest.mark.parametrize("theirs", [A, "*"])
def test_what_an_operator_has_cordoned_is_left_alone(tmp_path: Path, theirs: str) -> None:
    setting = CordonsInMemory(theirs)
    guard = MortalGuard(setting, tmp_path)

    seen = guard.apply(A)
    guard.apply()

    assert A in seen.theirs
    assert (setting.value, setting.changes) == ({theirs}, 0)


def test_an_operators_entry_beside_ours_stays(tmp_path: Path) -> None:
    setting = CordonsInMemory(B)
    guard = MortalGuard(setting, tmp_path)

    guard.apply(A)
    guard.apply()

    assert setting.value == {B}


def test_what_somebody_takes_out_while_it_is_full_is_put_back(tmp_path: Path) -> None:
    setting = CordonsInMemory()
    guard = MortalGuard(setting, tmp_path)
    guard.apply(A)

    setting.value = set()

    assert guard.apply(A).added == {A}
    assert told(tmp_path) == [("cordoned", A)]


def test_nothing_is_cordoned_that_is_not_on_record(tmp_path: Path) -> None:
    setting = CordonsInMemory()
    (tmp_path / "state").write_text("no folder")

    with pytest.raises(NotRecorded):
        MortalGuard(setting, tmp_path / "state").apply(A)
    assert setting.changes == 0


def test_a_broker_that_does_not_answer_changes_nothing(tmp_path: Path) -> None:
    setting = CordonsInMemory()
    guard = MortalGuard(setting, tmp_path)
    setting.problem = REFUSED

    with pytest.raises(ObservationFailed):
        guard.apply(A)

    setting.problem = None
    assert guard.apply(A).ours == {A}


@given(
    theirs=st.sets(st.sampled_from([A, B])),
    lives=st.lists(st.tuples(st.sets(st.sampled_from([A, B])), st.integers(0, 3)), max_size=6),
)
def test_however_often_it_is_killed_only_what_was_ours_is_taken_out(
    tmp_path_factory: pytest.TempPathFactory, theirs: set[str], lives: list[tuple[set[str], int]]
) -> None:
    folder = tmp_path_factory.mktemp("state")
    setting = CordonsInMemory(*theirs)
    for wanted, steps in lives:
        mortal = MortalGuard(setting, folder, steps)
        with suppress(Killed):
            mortal.apply(*wanted)
        mortal.close()
        assert theirs <= setting.value

    heir = MortalGuard(setting, folder)
    heir.apply()
    heir.close()
    assert setting.value == theirs
