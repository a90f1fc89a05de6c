import struct
from collections.abc import Callable, Mapping
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from brimline.wire.api_versions import (
    GATEWAY_API_KEY,
    GATEWAY_API_VERSIONS,
    MAX_VERSION,
    client_software,
    patched_response,
)
from brimline.wire.primitives import Malformed, WireError, Writer
from tests.wire.produce_messages import Tags, int16, int32, unknown_tags, write_tags

VERSIONS = range(MAX_VERSION + 1)
# Version 5 differs from 4 in the request alone; kafka-python does not have it.
ORACLE_VERSION = {version: min(version, 4) for version in VERSIONS}
# Correlation id, error code, and the count of a list without an entry.
EMPTY_LIST_END = {version: 4 + 2 + (1 if version >= 3 else 4) for version in VERSIONS}
versions = st.sampled_from(VERSIONS)

Apis = Mapping[int, tuple[int, int]]
apis = st.dictionaries(int16, st.tuples(int16, int16), max_size=150)

BROKERS: Apis = {0: (0, 11), 18: (0, 4), 35: (1, 4)}
MARK = {GATEWAY_API_KEY: GATEWAY_API_VERSIONS}


def encoded_answer(
    listed: Apis, version: int, *, throttle_time_ms: int = 0, api_tags: Tags | None = None, tags: Tags | None = None
) -> bytes:
    writer = Writer(flexible=version >= 3)
    writer.int32(7)
    writer.int16(0)
    writer.count(len(listed))
    for api_key, (min_version, max_version) in listed.items():
        writer.int16(api_key)
        writer.int16(min_version)
        writer.int16(max_version)
        write_tags(writer, api_tags or {})
    if version >= 1:
        writer.int32(throttle_time_ms)
    write_tags(writer, tags or {})
    return writer.finish()


def read_by_oracle(payload: bytes, version: int) -> Apis:
    decoded = ApiVersionsResponse.decode(payload, version=ORACLE_VERSION[version], header=True)
    assert decoded.header.correlation_id == 7
    assert decoded.error_code == 0
    return {api.api_key: (api.min_version, api.max_version) for api in decoded.api_keys}


# --- what a client says about itself


def asked(name: str, software_version: str, version: int = 3, client_id: str | None = None) -> memoryview:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    request.API_VERSION = version
    request.with_header(correlation_id=7, client_id=client_id)
    return memoryview(bytes(request.encode(version=version, header=True)))


def at_least(versions: Mapping[int, int]) -> dict[int, Callable[[int], int]]:
    return {key: partial(max, version) for key, version in versions.items()}


@pytest.mark.parametrize("version", [3, 4])
def test_a_client_s_software(version: int) -> None:
    assert client_software(asked("apache-kafka-java", "4.3.1", version), version) == "apache-kafka-java 4.3.1"


def test_a_client_is_called_by_its_client_id() -> None:
    assert client_software(asked("librdkafka", "2.3", client_id="web-shop"), 3) == "web-shop (librdkafka 2.3)"


@pytest.mark.parametrize("client_id", ["", "a b", "a\nb", "é", "c" * 65])
def test_a_client_id_that_could_not_be_shown_is_left_out(client_id: str) -> None:
    assert client_software(asked("librdkafka", "2.3", client_id=client_id), 3) == "librdkafka 2.3"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_versions_say_nothing(version: int) -> None:
    assert client_software(asked("", "", version), version) is None


def test_a_later_version_may_say_more() -> None:
    """Version 5 adds the cluster and the node that the client believes to talk to."""
    version_4 = bytes(asked("name", "1", 4))

    assert client_software(memoryview(version_4[:-1] + b"\x04abc" + bytes(4) + b"\0"), 5) == "name 1"


@pytest.mark.parametrize(
    ("name", "software_version"),
    [
        ("", "1"),
        ("name", ""),
        ("na me", "1"),
        ('na"me', "1"),
        ("name\n", "1"),
        ("name", "1\n2"),
        ("é", "1"),
        ("n" * 65, "1"),
        ("name", "1" * 65),
    ],
)
def test_what_could_not_be_shown_is_not_passed_on(name: str, software_version: str) -> None:
    assert client_software(asked(name, software_version), 3) is None


def test_the_longest_name() -> None:
    assert client_software(asked("n" * 64, "1" * 64), 3) == "n" * 64 + " " + "1" * 64


def test_a_shortened_request_says_nothing() -> None:
    whole = asked("name", "1.0")

    heard = [client_software(whole[:length], 3) for length in range(len(whole) + 1)]

    assert heard == [None] * (len(whole) - 1) + ["name 1.0"] * 2  # all but the empty tagged fields at the end


@given(version=st.integers(0, 10), garbage=st.binary(max_size=60))
def test_garbage_says_nothing_or_something_harmless(version: int, garbage: bytes) -> None:
    software = client_software(memoryview(struct.pack(">hhih", 18, version, 1, -1) + garbage), version)

    assert software is None or software.isascii()


# --- what a client is told


@pytest.mark.parametrize("version", VERSIONS)
def test_a_listed_api_is_raised_and_an_unlisted_one_is_added(version: int) -> None:
    payload = encoded_answer(BROKERS, version)

    patched = patched_response(memoryview(payload), version, at_least({35: 5}), MARK)

    assert read_by_oracle(patched, version) == {**BROKERS, 35: (1, 5), **MARK}


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_is_lowered_repeated_or_raised_from_nothing(version: int) -> None:
    payload = encoded_answer({**BROKERS, **MARK, 35: (1, 6)}, version)

    assert patched_response(memoryview(payload), version, at_least({35: 5, 99: 3}), MARK) == payload


@given(
    version=versions,
    listed=apis,
    raise_max=st.dictionaries(int16, int16, max_size=3),
    add=st.dictionaries(int16, st.tuples(int16, int16), max_size=3),
    throttle_time_ms=int32,
    api_tags=unknown_tags,
    tags=unknown_tags,
    data=st.data(),
)
def test_all_else_stays_as_it_is(
    version: int,
    listed: Apis,
    raise_max: dict[int, int],
    add: dict[int, tuple[int, int]],
    throttle_time_ms: int,
    api_tags: Tags,
    tags: Tags,
    data: st.DataObject,
) -> None:
    if listed:
        raise_max[data.draw(st.sampled_from(sorted(listed)))] = data.draw(int16)
    payload = encoded_answer(listed, version, throttle_time_ms=throttle_time_ms, api_tags=api_tags, tags=tags)

    patched = patched_response(memoryview(payload), version, at_least(raise_max), add)

    raised = {key: (lowest, max(highest, raise_max.get(key, highest))) for key, (lowest, highest) in listed.items()}
    added = {key: bounds for key, bounds in add.items() if key not in listed}
    assert read_by_oracle(patched, version) == {**raised, **added}
    behind_apis = encoded_answer({}, version, throttle_time_ms=throttle_time_ms, tags=tags)[EMPTY_LIST_END[version] :]
    assert patched.endswith(behind_apis)
    if not added:
        assert patched == encoded_answer(
            raised, version, throttle_time_ms=throttle_time_ms, api_tags=api_tags, tags=tags
        )


@pytest.mark.parametrize("version", [3, 4])
def test_the_features_that_a_broker_tells_stay(version: int) -> None:
    feature = ApiVersionsResponse.SupportedFeatureKey(name="transaction.version", min_version=1, max_version=2)
    finalized = ApiVersionsResponse.FinalizedFeatureKey(
        name="transaction.version", max_version_level=2, min_version_level=2
    )
    answer = ApiVersionsResponse(
        error_code=0,
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=35, min_version=1, max_version=4)],
        throttle_time_ms=0,
        supported_features=[feature],
        finalized_features_epoch=12,
        finalized_features=[finalized],
    )
    payload = struct.pack(">i", 7) + bytes(answer.encode(version=version))

    patched = ApiVersionsResponse.decode(
        patched_response(memoryview(payload), version, at_least({35: 5}), MARK), version=version, header=True
    )

    assert [(api.api_key, api.max_version) for api in patched.api_keys] == [(35, 5), (GATEWAY_API_KEY, 0)]
    assert patched.supported_features == [feature]
    assert patched.finalized_features_epoch == 12
    assert patched.finalized_features == [finalized]


@pytest.mark.parametrize("count", [126, 127, 128])
@pytest.mark.parametrize("version", [2, 3])
def test_a_count_that_needs_more_bytes_afterwards(version: int, count: int) -> None:
    listed = {key: (0, key) for key in range(count)}

    patched = patched_response(memoryview(encoded_answer(listed, version)), version, {}, MARK)

    assert read_by_oracle(patched, version) == {**listed, **MARK}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("error_code", [35, 42, 129])
def test_an_answer_with_an_error_stays_as_it_is(version: int, error_code: int) -> None:
    """With 35 it has the layout of version 0, whatever was asked."""
    layout = 0 if error_code == 35 else version
    payload = bytearray(encoded_answer({18: (0, 4)}, layout))
    payload[4:6] = struct.pack(">h", error_code)

    assert patched_response(memoryview(payload), version, at_least({18: 9}), MARK) == payload


def test_an_answer_of_an_unknown_version_stays_as_it_is() -> None:
    payload = struct.pack(">ih", 7, 0) + b"nobody knows"

    assert patched_response(memoryview(payload), MAX_VERSION + 1, at_least({35: 5}), MARK) == payload


@pytest.mark.parametrize("version", VERSIONS)
def test_every_shortened_answer_is_refused(version: int) -> None:
    whole = encoded_answer(BROKERS, version, tags={5: b"feature"})

    for length in range(len(whole)):
        with pytest.raises(WireError):
            patched_response(memoryview(whole[:length]), version, at_least({35: 5}), MARK)


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_behind_the_answer_are_refused(version: int) -> None:
    with pytest.raises(Malformed, match="1 bytes too many"):
        patched_response(memoryview(encoded_answer(BROKERS, version) + b"\0"), version, {}, {})


@given(
    version=versions,
    listed=apis,
    tags=unknown_tags,
    damages=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4),
)
def test_a_damaged_answer_is_refused_or_patched(
    version: int, listed: Apis, tags: Tags, damages: list[tuple[int, int]]
) -> None:
    payload = bytearray(encoded_answer(listed, version, tags=tags))
    for position, byte in damages:
        payload[position % len(payload)] = byte

    try:
        patched = patched_response(memoryview(payload), version, at_least({35: 5}), MARK)
    except WireError:
        return
    assert patched_response(memoryview(patched), version, at_least({35: 5}), MARK) == patched
