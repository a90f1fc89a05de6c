"""What goes on record when a cycle begins."""

from dataclasses import replace

from brimline.act.ledger.entries import CycleId, PassedOver
from brimline.guard.reclaim.trims import cycle_plan
from brimline.model import TopicPartition
from brimline.model.reclaim import Views
from tests.guard.reclaim.surveys import DEVICE, ADisk, ALog

ORDERS = ALog(topic="orders", hours=[50, 40, 30, 20, 10, 0])
CLICKS = ALog(topic="clicks", hours=[45, 35, 25, 15, 5, 0])
DISK = ADisk(logs=[CLICKS, ORDERS], used=84)


def test_a_log_of_which_too_little_is_known_is_passed_over_and_that_is_on_record() -> None:
    survey = DISK.with_log(replace(ORDERS, views=Views.SEGMENTS_MISSING)).survey()

    plan = cycle_plan(survey, DEVICE, CycleId("8:1-1"), "guard")

    assert [trim.partition.topic for trim in plan.trims] == ["clicks"]
    assert plan.passed_over == (PassedOver(partition=TopicPartition("orders", 0), why=Views.SEGMENTS_MISSING.sentence),)


def test_what_is_left_because_it_is_young_or_protected_is_not_passed_over() -> None:
    assert cycle_plan(DISK.survey(), DEVICE, CycleId("8:1-1"), "guard").passed_over == ()
