"""Which time is believed, look after look: what the clock says, what has passed, and what the newest record says."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.reclaim import plan as reclaim
from brimline.decide.reclaim.bounds import BelievedTime, newest_record_ms
from tests.decide.reclaim.scenarios import all_scenarios

MINUTE, HOUR, DAY, YEAR = 60_000, 3_600_000, 86_400_000, 365 * 86_400_000
NOON = 100 * DAY
SCENARIOS = {scenario.name: scenario.tables for scenario in all_scenarios()}

Look = tuple[int, int, int | None, int]
"""Minutes since the start, the clock's time, the newest record's time, and what is believed; times are after noon."""
LOOKS: dict[str, list[Look]] = {
    "all is well": [(0, 0, -MINUTE, -MINUTE), (1, MINUTE, MINUTE, MINUTE)],
    "no records": [(0, 0, None, 0), (1, MINUTE, None, MINUTE)],
    "it jumps ahead": [(0, 0, 0, 0), (1, YEAR, MINUTE, MINUTE)],
    "it jumps ahead, and the broker's own time with it": [(0, 0, 0, 0), (1, YEAR, YEAR, MINUTE + 1060)],
    "it was ahead before the start": [(0, YEAR, 0, 0), (1, YEAR + MINUTE, MINUTE, MINUTE)],
    "a silent cluster": [(0, 0, -9 * DAY, -9 * DAY), (60, HOUR, -9 * DAY, HOUR - 9 * DAY)],
    "a silent cluster is written to": [(0, 0, -9 * DAY, -9 * DAY), (1, MINUTE, MINUTE, MINUTE)],
    "it is set back": [(0, 0, 0, 0), (1, -DAY, 0, -DAY)],
    "a producer that is ahead": [(0, 0, DAY, 0)],
    "the first record tells": [(0, DAY, None, DAY), (1, DAY + MINUTE, MINUTE, MINUTE)],
}


@pytest.mark.parametrize("looks", LOOKS.values(), ids=LOOKS)
def test_what_is_believed(looks: list[Look]) -> None:
    believed = BelievedTime(steady_ms=NOON + looks[0][1], seconds=0.0)
    found = []
    for minutes, clock, newest, _ in looks:
        believed = believed.after(NOON + clock, minutes * 60.0, None if newest is None else NOON + newest)
        found.append(believed.time_ms - NOON)

    assert found == [expected for *_, expected in looks]


@given(
    st.lists(
        st.tuples(st.integers(0, 10**7), st.integers(0, 10**15), st.none() | st.integers(0, 10**15)),
        min_size=1,
    )
)
def test_it_never_runs_ahead_of_the_clock_nor_faster_than_time(looks: list[tuple[int, int, int | None]]) -> None:
    """Whatever clock and records say: what is believed to have passed since the start has passed, or is forgiven."""
    believed, seconds = BelievedTime(steady_ms=looks[0][1], seconds=0.0), 0.0
    for number, (passed, clock, newest) in enumerate(looks, 1):
        seconds += passed
        believed = believed.after(clock, seconds, newest)

        assert believed.time_ms <= clock
        assert believed.time_ms <= looks[0][1] + seconds * 1001 + 1000 * number


def test_the_newest_record_is_that_of_a_users_topic_and_believable() -> None:
    tables = SCENARIOS["minimum-retention-ms"]
    newest = tables.segments.newest_timestamp_ms
    own = replace(tables, topics=[replace(topic, name=f"__{topic.name}") for topic in tables.topics])
    absurd = replace(tables.segments, newest_timestamp_ms=newest + 10 * DAY)

    assert newest_record_ms(tables) == 1_000_000
    assert newest_record_ms(own) is None
    assert newest_record_ms(replace(tables, segments=absurd)) is None


def test_the_minimum_retention_counts_from_the_believed_time() -> None:
    tables = SCENARIOS["minimum-retention-ms"]
    (device,) = tables.devices
    jumped = replace(tables, devices=[replace(device, now_ms=device.now_ms + 365 * DAY)])
    believing = replace(tables, devices=[replace(device, now_ms=device.now_ms + 365 * DAY, believed_ms=device.now_ms)])

    assert reclaim.plan(jumped).reason.tolist() != reclaim.plan(tables).reason.tolist()
    assert reclaim.plan(believing).reason.tolist() == reclaim.plan(tables).reason.tolist()
