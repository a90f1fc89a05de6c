"""Another ceiling, before anybody sets it: all that would go, whatever a cycle may take, and who would lose by it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from brimline.decide.reclaim.dry_run import dry_run
from brimline.decide.reclaim.plan import plan
from brimline.decide.reclaim.summary import reason_sums
from brimline.model import Offset
from brimline.model.blast_radius import ConsumerGroup, GroupActivity, GroupsSeen
from brimline.model.reclaim import ReclaimTables
from brimline.model.reclaim_plan import GOING
from tests.decide.reclaim.scenarios import all_scenarios

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def tables() -> ReclaimTables:
    return next(each for each in all_scenarios() if each.name == "over-the-ceiling").tables


@pytest.mark.parametrize("ceiling", [1, 20, 35, 40, 50, 60, 75, 99])
def test_it_is_the_guards_plan_without_the_limit_of_a_cycle(tables: ReclaimTables, ceiling: int) -> None:
    (device,) = tables.devices
    braked = replace(device, policy=replace(device.policy, max_percent_per_cycle=1, ceiling_percent=ceiling))

    made = dry_run(replace(tables, devices=[braked]), 0, ceiling, NOW)

    expected = plan(replace(tables, devices=[braked])).devices[0]
    assert made.planned.taken_bytes == expected.wanted_bytes
    assert made.first_cycle_bytes == expected.taken_bytes
    assert (
        sum(each.bytes for each in made.ages) == sum(each.bytes for each in made.loss.topics) == expected.wanted_bytes
    )
    if made.is_held:
        assert made.percent_after is not None
        assert made.percent_after <= ceiling


def test_who_has_not_read_yet_what_would_go_loses_it(tables: ReclaimTables) -> None:
    unread = dry_run(tables, 0, 40, NOW).loss.topics[0].topic
    partitions = [tables.topic_partition(row) for row in range(len(tables.logs))]
    of_topic = [each for each in partitions if each is not None and each.topic == unread]
    late = ConsumerGroup(name="late", activity=GroupActivity.EMPTY, committed=dict.fromkeys(of_topic, Offset(0)))
    early = replace(late, name="early", committed=dict.fromkeys(of_topic, Offset(1 << 40)))

    made = dry_run(tables, 0, 40, NOW, GroupsSeen(groups=(early, late), asked=2))

    assert made.knows_groups
    assert [each.group for each in made.loss.groups] == ["late"]
    assert not dry_run(tables, 0, 40, NOW).knows_groups


def test_what_stays_and_what_goes_is_everything(tables: ReclaimTables) -> None:
    made = dry_run(tables, 0, 20, NOW)

    going = sum(each.segments for each in reason_sums(tables, plan(tables), 0) if each.reason in GOING)
    assert not made.is_held
    assert sum(each.segments for each in made.stays) + made.planned.taken_segments + going == len(tables.segments)
