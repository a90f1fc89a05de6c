"""Every rule of a reclaim plan as a small file, with the plan that must come of it."""

from itertools import pairwise

import pytest

from brimline.decide.reclaim.plan import plan
from brimline.model.reclaim_plan import DevicePlan, ReclaimPlan, ReclaimReason
from tests.decide.reclaim.reference import reference_plan
from tests.decide.reclaim.scenarios import Row, Scenario, all_scenarios

SCENARIOS = all_scenarios()
BY_NAME = pytest.mark.parametrize("scenario", [pytest.param(each, id=each.name) for each in SCENARIOS])


@BY_NAME
def test_the_expected_plan(scenario: Scenario) -> None:
    planned = plan(scenario.tables)

    assert labels_of(scenario, planned.reason.tolist()) == scenario.reasons
    assert trims_of(planned) == scenario.trims
    for device, expected in zip(planned.devices, scenario.devices, strict=True):
        assert {key: figures_of(device)[key] for key in expected if key != "device"} == {
            key: figure for key, figure in expected.items() if key != "device"
        }


@BY_NAME
def test_the_reference_agrees_with_the_file(scenario: Scenario) -> None:
    """The slow planner of the property tests is itself held to the written rules."""
    assert labels_of(scenario, list(reference_plan(scenario.tables).reasons)) == scenario.reasons


def test_what_an_open_transaction_keeps_is_counted() -> None:
    (scenario,) = (each for each in SCENARIOS if each.name == "careful-open-transaction")

    assert plan(scenario.tables).logs.blocked_bytes.tolist() == [300]


def test_every_reason_has_a_scenario() -> None:
    shown = {label for scenario in SCENARIOS for labels in scenario.reasons for label in labels}

    assert {reason.label for reason in ReclaimReason} - shown == {"candidate", "not-a-log"}


def labels_of(scenario: Scenario, codes: list[int]) -> tuple[tuple[str, ...], ...]:
    begin = scenario.tables.logs.segments_begin.tolist()
    return tuple(tuple(ReclaimReason(code).label for code in codes[first:end]) for first, end in pairwise(begin))


def trims_of(planned: ReclaimPlan) -> tuple[Row, ...]:
    logs = planned.logs
    columns = {
        "fromOffset": logs.from_offset,
        "newLogStartOffset": logs.new_log_start_offset,
        "segments": logs.taken_segments,
        "bytes": logs.taken_bytes,
        "oldestMs": logs.oldest_ms,
        "newestMs": logs.newest_ms,
    }
    rows = planned.trimmed_logs.tolist()
    return tuple({"log": row} | {name: int(column[row]) for name, column in columns.items()} for row in rows)


def figures_of(device: DevicePlan) -> Row:
    return {
        "outcome": device.outcome.label,
        "usedBytes": device.used_bytes,
        "limitBytes": device.limit_bytes,
        "goingBytes": device.going.total,
        "excessBytes": device.excess_bytes,
        "removableBytes": device.removable_bytes,
        "takenBytes": device.taken_bytes,
        "takenSegments": device.taken_segments,
        "localRetentionBytes": device.local_retention_bytes,
    }
