"""Changing a few places of a message and leaving every other byte as it came.

A message that passes through is never decoded and encoded again: that would lose whatever we do not know of, tagged
fields above all. It is described by its differences instead, and all bytes between two of them are passed on as they
are. What is long is not even copied.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

_LENGTH = Struct(">i")

# Below this size a copy costs less than one more buffer in a sendmsg call.
_LONG = 1024


class Edit(NamedTuple):
    """The bytes from ``start`` to ``end`` give way to others. Equal positions insert, an empty replacement removes."""

    start: int
    end: int
    replacement: bytes = b""


def rewritten(payload: memoryview, edits: Sequence[Edit]) -> list[bytes | memoryview]:
    """The changed message in as few buffers as go without copying long stretches. Edits are in order and apart."""
    buffers: list[bytes | memoryview] = []
    short = bytearray()
    position = 0
    for start, end, replacement in (*edits, Edit(len(payload), len(payload))):
        kept = payload[position:start]
        if len(kept) < _LONG:
            short += kept
        else:
            if short:
                buffers.append(bytes(short))
                short.clear()
            buffers.append(kept)
        short += replacement
        position = end
    if short:
        buffers.append(bytes(short))
    return buffers


def rewritten_frame(payload: memoryview, edits: Sequence[Edit]) -> list[bytes | memoryview]:
    """The same, behind the four bytes that tell its new length."""
    length = len(payload) + sum(len(replacement) - (end - start) for start, end, replacement in edits)
    return rewritten(payload, [Edit(0, 0, _LENGTH.pack(length)), *edits])
