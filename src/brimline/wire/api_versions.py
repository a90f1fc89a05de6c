"""ApiVersions (key 18), versions 0 to 5: what a client says about itself, what it is told, and how it knows a gateway.

**The mark of a gateway** is an API that no broker has. A gateway lists it in its ApiVersions answers, and that is all:
nobody ever sends a request with this key. Clients skip keys that they do not know. Its version is that of what the two
tell each other (``describe_log_dirs_explained``): a client that does not know it takes the gateway for a broker. Kafka
hands out its numbers one by one from 0, so that this one stays free.

**The exchange.** This is the first exchange on a connection, and the only one that may be spoken in a version the
broker does not have: its answer's header is therefore never flexible, and an answer with error 35 has the layout of
version 0. Clients take nothing from an answer with an error but how to ask again, so such an answer stays as it is.
"""

import re
from collections.abc import Callable, Mapping
from struct import Struct

from brimline.wire.primitives import Malformed, Reader, WireError, Writer, encoded_count
from brimline.wire.request_header import API_VERSIONS, body_start, client_id, is_flexible
from brimline.wire.rewrite import Edit, rewritten

GATEWAY_API_KEY = 28271
GATEWAY_API_VERSIONS = (0, 0)


MAX_VERSION = 5
_FIRST_VERSION_WITH_SOFTWARE = 3

_INT16 = Struct(">h")
_SMALLEST_API = 6

# It becomes part of metrics and log lines, and anybody can send anything.
_HARMLESS = re.compile(r"[A-Za-z0-9._-]{1,64}")


def client_software(payload: memoryview, version: int) -> str | None:
    """Name and version of the client's library behind its ``client.id``, or ``None`` if it does not tell in a way that
    could be shown.

    What cannot be read is for the broker to judge: a version that it does not know either is legal here.
    """
    if version < _FIRST_VERSION_WITH_SOFTWARE:
        return None
    try:
        at = body_start(payload, flexible=True)
        if at is None:
            return None
        reader = Reader(payload, flexible=True, position=at)
        name, software_version = reader.string(), reader.string()
    except WireError:
        return None
    if not _HARMLESS.fullmatch(name) or not _HARMLESS.fullmatch(software_version):
        return None
    called = client_id(payload)
    return f"{called} ({name} {software_version})" if _HARMLESS.fullmatch(called) else f"{name} {software_version}"


def patched_response(
    payload: memoryview,
    request_version: int,
    set_max: Mapping[int, Callable[[int], int]],
    add: Mapping[int, tuple[int, int]],
) -> bytes:
    """The broker's answer with other highest versions of APIs that it lists, and with APIs that it does not list.

    Both mappings go by API key: ``set_max`` from the broker's highest version to ours, ``add`` to a range. From a
    payload to a payload.
    """
    reader = Reader(payload, flexible=is_flexible(API_VERSIONS, request_version))
    reader.int32()  # correlation id: this header has no tagged fields in any version
    if reader.int16() or request_version > MAX_VERSION:
        return bytes(payload)
    count_start = reader.position
    count = reader.count_not_null(smallest_element=_SMALLEST_API)
    count_end = reader.position
    edits = []
    missing = dict(add)
    for _ in range(count):
        api_key, _, max_at, max_version = reader.int16(), reader.int16(), reader.position, reader.int16()
        reader.skip_tags()
        missing.pop(api_key, None)
        ours = set_max[api_key](max_version) if api_key in set_max else max_version
        if ours != max_version:
            edits.append(Edit(max_at, max_at + _INT16.size, _INT16.pack(ours)))
    if missing:
        edits.insert(0, Edit(count_start, count_end, encoded_count(count + len(missing), flexible=reader.flexible)))
        edits.append(Edit(reader.position, reader.position, _entries(missing, flexible=reader.flexible)))
    _skip_rest(reader, request_version)
    return b"".join(rewritten(payload, edits))


def _entries(apis: Mapping[int, tuple[int, int]], *, flexible: bool) -> bytes:
    writer = Writer(flexible=flexible)
    for api_key, (min_version, max_version) in apis.items():
        writer.int16(api_key)
        writer.int16(min_version)
        writer.int16(max_version)
        writer.no_tags()
    return writer.finish()


def _skip_rest(reader: Reader, version: int) -> None:
    """An answer that does not end where it should was misread, and must not be changed by guess."""
    if version >= 1:
        reader.int32()  # throttle time
    reader.skip_tags()  # the features of broker and cluster
    if reader.remaining:
        raise Malformed(f"an answer to ApiVersions with {reader.remaining} bytes too many")
