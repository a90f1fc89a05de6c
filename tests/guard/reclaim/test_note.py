"""The note of this guard: left when there is something new to say, and again before others forget it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.act.ledger.entries import Paused, Resumed
from brimline.act.ledger.ledger import Ledger
from brimline.decide.reclaim.brakes import Brakes
from brimline.documents.guard_note import GuardNote, read_note
from brimline.guard.reclaim.note import RENEWED_EVERY, NotePoster
from brimline.model import Failure, FailureKind, ObservationFailed
from brimline.model.reclaim import ReclaimPolicy
from tests.service.ticking import TickingClock

SHARED = ReclaimPolicy(ceiling_percent=80, min_retention_ms=7, protected_topics=("audit",), shares_brakes=True)


class World:
    """A poster, what it was told to go by, and what it has left."""

    def __init__(self, state_dir: Path) -> None:
        self.clock = TickingClock()
        self.policy = SHARED
        self.ledger = Ledger(state_dir, 1, self.clock.now)
        self.left: list[GuardNote] = []
        self.refuses = self.is_alone = False
        self.poster = NotePoster(lambda: self.policy, self.ledger, self._leave, self.clock)

    def run(self, seconds: float) -> None:
        until = self.clock.seconds() + seconds
        while self.clock.seconds() < until:
            self.clock.tick(self.poster.step())

    def _leave(self, text: str) -> bool:
        if self.refuses:
            raise ObservationFailed(Failure(kind=FailureKind.NOT_AUTHORIZED, message="this principal needs READ"))
        if not self.is_alone:
            self.left.append(read_note(text))
        return not self.is_alone


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.ledger.close()


def test_it_is_left_at_once_and_every_hour(world: World) -> None:
    world.run(3 * RENEWED_EVERY)

    assert [each.brakes for each in world.left] == [Brakes.of(SHARED)] * 3
    assert world.left[1].written_at > world.left[0].written_at


def test_a_pause_its_end_and_other_brakes_are_told(world: World) -> None:
    world.run(10)
    world.ledger.append(Paused(by="root", reason="a replay"))
    world.run(10)
    world.ledger.append(Resumed(by="root", reason=""))
    world.run(10)
    world.policy = replace(SHARED, min_retention_ms=9)
    world.run(10)

    told = [(each.paused and each.paused.reason, each.brakes.min_retention_ms) for each in world.left]
    assert told == [(None, 7), ("a replay", 7), (None, 7), (None, 9)]


@pytest.mark.parametrize("silent", [replace(SHARED, ceiling_percent=100), replace(SHARED, shares_brakes=False)])
def test_whoever_shares_no_brakes_says_nothing_and_takes_back_what_was_said(
    world: World, silent: ReclaimPolicy
) -> None:
    world.policy = silent
    world.run(60)
    assert world.left == []

    world.policy = SHARED
    world.run(10)
    world.policy = silent
    world.run(2 * RENEWED_EVERY)

    assert [each.brakes for each in world.left] == [Brakes.of(SHARED), Brakes()]


def test_what_stands_in_the_way_is_told_until_it_is_gone(world: World) -> None:
    world.refuses = True
    world.run(100)
    while_refused = world.poster.problem
    world.refuses = False
    world.run(100)

    assert while_refused == ("this broker's brakes cannot be shared with other guards: this principal needs READ")
    assert (world.poster.problem, len(world.left)) == (None, 1)


def test_too_many_patterns_are_a_problem_but_a_pause_is_told_all_the_same(world: World) -> None:
    world.policy = replace(SHARED, protected_topics=tuple(f"topic-{number}" for number in range(500)))
    world.run(60)
    assert world.left == []
    assert "shorten brimline.reclaim.protected.topics" in str(world.poster.problem)

    world.ledger.append(Paused(by="root", reason="a replay"))
    world.run(60)

    assert [each.paused is not None for each in world.left] == [True]


def test_a_cluster_of_one_broker_is_left_as_it_is_until_there_is_another(world: World) -> None:
    world.is_alone = True
    world.run(600)
    world.is_alone = False
    world.run(120)

    assert len(world.left) == 1
