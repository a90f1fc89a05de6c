"""Plans held against a later world: what is still true of them, and why the rest is not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.act.ledger.entries import PlannedTrim
from brimline.act.plan_file import CeilingFrom, FiledPlan
from brimline.guard.reclaim.recheck import StillTrue, recheck, refuse_other_cluster
from brimline.guard.reclaim.trims import planned_trims
from brimline.model import BadInput, BrokerId
from brimline.model.reclaim import CleanupRules, ReclaimPolicy, Views
from tests.guard.reclaim.surveys import DEVICE, MADE_AT, MB, OFFSETS, UNLIMITED, ADisk, ALog

ORDERS = ALog(topic="orders", hours=[50, 40, 30, 20, 10, 0])
CLICKS = ALog(topic="clicks", hours=[45, 35, 25, 15, 5, 0])
DISK = ADisk(logs=[CLICKS, ORDERS], used=84)
"""Four megabytes too many: orders 50, clicks 45, orders 40, clicks 35 hours old."""


def planned(disk: ADisk = DISK) -> tuple[PlannedTrim, ...]:
    return planned_trims(disk.survey(), DEVICE)


def targets(still: StillTrue) -> dict[str, int]:
    return {trim.partition.topic: trim.target for trims in still.trims.values() for trim in trims}


def reasons(still: StillTrue) -> dict[str, str]:
    return {left_out.trim.partition.topic: left_out.why for left_out in still.left_out}


def test_a_plan_of_an_unchanged_world_is_true() -> None:
    trims = planned()
    assert {trim.partition.topic: trim.target for trim in trims} == {"orders": 200, "clicks": 200}

    still = recheck(trims, DISK.survey())

    assert still == StillTrue(trims={DEVICE: trims}, left_out=())


def test_no_more_goes_than_was_decided_though_more_were_needed() -> None:
    still = recheck(planned(), replace(DISK, used=90).survey())

    assert still == StillTrue(trims={DEVICE: planned()}, left_out=())


def test_no_more_goes_than_is_needed_now() -> None:
    """One megabyte too many is left: the oldest segment of orders."""
    still = recheck(planned(), replace(DISK, used=81).survey())

    (trim,) = still.trims[DEVICE]
    assert (trim.partition.topic, trim.target, trim.segments.count, trim.allocated_bytes) == ("orders", 100, 1, MB)
    assert trim.newest_ms == planned()[0].oldest_ms
    enough = "older segments on the device are enough to get below its ceiling"
    assert reasons(still) == {"orders": enough, "clicks": enough}
    assert [left_out.down_to for left_out in still.left_out] == [100, None]


@pytest.mark.parametrize(
    ("later", "why"),
    [
        (DISK.without("orders"), "it is not in /data/a any more"),
        (DISK.with_log(replace(ORDERS, life=2)), "the topic orders was deleted and recreated since"),
        (DISK.with_log(replace(ORDERS, log_start=200)), "its log start is already 200: nothing to do"),
        (DISK.with_log(replace(ORDERS, log_start=450)), "its log start is already 450"),
        (DISK.with_log(replace(ORDERS, first_base=50, log_start=50)), "none of its segments begins at 200 now"),
        (DISK.with_log(replace(ORDERS, views=Views.SEGMENTS_MISSING)), "some segments were deleted since the scan"),
        (DISK.with_log(replace(ORDERS, rules=None)), "topic configuration unknown"),
        (DISK.with_log(replace(ORDERS, rules=replace(UNLIMITED, is_tiered=True))), "a tiered topic"),
        (DISK.with_log(replace(ORDERS, rules=CleanupRules(deletes=False, compacts=True))), "a compacted topic"),
        (
            replace(DISK, policy=ReclaimPolicy(ceiling_percent=80, protected_topics=("ord.*",))),
            "protected (brimline.reclaim.protected.topics)",
        ),
        (
            replace(DISK, policy=ReclaimPolicy(ceiling_percent=80, min_retention_ms=10**9)),
            "younger than brimline.reclaim.min.retention.ms",
        ),
        (replace(DISK, used=80), "the device is below its ceiling"),
        (replace(DISK, policy=ReclaimPolicy()), "no ceiling"),
    ],
)
def test_what_is_not_true_any_more_is_left_out_with_its_reason(later: ADisk, why: str) -> None:
    still = recheck(planned(), later.survey())

    assert "orders" not in targets(still)
    assert reasons(still)["orders"].startswith(why)


def test_what_others_trimmed_in_part_is_trimmed_from_there() -> None:
    later = DISK.with_log(replace(ORDERS, log_start=150))

    still = recheck(planned(), later.survey())

    trim = next(trim for trim in still.trims[DEVICE] if trim.partition.topic == "orders")
    assert (trim.log_start, trim.target, trim.segments.first, trim.segments.count) == (150, 200, 100, 1)


def test_a_log_start_that_has_gone_back_is_no_reason_to_take_more() -> None:
    trims = planned(DISK.with_log(replace(ORDERS, log_start=100)))

    still = recheck(trims, DISK.survey())

    assert reasons(still)["orders"] == "its log start is back at 0: more would be deleted than was planned (from 100)"


def test_a_log_dir_that_is_gone_is_named() -> None:
    elsewhere = [replace(trim, log_dir="/data/z") for trim in planned()]

    still = recheck(elsewhere, DISK.survey())

    assert set(reasons(still).values()) == {"/data/z is not among the log dirs of this broker"}


hours = st.lists(st.integers(0, 60), min_size=1, max_size=6).map(lambda some: sorted(some, reverse=True))


@st.composite
def disks(draw: st.DrawFn) -> ADisk:
    return ADisk(
        logs=[
            ALog(topic=topic, hours=draw(hours), log_start=draw(st.integers(0, 300)), life=draw(st.integers(1, 2)))
            for topic in draw(st.sets(st.sampled_from(["a", "b", "c"]), min_size=1))
        ],
        used=draw(st.integers(78, 90)),
    )


@given(disks(), disks())
def test_what_is_still_true_is_in_both_plans(before: ADisk, now: ADisk) -> None:
    filed, present = planned(before), {trim.partition: trim for trim in planned(now)}

    still = recheck(filed, now.survey())

    decided = {trim.partition: trim for trim in filed}
    kept = still.trims.get(DEVICE, ())
    for trim in kept:
        assert trim.log_start >= decided[trim.partition].log_start
        assert trim.topic_id == decided[trim.partition].topic_id == present[trim.partition].topic_id
        assert trim.target == min(decided[trim.partition].target, present[trim.partition].target)
        assert trim.segments.first == present[trim.partition].segments.first
        assert trim.allocated_bytes == trim.segments.count * MB == (trim.target - trim.segments.first) // OFFSETS * MB
        assert trim.oldest_ms <= trim.newest_ms
    whole = {trim.partition for trim in kept if trim.target == decided[trim.partition].target}
    assert {left_out.trim.partition for left_out in still.left_out} == decided.keys() - whole


@pytest.mark.parametrize(("broker", "cluster"), [(2, "abc"), (1, "xyz")])
def test_a_plan_of_another_broker_is_refused(broker: int, cluster: str) -> None:
    plan = FiledPlan(
        made_at=MADE_AT,
        made_by="test",
        cluster_id="abc",
        broker=BrokerId(1),
        policy=ReclaimPolicy(ceiling_percent=80),
        ceiling_from=CeilingFrom.PROPERTIES,
        devices=(),
    )
    refuse_other_cluster(plan, BrokerId(1), "abc")

    with pytest.raises(BadInput, match="the plan is for broker 1 of cluster abc; this is broker"):
        refuse_other_cluster(plan, BrokerId(broker), cluster)
