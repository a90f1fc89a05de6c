"""Which log of ``__consumer_offsets`` a group's commits go to, and where the line is."""

import pytest

from brimline.decide.commits import is_past_line, java_hash
from brimline.decide.disk_state import BYTES_OFF, DiskLimits, Space
from brimline.model import Bytes

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(1 << 31)),
        ("ü", 252),
        ("𝄞", 0xD834 * 31 + 0xDD1E),
    ],
)
def test_javas_own_hash(text: str, value: int) -> None:
    assert java_hash(text) == value


@pytest.mark.parametrize(("usable", "percent", "is_past"), [(499, 50, True), (500, 50, False), (999, 100, True)])
@pytest.mark.parametrize("reserve", [0, 1000])
def test_the_line_is_a_share_of_what_is_kept_free(usable: int, percent: int, is_past: object, reserve: int) -> None:
    limits = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(1000 - reserve or 1), reserve=Bytes(reserve))

    assert is_past_line(Space(total=Bytes(GIB), usable=Bytes(usable)), limits, percent) is is_past


def test_without_a_line_or_without_limits_nothing_is_past_it() -> None:
    nothing_left = Space(total=Bytes(GIB), usable=Bytes(0))

    assert not is_past_line(nothing_left, DiskLimits(), 0)
    assert not is_past_line(nothing_left, DiskLimits(max_used_percent=100, min_free_bytes=BYTES_OFF), 100)
