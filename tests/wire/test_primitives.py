import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from brimline.wire.primitives import (
    MOST_TAGS,
    Malformed,
    Reader,
    Truncated,
    Writer,
    encoded_count,
    tags_end,
    uvarint_at,
)


def written(number: int) -> bytes:
    writer = Writer(flexible=True)
    writer.uvarint(number)
    return writer.finish()


@given(number=st.integers(0, 2**35 - 1), before=st.binary(max_size=3), behind=st.binary(max_size=3))
@example(number=127, before=b"", behind=b"")
@example(number=128, before=b"", behind=b"")
@example(number=2**31 - 1, before=b"", behind=b"")
@example(number=2**31, before=b"", behind=b"")
@example(number=2**32 - 1, before=b"", behind=b"")
def test_a_variable_length_number_is_read_where_it_stands(number: int, before: bytes, behind: bytes) -> None:
    view = memoryview(before + written(number) + behind)
    as_java_has_it = (number + 2**31) % 2**32 - 2**31

    assert uvarint_at(view, len(before)) == (as_java_has_it, len(view) - len(behind))
    assert Reader(view, flexible=True, position=len(before)).uvarint() == as_java_has_it


@pytest.mark.parametrize("message", [b"", b"\x80", b"\xff\xff\xff\xff"])
def test_a_number_that_ends_too_early(message: bytes) -> None:
    with pytest.raises(Truncated):
        uvarint_at(memoryview(message), 0)


def test_a_number_of_more_than_five_bytes() -> None:
    with pytest.raises(Malformed):
        uvarint_at(memoryview(b"\x80\x80\x80\x80\x80\x00"), 0)


def test_tagged_fields_are_passed_over_whatever_they_hold() -> None:
    section = b"\x02" + b"\x05\x03abc" + b"\x80\x01\x00"

    assert tags_end(memoryview(b"before" + section + b"behind"), 6) == 6 + len(section)


@pytest.mark.parametrize("length", range(9))
def test_tagged_fields_that_end_too_early(length: int) -> None:
    section = b"\x02" + b"\x05\x03abc" + b"\x80\x01\x00"

    with pytest.raises(Truncated):
        tags_end(memoryview(section[: min(length, len(section) - 1)]), 0)


def test_more_tagged_fields_than_anybody_has() -> None:
    as_many_as_may_be = bytes([MOST_TAGS]) + b"\x05\x00" * MOST_TAGS

    assert tags_end(memoryview(as_many_as_may_be), 0) == len(as_many_as_may_be)
    with pytest.raises(Malformed):
        tags_end(memoryview(bytes([MOST_TAGS + 1]) + b"\x05\x00" * (MOST_TAGS + 1)), 0)


@pytest.mark.parametrize(("flexible", "expected"), [(True, b"\x81\x01"), (False, b"\x00\x00\x00\x80")])
def test_a_count_on_its_own(flexible: bool, expected: bytes) -> None:  # noqa: FBT001
    assert encoded_count(128, flexible=flexible) == expected


@pytest.mark.parametrize("flexible", [True, False])
def test_an_array_that_must_not_be_null(flexible: bool) -> None:  # noqa: FBT001
    writer = Writer(flexible=flexible)
    writer.count(None)

    with pytest.raises(Malformed, match="null"):
        Reader(writer.finish(), flexible=flexible).count_not_null(smallest_element=1)


@pytest.mark.parametrize("flexible", [True, False])
@pytest.mark.parametrize("value", [None, b"", b"abc"])
def test_strings_as_bytes(flexible: bool, value: bytes | None) -> None:  # noqa: FBT001
    writer = Writer(flexible=flexible)
    writer.string_bytes(value)

    assert Reader(writer.finish(), flexible=flexible).nullable_string_bytes() == value


def test_bytes_are_passed_over_only_if_they_come_next() -> None:
    reader = Reader(b"abc", flexible=True)

    assert not reader.take_if_next(b"abcd")
    assert not reader.take_if_next(b"b")
    assert reader.take_if_next(b"ab")
    assert reader.remaining == 1
