"""From when a guard counts that was just started: a clock that has jumped since one looked last makes nothing old."""

import pytest

from brimline.decide.reclaim.bounds import begins_at

NOW, DAY = 100_000_000_000, 86_400_000


@pytest.mark.parametrize(
    ("expected", "second", "begins"),
    [
        (None, None, NOW),
        (NOW, None, NOW),
        (NOW + DAY, None, NOW),
        (NOW - DAY, None, NOW - DAY),
        (NOW - DAY, NOW - 5, NOW),
        (NOW - DAY, NOW - DAY + 7, NOW - DAY + 7),
        (NOW - DAY, NOW - 2 * DAY, NOW - DAY),
        (NOW, NOW - DAY, NOW),
        (None, NOW, NOW),
        (None, NOW - DAY, NOW - DAY),
        (None, NOW + DAY, NOW),
    ],
)
def test_a_guard_that_starts_believes_a_clock_that_nobody_contradicts(
    expected: int | None, second: int | None, begins: int
) -> None:
    assert begins_at(NOW, expected, second) == begins
