"""A disk's use over time: the newest reading, the limits and the band are where they belong."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from brimline.pages.chart import HEIGHT, WIDTH, Expectation, Reading, UseChart
from tests.pages.test_html import Parsed

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def readings(count: int) -> list[Reading]:
    return [Reading(NOW - timedelta(hours=count - 1 - place), 40.0 + place * 20.0 / count) for place in range(count)]


def paths(chart: UseChart) -> dict[str, list[tuple[float, float]]]:
    found = {}
    for tag, given in Parsed(chart.drawn()).tags:
        if tag == "path":
            numbers = re.findall(r"(-?[\d.]+),(-?[\d.]+)", given["d"] or "")
            found[given["class"] or ""] = [(float(x), float(y)) for x, y in numbers]
    return found


def test_the_line_ends_with_the_newest_reading_however_many_there_are() -> None:
    many = readings(5000)

    (used,) = paths(UseChart(readings=many)).values()

    assert len(used) <= 400
    assert used == sorted(used)
    assert used[-1] == (WIDTH - 12.0, round(10 + (1 - many[-1].used_percent / 100) * (HEIGHT - 38), 1))


def test_the_band_opens_from_the_newest_reading_to_the_fence() -> None:
    expected = Expectation(days=10.0, soonest=8.0, latest=14.0)
    chart = UseChart(readings=readings(24), fence=90.0, expected=expected)

    drawn = paths(chart)

    fence = round(10 + (1 - 0.9) * (HEIGHT - 38), 1)
    now, soonest, latest = drawn["band"]
    assert now == drawn["used"][-1] == drawn["middle"][0]
    assert (soonest[1], latest[1], drawn["middle"][1][1]) == (fence, fence, fence)
    assert soonest[0] < drawn["middle"][1][0] < latest[0]


def test_a_disk_that_may_never_be_full_has_a_band_that_stays_open() -> None:
    chart = UseChart(readings=readings(24), fence=90.0, expected=Expectation(days=10.0, soonest=8.0, latest=None))

    band = paths(chart)["band"]

    assert band[-1] == (WIDTH - 12.0, band[0][1])


def test_what_is_far_away_is_cut_at_the_end_of_the_picture() -> None:
    chart = UseChart(readings=readings(24), fence=90.0, expected=Expectation(days=300.0, soonest=200.0, latest=360.0))

    assert all(x <= WIDTH - 12.0 + 0.1 for x, _ in paths(chart)["band"])


def test_one_reading_is_a_chart_too() -> None:
    chart = UseChart(readings=readings(1), fence=90.0, ceiling=80.0)

    assert "40.0 % used on 2026-01-31" in chart.label
    assert chart.drawn().count("<line") == 7


def test_a_guard_that_observes_is_not_said_to_refuse() -> None:
    chart = UseChart(readings=readings(2), fence=90.0)

    assert "full: writes refused" in chart.drawn()
    assert "full: writes would be refused" in replace(chart, is_observed=True).drawn()
