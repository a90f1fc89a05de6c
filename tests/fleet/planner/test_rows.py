"""Every reclaim scenario by way of a snapshot file: the same plan to the byte as from the tables in memory."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimline.decide.reclaim.plan import plan
from brimline.fleet.planner.broker_snapshot import BrokerSnapshot, read_broker
from brimline.fleet.planner.rows import PLAN, PLAN_ROWS, SNAPSHOT_UNUSABLE, plan_rows
from brimline.fleet.planner.tasks import processes_for, rows_locally
from brimline.landing.schema import SECTIONS, VOLUMES
from brimline.landing.writer import encode
from brimline.model.reclaim import ReclaimTables
from tests.decide.reclaim.scenarios import Scenario, all_scenarios
from tests.decide.reclaim.worlds import worlds
from tests.fleet.plan_rows import assert_is_plan_of, figures_in, named_trims, trims_in
from tests.fleet.snapshots import (
    broker_of_one_log,
    file_of,
    header_of,
    sections_of,
    with_unique_devices,
    write_snapshot,
)

BY_NAME = pytest.mark.parametrize("scenario", [pytest.param(each, id=each.name) for each in all_scenarios()])


@BY_NAME
def test_a_scenario_gives_the_expected_plan_from_its_file(scenario: Scenario, tmp_path: Path) -> None:
    file = write_snapshot(tmp_path, header_of(), sections_of(scenario.tables))

    (rows,) = rows_locally([file], PLAN)

    assert_is_plan_of(scenario.tables, rows.to_pylist())
    assert trims_in(rows.to_pylist()) == named_trims(scenario.tables, scenario.trims)
    for expected in scenario.devices:
        figures = figures_in(rows.to_pylist(), expected["device"])
        assert figures.items() >= {(key, figure) for key, figure in expected.items() if key != "device"}


@given(worlds)
@settings(max_examples=100)
def test_the_plan_from_a_file_is_the_plan_from_memory(world: ReclaimTables) -> None:
    tables = with_unique_devices(world)
    broker = read_broker(encode(header_of(), sections_of(tables)))

    assert plan(broker.tables).reason.tolist() == plan(tables).reason.tolist()
    assert_is_plan_of(tables, plan_rows([broker]).to_pylist())


def test_a_file_that_is_gone_or_damaged_is_named_and_the_others_are_planned(tmp_path: Path) -> None:
    scenario = next(each for each in all_scenarios() if each.name == "over-the-ceiling")
    good = write_snapshot(tmp_path, header_of(broker=1), sections_of(scenario.tables))
    damaged = write_snapshot(tmp_path, header_of(broker=2), sections_of(scenario.tables))
    Path(damaged.path).write_bytes(Path(damaged.path).read_bytes()[:-100])
    gone = file_of(tmp_path / "gone.parquet", header_of(broker=3), 10)

    rows = pa.Table.from_batches(rows_locally([good, damaged, gone], PLAN)).to_pylist()

    failures = {row["broker_id"]: row["failure"] for row in rows if row["device_outcome"] == SNAPSHOT_UNUSABLE}
    assert failures.keys() == {2, 3}
    assert "truncated" in failures[2]
    assert "unreadable" in failures[3]
    assert_is_plan_of(scenario.tables, [row for row in rows if row["broker_id"] == 1])


@given(st.lists(worlds, min_size=1, max_size=5))
@settings(max_examples=60)
def test_brokers_planned_at_once_have_the_plans_that_they_have_alone(several: list[ReclaimTables]) -> None:
    brokers = [
        read_broker(encode(header_of(broker=number), sections_of(with_unique_devices(each))))
        for number, each in enumerate(several)
    ]

    assert plan_rows(brokers).to_pylist() == [row for broker in brokers for row in plan_rows([broker]).to_pylist()]


def test_a_broker_that_cannot_be_planned_costs_no_other_its_plan(tmp_path: Path) -> None:
    """Its device's time is beyond what a plan can count with, which is found only when it is planned."""
    scenario = next(each for each in all_scenarios() if each.name == "over-the-ceiling")
    beyond = [replace(device, now_ms=1 << 62) for device in scenario.tables.devices]
    odd = replace(scenario.tables, devices=beyond)
    files = [
        write_snapshot(tmp_path, header_of(broker=number), sections_of(tables))
        for number, tables in enumerate([scenario.tables, odd, scenario.tables])
    ]
    Path(files[2].path).write_bytes(b"damaged")

    rows = pa.Table.from_batches(PLAN.of_files(files)).to_pylist()

    failures = {row["broker_id"]: row["failure"] for row in rows if row["device_outcome"] == SNAPSHOT_UNUSABLE}
    assert failures.keys() == {1, 2}
    assert "outside of what a plan can count with" in failures[1]
    assert_is_plan_of(scenario.tables, [row for row in rows if row["broker_id"] == 0])


def test_files_with_few_segments_are_planned_at_once(tmp_path: Path) -> None:
    sizes = [100_000, 31_072, 1, 200_000, 5]
    asked = []

    def of_brokers(brokers: Sequence[BrokerSnapshot]) -> pa.RecordBatch:
        asked.append([broker.header.broker_id for broker in brokers])
        return plan_rows(brokers)

    files = [
        replace(
            write_snapshot(tmp_path, header_of(broker=number), sections_of(broker_of_one_log(700, [0, 10]))),
            segments=size,
        )
        for number, size in enumerate(sizes)
    ]
    list(replace(PLAN, of_brokers=of_brokers).of_files(files))

    assert asked == [[0, 1], [2], [3], [4]]


def test_processes_give_the_same_rows(tmp_path: Path) -> None:
    files = [
        write_snapshot(tmp_path, header_of(broker=number), sections_of(each.tables))
        for number, each in enumerate(all_scenarios()[:12])
    ]

    alone, together = (pa.Table.from_batches(rows_locally(files, PLAN, processes)) for processes in (1, 2))

    assert together.equals(alone)
    assert together.schema == PLAN_ROWS


def test_an_unreadable_log_dir_is_a_device_of_its_own_under_the_same_name(tmp_path: Path) -> None:
    tables = broker_of_one_log(700, [0, 10, 20, 30, 40])
    sections = dict(sections_of(tables))
    (readable,) = sections[VOLUMES].to_pylist()
    gone = {"log_dir": "/gone", "total_bytes": None, "usable_bytes": None, "failure": "input/output error"}
    sections[VOLUMES] = pa.Table.from_pylist([readable, {**readable, **gone}], schema=SECTIONS[VOLUMES])

    (rows,) = rows_locally([write_snapshot(tmp_path, header_of(), sections)], PLAN)

    assert [(row["device"], row["device_log_dirs"], row["device_outcome"]) for row in rows.to_pylist()] == [
        ("disk", ["/disk"], "enough-taken"),
        ("disk", ["/gone"], "space-unknown"),
    ]


def test_a_small_fleet_is_worked_through_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    small = [file_of(tmp_path, header_of(broker=broker), 100_000) for broker in range(10)]

    assert processes_for(small) == 1
    assert processes_for([*small, file_of(tmp_path, header_of(broker=11), 1)]) == 8
