"""From tables to a file and back: the plan made from the file is the plan made in memory."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from brimline.decide.reclaim.plan import plan
from brimline.landing.reader import BadSnapshot, QuarantineReason, Snapshot
from brimline.landing.schema import LOGS, SECTIONS, SEGMENTS, TOPICS, VOLUMES
from brimline.landing.tables import numpy_column, reclaim_tables
from brimline.landing.writer import encode
from brimline.model.reclaim import LogTable, ReclaimTables, SegmentTable
from tests.decide.reclaim.scenarios import Scenario, all_scenarios
from tests.decide.reclaim.worlds import worlds
from tests.landing.snapshots import HEADER, encoded, sections_as_tables, some_tables, with_devices_apart


def assert_equal_tables(found: ReclaimTables, expected: ReclaimTables) -> None:
    assert list(found.devices) == list(expected.devices)
    assert list(found.topics) == list(expected.topics)
    for kind, name in ((LogTable, "logs"), (SegmentTable, "segments")):
        for field in fields(kind):
            column, wanted = getattr(getattr(found, name), field.name), getattr(getattr(expected, name), field.name)
            assert np.array_equal(column, wanted), field.name
            assert column.dtype == wanted.dtype, field.name


@given(worlds.map(with_devices_apart))
def test_tables_come_back_as_they_were(tables: ReclaimTables) -> None:
    assert_equal_tables(reclaim_tables(encoded(tables)), tables)


@pytest.mark.parametrize("scenario", [pytest.param(each, id=each.name) for each in all_scenarios()])
def test_the_plan_of_every_scenario_is_the_same_from_a_file(scenario: Scenario) -> None:
    found, expected = plan(reclaim_tables(encoded(scenario.tables))), plan(scenario.tables)

    assert np.array_equal(found.reason, expected.reason)
    assert list(found.devices) == list(expected.devices)
    assert np.array_equal(found.logs.new_log_start_offset, expected.logs.new_log_start_offset)
    assert np.array_equal(found.logs.taken_bytes, expected.logs.taken_bytes)


def test_columns_of_a_section_in_one_piece_are_not_copied() -> None:
    with Snapshot(encoded(some_tables())) as snapshot:
        read = snapshot.read(SEGMENTS)
    column = numpy_column(read, "base_offset")

    assert column.__array_interface__["data"][0] == read.column("base_offset").chunk(0).buffers()[1].address


def test_log_dirs_share_a_device_by_its_name_and_an_unreadable_one_stands_alone() -> None:
    rows = [
        {"log_dir": "/a", "device": "8:1", "total_bytes": 10, "usable_bytes": 5, "is_offline": False},
        {"log_dir": "/b", "device": "8:2", "total_bytes": 20, "usable_bytes": 6, "is_offline": False},
        {"log_dir": "/c", "device": "8:1", "total_bytes": 10, "usable_bytes": 5, "is_offline": False},
        {"log_dir": "/d", "device": "8:1", "failure": "it is gone", "is_offline": True},
    ]
    volumes = pa.Table.from_pylist(rows, schema=SECTIONS[VOLUMES])

    devices = reclaim_tables(encode(HEADER, {VOLUMES: volumes})).devices

    assert [(each.name, each.total_bytes, each.now_ms) for each in devices] == [
        ("8:1", 10, HEADER.taken_at_ms),
        ("8:2", 20, HEADER.taken_at_ms),
        ("8:1", None, HEADER.taken_at_ms),
    ]
    assert devices[0].policy.ceiling_percent == 100


def test_a_comma_in_braces_is_part_of_a_protected_pattern() -> None:
    tables = some_tables()
    patterns = ("a{2,3}", "b.*")
    protected = [replace(each, policy=replace(each.policy, protected_topics=patterns)) for each in tables.devices]

    found = reclaim_tables(encoded(replace(tables, devices=protected)))

    assert all(device.policy.protected_topics == patterns for device in found.devices)


def _set(section: str, name: str, row: int, value: Any) -> Callable[[dict[str, pa.Table]], None]:
    def change(tables: dict[str, pa.Table]) -> None:
        table = tables[section]
        values = table.column(name).to_pylist()
        values[row] = value
        place = table.schema.get_field_index(name)
        tables[section] = table.set_column(
            place, table.schema.field(name), pa.array(values, table.schema.field(name).type)
        )

    return change


def _without_last(section: str) -> Callable[[dict[str, pa.Table]], None]:
    def change(tables: dict[str, pa.Table]) -> None:
        tables[section] = tables[section].slice(0, len(tables[section]) - 1)

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set(LOGS, "volume", 0, 99),
        _set(LOGS, "volume", 0, -1),
        _set(LOGS, "topic", 0, 99),
        _set(LOGS, "topic", 0, -2),
        _set(LOGS, "kind", 0, 99),
        _set(LOGS, "views", 0, 99),
        _set(LOGS, "segments", 0, 1000),
        _set(LOGS, "segments", 0, -1),
        _set(LOGS, "segments", 0, 2**62),
        _set(SEGMENTS, "log", 0, 5),
        _set(SEGMENTS, "log", -1, 10**6),
        _set(SEGMENTS, "base_offset", 1, -5),
        _set(VOLUMES, "protected_topics", 0, "(["),
        _without_last(SEGMENTS),
        _without_last(LOGS),
        _without_last(VOLUMES),
        _without_last(TOPICS),
    ],
)
def test_parts_that_contradict_each_other_are_refused(change: Callable[[dict[str, pa.Table]], None]) -> None:
    tables = dict(sections_as_tables(_FULL_WORLD))
    change(tables)

    with pytest.raises(BadSnapshot) as refused:
        reclaim_tables(encode(HEADER, tables))

    assert refused.value.reason is QuarantineReason.INCONSISTENT


def _full_world() -> int:
    """A seed whose last volume and topic are used, and whose first and last logs have several segments."""
    for seed in range(1000):
        tables = some_tables(seed)
        counts = np.diff(tables.logs.segments_begin)
        used = len(counts) > 2 and counts[0] > 1 and counts[-1] > 1
        if (
            used
            and {len(tables.devices) - 1} <= set(tables.logs.device.tolist())
            and (len(tables.topics) - 1 in tables.logs.topic.tolist())
        ):
            return seed
    raise AssertionError("no such world")


_FULL_WORLD = _full_world()
