"""Names of segment files, read all at once: 160,000 of them in a log dir, and a line of Python for each is too much.

The names are laid end to end, each with a zero byte after it, and seen as machine words: of every name the first four
characters, and from the fifth on four words of eight. Twenty digits and one of five endings make a segment file, so
the first two words are digits and the other two hold the ending with its zero byte. What is beyond a shorter name's
end belongs to its neighbour, and does no harm: the zero byte before it is not a digit.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from brimline.model.scan import BoolColumn, FileKind, Int64Column, UInt8Column
from brimline.observe.scan_names import BASE_OFFSET_DIGITS, SEGMENT_FILES

NO_OFFSET = -1
NOT_A_SEGMENT_FILE = len(FileKind)

_Words: TypeAlias = npt.NDArray[np.uint64]
_HEAD = 4
_WORD = 8
_WIDTH = 4 * _WORD
_POWERS = 10 ** np.arange(BASE_OFFSET_DIGITS - 2, -1, -1, dtype=np.int64)
_ZEROS = np.uint64(int.from_bytes(b"0" * _WORD, "little"))
_FOUR_ZEROS = np.uint32(int.from_bytes(b"0" * _HEAD, "little"))
_HIGH_HALVES = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIXES = np.uint64(0x0606060606060606)
_PAIRS = np.uint64(0x000000FF000000FF)
_SHIFT_8, _SHIFT_16, _SHIFT_32 = np.uint64(8), np.uint64(16), np.uint64(32)


def _word_and_mask(letters: bytes) -> tuple[np.uint64, np.uint64]:
    return np.uint64(int.from_bytes(letters, "little")), np.uint64((1 << 8 * len(letters)) - 1)


# Of each ending, with its zero byte, what the third and the fourth word hold.
_ENDINGS = [
    (kind, _word_and_mask(ending[:_WORD]), _word_and_mask(ending[_WORD:]))
    for kind, ending in ((kind, suffix.encode() + b"\0") for suffix, kind in SEGMENT_FILES.items())
]


def read_segment_names(names: Sequence[bytes]) -> tuple[UInt8Column, Int64Column]:
    """Kind and base offset of each; ``NOT_A_SEGMENT_FILE`` and -1 for the others."""
    characters = np.frombuffer(b"\0".join(names) + bytes(_HEAD + _WIDTH), dtype=np.uint8)
    begins = np.zeros(len(names), dtype=np.int64)
    begins[1:] = np.flatnonzero(characters == 0)[: len(names) - 1] + 1
    words = _at(begins + _HEAD, characters, f"V{_WIDTH}").view("<u8").reshape(-1, 4)
    heads = _at(begins, characters, f"V{_HEAD}").view("<u4")
    kinds = np.full(len(names), NOT_A_SEGMENT_FILE, dtype=np.uint8)
    for kind, (third, third_mask), (fourth, fourth_mask) in _ENDINGS:
        is_kind = (words[:, 2] & third_mask) == third
        if fourth_mask:
            is_kind &= (words[:, 3] & fourth_mask) == fourth
        kinds[is_kind] = kind
    offsets = _eight_digits(words[:, 0]) * 100_000_000 + _eight_digits(words[:, 1])
    # Offsets of up to sixteen digits are all that there are in practice; the others take the longer way.
    is_quick = (heads == _FOUR_ZEROS) & _are_digits(words[:, 0]) & _are_digits(words[:, 1])
    others = np.flatnonzero(~is_quick)
    if len(others):
        offsets[others] = _any_digits(_at(begins[others], characters, f"V{BASE_OFFSET_DIGITS}"))
    is_named = (kinds != NOT_A_SEGMENT_FILE) & (offsets != NO_OFFSET)
    kinds[~is_named] = NOT_A_SEGMENT_FILE
    offsets[~is_named] = NO_OFFSET
    return kinds, offsets


def _at(begins: Int64Column, characters: npt.NDArray[np.uint8], width: str) -> npt.NDArray[Any]:
    """As many bytes as the type is wide, from each of these places."""
    kind = np.dtype(width)
    every_place: npt.NDArray[Any] = np.ndarray(
        (len(characters) - kind.itemsize + 1,), dtype=kind, buffer=characters, strides=(1,)
    )
    return every_place[begins]


def _are_digits(words: _Words) -> BoolColumn:
    """'0'..'9' are 0x30..0x39: the high half is 3, and stays 3 when 6 is added."""
    alike = ((words & _HIGH_HALVES) == _ZEROS) & (((words + _SIXES) & _HIGH_HALVES) == _ZEROS)
    return np.asarray(alike, dtype=np.bool_)


def _eight_digits(words: _Words) -> Int64Column:
    """Neighbours are joined three times over: digits to pairs, pairs to fours, fours to eight."""
    digits = words - _ZEROS
    pairs = digits * np.uint64(10) + (digits >> _SHIFT_8)
    outer = (pairs & _PAIRS) * np.uint64(0x000F424000000064)
    inner = ((pairs >> _SHIFT_16) & _PAIRS) * np.uint64(0x0000271000000001)
    return np.asarray((outer + inner) >> _SHIFT_32, dtype=np.int64)


def _any_digits(twenty: npt.NDArray[Any]) -> Int64Column:
    digits = twenty.view(np.uint8).reshape(-1, BASE_OFFSET_DIGITS) - np.uint8(ord("0"))
    offsets = digits[:, 1:] @ _POWERS
    # 2**63 - 1 has nineteen digits; nineteen digits may still overflow, to below zero.
    is_offset = (digits <= 9).all(axis=1) & (digits[:, 0] == 0) & (offsets >= 0)
    return np.where(is_offset, offsets, NO_OFFSET)
