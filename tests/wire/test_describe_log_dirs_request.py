"""kafka-python is the oracle for Kafka's own requests; KIP-1187's are put together by hand."""

from collections.abc import Mapping, Sequence
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin import DescribeLogDirsRequest

from brimline.wire.describe_log_dirs_explained import TAG
from brimline.wire.describe_log_dirs_request import (
    API_KEY,
    KIP_1187,
    LARGEST_READ,
    MAX_VERSION,
    MIN_VERSION,
    AskedLogDirs,
    Layout,
    encode_explained_request,
    encode_request,
    read_request,
    request_for_broker,
)
from brimline.wire.primitives import WireError
from tests.wire.log_dirs_answers import tag_section, topic_names

VERSIONS = range(MIN_VERSION, MAX_VERSION + 1)
Topics = Mapping[str, Sequence[int]] | None
topics_asked = st.none() | st.dictionaries(topic_names, st.lists(st.integers(0, 2**31 - 1), max_size=20), max_size=5)
tags = st.lists(st.tuples(st.integers(0, 300), st.binary(max_size=20)), max_size=3).map(lambda f: tag_section(*f))


def header(version: int, client_id: str = "tool", section: bytes = b"\0") -> bytes:
    fixed = pack(">hhih", API_KEY, version, 7, len(client_id)) + client_id.encode()
    return fixed + (section if version >= 2 else b"")


def stock(version: int, topics: Topics) -> bytes:
    fields = DescribeLogDirsRequest.DescribableLogDirTopic
    asked = None if topics is None else [fields(topic=name, partitions=list(them)) for name, them in topics.items()]
    return header(version) + bytes(DescribeLogDirsRequest(topics=asked).encode(version=version))


def kip_1187(topics: Topics, include: int, section: bytes = b"\0") -> bytes:
    own = stock(5, topics)
    return own[:-1] + bytes([include]) + section


def topics_of(payload: bytes, version: int) -> Topics:
    body = payload[len(header(version)) :]
    decoded = DescribeLogDirsRequest.decode(body, version=version)
    return None if decoded.topics is None else {topic.topic: list(topic.partitions) for topic in decoded.topics}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("topics", [None, {}, {"a": [0, 1], "b.c-d": [5]}])
def test_requests_read_the_same_to_kafka_python(version: int, topics: Topics) -> None:
    assert topics_of(header(version) + encode_request(version, topics), version) == topics


@given(version=st.sampled_from(VERSIONS), topics=topics_asked)
def test_a_stock_request_of_any_version_is_known_for_what_it_is(version: int, topics: Topics) -> None:
    assert read_request(stock(version, topics)) == AskedLogDirs(layout=Layout(version))


@given(topics=topics_asked, include=st.booleans())
def test_a_kip_1187_request_is_told_from_kafkas_own(topics: Topics, include: bool) -> None:  # noqa: FBT001
    asked = read_request(kip_1187(topics, include))

    assert asked.layout == KIP_1187
    assert asked.include_remote_info is include
    assert not asked.explain


@given(topics=topics_asked, section=tags)
def test_a_stock_request_with_tagged_fields_is_always_kafkas_own(topics: Topics, section: bytes) -> None:
    assert read_request(stock(5, topics)[:-1] + section).layout == Layout(5)


@given(topics=topics_asked, section=tags)
def test_a_kip_1187_request_that_says_no_is_never_mistaken(topics: Topics, section: bytes) -> None:
    asked = read_request(kip_1187(topics, 0, section))

    assert (asked.layout, asked.include_remote_info) == (KIP_1187, False)


def test_what_can_be_read_in_both_layouts_is_kafkas_own() -> None:
    """IncludeRemoteInfo=1 with field 4 of 3 bytes; or one field, number 1, of 4 bytes."""
    both = tag_section((4, b"abc"))
    assert b"\x01" + both == tag_section((1, b"\x03abc"))

    assert read_request(kip_1187(None, 1, both)).layout == Layout(5)


def test_any_other_number_for_the_bool_is_neither_layout() -> None:
    with pytest.raises(WireError, match="neither Kafka's own version 5 nor KIP-1187's"):
        read_request(kip_1187(None, 2, b"\0"))


@given(names=st.none() | st.lists(topic_names, max_size=30))
def test_our_own_clients_question_arrives(names: list[str] | None) -> None:
    asked = read_request(header(5) + encode_explained_request(names))

    assert asked.layout == KIP_1187
    assert asked.include_remote_info
    assert asked.explain
    assert asked.remote_topics == (None if names is None else tuple(names))


@pytest.mark.parametrize("length", [*range(TAG - 12, TAG + 2), 100_000])
def test_our_own_clients_question_is_never_mistaken_for_kafkas(length: int) -> None:
    """A reader of Kafka's layout takes our field's number for its length: with a list as long, both would fit."""
    asked = read_request(header(5) + encode_explained_request(["x" * length]))

    assert (asked.layout, asked.explain, asked.remote_topics) == (KIP_1187, True, None)


def test_a_request_too_long_to_look_at_is_taken_for_kafkas_own() -> None:
    topics = {"t": range(LARGEST_READ // 4)}

    assert read_request(kip_1187(topics, 1)) == AskedLogDirs(layout=Layout(5))
    assert request_for_broker(stock(5, topics), AskedLogDirs(layout=Layout(5)), 3) == stock(3, topics)


@given(topics=topics_asked, include=st.booleans(), data=st.data())
def test_the_broker_is_asked_the_same_in_its_own_words(
    topics: Topics,
    include: bool,  # noqa: FBT001
    data: st.DataObject,
) -> None:
    version = data.draw(st.sampled_from([*VERSIONS, None]))
    payload = kip_1187(topics, include) if version is None else stock(version, topics)
    spoken = data.draw(st.integers(0, version or MAX_VERSION))

    passed_on = request_for_broker(payload, read_request(payload), spoken)

    assert passed_on.startswith(header(spoken))
    # Version 0 looks like version 1, which kafka-python knows.
    assert topics_of(passed_on, max(spoken, 1)) == topics


def test_what_the_broker_may_know_better_is_passed_on() -> None:
    """Tagged fields of the header and of the request."""
    body = b"\0" + b"\1" + tag_section((3, b"new"))
    payload = header(5, section=tag_section((0, b"h"))) + body

    passed_on = request_for_broker(payload, read_request(payload), 4)

    assert passed_on == header(4, section=tag_section((0, b"h"))) + b"\0" + tag_section((3, b"new"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_shortened_request_is_refused(version: int) -> None:
    whole = stock(version, {"topic": [0, 1], "other": [2]})

    for length in range(len(whole)):
        with pytest.raises(WireError):
            read_request(whole[:length])


@pytest.mark.parametrize(
    "whole", [kip_1187({"topic": [0, 1], "other": [2]}, 1), header(5) + encode_explained_request(["topic"])]
)
def test_every_shortened_kip_1187_request_is_refused(whole: bytes) -> None:
    for length in range(len(whole)):
        with pytest.raises(WireError):
            read_request(whole[:length])


@given(
    payload=st.sampled_from([stock(version, {"topic": [0, 1], "b": []}) for version in VERSIONS])
    | st.just(header(5) + encode_explained_request(["topic"])),
    position=st.integers(0, 10_000),
    byte=st.integers(0, 255),
    tail=st.binary(max_size=4),
)
def test_a_damaged_request_is_read_or_refused_and_nothing_else(
    payload: bytes, position: int, byte: int, tail: bytes
) -> None:
    damaged = bytearray(payload + tail)
    damaged[position % len(damaged)] = byte
    try:
        asked = read_request(damaged)
    except WireError:
        return
    assert asked.layout in (KIP_1187, Layout(asked.layout.version))
