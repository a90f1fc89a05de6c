"""Which replicas of a full disk may be taken away, and how many are."""

from dataclasses import replace

import pytest

from brimline.decide.disk_state import DiskLimits, Space
from brimline.decide.shedding import Sheddable, bytes_lacking, may_shed, to_shed
from brimline.model import BrokerId, Bytes, TopicPartition

OWN, FOLLOWER, THIRD = ALL = BrokerId(1), BrokerId(2), BrokerId(3)
ORDERS = Sheddable(
    partition=TopicPartition("orders", 0),
    size=Bytes(100),
    replicas=(OWN, FOLLOWER, THIRD),
    in_sync=frozenset({OWN, FOLLOWER, THIRD}),
    leader=OWN,
    fewest=2,
)
PAIR = replace(ORDERS, replicas=(OWN, FOLLOWER), in_sync=frozenset({OWN, FOLLOWER}), fewest=1)


def sized(number: int, size: int) -> Sheddable:
    return replace(ORDERS, partition=TopicPartition("orders", number), size=Bytes(size))


def test_one_of_three_in_sync_may_go() -> None:
    assert may_shed(ORDERS, OWN, FOLLOWER, ALL)
    assert may_shed(replace(ORDERS, fewest=1), OWN, FOLLOWER, ALL)


@pytest.mark.parametrize(
    "partition",
    [
        pytest.param(replace(ORDERS, fewest=3), id="fewer than min.insync.replicas would be left"),
        pytest.param(replace(ORDERS, fewest=None), id="min.insync.replicas is not known"),
        pytest.param(replace(ORDERS, in_sync=frozenset({OWN, FOLLOWER})), id="the third is not in sync"),
        pytest.param(PAIR, id="the leader would be alone"),
        pytest.param(replace(ORDERS, in_sync=frozenset({OWN, THIRD})), id="it is not in sync itself"),
        pytest.param(replace(ORDERS, leader=THIRD), id="somebody else leads"),
        pytest.param(replace(ORDERS, leader=None), id="nobody leads"),
        pytest.param(replace(ORDERS, is_internal=True), id="a topic of Kafka's own"),
        pytest.param(replace(ORDERS, is_moving=True), id="it is being reassigned"),
        pytest.param(replace(ORDERS, size=Bytes(0)), id="it holds nothing"),
    ],
)
def test_what_may_not_go(partition: Sheddable) -> None:
    assert not may_shed(partition, OWN, FOLLOWER, ALL)


@pytest.mark.parametrize("with_room", [(OWN,), (THIRD,), ()])
def test_only_disks_that_are_known_to_have_room_count_as_left(with_room: tuple[BrokerId, ...]) -> None:
    assert not may_shed(ORDERS, OWN, FOLLOWER, with_room)


@pytest.mark.parametrize(
    ("lacking", "taken"), [(0, []), (1, [2]), (300, [2]), (301, [2, 1]), (400, [2, 1]), (500, [2, 1, 0])]
)
def test_as_few_as_are_needed_the_largest_first(lacking: int, taken: list[int]) -> None:
    chosen = to_shed([sized(0, 50), sized(1, 100), sized(2, 300)], lacking)

    assert [each.partition.partition for each in chosen] == taken


def test_what_a_full_disk_lacks_has_the_release_margin_in_it() -> None:
    space = Space(total=Bytes(1000), usable=Bytes(150))

    assert bytes_lacking(space, DiskLimits(max_used_percent=80, min_free_bytes=Bytes(0))) == 50
    margin = DiskLimits(max_used_percent=80, min_free_bytes=Bytes(0), release_margin_percent=5)
    assert bytes_lacking(space, margin) == 100
    assert bytes_lacking(space, DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0))) == 0
