"""What the guard says of full followers counts for as long as it says so, and not a second longer."""

from uuid import UUID

import pytest

from brimline.documents.orders import WithheldTopic
from brimline.gateway.rules.follower_orders import LONGEST_SECONDS, FollowerSkips, OwnSkips
from brimline.gateway.rules.placement import Placement
from brimline.model import BadInput

TOPIC_ID = UUID("5e3c1f0a-7d0b-4a87-b4d4-c70616313919")
ORDERS = WithheldTopic(topic="orders", topic_id=TOPIC_ID, partitions=(0, 1))


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def skips(clock: Clock) -> FollowerSkips:
    return FollowerSkips(clock)


def test_at_first_nothing_is_skipped(skips: FollowerSkips) -> None:
    assert not skips.snapshot.is_in_force
    assert not skips.renew(epoch=0, seconds=5)


def test_a_partition_is_known_by_name_and_by_id(skips: FollowerSkips) -> None:
    skips.put({2: [ORDERS], 3: []}, epoch=1, seconds=5)

    assert skips.snapshot.is_in_force
    assert skips.snapshot.followers.keys() == {2}
    assert skips.snapshot.followers[2].by_name == {(b"orders", 0), (b"orders", 1)}
    assert skips.snapshot.followers[2].by_id == {(TOPIC_ID.bytes, 0), (TOPIC_ID.bytes, 1)}
    assert skips.snapshot.followers[2].count == 2


def test_what_is_not_renewed_counts_no_more(skips: FollowerSkips, clock: Clock) -> None:
    skips.put({2: [ORDERS]}, epoch=1, seconds=5)

    clock.seconds += 4.9
    assert skips.snapshot.is_in_force
    clock.seconds += 0.1
    assert not skips.snapshot.is_in_force


def test_renewing_needs_the_epoch_alone(skips: FollowerSkips, clock: Clock) -> None:
    skips.put({2: [ORDERS]}, epoch=1, seconds=5)
    before = skips.snapshot.followers

    clock.seconds += 4
    assert skips.renew(epoch=1, seconds=5)
    clock.seconds += 4

    assert skips.snapshot.is_in_force
    assert skips.snapshot.followers is before


def test_another_set_cannot_be_renewed(skips: FollowerSkips, clock: Clock) -> None:
    skips.put({2: [ORDERS]}, epoch=1, seconds=5)

    assert not skips.renew(epoch=2, seconds=50)

    clock.seconds += 5
    assert not skips.snapshot.is_in_force


def test_a_new_set_takes_the_place_of_the_old_one(skips: FollowerSkips) -> None:
    skips.put({2: [ORDERS]}, epoch=1, seconds=5)
    skips.put({3: [ORDERS]}, epoch=2, seconds=5)

    assert skips.snapshot.followers.keys() == {3}


def test_that_it_ran_out_is_told_once(skips: FollowerSkips, clock: Clock) -> None:
    skips.put({2: [ORDERS]}, epoch=1, seconds=5)
    assert skips.drop_expired() == {}

    clock.seconds += 5

    assert skips.drop_expired().keys() == {2}
    assert skips.drop_expired() == {}
    assert not skips.renew(epoch=1, seconds=5)


@pytest.mark.parametrize("seconds", [0, -1, LONGEST_SECONDS + 1, float("nan")])
def test_no_word_lasts_for_ever(skips: FollowerSkips, seconds: float) -> None:
    with pytest.raises(BadInput, match="at most 60 seconds"):
        skips.put({2: [ORDERS]}, epoch=1, seconds=seconds)


def test_a_broker_skips_all_that_is_in_its_own_full_log_dirs() -> None:
    placement = Placement(log_dirs={("orders", 0): "/a", ("orders", 1): "/b"}, names={TOPIC_ID: "orders"})
    full: list[str] = []
    own = OwnSkips(7, lambda: frozenset(full), lambda: placement)
    assert own.snapshot.followers == {}

    full.append("/b")
    assert own.snapshot.is_in_force
    assert own.snapshot.followers[7].by_name == {(b"orders", 1)}
    assert own.snapshot.followers[7].by_id == {(TOPIC_ID.bytes, 1)}
    assert own.snapshot is own.snapshot, "it is made anew only when something has changed"

    full.clear()
    assert own.snapshot.followers == {}
