import struct

from hypothesis import given
from hypothesis import strategies as st

from brimline.wire.rewrite import Edit, rewritten, rewritten_frame

edits_of_5000_bytes = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000), st.binary(max_size=5)), max_size=6)


def in_order_and_apart(drawn: list[tuple[int, int, bytes]]) -> list[Edit]:
    positions = sorted(position for start, end, _ in drawn for position in (start, end))
    replacements = [replacement for _, _, replacement in drawn]
    return [
        Edit(*span, text)
        for span, text in zip(zip(positions[::2], positions[1::2], strict=True), replacements, strict=True)
    ]


@given(drawn=edits_of_5000_bytes, size=st.integers(5000, 6000))
def test_all_bytes_between_two_edits_stay(drawn: list[tuple[int, int, bytes]], size: int) -> None:
    payload = bytes(index % 251 for index in range(size))
    edits = in_order_and_apart(drawn)

    expected = bytearray(payload)
    for start, end, replacement in reversed(edits):
        expected[start:end] = replacement
    assert b"".join(rewritten(memoryview(payload), edits)) == expected
    assert b"".join(rewritten_frame(memoryview(payload), edits)) == struct.pack(">i", len(expected)) + expected


def test_long_stretches_are_views_and_short_ones_share_a_buffer() -> None:
    payload = memoryview(bytes(10_000))

    buffers = rewritten(payload, [Edit(0, 1, b"a"), Edit(5000, 5010), Edit(5020, 5020, b"b"), Edit(9990, 9990, b"c")])

    assert [(type(buffer), len(buffer)) for buffer in buffers] == [
        (bytes, 1),
        (memoryview, 4999),
        (bytes, 11),
        (memoryview, 4970),
        (bytes, 11),
    ]


def test_nothing_to_change_is_one_buffer() -> None:
    payload = memoryview(bytes(10_000))

    assert rewritten(payload, []) == [payload]
