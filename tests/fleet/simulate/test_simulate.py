"""Days under other rules: nothing is lost from the books, and the first day is the kernel's own plan."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from brimline.decide.reclaim.plan import plan
from brimline.fleet.planner.broker_snapshot import BrokerSnapshot, read_broker
from brimline.fleet.planner.tasks import rows_locally
from brimline.fleet.simulate.broker import simulated_rows
from brimline.fleet.simulate.simulate import Simulation, rows_of, simulation
from brimline.fleet.simulate.state import first_day, inflow, next_day
from brimline.fleet.simulate.what_if import WhatIf, parse_retention
from brimline.fleet.simulate.words import age_then
from brimline.landing.writer import encode
from brimline.model.reclaim import CleanupRules, ReclaimPolicy, ReclaimTables
from tests.decide.reclaim.worlds import worlds
from tests.fleet.snapshots import (
    broker_of_one_log,
    file_of,
    header_of,
    sections_of,
    topic_id_of,
    with_unique_devices,
    write_snapshot,
)

DAY_MS = 86_400_000
NO_CEILING = ReclaimPolicy(ceiling_percent=100)
A_SEGMENT_A_DAY = [5 * DAY_MS, 4 * DAY_MS, 3 * DAY_MS, 2 * DAY_MS, DAY_MS, 0]


def broker_of(tables: ReclaimTables) -> BrokerSnapshot:
    return read_broker(encode(header_of(), sections_of(tables)))


def only_row(what_if: WhatIf, tables: ReclaimTables) -> dict[str, Any]:
    (row,) = simulated_rows(what_if, broker_of(tables)).to_pylist()
    return dict(row)


def daily(used: int, **said: Any) -> ReclaimTables:
    """A log that gets one segment of 100 bytes a day."""
    return broker_of_one_log(used, [0, 10, 20, 30, 40, 50], ages_ms=A_SEGMENT_A_DAY, **said)


def test_the_first_day_is_the_plan_of_the_ceiling() -> None:
    row = only_row(WhatIf(ceiling_percent=50, days=0), broker_of_one_log(700, [0, 10, 20, 30, 40], policy=NO_CEILING))

    assert (row["by_ceiling_bytes"], row["by_ceiling_today_bytes"], row["ceiling_on_day"]) == (200, 200, 0)
    assert (row["device_used_bytes"], row["device_used_bytes_at_end"]) == (700, 500)


def test_a_log_grows_by_what_its_segments_tell() -> None:
    row = only_row(WhatIf(days=3), daily(400, policy=NO_CEILING))

    assert (row["bytes"], row["bytes_a_day"], row["device_used_bytes_at_end"]) == (600, 100, 700)


def test_produce_is_refused_from_the_day_on_which_the_fence_is_reached() -> None:
    row = only_row(WhatIf(max_used_percent=80, days=6), daily(650, policy=NO_CEILING))

    assert (row["refused_on_day"], row["refused_bytes"]) == (2, 50 + 4 * 100)
    assert (row["device_full_on_day"], row["device_used_bytes_at_end"]) == (2, 800)


def test_a_disk_above_its_fence_refuses_from_today_on() -> None:
    row = only_row(WhatIf(max_used_percent=50, days=2), daily(650, policy=NO_CEILING))

    assert (row["device_full_on_day"], row["refused_bytes"], row["device_used_bytes_at_end"]) == (0, 200, 650)


def test_a_ceiling_below_the_fence_keeps_produce_going() -> None:
    row = only_row(WhatIf(ceiling_percent=70, max_used_percent=80, days=6), daily(650))

    assert (row["refused_bytes"], row["device_full_on_day"]) == (0, None)
    assert (row["by_ceiling_bytes"], row["ceiling_on_day"], row["device_used_bytes_at_end"]) == (600, 1, 650)


def test_a_ceiling_that_cannot_be_held_is_named_with_the_day() -> None:
    keeps = ReclaimPolicy(min_retention_ms=4 * DAY_MS)

    row = only_row(WhatIf(ceiling_percent=70, max_used_percent=100, days=6), daily(690, policy=keeps))

    assert row["device_ceiling_missed_on_day"] is None or row["device_ceiling_missed_on_day"] > 0
    assert only_row(WhatIf(ceiling_percent=10), daily(690, policy=keeps))["device_ceiling_missed_on_day"] == 0


def test_lower_retention_deletes_at_once_and_then_as_much_as_comes() -> None:
    what_if = WhatIf(retention=(parse_retention("orders=3d"),), days=4)

    row = only_row(what_if, daily(600, policy=NO_CEILING))

    assert (row["by_retention_bytes"], row["by_ceiling_bytes"]) == (200 + 3 * 100, 0)
    # The oldest segment that stays is three days old and took a day to be written.
    assert row["oldest_ms_at_end"] == header_of().taken_at_ms + 4 * DAY_MS - 3 * DAY_MS - DAY_MS


@pytest.mark.parametrize(("ages_ms", "oldest_ms"), [([60_000, 30_000, 0], 90_000), ([60_000], None)])
def test_records_of_a_young_log_are_not_called_old(ages_ms: list[int], oldest_ms: int | None) -> None:
    """Three segments in the last minute: the first took as long as half of what came since. One alone tells nothing."""
    offsets = [10 * number for number in range(len(ages_ms))]

    row = only_row(WhatIf(days=0), broker_of_one_log(400, offsets, ages_ms=ages_ms, policy=NO_CEILING))

    made = None if row["oldest_ms"] is None else header_of().taken_at_ms - row["oldest_ms"]
    assert made == oldest_ms


def test_the_limit_of_a_cycle_is_no_limit_of_a_day() -> None:
    slow = ReclaimPolicy(ceiling_percent=50, max_bytes_per_cycle=100)

    assert only_row(WhatIf(days=0), daily(900, policy=slow))["by_ceiling_bytes"] == 400


def test_a_log_that_is_only_compacted_stays_as_large_as_it_is() -> None:
    rules = CleanupRules(deletes=False, compacts=True)

    row = only_row(WhatIf(days=5), daily(650, policy=NO_CEILING, rules=rules))

    assert (row["bytes_a_day"], row["device_used_bytes_at_end"]) == (0, 650)


def test_a_log_of_one_segment_is_taken_to_have_been_filled_in_a_week() -> None:
    assert inflow(broker_of_one_log(500, [0], ages_ms=[0])).allocated_bytes.tolist() == [100 // 7]


@given(worlds)
@settings(max_examples=100)
def test_no_byte_is_lost_from_the_books(world: ReclaimTables) -> None:
    """What was used, and came, and did not go, is used at the end."""
    a_day = inflow(world)
    day, fences = first_day(world), tuple((device.total_bytes or 0) * 9 // 10 for device in world.devices)
    assert day.by_ceiling.tolist() == plan(unhurried(world)).logs.taken_bytes.tolist()
    for _ in range(3):
        later = next_day(day.tables, a_day, fences)
        for row, (before, after) in enumerate(zip(day.tables.devices, later.tables.devices, strict=True)):
            if before.used_bytes is None or before.used_bytes == 0:
                continue
            of_device = world.logs.device == row
            came = int(a_day.allocated_bytes[of_device].sum())
            went = later.by_retention[of_device].sum() + later.by_ceiling[of_device].sum()
            refused = int(later.refused[of_device].sum())
            assert after.total_bytes is not None
            assert after.usable_bytes is not None
            used = after.total_bytes - after.usable_bytes
            assert before.total_bytes is not None
            assert before.usable_bytes is not None
            expected = before.total_bytes - before.usable_bytes + came - int(went)
            # What is refused is at most what came today, and comes off what is used but for what went at once.
            assert expected - refused <= used <= expected
            assert refused <= came + np.count_nonzero(of_device)
        day = later


def unhurried(world: ReclaimTables) -> ReclaimTables:
    return replace(
        world,
        devices=[
            replace(each, policy=replace(each.policy, max_bytes_per_cycle=None, max_percent_per_cycle=None))
            for each in world.devices
        ],
    )


@given(worlds)
@settings(max_examples=50)
def test_any_world_can_be_simulated_from_its_file(world: ReclaimTables) -> None:
    rows = simulated_rows(WhatIf(ceiling_percent=60, days=2), broker_of(with_unique_devices(world)))

    assert {row["device"] for row in rows.to_pylist()} == {f"sda-{row}" for row in range(len(world.devices))}


@pytest.fixture
def found(tmp_path: Path) -> Simulation:
    """A partition on two brokers, of which one has a ceiling in its way; a third broker's file is gone."""
    files = [
        write_snapshot(tmp_path, header_of(broker=1), sections_of(broker_of_one_log(700, [0, 10, 20, 30, 40]))),
        write_snapshot(tmp_path, header_of(broker=2), sections_of(broker_of_one_log(400, [0, 10, 20, 30, 40]))),
        file_of(tmp_path / "gone", header_of(broker=3), 5),
    ]
    what_if = WhatIf(days=0)
    return simulation(what_if, rows_locally(files, rows_of(what_if)))


def test_replicas_come_together_by_topic(found: Simulation) -> None:
    (topic,) = found.topics

    assert (topic.topic, topic.topic_id) == ("orders", topic_id_of("orders"))
    assert (topic.partitions, topic.replicas, topic.bytes, topic.by_ceiling_bytes) == (1, 2, 1000, 200)
    assert topic.oldest_ms is not None
    assert topic.oldest_ms_at_end is not None
    assert topic.oldest_ms_at_end > topic.oldest_ms, "what one guard trims is gone for all replicas"


@pytest.mark.parametrize(("retention", "then"), [("orders=6h", "under 24 h"), ("orders=3d", "3 days to 4 days")])
def test_what_the_last_day_left_is_not_called_younger_than_a_step_can_tell(
    tmp_path: Path, retention: str, then: str
) -> None:
    what_if = WhatIf(retention=(parse_retention(retention),), days=4)
    file = write_snapshot(tmp_path, header_of(broker=1), sections_of(daily(600, policy=NO_CEILING)))
    found = simulation(what_if, rows_locally([file], rows_of(what_if)))

    assert age_then(found, found.topics[0]) == then


def test_devices_stand_alone_and_an_unusable_snapshot_is_named(found: Simulation) -> None:
    assert [(each.broker_id, each.by_ceiling_bytes) for each in found.devices] == [(1, 200), (2, 0)]
    assert [(each.broker_id, "unreadable" in each.why) for each in found.unusable] == [(3, True)]
    assert found.brokers == 2


def test_a_fleet_of_nothing_is_no_error() -> None:
    found = simulation(WhatIf(), iter(list[pa.RecordBatch]()))

    assert (found.brokers, found.now_ms, found.topics, found.devices) == (0, None, (), ())
