"""KIP-1257's table, a test for every row, and the arithmetic for every size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.retention_percent import (
    TieredPercents,
    percent_of,
    plain_percent,
    plain_percents,
    stock_is_right,
    tiered_percents,
)
from brimline.model.partitions import TopicRetention

LIMIT = 1000
plain = TopicRetention(retention_bytes=LIMIT)
plain_unlimited = TopicRetention(retention_bytes=-1)
copying = TopicRetention(retention_bytes=LIMIT, local_retention_bytes=100, is_tiered=True)
copy_disabled = TopicRetention(retention_bytes=LIMIT, is_tiered=True, is_copy_disabled=True)
total_unlimited = TopicRetention(retention_bytes=-1, local_retention_bytes=100, is_tiered=True)
both_unlimited = TopicRetention(retention_bytes=-1, is_tiered=True)

limits = st.sampled_from([-1, 0]) | st.integers(1, 2**63 - 1)
topics = st.builds(
    TopicRetention,
    retention_bytes=limits,
    local_retention_bytes=st.just(-2) | limits,
    is_tiered=st.booleans(),
    is_copy_disabled=st.booleans(),
)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        pytest.param(plain, 50, id="not tiered, limited"),
        pytest.param(plain_unlimited, 0, id="not tiered, unlimited"),
        pytest.param(copying, 0, id="tiered, copying"),
        pytest.param(copy_disabled, 50, id="tiered, copy disabled: against retention.bytes"),
        pytest.param(total_unlimited, 0, id="tiered, total unlimited"),
        pytest.param(TopicRetention(retention_bytes=LIMIT, is_copy_disabled=True), 50, id="not tiered, copy disabled"),
    ],
)
def test_the_plain_bean(topic: TopicRetention, expected: int) -> None:
    assert plain_percent(500, topic) == expected


@pytest.mark.parametrize(
    ("topic", "total", "local"),
    [
        pytest.param(copying, 70, 200, id="copying"),
        pytest.param(copy_disabled, 70, 20, id="copy disabled: local retention of -2 is the total one"),
        pytest.param(total_unlimited, 0, 200, id="total unlimited, local limited"),
        pytest.param(both_unlimited, 0, 0, id="both unlimited"),
    ],
)
def test_the_tiered_beans(topic: TopicRetention, total: int, local: int) -> None:
    figures = tiered_percents(local_size=200, only_local_size=100, remote_size=600, topic=topic)

    assert figures == TieredPercents(total=total, local=local)


@pytest.mark.parametrize(
    ("size", "expected"), [(0, 0), (9, 0), (10, 1), (999, 99), (1000, 100), (1999, 199), (10**6, 100_000)]
)
def test_cut_not_rounded_and_not_capped(size: int, expected: int) -> None:
    assert percent_of(size, LIMIT) == expected


@pytest.mark.parametrize("limit", [-2, -1, 0])
def test_an_unlimited_limit_is_0(limit: int) -> None:
    assert percent_of(10**12, limit) == 0


def test_beyond_a_java_int_it_does_not_wrap() -> None:
    """Stock Kafka casts to int; nobody can mean a negative percentage."""
    assert percent_of(2**40, 1) == 100 * 2**40


@given(
    st.lists(st.tuples(st.integers(0, 2**50), st.integers(0, 3)), max_size=30), st.lists(topics, min_size=4, max_size=4)
)
def test_the_columns_agree_with_the_rule(rows: list[tuple[int, int]], of: list[TopicRetention]) -> None:
    size = np.array([size for size, _ in rows], dtype=np.int64)
    topic = np.array([position for _, position in rows], dtype=np.int32)

    percents = plain_percents(size, topic, of)

    assert percents.tolist() == [plain_percent(each, of[position]) for each, position in rows]


@pytest.mark.parametrize("topic", [plain, plain_unlimited, copying, copy_disabled])
def test_stock_shows_these_rightly(topic: TopicRetention) -> None:
    assert stock_is_right(topic)


@pytest.mark.parametrize("topic", [total_unlimited, both_unlimited])
def test_stock_stands_still_when_the_total_of_a_tiered_topic_is_unlimited(topic: TopicRetention) -> None:
    assert not stock_is_right(topic)
