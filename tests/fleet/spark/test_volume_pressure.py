"""States, percentages and times to the limit: equal to the guard's own rules, and named where nothing is known."""

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from brimline.decide.disk_state import DiskLimits, DiskState, Space, breaches, bytes_to_limit, next_state
from brimline.fleet.jobs.forecast import forecast_volumes
from brimline.fleet.jobs.jobs import conformed
from brimline.fleet.jobs.volume_pressure import volume_pressure
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.gold_schemas import FORECAST, VOLUME_PRESSURE
from brimline.model import Bytes, used_percent
from tests.fleet.spark.bronze import NOW, Row, frame, minutes_ago, snapshot, volume

pytestmark = pytest.mark.integration
LARGEST = 2**63 - 1
SILENT = {"max_used_percent": None, "min_free_bytes": None, "release_margin_percent": None, "ceiling_percent": None}


def pressure(spark: SparkSession, newest: list[Row], history: list[Row]) -> dict[str, Any]:
    """Rows by log dir."""
    frames = [frame(spark, Table.VOLUMES, rows) for rows in (newest, history)]
    forecast = forecast_volumes(frames[0], frames[1], NOW) if history else spark.createDataFrame([], FORECAST)
    rows = conformed(volume_pressure(frames[0], frames[1], forecast, NOW), VOLUME_PRESSURE).collect()
    return {row.log_dir: row for row in rows}


def test_states_and_distances_are_those_of_the_guards_rule(spark: SparkSession) -> None:
    """Every combination at the edges of all limits and of the margin, and sizes that 64 bits do not multiply."""
    spaces = [(1000, usable) for usable in (0, 50, 99, 100, 101, 149, 150, 151, 1000, 1200)]
    spaces += [(0, 0), (LARGEST, LARGEST // 10), (LARGEST, 5)]
    limits = [(90, 0, 0), (90, 100, 5), (100, 100, 5), (100, 0, 0), (0, 1, 0), (90, 150, 10)]
    reserves = [(None, None), (100, None), (LARGEST, 10), (None, 10), (100, 11)]
    cases = list(product(spaces, limits, ("ok", "full", None), reserves))
    rows = [
        volume(
            snapshot(),
            log_dir=f"/{number}",
            total_bytes=total,
            usable_bytes=usable,
            max_used_percent=percent,
            min_free_bytes=free,
            release_margin_percent=margin,
            state=was,
            reserve_bytes=reserve,
            total_files=100,
            usable_files=10,
            fewest_files=fewest,
        )
        for number, ((total, usable), (percent, free, margin), was, (reserve, fewest)) in enumerate(cases)
    ]

    found = pressure(spark, rows, [])

    for number, ((total, usable), (percent, free, margin), was, (reserve, fewest)) in enumerate(cases):
        row = found[f"/{number}"]
        space = Space(total=Bytes(total), usable=Bytes(usable), total_files=100, usable_files=10)
        rule = DiskLimits(
            max_used_percent=percent,
            min_free_bytes=Bytes(free),
            release_margin_percent=margin,
            reserve=Bytes(reserve or 0),
            min_free_files=fewest or 0,
        )
        assert row.state == next_state(DiskState(was or "ok"), space, rule).value, cases[number]
        assert row.bytes_to_fence == bytes_to_limit(space, rule), cases[number]
        assert (row.breaches or "") == ", ".join(breach.value for breach in breaches(space, rule))
        assert row.used_percent == pytest.approx(used_percent(Bytes(total), Bytes(usable)))


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, Any]:
    """One look at many log dirs, since a look takes its time."""
    collected = snapshot(source="collect")
    newest = [
        volume(
            snapshot(),
            log_dir="/gone",
            total_bytes=None,
            usable_bytes=None,
            failure="input/output error",
            state="unknown",
        ),
        volume(snapshot(), log_dir="/offline", state="offline", is_offline=True),
        volume(collected, log_dir="/offline-collected", state=None, is_offline=True, **SILENT),
        volume(snapshot(), log_dir="/hung-before", state="unknown", total_bytes=None, is_offline=True),
        volume(snapshot(1, minutes_ago(15)), log_dir="/fresh"),
        volume(snapshot(2, minutes_ago(15.1)), log_dir="/stale"),
        volume(snapshot(3, NOW + timedelta(seconds=5)), log_dir="/ahead"),
        *(volume(collected, log_dir=log_dir, state=None, **SILENT) for log_dir in ("/told", "/never-told")),
        volume(snapshot(), log_dir="/filling", device="8:9", usable_bytes=690, ceiling_percent=80),
        volume(snapshot(), log_dir="/once", device="8:2", usable_bytes=700),
        volume(snapshot(), log_dir="/beyond", device="8:3", usable_bytes=50, ceiling_percent=80),
    ]
    history = [
        volume(snapshot(at=minutes_ago(5)), log_dir="/told", max_used_percent=40, ceiling_percent=30),
        volume(snapshot(at=minutes_ago(10)), log_dir="/told", max_used_percent=70),
        *(
            volume(snapshot(at=minutes_ago(60 * hour)), log_dir="/filling", device="8:9", usable_bytes=690 + hour // 2)
            for hour in range(1, 20 * 24)
        ),
        *(each for each in newest if each["log_dir"] in ("/filling", "/once", "/beyond")),
    ]
    return pressure(spark, newest, history)


def test_what_cannot_be_read_is_unknown_and_has_no_figure(found: dict[str, Any]) -> None:
    row = found["/gone"]

    assert (row.state, row.guard_state, row.failure) == ("unknown", "unknown", "input/output error")
    assert (row.used_percent, row.used_bytes, row.bytes_to_fence, row.days_to_fence) == (None, None, None, None)


def test_offline_is_what_the_broker_says_and_not_a_disk_that_hung_for_a_guard_of_before(found: dict[str, Any]) -> None:
    names = ("/offline", "/offline-collected", "/hung-before")

    assert [found[name].state for name in names] == ["offline", "offline", "unknown"]


def test_inodes_and_the_reserve_of_guards_of_before_are_unknown_and_none(found: dict[str, Any]) -> None:
    row = found["/fresh"]

    assert (row.total_files, row.usable_files, row.reserve_bytes, row.fewest_files) == (None, None, 0, 0)


def test_a_silent_broker_is_stale_and_keeps_its_last_word(found: dict[str, Any]) -> None:
    assert [found[name].is_stale for name in ("/fresh", "/stale", "/ahead")] == [False, True, False]
    assert found["/stale"].used_percent == 50
    assert found["/ahead"].age_seconds == 0


def test_limits_are_the_newest_that_a_guard_told_and_else_the_defaults(found: dict[str, Any]) -> None:
    assert (found["/told"].limits_from, found["/told"].state, found["/told"].bytes_to_ceiling) == (
        "guard",
        "full",
        -200,
    )
    assert (found["/never-told"].limits_from, found["/never-told"].max_used_percent) == ("default", 99)
    assert found["/never-told"].state == "full"  # less than the default of 1 GiB is usable


def test_the_time_to_a_limit_is_the_forecasts(found: dict[str, Any]) -> None:
    row = found["/filling"]

    assert row.growth_bytes_per_day == pytest.approx(12, rel=0.05)
    assert row.days_to_fence == pytest.approx((690 - 100) / row.growth_bytes_per_day, rel=0.01)
    assert row.days_to_ceiling == pytest.approx((690 - 200) / row.growth_bytes_per_day)


def test_one_reading_has_no_growth_and_no_time_to_the_limit(found: dict[str, Any]) -> None:
    row = found["/once"]

    assert (row.growth_bytes_per_day, row.days_to_fence) == (None, None)
    assert row.bytes_to_fence == 600


def test_beyond_the_limit_there_is_no_time_left(found: dict[str, Any]) -> None:
    row = found["/beyond"]

    assert (row.days_to_fence, row.days_to_ceiling, row.bytes_to_ceiling) == (0.0, 0.0, -150)
