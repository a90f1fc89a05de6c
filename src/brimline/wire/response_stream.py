"""The broker's bytes on their way to the client: passed on as they are, but for the answers that must be looked at.

Only the first eight bytes of a frame are read (length and correlation id); the rest passes uncopied, and large frames
need not even come into this process: ``passing`` says how many bytes may go past it (``went_past``).
"""

from collections.abc import Iterator
from struct import Struct

from brimline.wire.in_flight import Buffer, Expected, InFlight
from brimline.wire.primitives import Malformed

_HEAD = Struct(">ii")
_LENGTH = Struct(">i")
_LARGEST_COLLECTED = 1 << 28
"""An answer that is looked at is kept whole; DescribeLogDirs of a million partitions has 22 MB."""


class ResponseStream:
    __slots__ = ("_collected", "_expected", "_head", "_in_flight", "_left", "_waiting", "passing")

    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        self._head = bytearray()
        self._expected: Expected | None = None
        self._collected = bytearray()
        self._left = 0
        self._waiting = b""
        self.passing = 0
        """How many bytes of the present frame pass as they are."""

    @property
    def kept_bytes(self) -> int:
        """How much memory the present answer takes here."""
        return len(self._collected) + len(self._waiting)

    @property
    def is_between_frames(self) -> bool:
        return not (self.passing or self._head or self._left or self._waiting)

    def receive(self, data: memoryview) -> Iterator[Buffer]:
        """What the client gets for these bytes. While an answer is held back, the bytes behind it are kept."""
        if self._waiting:
            data = memoryview(self._waiting + bytes(data))
            self._waiting = b""
        run = at = 0  # data[run:at] passes as it is
        end = len(data)
        while at < end:
            if self.passing:
                step = min(self.passing, end - at)
                at += step
                self.passing -= step
                if self.passing:
                    continue
                own = self._in_flight.passed()
                if own:
                    yield data[run:at]
                    yield from own
                    run = at
            elif self._left:
                step = min(self._left, end - at)
                self._collected += data[at : at + step]
                self._left -= step
                at = run = at + step
                if not self._left:
                    yield from self._look_at_collected()
            elif self._in_flight.is_held_back:
                if at > run:
                    yield data[run:at]
                self._waiting = bytes(data[at:])
                return
            elif not self._head and end - at >= _HEAD.size:
                length, correlation_id = _HEAD.unpack_from(data, at)
                begins_at = at
                if not self._begin(length, correlation_id if length >= _LENGTH.size else None, seen=0):
                    if begins_at > run:
                        yield data[run:begins_at]
                    at = run = begins_at + _LENGTH.size
            else:
                if at > run:
                    yield data[run:at]
                at = run = at + self._complete_head(data[at:])
                if self._head_is_complete():
                    yield from self._begin_with_head()
        if at > run:
            yield data[run:at]

    def pass_whole(self, data: memoryview) -> bool:
        """Take in the next answer, if it is all there and nothing else is. False: nothing was done, ``receive`` it.

        Nearly every answer is such a one: this is for speed alone.
        """
        if self.passing or self._head or self._left or self._waiting or len(data) < _HEAD.size:
            return False
        length, correlation_id = _HEAD.unpack_from(data)
        return length + _LENGTH.size == len(data) and self._in_flight.pass_next(correlation_id)

    def went_past(self, count: int) -> list[Buffer]:
        """Bytes of the present frame reached the client by another way; returns what is due behind them."""
        self.passing -= count
        return [] if self.passing else self._in_flight.passed()

    def resume(self) -> Iterator[Buffer]:
        """The answer that was held back is there."""
        yield from self._in_flight.due()
        if self._waiting and not self._in_flight.is_held_back:
            yield from self.receive(memoryview(b""))

    def _begin(self, length: int, correlation_id: int | None, *, seen: int) -> bool:
        """A frame begins; True: it passes. ``seen`` bytes of it are already on their way."""
        if length < 0:
            raise Malformed(f"an answer of {length} bytes")
        self._expected = self._in_flight.match(correlation_id)
        if self._expected is None:
            self.passing = _LENGTH.size + length - seen
            return True
        if length > _LARGEST_COLLECTED:
            raise Malformed(f"an answer of {length} bytes where one of at most {_LARGEST_COLLECTED} can stand")
        self._left = length
        return False

    def _complete_head(self, data: memoryview) -> int:
        """Takes what the head still lacks; returns how many bytes that were."""
        wanted = _LENGTH.size if len(self._head) < _LENGTH.size else _LENGTH.size + min(self._head_length(), 4)
        step = min(max(wanted - len(self._head), 0), len(data))
        self._head += data[:step]
        return step

    def _head_length(self) -> int:
        length: int = _LENGTH.unpack_from(self._head)[0]
        return length

    def _head_is_complete(self) -> bool:
        return len(self._head) >= _LENGTH.size and len(self._head) >= _LENGTH.size + min(self._head_length(), 4)

    def _begin_with_head(self) -> Iterator[Buffer]:
        head, self._head = bytes(self._head), bytearray()
        length = _LENGTH.unpack_from(head)[0]
        correlation_id = _HEAD.unpack(head)[1] if len(head) == _HEAD.size else None
        if self._begin(length, correlation_id, seen=len(head)):
            yield head
            if not self.passing:
                yield from self._in_flight.passed()
        else:
            self._collected += head[_LENGTH.size :]
            self._left -= len(head) - _LENGTH.size
            if not self._left:
                yield from self._look_at_collected()

    def _look_at_collected(self) -> list[Buffer]:
        expected, self._expected = self._expected, None
        assert expected is not None
        payload, self._collected = self._collected, bytearray()
        return self._in_flight.transformed(expected, payload)
