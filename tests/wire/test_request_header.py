import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin import DescribeLogDirsRequest
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.producer import ProduceRequest
from kafka.protocol.sasl import SaslHandshakeRequest

from brimline.wire.primitives import Malformed, Truncated, WireError, Writer
from brimline.wire.request_header import (
    API_VERSIONS,
    DESCRIBE_LOG_DIRS,
    HEAD,
    PRODUCE,
    SASL_HANDSHAKE,
    RequestHead,
    body_start,
    first_flexible_version,
    is_flexible,
    request_head,
)
from tests.wire.produce_messages import Tags, unknown_tags, write_tags

ORACLES = {
    PRODUCE: ProduceRequest,
    SASL_HANDSHAKE: SaslHandshakeRequest,
    API_VERSIONS: ApiVersionsRequest,
    DESCRIBE_LOG_DIRS: DescribeLogDirsRequest,
}
REQUESTS = {
    PRODUCE: ProduceRequest(transactional_id="x", acks=-1, timeout_ms=1, topic_data=[]),
    SASL_HANDSHAKE: SaslHandshakeRequest(mechanism="PLAIN"),
    API_VERSIONS: ApiVersionsRequest(client_software_name="name", client_software_version="1"),
    DESCRIBE_LOG_DIRS: DescribeLogDirsRequest(topics=None),
}
EVERY_VERSION = [(key, version) for key, oracle in ORACLES.items() for version in range(oracle.max_version + 1)]

client_ids = st.none() | st.text(max_size=200)


def encoded_header(name: str | None, tags: Tags, *, flexible: bool) -> bytes:
    encoded = None if name is None else name.encode()
    writer = Writer(flexible=flexible)
    writer.raw(struct.pack(">hhih", 0, 9, 7, -1 if encoded is None else len(encoded)) + (encoded or b""))
    write_tags(writer, tags)
    return writer.finish()


@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION)
@pytest.mark.parametrize("name", [None, "", "client", "é" * 300])
def test_the_body_begins_where_kafka_python_begins_it(api_key: int, version: int, name: str | None) -> None:
    request = ORACLES[api_key].decode(REQUESTS[api_key].encode(version=version), version=version)
    request.with_header(correlation_id=2**31 - 1, client_id=name)
    frame = bytes(request.encode(version=version, header=True, framed=True))
    payload = memoryview(frame)[4:]
    body = bytes(request.encode(version=version))

    start = body_start(payload, flexible=is_flexible(api_key, version))

    assert start is not None
    assert payload[start:] == body
    assert request_head(payload) == RequestHead(api_key, version, 2**31 - 1)
    assert HEAD.unpack_from(frame) == (len(payload), api_key, version, 2**31 - 1)


@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION)
def test_flexible_versions_are_those_of_kafka_python(api_key: int, version: int) -> None:
    assert is_flexible(api_key, version) == ORACLES[api_key].flexible_version_q(version)


def test_an_api_without_and_an_api_beyond_our_knowledge() -> None:
    assert first_flexible_version(SASL_HANDSHAKE) is None
    with pytest.raises(KeyError):
        first_flexible_version(1)


@given(name=client_ids, tags=unknown_tags, flexible=st.booleans(), body=st.binary(max_size=5))
def test_no_prefix_that_is_too_short_is_believed(
    name: str | None,
    tags: Tags,
    flexible: bool,  # noqa: FBT001
    body: bytes,
) -> None:
    header = encoded_header(name, tags, flexible=flexible)
    payload = memoryview(header + body)

    seen = [body_start(payload[:length], flexible=flexible) for length in range(len(payload) + 1)]

    assert seen == [None] * len(header) + [len(header)] * (len(body) + 1)


@pytest.mark.parametrize("flexible", [True, False])
def test_a_client_id_shorter_than_null_is_null_as_to_a_broker(flexible: bool) -> None:  # noqa: FBT001
    null = struct.pack(">hhih", 0, 9, 7, -2)

    assert body_start(memoryview(null + bytes(10)), flexible=flexible) == len(null) + flexible


def test_tagged_fields_that_can_never_be() -> None:
    with pytest.raises(Malformed):
        body_start(memoryview(struct.pack(">hhih", 0, 9, 7, -1) + b"\xff" * 6), flexible=True)


@pytest.mark.parametrize("length", range(8))
def test_a_head_must_be_there_as_a_whole(length: int) -> None:
    with pytest.raises(Truncated):
        request_head(memoryview(bytes(length)))


@given(garbage=st.binary(max_size=60), flexible=st.booleans())
def test_garbage_has_a_body_within_its_bounds_or_none(garbage: bytes, flexible: bool) -> None:  # noqa: FBT001
    try:
        start = body_start(memoryview(garbage), flexible=flexible)
    except WireError:
        return
    assert start is None or 10 <= start <= len(garbage)
