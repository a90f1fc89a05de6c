"""A client's bytes on their way to the broker: passed on as they are, but for the requests that a rule wants to see.

The head of every frame is read (length, API, version, correlation id); of Produce also the acks, because a request
with acks=0 has no answer to wait for. Everything else passes uncopied, unknown APIs, versions and fields included.
A wanted request is collected whole. No announced length is believed: memory grows with the bytes that have come, and
a frame larger than ``largest`` (the broker's own limit) ends the connection, as at a broker. So does one larger than
``largest_login`` of a client to whom the broker has not answered a SASL token yet: nobody who knows that he may has
anything so large to say.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from brimline.wire import produce
from brimline.wire.in_flight import RAW_TOKEN, InFlight, Token
from brimline.wire.primitives import Malformed, WireError
from brimline.wire.request_header import HEAD, PRODUCE

_LENGTH_BYTES = 4
_SMALLEST = HEAD.size - _LENGTH_BYTES
_LARGEST_HEAD = 1 << 18
"""Two strings of 32 KB and some tagged fields: nobody needs more than this before the acks."""
_LOOK_AHEAD = 512
_SASL_HANDSHAKE = 17
_SASL_AUTHENTICATE = 36
_OF_LOGGING_IN = (_SASL_HANDSHAKE, _SASL_AUTHENTICATE)
_LARGEST_KNOWN_KEY = 127
_LARGEST_KNOWN_VERSION = 31


class Request(NamedTuple):
    """A whole request that somebody wanted to see. ``frame`` begins with its length."""

    api_key: int
    version: int
    correlation_id: int
    frame: bytearray

    @property
    def payload(self) -> memoryview:
        return memoryview(self.frame)[_LENGTH_BYTES:]


class RequestStream:
    __slots__ = (
        "_in_flight",
        "_is_raw",
        "_kept",
        "_largest",
        "_largest_later",
        "_missing",
        "_wants",
        "passing",
        "produce_requests",
        "read_to",
        "requests",
    )

    def __init__(
        self,
        in_flight: InFlight,
        largest: int,
        wants: Callable[[int, int], bool],
        *,
        largest_login: int | None = None,
    ) -> None:
        """``wants(api_key, version)``: whether such a request is to be collected.

        ``largest_login`` is for clients that must log in; ``None``: they need not.
        """
        self._in_flight = in_flight
        self._largest = largest if largest_login is None else min(largest, largest_login)
        self._largest_later = largest
        self._wants = wants
        self._kept = bytearray()
        self._missing = 0
        self._is_raw = False
        self.passing = 0
        """How many bytes of the present frame pass as they are."""
        self.requests = 0
        self.produce_requests = 0
        self.read_to = 0
        """How much of the data was taken in when a request was given out."""

    @property
    def kept_bytes(self) -> int:
        """How much memory the present frame takes here."""
        return len(self._kept)

    @property
    def announced_bytes(self) -> int:
        """How much it will take when it is there, if it is collected."""
        return len(self._kept) + self._missing

    @property
    def is_between_frames(self) -> bool:
        return not (self.passing or self._kept)

    def receive(self, data: memoryview) -> Iterator[memoryview | bytearray | Request]:
        """Bytes that pass, and requests to be judged, in their order.

        Lazy on purpose: whoever judges a request gives it its place before the next frame takes one.
        """
        run = at = 0  # data[run:at] passes as it is
        end = len(data)
        try:
            while at < end:
                if self.passing:
                    step = min(self.passing, end - at)
                    at += step
                    self.passing -= step
                elif self._missing:
                    if at > run:
                        yield data[run:at]
                    step = min(self._missing, end - at)
                    self._kept += data[at : at + step]
                    self._missing -= step
                    at = run = at + step
                    if not self._missing:
                        self.read_to = at
                        yield self._collected()
                elif not self._kept and self._begin(data[at : at + _LARGEST_HEAD]):
                    pass  # the head was all there: the frame now passes or is collected
                else:
                    if at > run:
                        yield data[run:at]
                        run = at
                    at = run = at + self._keep_some(data[at:])
                    if self._begin(memoryview(self._kept)):
                        self.read_to = at
                        yield from self._begin_with_kept()
        except WireError:
            if at > run:
                yield data[run:at]  # the frames before the bad one are whole
            raise
        if at > run:
            yield data[run:at]

    def pass_whole(self, data: memoryview) -> bool:
        """Take in one frame that is all there and passes as it is. False: nothing was done, ``receive`` it.

        Nearly every request is such a one: this is for speed alone.
        """
        if self.passing or self._kept or self._is_raw or len(data) < HEAD.size:
            return False
        length, api_key, version, correlation_id = HEAD.unpack_from(data)
        if (
            length + _LENGTH_BYTES != len(data)
            or length > self._largest
            or api_key in _OF_LOGGING_IN
            or self._wants(api_key, version)
        ):
            return False
        if api_key == PRODUCE:
            try:
                acks = produce.read_acks(data[_LENGTH_BYTES:], version) if version in produce.VERSIONS else None
            except WireError:
                acks = None
            if acks is None:
                return False
            self.produce_requests += 1
            if acks != 0:
                self._in_flight.add(correlation_id)
        else:
            self._in_flight.add(correlation_id)
        self.requests += 1
        return True

    def went_past(self, count: int) -> None:
        """Bytes of the present frame reached the broker by another way."""
        self.passing -= count

    def _begin(self, head: memoryview) -> bool:
        """Decide on the frame that begins here; False: too little of it is there to tell."""
        if len(head) < HEAD.size:
            return self._begin_short(head)
        length, api_key, version, correlation_id = HEAD.unpack_from(head)
        if self._is_raw and (length < _SMALLEST or not _is_plausible(api_key, version)):
            return self._begin_raw(head)
        self._expect_possible(length)
        if self._wants(api_key, version):
            self._missing = _LENGTH_BYTES + length
        else:
            if api_key == PRODUCE and version in produce.VERSIONS:
                acks = produce.read_acks(head[_LENGTH_BYTES : _LENGTH_BYTES + length], version)
                if acks is None:
                    if len(head) >= min(_LENGTH_BYTES + length, _LARGEST_HEAD):
                        raise Malformed("a Produce request without acks")
                    return False
                if acks != 0:
                    self._in_flight.add(correlation_id)
            else:
                self._in_flight.add(Token(correlation_id) if api_key == _SASL_AUTHENTICATE else correlation_id)
            self.passing = _LENGTH_BYTES + length
        self._is_raw = api_key == _SASL_HANDSHAKE and version == 0
        self.requests += 1
        self.produce_requests += api_key == PRODUCE
        return True

    def _begin_short(self, head: memoryview) -> bool:
        """Less than a head is there. An impossible length is one already: nothing more may ever come behind it."""
        if len(head) < _LENGTH_BYTES:
            return False
        if self._is_raw:
            return self._begin_raw(head)
        self._expect_possible(int.from_bytes(head[:_LENGTH_BYTES], signed=True))
        return False

    def _expect_possible(self, length: int, smallest: int = _SMALLEST) -> None:
        if length > self._largest and self._in_flight.has_passed_token:
            self._largest = self._largest_later
        if not smallest <= length <= self._largest:
            raise Malformed(f"a request of {length} bytes")

    def _begin_raw(self, head: memoryview) -> bool:
        """A SASL token without a header, between SaslHandshake version 0 and the first request."""
        length = int.from_bytes(head[:_LENGTH_BYTES], signed=True)
        self._expect_possible(length, smallest=0)
        if len(head) < min(_LENGTH_BYTES + length, HEAD.size):
            return False
        self._in_flight.add(RAW_TOKEN)
        self.passing = _LENGTH_BYTES + length
        return True

    def _keep_some(self, data: memoryview) -> int:
        """The head is split: keep a little of what follows, never more than the frame; returns how much."""
        if len(self._kept) < _LENGTH_BYTES:
            wanted = _LENGTH_BYTES - len(self._kept)
        else:
            length = int.from_bytes(self._kept[:_LENGTH_BYTES], signed=True)
            self._expect_possible(length, smallest=0)
            wanted = min(_LENGTH_BYTES + length - len(self._kept), _LOOK_AHEAD)
            if wanted == 0:
                raise Malformed(f"a request of {length} bytes")
        step = min(wanted, len(data))
        self._kept += data[:step]
        return step

    def _begin_with_kept(self) -> Iterator[memoryview | bytearray | Request]:
        """The frame's fate is known now, and its beginning is kept."""
        if self._missing:
            self._missing -= len(self._kept)
            if not self._missing:
                yield self._collected()
            return
        kept, self._kept = self._kept, bytearray()
        self.passing -= len(kept)
        yield kept

    def _collected(self) -> Request:
        frame, self._kept = self._kept, bytearray()
        _, api_key, version, correlation_id = HEAD.unpack_from(frame)
        return Request(api_key, version, correlation_id, frame)


def _is_plausible(api_key: int, version: int) -> bool:
    """Whether these may be the first bytes of a request rather than of a SASL token."""
    return 0 <= api_key <= _LARGEST_KNOWN_KEY and 0 <= version <= _LARGEST_KNOWN_VERSION
