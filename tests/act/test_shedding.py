"""Replicas taken away: in the ledger first, no more than are needed, and told until they are back."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brimline.act.ledger.ledger import Ledger, PauseFile
from brimline.act.shedding import LATE, CrowdedDisk, Shedding
from brimline.decide.shedding import Sheddable
from brimline.model import BrokerId, Bytes, Failure, FailureKind, ObservationFailed, TopicPartition
from brimline.observe.cluster.reassignments import Assigned

OWN, FOLLOWER, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)
ALL: tuple[BrokerId, ...] = (OWN, FOLLOWER, THIRD)
FOURTH = BrokerId(4)
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
SIZES = {FIRST: Bytes(100), SECOND: Bytes(300)}
DELAY = timedelta(minutes=1)
CUT_OFF = Failure(kind=FailureKind.TIMED_OUT, message="no answer")


class ClusterInMemory:
    """Whatever is reassigned must be in ``ledger`` by then."""

    def __init__(self) -> None:
        self.replicas = dict.fromkeys(SIZES, ALL)
        self.refused: dict[TopicPartition, str] = {}
        self.failure: Failure | None = None
        self.ledger: Ledger | None = None
        self.asked: list[dict[TopicPartition, tuple[BrokerId, ...]]] = []

    def delete_delay(self, follower: BrokerId) -> timedelta:
        return DELAY

    def look(self, disk: CrowdedDisk) -> Sequence[Sheddable]:
        return [
            Sheddable(
                partition=each,
                size=SIZES[each],
                replicas=self.replicas[each],
                in_sync=frozenset(self.replicas[each]),
                leader=OWN,
                fewest=2,
            )
            for each in disk.partitions
        ]

    def assigned(self, topics: Collection[str]) -> Mapping[TopicPartition, Assigned]:
        return {
            each: Assigned(replicas=replicas, in_sync=frozenset(replicas), leader=OWN, is_internal=False)
            for each, replicas in self.replicas.items()
        }

    def reassign(self, wanted: Mapping[TopicPartition, Sequence[BrokerId]]) -> Mapping[TopicPartition, str]:
        assert self.ledger is not None
        assert {each.partition for each in (record.entry for record in self.ledger.state.shed.values())} >= set(wanted)
        if self.failure is not None:
            raise ObservationFailed(self.failure)
        self.asked.append({each: tuple(replicas) for each, replicas in wanted.items()})
        self.replicas |= {each: tuple(left) for each, left in wanted.items() if each not in self.refused}
        return self.refused


class World:
    def __init__(self, folder: Path) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.folder = folder
        self.cluster = ClusterInMemory()
        self.shedding = self.started()

    def started(self) -> Shedding:
        ledger = self.cluster.ledger = Ledger(self.folder, 1, lambda: self.now)
        return Shedding(self.cluster, ledger, OWN, lambda: self.now)

    def relieve(self, lacking: int, follower: BrokerId = FOLLOWER) -> list[TopicPartition]:
        partitions = dict.fromkeys(SIZES, frozenset({*ALL, FOURTH}))
        disk = CrowdedDisk(
            follower=follower, log_dir="/a", lacking=Bytes(lacking), partitions=partitions, why="it is full"
        )
        return [each.partition for each in self.shedding.relieve(disk)]

    @property
    def shed(self) -> list[TopicPartition]:
        return [each.entry.partition for each in self.shedding.shed]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_largest_is_taken_away_and_the_ledger_has_who_had_it(world: World) -> None:
    assert world.relieve(250) == [SECOND]

    assert world.cluster.asked == [{SECOND: (OWN, THIRD)}]
    (record,) = world.shedding.shed
    assert (record.entry.before, record.entry.left, record.entry.follower) == (ALL, (OWN, THIRD), FOLLOWER)


def test_what_is_on_its_way_back_is_not_taken_twice(world: World) -> None:
    world.relieve(250)

    assert world.relieve(250) == []
    assert world.relieve(350) == [FIRST]


def test_a_guard_that_was_started_again_knows_what_is_on_its_way_back(world: World) -> None:
    world.relieve(250)
    world.shedding = world.started()

    assert world.relieve(250) == []
    assert world.shed == [SECOND]


def test_when_it_should_be_back_more_may_go(world: World) -> None:
    world.relieve(250)
    world.now += DELAY + LATE + timedelta(seconds=1)

    assert world.relieve(50) == [FIRST]


def test_a_partition_does_not_lose_two_replicas_at_once(world: World) -> None:
    """What is known of it may be older than what was changed."""
    world.relieve(250)
    world.cluster.replicas[SECOND] = ALL

    assert world.relieve(250, THIRD) == [FIRST]


def test_the_leader_and_another_one_stay(world: World) -> None:
    world.relieve(400)
    world.now += timedelta(hours=1)

    assert world.relieve(400, THIRD) == []


def test_what_the_controller_refuses_is_not_called_shed(world: World) -> None:
    world.cluster.refused = {SECOND: "INVALID_REPLICA_ASSIGNMENT"}

    assert world.relieve(400) == [FIRST]
    assert world.shed == [FIRST]


def test_what_may_have_been_done_or_not_is_looked_after(world: World) -> None:
    world.cluster.failure = CUT_OFF
    with pytest.raises(ObservationFailed):
        world.relieve(250)
    world.shedding = world.started()
    world.shedding.look_after()
    assert world.shed == [SECOND]

    world.now += LATE + timedelta(seconds=1)
    world.shedding.look_after()

    assert world.shed == []


@pytest.mark.parametrize("replicas", [ALL, (OWN, THIRD, BrokerId(4)), None])
def test_it_is_over_when_it_is_back_or_elsewhere_or_gone(world: World, replicas: tuple[BrokerId, ...] | None) -> None:
    world.relieve(250)
    world.now += timedelta(hours=1)
    world.shedding.look_after()
    assert world.shed == [SECOND]

    if replicas is None:
        del world.cluster.replicas[SECOND]
        world.shedding.look_after()
        assert world.shed == [SECOND], "a broker that has just begun describes nothing"
        world.now += timedelta(minutes=11)
    else:
        world.cluster.replicas[SECOND] = replicas
    world.shedding.look_after()

    assert world.shed == []


def test_what_the_controller_refused_is_not_asked_for_again_and_again(world: World) -> None:
    world.cluster.refused = {SECOND: "INVALID_REPLICA_ASSIGNMENT"}
    world.relieve(250)
    asked = len(world.cluster.asked)

    assert world.relieve(250) == [FIRST]
    assert world.cluster.asked[asked:] == [{FIRST: (OWN, THIRD)}]


def test_a_second_replica_of_a_partition_does_not_end_what_is_told_of_the_first(world: World) -> None:
    world.cluster.replicas[SECOND] = (*ALL, FOURTH)
    world.relieve(250)
    world.now += timedelta(hours=1)
    world.relieve(250, THIRD)
    world.now += timedelta(hours=1)
    world.shedding.look_after()

    assert [(each.entry.partition, each.entry.follower) for each in world.shedding.shed] == [
        (SECOND, FOLLOWER),
        (SECOND, THIRD),
    ]


def test_while_reclaim_is_paused_nothing_is_taken_away(world: World) -> None:
    PauseFile(world.folder, 1).write(by="root", reason="a look", since=world.now)

    assert world.relieve(250) == []
    assert world.cluster.asked == []
