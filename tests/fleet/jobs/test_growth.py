"""How fast a log dir's volume fills: by days, by readings, and only as long as it is the same volume."""

from collections.abc import Sequence
from statistics import median
from typing import Any

import pytest

from brimline.decide.fill_rate import READINGS_KEPT, UsableAt, fill_rate
from brimline.fleet.jobs.growth import Reading, growth
from brimline.model import Bytes

MINUTE_US = 60_000_000
START_US = 1_769_860_800_000_000


def reading(minute: float, used: int | None = 0, **said: Any) -> Reading:
    fields: dict[str, Any] = {"source": "guard", "device": "8:1", "total_bytes": 1_000_000}
    fields["usable_bytes"] = None if used is None else 1_000_000 - used
    return Reading(at_us=START_US + int(minute * MINUTE_US), **{**fields, **said})


def rate_of(readings: Sequence[Reading]) -> float | None:
    return growth(readings).bytes_per_day


def test_hours_are_told_as_the_guard_tells_them() -> None:
    usable = [900, 880, 890, 850, 600, 840, 830, 815, 810, 790, 780, 775, 760, 740, 735, 730, 700, 690]
    expected = fill_rate([UsableAt(300.0 * each, Bytes(size)) for each, size in enumerate(usable)][-READINGS_KEPT:])
    assert expected is not None

    found = growth([reading(5 * each, usable_bytes=size) for each, size in enumerate(usable)])

    assert found.whence == "readings"
    assert found.bytes_per_day == pytest.approx(expected * 86400)


def test_neither_the_rhythm_of_the_day_nor_one_deletion_shows_in_days() -> None:
    used = [500_000 + 10 * hour + 3_000 * (hour % 24) - (200_000 if hour > 60 else 0) for hour in range(100)]

    found = growth([reading(60 * hour, size) for hour, size in enumerate(used)])

    assert found.whence == "days"
    assert found.bytes_per_day == median(later - used[hour] for hour, later in enumerate(used[24:])) == 240


def test_the_last_reading_of_an_hour_counts() -> None:
    readings = [reading(0, 10), reading(59, 20), reading(24 * 60, 500), reading(24 * 60 + 30, 30)]

    assert rate_of(readings) == 10


def test_a_day_and_no_reading_24_hours_apart_is_told_by_readings() -> None:
    found = growth([reading(0, 0), reading(36 * 60, 36_000)])

    assert found.bytes_per_day == pytest.approx(24_000)
    assert found.whence == "readings"


@pytest.mark.parametrize(
    "before",
    [
        pytest.param({"device": "8:17"}, id="another device"),
        pytest.param({"total_bytes": 2_000_000}, id="another size"),
        pytest.param({"source": "collect", "device": "/data"}, id="another source"),
    ],
)
def test_history_of_another_volume_does_not_count(before: dict[str, Any]) -> None:
    readings = [*(reading(each, 999_000, **before) for each in (0, 1, 2)), reading(10, 100), reading(15, 110)]

    found = growth(readings)

    assert found.bytes_per_day == pytest.approx(10 / 300 * 86400)
    assert found.since_us == readings[3].at_us


def test_what_was_before_another_device_does_not_count_even_if_it_is_alike() -> None:
    readings = [reading(0, 0), reading(5, 5, device="8:17"), reading(10, 100), reading(15, 110)]

    assert growth(readings).since_us == readings[2].at_us


def test_readings_of_another_source_in_between_are_passed_over() -> None:
    readings = [reading(0, 100), reading(2, 7, source="collect", device="/data"), reading(5, 110)]

    assert rate_of(readings) == pytest.approx(10 / 300 * 86400)


def test_an_unreadable_moment_is_neither_a_size_nor_another_volume() -> None:
    gone = {"total_bytes": None, "usable_bytes": None}
    readings = [reading(0, 100), reading(5, None, **gone), reading(10, 120), reading(15, None, **gone)]

    assert rate_of(readings) == pytest.approx(20 / 600 * 86400)
    assert growth(readings).since_us == readings[0].at_us


@pytest.mark.parametrize(
    "readings",
    [
        pytest.param([reading(0, 10)], id="one reading"),
        pytest.param([reading(0, 10), reading(0, 20)], id="one moment"),
        pytest.param([reading(0, None, total_bytes=None), reading(5, None, total_bytes=None)], id="unreadable"),
    ],
)
def test_no_growth_without_two_readings(readings: list[Reading]) -> None:
    found = growth(readings)

    assert (found.bytes_per_day, found.whence) == (None, None)
