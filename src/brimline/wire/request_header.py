"""The header that every request begins with, and where the request's body begins behind it.

A payload is a frame without its four length bytes. Its first eight bytes have the same meaning in every API and
version; so has the client id behind them, which is never in the compact encoding. What follows depends on whether the
version is flexible: then, and only then, a section of tagged fields stands between client id and body.
"""

from struct import Struct
from typing import NamedTuple

from brimline.wire.primitives import Truncated, tags_end

PRODUCE = 0
OFFSET_COMMIT = 8
SASL_HANDSHAKE = 17
API_VERSIONS = 18
DESCRIBE_LOG_DIRS = 35

HEAD = Struct(">ihhi")
"""Length of the payload, API key, version, correlation id: the first twelve bytes of every frame."""

_PAYLOAD_HEAD = Struct(">hhi")
_INT16 = Struct(">h")
_CLIENT_ID_AT = _PAYLOAD_HEAD.size

_FIRST_FLEXIBLE_VERSION = {PRODUCE: 9, OFFSET_COMMIT: 8, SASL_HANDSHAKE: None, API_VERSIONS: 3, DESCRIBE_LOG_DIRS: 2}


class RequestHead(NamedTuple):
    api_key: int
    version: int
    correlation_id: int


def request_head(payload: memoryview) -> RequestHead:
    if len(payload) < _PAYLOAD_HEAD.size:
        raise Truncated(_PAYLOAD_HEAD.size, len(payload))
    return RequestHead(*_PAYLOAD_HEAD.unpack_from(payload))


def first_flexible_version(api_key: int) -> int | None:
    """``None`` for an API that has no flexible version.

    Only APIs whose requests are looked into are known; for any other key this is a ``KeyError``, because a guess would
    misplace the body.
    """
    return _FIRST_FLEXIBLE_VERSION[api_key]


def is_flexible(api_key: int, version: int) -> bool:
    first = first_flexible_version(api_key)
    return first is not None and version >= first


def body_start(payload: memoryview, *, flexible: bool) -> int | None:
    """Where the body begins; ``None`` if the bytes end before that shows.

    It is asked about the first bytes of every Produce request, hence no reader.
    """
    at = _client_id_end(payload)
    if at is None or at > len(payload):
        return None
    if not flexible:
        return at
    try:
        return tags_end(payload, at)
    except Truncated:
        return None


def client_id(payload: memoryview) -> str:
    """Of a header that is whole; empty where it has none."""
    return str(payload[_CLIENT_ID_AT + _INT16.size : _client_id_end(payload)], errors="replace")


def _client_id_end(payload: memoryview) -> int | None:
    at = _CLIENT_ID_AT + _INT16.size
    if len(payload) < at:
        return None
    length: int = _INT16.unpack_from(payload, _CLIENT_ID_AT)[0]
    return at + max(length, 0)  # any negative length is null to Kafka
