"""Kafka's primitive types: one reader and one writer for both the old and the flexible encodings.

What can be wrong with bytes::

    BrimlineError
    └── WireError             bytes that cannot be what they claim to be
        ├── Truncated         they end before the message does
        └── Malformed         a length, count or marker that no valid message has

Whose fault it is follows from where the bytes came from; the caller knows and says so.

Every length is checked against the bytes that are really there before it is believed, so that a hostile or
damaged length can neither allocate memory nor send the reader out of bounds.
"""

from functools import lru_cache
from struct import Struct
from uuid import UUID

from brimline.model import BrimlineError


class WireError(BrimlineError):
    """Bytes that cannot be what they claim to be."""


class Truncated(WireError):
    def __init__(self, wanted: int, available: int) -> None:
        super().__init__(f"the message ends too early: {wanted} more bytes were announced, {available} are there")


class Malformed(WireError):
    pass


_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")

# A varint of more than five bytes cannot be a 32-bit number (protocol guide, "Protocol Primitive Types").
_LATER_BYTES_SHIFTS = (7, 14, 21, 28)
_SIGN = 1 << 31

# No struct of Kafka's has a third as many. Each costs its reader time, and a sender only two bytes.
MOST_TAGS = 32


def uvarint_at(view: memoryview, at: int) -> tuple[int, int]:
    """A variable-length number and where it ends: 32 bits with a sign, as Kafka reads what it calls unsigned."""
    try:
        byte = view[at]
        if byte < 0x80:
            return byte, at + 1
        value = byte & 0x7F
        for shift in _LATER_BYTES_SHIFTS:
            at += 1
            byte = view[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value if value < _SIGN else _with_sign(value)), at + 1
    except IndexError:
        raise Truncated(1, 0) from None
    raise Malformed("a variable-length number of more than five bytes")


def _with_sign(value: int) -> int:
    value &= 2 * _SIGN - 1
    return value - 2 * _SIGN if value >= _SIGN else value


def tags_end(view: memoryview, at: int) -> int:
    """Where the tagged fields that begin at ``at`` end; unknown ones are legal."""
    if at < len(view) and view[at] == 0:
        return at + 1  # none, as nearly always
    count, at = uvarint_at(view, at)
    if count > MOST_TAGS:
        raise Malformed(f"{count} tagged fields in one place")
    for _ in range(count):
        _, at = uvarint_at(view, at)
        size, at = uvarint_at(view, at)
        if size < 0:
            raise Malformed(f"a tagged field of {size} bytes")
        if size > len(view) - at:
            raise Truncated(size, len(view) - at)
        at += size
    return at


def _text(encoded: memoryview) -> str:
    try:
        return str(encoded, "utf-8")
    except UnicodeDecodeError:
        raise Malformed("a string that is not UTF-8") from None


@lru_cache(maxsize=1024)
def encoded_count(count: int, *, flexible: bool) -> bytes:
    """The number that stands before the elements of an array."""
    writer = Writer(flexible=flexible)
    writer.count(count)
    return writer.finish()


class Reader:
    """A position in bytes. ``flexible`` chooses between the two encodings of strings, arrays and structs."""

    __slots__ = ("_view", "flexible", "position")

    def __init__(self, message: bytes | bytearray | memoryview, *, flexible: bool, position: int = 0) -> None:
        self._view = memoryview(message)
        self.flexible = flexible
        self.position = position

    @property
    def remaining(self) -> int:
        return len(self._view) - self.position

    def take(self, size: int) -> memoryview:
        if size < 0:
            raise Malformed(f"a length of {size} bytes")
        if size > self.remaining:
            raise Truncated(size, self.remaining)
        start = self.position
        self.position = start + size
        return self._view[start : self.position]

    def int8(self) -> int:
        value: int = _INT8.unpack(self.take(1))[0]
        return value

    def int16(self) -> int:
        value: int = _INT16.unpack(self.take(2))[0]
        return value

    def int32(self) -> int:
        value: int = _INT32.unpack(self.take(4))[0]
        return value

    def int64(self) -> int:
        value: int = _INT64.unpack(self.take(8))[0]
        return value

    def boolean(self) -> bool:
        return self.int8() != 0

    def uuid(self) -> UUID:
        return UUID(bytes=bytes(self.take(16)))

    def uvarint(self) -> int:
        value, self.position = uvarint_at(self._view, self.position)
        return value

    def count(self, *, smallest_element: int) -> int | None:
        """How many elements an array has; ``None`` for a null array."""
        count = self.uvarint() - 1 if self.flexible else self.int32()
        if count < -1:
            raise Malformed(f"an array of {count} elements")
        if count * smallest_element > self.remaining:
            raise Truncated(count * smallest_element, self.remaining)
        return None if count == -1 else count

    def count_not_null(self, *, smallest_element: int) -> int:
        """How many elements an array has that Kafka's schema does not let be null."""
        count = self.count(smallest_element=smallest_element)
        if count is None:
            raise Malformed("null where an array must stand")
        return count

    def take_if_next(self, expected: bytes) -> bool:
        """Passes over these very bytes if they come next."""
        end = self.position + len(expected)
        if self._view[self.position : end] != expected:
            return False
        self.position = end
        return True

    def nullable_string_bytes(self) -> memoryview | None:
        length = self.uvarint() - 1 if self.flexible else self.int16()
        return None if length == -1 else self.take(length)

    def string_bytes(self) -> memoryview:
        value = self.nullable_string_bytes()
        if value is None:
            raise Malformed("null where a string must stand")
        return value

    def string(self) -> str:
        return _text(self.string_bytes())

    def nullable_bytes(self) -> memoryview | None:
        length = self.uvarint() - 1 if self.flexible else self.int32()
        return None if length == -1 else self.take(length)

    def skip_tags(self) -> None:
        """Passes over the tagged fields that end a struct in a flexible version."""
        if self.flexible:
            self.position = tags_end(self._view, self.position)


class Writer:
    """Bytes in the making."""

    __slots__ = ("_parts", "flexible")

    def __init__(self, *, flexible: bool) -> None:
        self._parts = bytearray()
        self.flexible = flexible

    def finish(self) -> bytes:
        return bytes(self._parts)

    def int8(self, value: int) -> None:
        self._parts += _INT8.pack(value)

    def int16(self, value: int) -> None:
        self._parts += _INT16.pack(value)

    def int32(self, value: int) -> None:
        self._parts += _INT32.pack(value)

    def int64(self, value: int) -> None:
        self._parts += _INT64.pack(value)

    def raw(self, data: bytes | memoryview) -> None:
        self._parts += data

    def uvarint(self, value: int) -> None:
        while value >= 0x80:
            self._parts.append(value & 0x7F | 0x80)
            value >>= 7
        self._parts.append(value)

    def count(self, count: int | None) -> None:
        if self.flexible:
            self.uvarint(0 if count is None else count + 1)
        else:
            self.int32(-1 if count is None else count)

    def string(self, value: str) -> None:
        self.string_bytes(value.encode())

    def string_bytes(self, encoded: bytes | None) -> None:
        if self.flexible:
            self.uvarint(0 if encoded is None else len(encoded) + 1)
        else:
            self.int16(-1 if encoded is None else len(encoded))
        self._parts += encoded or b""

    def no_tags(self) -> None:
        if self.flexible:
            self._parts.append(0)
