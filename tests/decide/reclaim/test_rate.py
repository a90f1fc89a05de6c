"""The rate at which a device was written to: a lower bound, told by segments."""

import pytest

from brimline.decide.reclaim.bounds import written_per_second
from brimline.model.reclaim import ReclaimTables
from tests.decide.reclaim.scenarios import tables_of

NOW_MS = 10_000_000
WINDOW_MS = 1_000_000


def tables(*logs: list[tuple[int, int]]) -> ReclaimTables:
    """Of each log its segments: bytes, and how many ms before now they were last written to."""
    device = {"name": "8:1", "totalBytes": 1000, "usableBytes": 0, "nowMs": NOW_MS, "ceilingPercent": 80}
    rows = [
        {
            "device": "8:1",
            "topic": "orders",
            "partition": number,
            "segments": [
                {"baseOffset": 10 * row, "bytes": size, "timestampMs": 0, "modifiedMs": NOW_MS - ago}
                for row, (size, ago) in enumerate(segments)
            ],
        }
        for number, segments in enumerate(logs)
    ]
    return tables_of({"devices": [device], "topics": [{"name": "orders"}], "logs": rows})


def rate(*logs: list[tuple[int, int]]) -> float:
    return written_per_second(tables(*logs), 0, WINDOW_MS)


def test_a_segment_counts_from_the_end_of_the_one_before_it() -> None:
    assert rate([(999, 500_000), (100, 0)]) == pytest.approx(0.1)


def test_only_the_part_within_the_window_counts() -> None:
    assert rate([(999, 3_000_000), (600, 0)]) == pytest.approx(0.2)
    assert rate([(999, 3_000_000), (600, 2_000_000)]) == 0


def test_a_first_segment_is_of_unknown_age_and_does_not_count() -> None:
    assert rate([(999, 0)]) == 0
    assert rate() == 0


def test_logs_add_up_and_do_not_touch_each_other() -> None:
    assert rate([(999, 900_000), (100, 0)], [], [(999, 500_000), (100, 400_000)]) == pytest.approx(0.2)


def test_odd_times_make_no_odd_rates() -> None:
    """A segment that was touched after its successor, one from the future, and two of one moment."""
    assert rate([(999, 100), (100, 200)]) == 0
    assert rate([(999, 500_000), (100, -500_000)]) == pytest.approx(0.1)
    assert rate([(999, 100_000), (100, 100_000)]) == 0
