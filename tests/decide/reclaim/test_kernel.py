"""The arithmetic below the plan, at sizes and values that small worlds do not reach."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.reclaim import kernel
from brimline.model.scan import Int64Column

NOW = 1_700_000_000_000
HOUR = 3_600_000
LARGEST, SMALLEST = 2**63 - 1, -(2**63)
MANY = 20_000


def column(*values: int) -> Int64Column:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("newest_ms", "modified_ms", "expected"),
    [
        pytest.param(NOW - 5, NOW, NOW - 5, id="a record's timestamp"),
        pytest.param(0, NOW, 0, id="the epoch is a timestamp"),
        pytest.param(-1, NOW - 7, NOW - 7, id="none: last write"),
        pytest.param(SMALLEST, NOW - 7, NOW - 7, id="absurdly old: last write"),
        pytest.param(NOW + HOUR, NOW - 7, NOW + HOUR, id="in the future, within the tolerance"),
        pytest.param(NOW + HOUR + 1, NOW - 7, NOW - 7, id="in the future, beyond it: last write"),
        pytest.param(LARGEST, NOW - 7, NOW - 7, id="absurdly new: last write"),
        pytest.param(-1, NOW + 1, NOW, id="last write in the future: now"),
        pytest.param(-1, -1, 0, id="last write before the epoch: the epoch"),
    ],
)
def test_the_age_of_any_value(newest_ms: int, modified_ms: int, expected: int) -> None:
    found = kernel.ages(column(newest_ms), column(modified_ms * 1_000_000), NOW, HOUR)

    assert found.tolist() == [expected]


@pytest.mark.parametrize("now", [-1, 2**43 - HOUR])
def test_a_now_beyond_the_key_is_refused(now: int) -> None:
    with pytest.raises(ValueError, match="outside of what a plan can count with"):
        kernel.ages(column(1), column(1), now, HOUR)


@pytest.mark.parametrize("tolerance", [-1, 1 << 43, 1 << 62])
@pytest.mark.parametrize("now", [1 << 62, NOW])
def test_a_tolerance_beyond_the_key_is_refused_also_where_the_sum_overflows(now: int, tolerance: int) -> None:
    for each in (now, np.array([now, NOW])):
        with pytest.raises(ValueError, match="outside of what a plan can count with"):
            kernel.ages(np.array([5, 5]), np.array([0, 0]), each, tolerance)


def test_more_logs_than_the_key_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 1048576"):
        kernel.monotone(column(5), column(2**20))


def test_the_largest_log_and_age_do_not_overflow() -> None:
    keys = kernel.monotone(column(2**43 - 1, 0), column(2**20 - 1, 2**20 - 1))

    assert (keys > 0).all()
    assert kernel.age_of(keys).tolist() == [2**43 - 1, 2**43 - 1]


@given(st.lists(st.lists(st.integers(0, 20), max_size=9), max_size=9), st.data())
def test_counting_in_many_ranges_is_counting_in_each(ranges: list[list[int]], data: st.DataObject) -> None:
    ordered = [sorted(values) for values in ranges]
    most = [data.draw(st.integers(-2, 22)) for _ in ordered]
    end = np.cumsum([len(values) for values in ordered], dtype=np.int64)
    begin = end - np.array([len(values) for values in ordered], dtype=np.int64)
    values = np.array([value for values in ordered for value in values], dtype=np.int64)

    found = kernel.count_up_to(values, begin, end, np.array(most, dtype=np.int64))

    assert found.tolist() == [
        sum(value <= bound for value in values) for values, bound in zip(ordered, most, strict=True)
    ]


Columns: TypeAlias = dict[str, Callable[[np.random.Generator], Int64Column]]

AGES: Columns = {
    "spread": lambda generator: generator.integers(0, 2**43, MANY),
    "a week": lambda generator: NOW - generator.integers(0, 7 * 24 * HOUR, MANY),
    "few different": lambda generator: NOW - generator.integers(0, 3, MANY),
    "all the same": lambda _: np.full(MANY, NOW),
    "one of 1970": lambda generator: np.where(np.arange(MANY) == 77, 0, NOW - generator.integers(0, HOUR, MANY)),
}
SIZES: Columns = {
    "a few bytes": lambda generator: generator.integers(0, 9, MANY),
    "a gigabyte": lambda generator: generator.integers(0, 2**30, MANY),
    "beyond what a float counts": lambda generator: generator.integers(2**39, 2**41, MANY) | 1,
}


@pytest.mark.parametrize("ages", AGES)
@pytest.mark.parametrize("sizes", SIZES)
def test_the_cut_through_many_is_where_sorting_puts_it(ages: str, sizes: str) -> None:
    generator = np.random.default_rng(7)
    age = np.asarray(AGES[ages](generator), dtype=np.int64)
    size = np.asarray(SIZES[sizes](generator), dtype=np.int64)
    rank = generator.integers(0, 50, MANY)
    order = np.lexsort((np.arange(MANY), rank, age))
    together = np.cumsum(size[order])
    total = int(together[-1])
    for amount in (1, total // 1000, total // 3, total // 3 + 1, total - 1, total, total + 1):
        cut = kernel.cut_oldest(age, rank, size, amount)

        reaching, below = np.zeros(MANY, dtype=np.bool_), np.zeros(MANY, dtype=np.bool_)
        reaching[order[together - size[order] < amount]] = True
        below[order[together < amount]] = True
        assert (cut.reaching() == reaching).all()
        assert (cut.below() == below).all()
