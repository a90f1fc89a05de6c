"""A snapshot's way out: to the landing place, or into a spool of bounded size, in order."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.landing.delivery import Spool, deliver
from brimline.landing.place import PlaceFailed
from tests.landing.snapshots import HEADER

LIMIT = 100


def name_of(minute: int, broker: int = 1) -> str:
    return replace(HEADER, broker_id=broker, taken_at_ms=minute * 60_000, snapshot_id=f"{minute:x}").name


class Place:
    """Takes what it is given while it works, and dies on demand after it took something."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.works = True
        self.dies_after: int | None = None

    def put(self, name: str, _data: bytes) -> None:
        if not self.works:
            raise PlaceFailed("it is full")
        self.taken.append(name)
        if self.dies_after is not None and len(self.taken) == self.dies_after:
            raise KeyboardInterrupt


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool", LIMIT)


def test_straight_to_the_place_while_it_works(place: Place, spool: Spool, tmp_path: Path) -> None:
    delivery = deliver(place.put, spool, name_of(1), b"x" * 10)

    assert (delivery.sent, delivery.dropped, delivery.waiting, delivery.failure) == (1, 0, 0, None)
    assert not (tmp_path / "spool").exists()


def test_it_waits_and_then_goes_in_order(place: Place, spool: Spool) -> None:
    place.works = False
    for minute in (1, 2, 3):
        delivery = deliver(place.put, spool, name_of(minute), b"x" * 10)
    assert (delivery.sent, delivery.waiting, delivery.waiting_bytes, delivery.failure) == (0, 3, 30, "it is full")

    place.works = True
    delivery = deliver(place.put, spool, name_of(4), b"x" * 10)

    assert (delivery.sent, delivery.waiting, delivery.failure) == (4, 0, None)
    assert place.taken == [name_of(minute) for minute in (1, 2, 3, 4)]


def test_the_oldest_are_dropped_first(place: Place, spool: Spool) -> None:
    place.works = False
    dropped = [deliver(place.put, spool, name_of(minute), b"x" * 30).dropped for minute in range(1, 6)]

    assert dropped == [0, 0, 0, 1, 1]
    assert [each.name for each in spool.waiting()] == [name_of(minute) for minute in (3, 4, 5)]


def test_one_that_is_larger_than_the_spool_drops_nothing_else(place: Place, spool: Spool) -> None:
    place.works = False
    deliver(place.put, spool, name_of(1), b"x" * 30)

    assert deliver(place.put, spool, name_of(2), b"x" * (LIMIT + 1)).dropped == 1
    assert [each.name for each in spool.waiting()] == [name_of(1)]


def test_a_spool_of_nothing_drops_everything(place: Place, tmp_path: Path) -> None:
    place.works = False

    assert deliver(place.put, Spool(tmp_path / "spool", 0), name_of(1), b"x").dropped == 1


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 60)), max_size=12))
def test_every_snapshot_ends_in_one_place_and_time_never_runs_backwards(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[tuple[bool, int]]
) -> None:
    place, spool = Place(), Spool(tmp_path_factory.mktemp("state") / "spool", LIMIT)
    dropped = 0
    for minute, (works, size) in enumerate(rounds):
        place.works = works
        delivery = deliver(place.put, spool, name_of(minute), b"x" * size)
        dropped += delivery.dropped
        assert delivery.waiting_bytes <= LIMIT
        assert (delivery.failure is None) == works

    waiting = [each.name for each in spool.waiting()]
    assert len(place.taken) + len(waiting) + dropped == len(rounds)
    assert place.taken + waiting == sorted(set(place.taken + waiting))


def test_killed_between_sending_and_removing_sends_the_same_again(place: Place, spool: Spool) -> None:
    place.works = False
    for minute in (1, 2):
        deliver(place.put, spool, name_of(minute), b"x")
    place.works, place.dies_after = True, 1
    with pytest.raises(KeyboardInterrupt):
        deliver(place.put, spool, name_of(3), b"x")
    place.dies_after = None

    deliver(place.put, spool, name_of(4), b"x")

    assert place.taken == [name_of(1), name_of(1), name_of(2), name_of(4)]


def test_what_a_killed_writer_left_half_written_is_removed(spool: Spool, tmp_path: Path) -> None:
    spool.add(name_of(1), b"x")
    half = tmp_path / "spool" / (name_of(2).replace("/", "%2F") + ".unfinished")
    half.write_bytes(b"ha")
    (tmp_path / "spool" / "something else").touch()

    assert [each.name for each in spool.waiting()] == [name_of(1)]
    assert not half.exists()


@pytest.mark.parametrize("works", [True, False])
def test_a_spool_that_cannot_be_used_keeps_nobody_from_the_place(place: Place, tmp_path: Path, *, works: bool) -> None:
    (tmp_path / "spool").write_text("a file where a folder must be")
    place.works = works

    delivery = deliver(place.put, Spool(tmp_path / "spool", LIMIT), name_of(1), b"x")

    assert (delivery.sent, delivery.dropped) == ((1, 0) if works else (0, 1))
    assert "spool" in (delivery.failure or "")
