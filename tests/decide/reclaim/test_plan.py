"""The plan against a slow second telling of the rules, and what must be true of any plan."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from brimline.decide.reclaim.plan import plan
from brimline.model.reclaim import ReclaimTables
from brimline.model.reclaim_plan import (
    GOING,
    DeviceOutcome,
    DevicePlan,
    LogOutcomes,
    ReclaimPlan,
    ReclaimReason,
)
from brimline.model.scan import FolderKind
from tests.decide.reclaim.reference import Device, Log, reference_plan
from tests.decide.reclaim.worlds import world, worlds

FEW = 150
NOT_NEEDED = (
    ReclaimReason.ENOUGH_TAKEN,
    ReclaimReason.CYCLE_LIMIT,
    ReclaimReason.GOING_SUFFICES,
    ReclaimReason.UNDER_CEILING,
    ReclaimReason.NO_CEILING,
    ReclaimReason.SPACE_UNKNOWN,
    ReclaimReason.NO_CURE,
)
"""They could be taken, another time."""


@given(worlds)
@settings(max_examples=300)
def test_the_plan_is_the_reference_plan(tables: ReclaimTables) -> None:
    planned, expected = plan(tables), reference_plan(tables)

    assert [ReclaimReason(code) for code in planned.reason.tolist()] == expected.reasons
    for log in expected.logs:
        assert_log_row(planned.logs, log)
    for device, reference in zip(planned.devices, expected.devices, strict=True):
        assert_device_row(device, reference)


def assert_log_row(rows: LogOutcomes, log: Log) -> None:
    assert rows.standing[log.row] == log.standing
    assert rows.going_bytes[log.row] == log.going_bytes
    assert rows.local_retention_bytes[log.row] == log.local_retention_bytes
    assert rows.taken_segments[log.row] == len(log.taken)
    assert rows.taken_bytes[log.row] == sum(segment.allocated for segment in log.taken)
    if log.taken:
        first, last = log.taken[0], log.taken[-1]
        offsets = (first.row, max(first.base, log.start), last.end)
        ages = (first.age, last.age)
    else:
        offsets, ages = (-1, -1, -1), (-1, -1)
    assert (rows.first_taken[log.row], rows.from_offset[log.row], rows.new_log_start_offset[log.row]) == offsets
    assert (rows.oldest_ms[log.row], rows.newest_ms[log.row]) == ages


def assert_device_row(device: DevicePlan, reference: Device) -> None:
    assert device.going.total == reference.going
    assert device.excess_bytes == reference.excess
    assert device.removable_bytes == reference.removable
    assert device.taken_bytes == reference.taken


@given(worlds)
@settings(max_examples=FEW)
def test_a_log_is_only_trimmed_from_its_head(tables: ReclaimTables) -> None:
    planned = plan(tables)
    begin = tables.logs.segments_begin
    for row in planned.trimmed_logs.tolist():
        reasons = planned.reason[begin[row] : begin[row + 1]]
        going, taken = int(np.isin(reasons, GOING).sum()), int(planned.logs.taken_segments[row])

        assert np.isin(reasons[:going], GOING).all()
        assert (reasons[going : going + taken] == ReclaimReason.TAKEN).all()
        assert ReclaimReason.TAKEN not in reasons[going + taken :]


@given(worlds)
@settings(max_examples=FEW)
def test_nothing_protected_is_taken(tables: ReclaimTables) -> None:
    planned = plan(tables)
    for row in planned.trimmed_logs.tolist():
        last = int(tables.logs.segments_begin[row + 1]) - 1
        new_start = planned.logs.new_log_start_offset[row]

        assert tables.logs.kind[row] == FolderKind.CURRENT
        assert planned.logs.standing[row] == ReclaimReason.CANDIDATE
        assert planned.reason[last] == ReclaimReason.ACTIVE
        assert tables.logs.log_start_offset[row] < new_start <= tables.logs.high_watermark[row]


@given(worlds)
@settings(max_examples=FEW)
def test_enough_is_taken_and_no_more(tables: ReclaimTables) -> None:
    planned = plan(tables)
    for number, device in enumerate(planned.devices):
        limit = tables.devices[number].policy.max_bytes_per_cycle
        sizes = sizes_taken(tables, planned, number)

        assert device.taken_bytes == sum(sizes)
        assert limit is None or device.taken_bytes <= limit or device.outcome is DeviceOutcome.BRAKES_YIELD
        match device.outcome:
            case DeviceOutcome.ENOUGH_TAKEN:
                assert device.missing_bytes == 0
                assert device.taken_bytes - max(sizes) < (device.excess_bytes or 0)
            case DeviceOutcome.FLOOR_REACHED:
                assert device.missing_bytes > 0
                assert device.taken_bytes == device.removable_bytes
            case DeviceOutcome.CYCLE_LIMIT:
                assert device.missing_bytes > 0
            case DeviceOutcome.NO_CURE:
                facts = tables.devices[number]
                used, most = (facts.used_bytes or 0) - device.going.total, facts.fence_bytes or 0
                assert device.removable_bytes < (device.excess_bytes or 0), "what is not Kafka's is above the ceiling"
                assert not sizes or used - device.taken_bytes + max(sizes) > most
            case DeviceOutcome.BRAKES_YIELD:
                reserve = tables.devices[number].reserve_bytes or 0
                assert device.taken_bytes - max(sizes) < 2 * reserve
            case _:
                assert sizes == []


def sizes_taken(tables: ReclaimTables, planned: ReclaimPlan, device: int) -> list[int]:
    on_device = np.repeat(tables.logs.device == device, np.diff(tables.logs.segments_begin))
    sizes: list[int] = tables.segments.allocated_bytes[on_device & (planned.reason == ReclaimReason.TAKEN)].tolist()
    return sizes


@given(worlds)
@settings(max_examples=FEW)
def test_nothing_older_survives_than_what_is_taken(tables: ReclaimTables) -> None:
    planned, ages = plan(tables), reference_plan(tables).logs
    for number in range(len(tables.devices)):
        segments = [each for log in ages if tables.logs.device[log.row] == number for each in log.segments]
        taken = [each.age for each in segments if planned.reason[each.row] == ReclaimReason.TAKEN]
        spared = [each.age for each in segments if planned.reason[each.row] in NOT_NEEDED]

        assert max(taken, default=0) <= min(spared, default=10**12)


def test_the_worlds_above_show_every_reason_and_every_outcome() -> None:
    """Otherwise agreement with the reference would prove little."""
    plans = [plan(world(seed)) for seed in range(300)]

    reasons = Counter(code for planned in plans for code in planned.reason.tolist())
    outcomes = Counter(device.outcome for planned in plans for device in planned.devices)

    of_logs_only = {ReclaimReason.CANDIDATE, ReclaimReason.NOT_A_LOG}
    assert {reason for reason in ReclaimReason if reasons[reason] < 10} == of_logs_only
    assert {outcome for outcome in DeviceOutcome if outcomes[outcome] < 10} == set()


@pytest.mark.long
def test_many_more_worlds_agree_with_the_reference() -> None:
    for seed in range(5_000):
        tables = world(seed)
        assert plan(tables).reason.tolist() == reference_plan(tables).reasons, seed
