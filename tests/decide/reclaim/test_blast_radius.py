"""Who would miss what: committed offsets around the edges of what goes."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.reclaim.summary import blast_radius
from brimline.model import Bytes, Failure, FailureKind, Offset, TopicPartition
from brimline.model.blast_radius import (
    ConsumerGroup,
    DoomedRange,
    GroupActivity,
    GroupsSeen,
    PartitionLoss,
    UnknownGroups,
)

ORDERS, CLICKS = TopicPartition("orders", 0), TopicPartition("clicks", 0)
BEGIN, END = 100, 200


def doomed(partition: TopicPartition = ORDERS, size: int = 10, oldest_ms: int = -1, newest_ms: int = -1) -> DoomedRange:
    return DoomedRange(
        partition=partition,
        begin=Offset(BEGIN),
        end=Offset(END),
        segments=2,
        bytes=Bytes(size),
        oldest_ms=oldest_ms,
        newest_ms=newest_ms,
    )


def group(committed: Mapping[TopicPartition, int], name: str = "billing") -> ConsumerGroup:
    return ConsumerGroup(
        name=name,
        activity=GroupActivity.EMPTY,
        committed={partition: Offset(offset) for partition, offset in committed.items()},
    )


def seen(*groups: ConsumerGroup) -> GroupsSeen:
    return GroupsSeen(groups=groups, asked=7)


@pytest.mark.parametrize(
    ("committed", "records", "was_below"),
    [(0, 100, True), (99, 100, True), (100, 100, False), (101, 99, False), (199, 1, False)],
)
def test_a_group_below_the_new_log_start_misses_what_is_between(committed: int, records: int, was_below: bool) -> None:  # noqa: FBT001 (a parameter)
    (loss,) = blast_radius([doomed()], seen(group({ORDERS: committed}))).groups

    assert loss.partitions == (
        PartitionLoss(
            partition=ORDERS,
            committed=Offset(committed),
            new_log_start=Offset(END),
            records=records,
            was_below=was_below,
        ),
    )
    assert (loss.group, loss.records, loss.topics, loss.below_already) == ("billing", records, ("orders",), was_below)


@pytest.mark.parametrize("committed", [{ORDERS: 200}, {ORDERS: 10**9}, {CLICKS: 0}, {}])
def test_a_group_that_loses_nothing_is_not_named(committed: Mapping[TopicPartition, int]) -> None:
    assert blast_radius([doomed()], seen(group(committed))).groups == ()


def test_the_largest_losses_come_first() -> None:
    radius = blast_radius(
        [doomed(ORDERS, size=10), doomed(CLICKS, size=30), doomed(TopicPartition("orders", 1), size=25)],
        seen(group({ORDERS: 150}, "b"), group({ORDERS: 150}, "a"), group({ORDERS: 150, CLICKS: 150}, "z")),
    )

    assert [loss.group for loss in radius.groups] == ["z", "a", "b"]
    assert [(loss.topic, loss.partitions, loss.bytes, loss.records, loss.groups) for loss in radius.topics] == [
        ("orders", 2, 35, 200, 3),
        ("clicks", 1, 30, 100, 1),
    ]
    assert (radius.records, radius.asked_groups) == (300, 7)


def test_the_range_of_age_leaves_out_what_is_unknown() -> None:
    (known,) = blast_radius([doomed(oldest_ms=5, newest_ms=9), doomed(oldest_ms=-1)], seen()).topics
    (unknown,) = blast_radius([doomed()], seen()).topics

    assert (known.oldest_ms, known.newest_ms, known.lost_ms) == (5, 9, 4)
    assert unknown.lost_ms is None


def test_what_is_not_known_stays_named() -> None:
    failure = Failure(kind=FailureKind.NOT_AUTHORIZED, message="no permission")
    unknown = UnknownGroups(what="3 groups", count=3, failure=failure)

    radius = blast_radius([doomed()], GroupsSeen(groups=(), asked=3, unknown=(unknown,)))

    assert radius.unknown == (unknown,)


@given(st.lists(st.integers(0, 300), max_size=5))
def test_no_group_loses_more_than_goes(offsets: list[int]) -> None:
    groups = [group({ORDERS: offset}, str(number)) for number, offset in enumerate(offsets)]

    losses = blast_radius([doomed()], seen(*groups)).groups

    assert {loss.group for loss in losses} == {str(n) for n, offset in enumerate(offsets) if offset < END}
    assert all(0 < loss.records <= END - BEGIN for loss in losses)
