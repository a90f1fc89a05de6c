"""A request whose body `wire` makes and reads, sent over kafka-python's connections.

kafka-python decodes an answer with the class registered for its API key, one per process. Replacing that entry
would change the answers of every other user of the library in this process. Its connection, however, asks the
request's own header for that class: so this request brings a header that hands the raw answer to `wire`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from typing import Protocol

from kafka.errors import KafkaProtocolError

from brimline.wire.primitives import Reader, WireError

_FIXED_HEADER = Struct(">hhih")
_FRAME_LENGTH = Struct(">i")


class ReadableBytes(Protocol):
    def read(self, nbytes: int | None = None) -> bytes: ...


@dataclass(slots=True, kw_only=True)
class WireRequest:
    """One request for one broker: the version is chosen when the connection knows what that broker speaks."""

    name: str
    API_KEY: int
    min_version: int
    max_version: int
    first_flexible_version: int
    encode_body: Callable[[int], bytes]
    decode_body: Callable[[bytes, int], object]
    API_VERSION: int | None = None
    header: "_Header | None" = field(default=None, init=False)
    # kafka-python looks for these next to min_version and max_version; no further limit is meant.
    _min_version: None = field(default=None, init=False)
    _max_version: None = field(default=None, init=False)

    def expect_response(self) -> bool:
        return True

    def with_header(self, correlation_id: int, client_id: str) -> None:
        self.header = _Header(request=self, correlation_id=correlation_id, client_id=client_id)

    def encode(self, **_framed_with_header: bool) -> bytes:
        assert self.header is not None
        assert self.API_VERSION is not None
        message = self.header.encode() + self.encode_body(self.API_VERSION)
        return _FRAME_LENGTH.pack(len(message)) + message

    def decode(self, body: bytes) -> object:
        assert self.API_VERSION is not None
        return self.decode_body(body, self.API_VERSION)

    @property
    def is_flexible(self) -> bool:
        assert self.API_VERSION is not None
        return self.first_flexible_version <= self.API_VERSION


@dataclass(slots=True, kw_only=True)
class _Header:
    request: WireRequest
    correlation_id: int
    client_id: str

    def encode(self) -> bytes:
        client_id = self.client_id.encode()
        assert self.request.API_VERSION is not None
        fixed = _FIXED_HEADER.pack(self.request.API_KEY, self.request.API_VERSION, self.correlation_id, len(client_id))
        return fixed + client_id + (b"\0" if self.request.is_flexible else b"")

    def get_response_class(self) -> "_RawResponse":
        return _RawResponse(request=self.request)


@dataclass(slots=True, kw_only=True)
class _RawResponse:
    """Stands where kafka-python expects the class of an answer."""

    request: WireRequest
    correlation_id: int = -1
    _body: bytes = b""

    def parse_header(self, received: ReadableBytes) -> "_RawResponse":
        message = received.read()
        reader = Reader(message, flexible=self.request.is_flexible)
        try:
            self.correlation_id = reader.int32()
            reader.skip_tags()
        except WireError as error:
            # The only kind of error that kafka-python's reader survives.
            raise KafkaProtocolError(str(error)) from error
        self._body = message[reader.position :]
        return self

    def decode(self, _received: ReadableBytes) -> bytes:
        """As it came: whoever asked decodes it, where an error reaches them."""
        return self._body
