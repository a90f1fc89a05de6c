"""Kafka's primitive types: one reader and one writer for both the old and the flexible encodings.

Every length is checked against the bytes that are really there before it is believed, so that a hostile or
damaged length can neither allocate memory nor send the reader out of bounds.
"""

from struct import Struct
from uuid import UUID

from brimline.wire.errors import Malformed, Truncated

_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")

# A varint of more than five bytes cannot be a 32-bit number (protocol guide, "Protocol Primitive Types").
_LONGEST_UVARINT = 5


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
        value = 0
        for index in range(_LONGEST_UVARINT):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value
        raise Malformed("a variable-length number of more than five bytes")

    def count(self, *, smallest_element: int) -> int | None:
        """How many elements an array has; ``None`` for a null array."""
        count = self.uvarint() - 1 if self.flexible else self.int32()
        if count < -1:
            raise Malformed(f"an array of {count} elements")
        if count * smallest_element > self.remaining:
            raise Truncated(count * smallest_element, self.remaining)
        return None if count == -1 else count

    def nullable_string(self) -> str | None:
        length = self.uvarint() - 1 if self.flexible else self.int16()
        if length == -1:
            return None
        try:
            return str(self.take(length), "utf-8")
        except UnicodeDecodeError:
            raise Malformed("a string that is not UTF-8") from None

    def string(self) -> str:
        value = self.nullable_string()
        if value is None:
            raise Malformed("null where a string must stand")
        return value

    def nullable_bytes(self) -> memoryview | None:
        length = self.uvarint() - 1 if self.flexible else self.int32()
        return None if length == -1 else self.take(length)

    def skip_tags(self) -> None:
        """Passes over the tagged fields that end a struct in a flexible version; unknown ones are legal."""
        if not self.flexible:
            return
        for _ in range(self.uvarint()):
            self.uvarint()
            self.take(self.uvarint())


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
        encoded = value.encode()
        if self.flexible:
            self.uvarint(len(encoded) + 1)
        else:
            self.int16(len(encoded))
        self._parts += encoded

    def no_tags(self) -> None:
        if self.flexible:
            self._parts.append(0)
