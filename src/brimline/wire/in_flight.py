"""Which answers a connection still waits for, in the order of their questions.

A broker answers the requests of one connection in the order in which they came. Whoever answers some of them in the
broker's stead must keep that order, so that every request has a place here from the moment it is read: a place for the
broker's answer that passes as it is, one for an answer that must be looked at first, or one for an answer of our own.
An answer of our own leaves when everything before it has left.

What waits here takes memory: ``kept_bytes`` says how much, and ``is_full`` that no more may be asked on this connection
until something has left.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from brimline.wire.primitives import Malformed

Buffer: TypeAlias = bytes | bytearray | memoryview


Frame: TypeAlias = bytes | tuple[Buffer, ...]
"""In one piece, or in several where joining them would copy what is long."""


_PLACE_BYTES = 64
_OBJECT_BYTES = 512
"""What a place takes beside the bytes in it: a number, or an object of ours with what it refers to."""
_COPIES = 3
"""Of an answer that somebody else works on: here, on its way there, and on its way back."""
MOST_PLACES = 4096
MOST_BYTES = 8 << 20
"""In the places of one connection."""
_FEW = 256


class Expected:
    """The broker's answer, which ``transform`` turns into the frame that the client gets.

    ``transform`` may return ``None``: then the place stays taken until ``settle``. ``kept`` is how many bytes it holds.
    """

    __slots__ = ("correlation_id", "frame", "kept", "transform")

    def __init__(
        self, correlation_id: int, transform: Callable[["Expected", bytearray], Frame | None], kept: int = 0
    ) -> None:
        self.correlation_id = correlation_id
        self.transform = transform
        self.kept = _OBJECT_BYTES + kept
        self.frame: Frame | None = None


class OwnAnswer:
    """An answer that the broker is not asked for. ``frame`` is ``None`` as long as it is held back elsewhere."""

    __slots__ = ("frame", "kept")

    def __init__(self, frame: bytes | None, kept: int = 0) -> None:
        self.frame = frame
        self.kept = _OBJECT_BYTES + (kept if frame is None else len(frame))


class Token:
    """The answer to a SASL token. One without a request header (SaslHandshake version 0) has no correlation id."""

    __slots__ = ("correlation_id",)
    kept = _PLACE_BYTES

    def __init__(self, correlation_id: int | None) -> None:
        self.correlation_id = correlation_id


RAW_TOKEN: Final = Token(None)

Place: TypeAlias = int | Expected | OwnAnswer | Token
"""A plain answer is nothing but its correlation id: most connections have only those."""


class InFlight:
    __slots__ = ("_awaits_settling", "_kept", "_places", "has_passed_token")

    def __init__(self) -> None:
        self._places: deque[Place] = deque()
        self._kept = 0
        self._awaits_settling = False
        self.has_passed_token = False
        """Whether the broker has answered one, be it with another question."""

    def __len__(self) -> int:
        return len(self._places)

    @property
    def kept_bytes(self) -> int:
        return self._kept + _PLACE_BYTES * len(self._places)

    @property
    def is_plain(self) -> bool:
        """Only a few answers of the broker's are waited for, which pass as they are."""
        return not self._kept and len(self._places) < _FEW

    @property
    def is_full(self) -> bool:
        return len(self._places) >= MOST_PLACES or self._kept >= MOST_BYTES

    def add(self, place: Place) -> None:
        self._places.append(place)
        if not isinstance(place, int):
            self._kept += place.kept

    @property
    def is_held_back(self) -> bool:
        """Whether the next answer is ours and not ready: nothing from the broker may pass meanwhile."""
        if not self._places:
            return False
        first = self._places[0]
        return self._awaits_settling or (isinstance(first, OwnAnswer) and first.frame is None)

    def match(self, correlation_id: int | None) -> Expected | None:
        """The broker answers: what must be done with it; ``None``: it passes.

        Places that the broker skipped are given up: some SASL mechanisms give no last answer to a raw token, and of a
        Produce request in a layout of the future nobody knows whether it asks for an answer. Our own answers are never
        skipped: an answer that would need that was not asked for.
        """
        places = self._places
        if not places or correlation_id is None or places[0] == correlation_id:
            return None
        for skipped, place in enumerate(places):
            if _id_of(place) == correlation_id:
                for _ in range(skipped):
                    self._has_left(places.popleft())
                return place if isinstance(place, Expected) else None
            if isinstance(place, OwnAnswer):
                break
        if places[0] is RAW_TOKEN:
            return None
        raise Malformed("an answer that was not asked for")

    def passed(self) -> list[Buffer]:
        """The first answer has passed wholly; returns our own answers that are due now."""
        if self._places:
            place = self._places.popleft()
            if not isinstance(place, int):
                self._has_left(place)
        return self.due()

    def pass_next(self, correlation_id: int) -> bool:
        """The same for an answer that passes as it is and is waited for next, with nothing of ours behind it."""
        places = self._places
        if self._kept or not places or places[0] != correlation_id:
            return False
        places.popleft()
        return True

    def due(self) -> list[Buffer]:
        """Takes out our own answers whose turn it is."""
        frames: list[Buffer] = []
        while self._places:
            first = self._places[0]
            if isinstance(first, (OwnAnswer, Expected)) and first.frame is not None:
                frames += first.frame if isinstance(first.frame, tuple) else (first.frame,)
                self._places.popleft()
                self._kept -= first.kept
                self._awaits_settling = False
            else:
                break
        return frames

    def transformed(self, expected: Expected, payload: bytearray) -> list[Buffer]:
        """The broker's answer to ``expected`` is complete; returns what is due now, if anything."""
        expected.frame = expected.transform(expected, payload)
        if expected.frame is None:
            self._awaits_settling = True
            expected.kept += _COPIES * len(payload)
            self._kept += _COPIES * len(payload)
        return self.due()

    def _has_left(self, place: Place) -> None:
        if isinstance(place, int):
            return
        self._kept -= place.kept
        if isinstance(place, Token):
            self.has_passed_token = True


def _id_of(place: Place) -> int | None:
    return place.correlation_id if isinstance(place, (Expected, Token)) else place if isinstance(place, int) else None
