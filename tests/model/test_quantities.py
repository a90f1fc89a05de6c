"""Numbers as operators write and read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.model import Percent, human_bytes, human_count, human_percent, human_span, parse_bytes, used_percent


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("512", 512),
        ("512B", 512),
        ("256MB", 256_000_000),
        ("64M", 64 << 20),
        ("64MiB", 64 << 20),
        ("1.5GiB", 3 << 29),
        (" 2 tb ", 2 * 10**12),
        ("1PiB", 1 << 50),
    ],
)
def test_sizes_are_read_in_the_units_of_other_tools(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1 parsec", "1e3", "1,5GB", "0x10", ".5G"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 256MB or 1GiB"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (1_538_476, "1.47 MiB"),
        (10 << 20, "10.0 MiB"),
        (10_480_518, "10.0 MiB"),
        (104_806_000, "100 MiB"),
        (100 << 30, "100 GiB"),
        (1000 << 30, "0.98 TiB"),
        (2**63 - 1, "8.00 EiB"),
        (-2048, "-2.00 KiB"),
    ],
)
def test_sizes_are_written_with_three_digits(size: int | None, text: str) -> None:
    assert human_bytes(size) == text


@given(st.integers(0, 2**63 - 1))
def test_a_written_size_is_short_and_near(size: int) -> None:
    text = human_bytes(size)

    assert len(text) <= 8
    assert parse_bytes(text) == pytest.approx(size, rel=0.006)


def test_a_percentage_is_cut_not_rounded() -> None:
    assert human_percent(Percent(99.96)) == "99.9 %"
    assert human_percent(Percent(100.0)) == "100.0 %"
    assert human_percent(None) == "-"


def test_used_percent_of_nothing_is_all() -> None:
    assert used_percent(0, 0) == 100.0
    assert used_percent(200, 50) == 75.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7000, "117 min"),
        (7200, "2 h"),
        (172_799, "48 h"),
        (1e6, "12 days"),
    ],
)
def test_a_time_is_written_in_one_unit(seconds: float, text: str) -> None:
    assert human_span(seconds) == text


def test_counts_have_separators() -> None:
    assert human_count(1234567) == "1,234,567"
