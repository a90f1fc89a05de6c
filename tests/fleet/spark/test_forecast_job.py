"""The forecast over Spark's rows: which readings reach the kernel, and that what is not known stays unknown."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

import pytest
from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession

from brimline.fleet.jobs.forecast import forecast_volumes
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.gold_schemas import FORECAST
from tests.fleet.spark.bronze import NOW, Row, frame, snapshot, volume

pytestmark = pytest.mark.integration
TOTAL = 1_000_000
Made: TypeAlias = Mapping[tuple[int, str], SparkRow]


def filling(broker: int, per_day: int = 10_000, hours: int = 20 * 24, **said: object) -> list[Row]:
    """Readings of one volume, every hour until now, that end with 600,000 used."""
    return [reading(broker, hour, 600_000 - per_day * hour // 24, **said) for hour in range(hours, -1, -1)]


def reading(broker: int, hours_ago: float, used: int, **said: object) -> Row:
    space = {"total_bytes": TOTAL, "usable_bytes": TOTAL - used, "max_used_percent": 100}
    return volume(snapshot(broker, NOW - timedelta(hours=hours_ago)), **{**space, **said})


def before(row: Row, days: int) -> bool:
    return bool(row["taken_at"] < NOW - timedelta(days=days))


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> Made:
    """One run over volumes of every kind, most of them on a broker of their own."""
    unreadable = reading(3, 0, 0, total_bytes=None, usable_bytes=None, failure="Input/output error")
    smaller = {"total_bytes": TOTAL - 300_000}
    rows = [
        *filling(1),
        *filling(2, per_day=0),
        *filling(3)[:-1],
        unreadable,
        *filling(4, hours=20),
        *(row for row in filling(5, device="old") if before(row, 5)),
        *filling(5, hours=4 * 24, device="new"),
        *filling(6),
        *filling(6, log_dir="/more"),
        *({**row, **smaller, "usable_bytes": row["usable_bytes"] - 300_000} for row in filling(7) if before(row, 10)),
        *(row for row in filling(7) if not before(row, 10)),
        *filling(8, max_used_percent=70),
        *filling(9, max_used_percent=None, min_free_bytes=None, release_margin_percent=None),
        *filling(10, max_used_percent=50),
        *filling(11),
        *(reading(11, day * 24 + 0.9, TOTAL) for day in range(1, 15)),
    ]
    return forecasts(spark, rows)


def forecasts(spark: SparkSession, rows: Sequence[Row]) -> Made:
    current = frame(spark, Table.VOLUMES, [row for row in rows if row["taken_at"] == NOW])
    table = forecast_volumes(current, frame(spark, Table.VOLUMES, rows), NOW)
    assert table.columns == FORECAST.names
    return {(row["broker_id"], row["device"]): row for row in table.collect()}


def test_a_volume_that_fills_has_days_and_a_moment(made: Made) -> None:
    row = made[1, "8:1"]
    assert row["outlook"] == "filling"
    assert row["days_to_full"] == pytest.approx(40, abs=0.01)
    assert (row["full_at"] - row["as_of"]).total_seconds() == pytest.approx(row["days_to_full"] * 86_400, abs=1)
    assert row["growth_bytes_per_day"] == pytest.approx(10_000, rel=0.01)
    assert row["used_percent"] == 60.0
    assert row["back_test_error_points"] == pytest.approx(0, abs=0.01)
    assert row["back_tests"] > 0
    assert row["limits_from"] == "guard"


def test_a_volume_that_stands_still_is_not_filling(made: Made) -> None:
    assert made[2, "8:1"]["outlook"] == "not-filling"
    assert made[2, "8:1"]["days_to_full"] is None
    assert made[2, "8:1"]["full_at"] is None


def test_a_volume_that_cannot_be_read_now_is_unreadable(made: Made) -> None:
    row = made[3, "8:1"]
    assert row["outlook"] == "unreadable"
    assert (row["days_to_full"], row["used_percent"], row["limit_bytes"], row["total_bytes"]) == (None,) * 4


def test_less_than_two_days_are_too_short(made: Made) -> None:
    assert made[4, "8:1"]["outlook"] == "too-short"


def test_a_device_that_was_taken_out_is_not_forecast(made: Made) -> None:
    assert (5, "old") not in made
    assert made[5, "new"]["days_known"] == 4


def test_two_log_dirs_on_one_device_are_one_row(made: Made) -> None:
    assert made[6, "8:1"]["log_dirs_of_device"] == "/data, /more"
    assert made[6, "8:1"]["days_to_full"] == pytest.approx(40, abs=0.01)


def test_a_volume_that_was_made_larger_goes_on_from_where_it_was(made: Made) -> None:
    assert made[7, "8:1"]["days_to_full"] == pytest.approx(40, abs=0.01)
    assert made[7, "8:1"]["total_bytes"] == TOTAL


def test_full_is_where_produce_is_refused(made: Made) -> None:
    assert made[8, "8:1"]["limit_bytes"] == 700_000
    assert made[8, "8:1"]["days_to_full"] == pytest.approx(10, abs=0.01)
    assert made[10, "8:1"]["outlook"] == "full"
    assert made[10, "8:1"]["days_to_full"] == 0


def test_limits_that_nobody_told_are_the_defaults_and_say_so(made: Made) -> None:
    assert made[9, "8:1"]["limits_from"] == "default"


def test_of_several_readings_in_an_hour_the_last_counts(made: Made) -> None:
    assert made[11, "8:1"]["days_to_full"] == pytest.approx(40, abs=0.01)
