"""Fetch requests and answers as plain values: random ones, their bytes, and what kafka-python reads in bytes.

kafka-python is the oracle, but it does not write tagged fields that it does not know. So requests and answers are
written here, and one test of each holds these writers against what kafka-python reads.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest, FetchResponse

from brimline.wire.primitives import Writer
from tests.wire.produce_messages import (
    FIRST_VERSION_WITH_TOPIC_ID,
    Tags,
    int16,
    int32,
    int64,
    tags_left_over,
    topic_ids,
    topic_names,
    unknown_tags,
    with_endpoints,
    write_tags,
    write_topic_key,
)

VERSIONS = range(12, 19)
FIRST_VERSION_WITH_REPLICA_STATE = 15
FIRST_VERSION_WITH_ENDPOINTS = 16


@dataclass(frozen=True)
class Partition:
    index: int
    fetch_offset: int = 0
    max_bytes: int = 1 << 20
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class Topic:
    """A version carries either the name or the id; what kafka-python finds missing it reads as "" or ``None``."""

    name: str
    topic_id: UUID | None
    partitions: Sequence[Partition]
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class Forgotten:
    name: str
    topic_id: UUID | None
    partitions: Sequence[int]
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    topics: Sequence[Topic] = ()
    forgotten: Sequence[Forgotten] = ()
    replica_id: int = 2
    session_id: int = 0
    session_epoch: int = 0
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 << 20
    isolation_level: int = 0
    rack: str = ""
    client_id: str | None = "broker-2-fetcher-0"
    header_tags: Tags = field(default_factory=dict)
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class AnsweredPartition:
    """``diverging`` and ``leader`` are known tagged fields: epoch and end offset, leader id and epoch."""

    index: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[tuple[int, int]] | None = None
    preferred_replica: int = -1
    records: bytes | None = b""
    diverging: tuple[int, int] | None = None
    leader: tuple[int, int] | None = None
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class AnsweredTopic:
    name: str
    topic_id: UUID | None
    partitions: Sequence[AnsweredPartition]
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """``endpoints`` is the known tagged field 0 (node id, host, port), which exists from version 16."""

    topics: Sequence[AnsweredTopic] = ()
    error_code: int = 0
    session_id: int = 0
    throttle_time_ms: int = 0
    endpoints: Sequence[tuple[int, str, int]] = ()
    header_tags: Tags = field(default_factory=dict)
    tags: Tags = field(default_factory=dict)


# --- random values

partitions = st.builds(
    Partition,
    index=int32,
    fetch_offset=int64,
    max_bytes=int32,
    leader_epoch=int32,
    last_fetched_epoch=int32,
    log_start_offset=int64,
    tags=unknown_tags,
)
topics = st.builds(
    Topic,
    name=topic_names,
    topic_id=topic_ids,
    partitions=st.lists(partitions, max_size=5),
    tags=unknown_tags,
)
forgotten = st.builds(
    Forgotten, name=topic_names, topic_id=topic_ids, partitions=st.lists(int32, max_size=4), tags=unknown_tags
)
requests = st.builds(
    Request,
    topics=st.lists(topics, max_size=4),
    forgotten=st.lists(forgotten, max_size=3),
    replica_id=st.just(-1) | st.integers(0, 2**31 - 1),
    session_id=int32,
    session_epoch=int32,
    max_wait_ms=int32,
    min_bytes=int32,
    max_bytes=int32,
    isolation_level=st.integers(0, 1),
    rack=st.text(max_size=10),
    client_id=st.none() | st.text(max_size=20),
    header_tags=unknown_tags,
    tags=unknown_tags,
)
answered_partitions = st.builds(
    AnsweredPartition,
    index=int32,
    error_code=st.just(0) | int16,
    high_watermark=int64,
    last_stable_offset=int64,
    log_start_offset=int64,
    aborted=st.none() | st.lists(st.tuples(int64, int64), max_size=2),
    preferred_replica=int32,
    records=st.none() | st.binary(max_size=50) | st.binary(min_size=2000, max_size=3000),
    diverging=st.none() | st.tuples(int32, int64),
    leader=st.none() | st.tuples(int32, int32),
    tags=unknown_tags,
)
answered_topics = st.builds(
    AnsweredTopic,
    name=topic_names,
    topic_id=topic_ids,
    partitions=st.lists(answered_partitions, max_size=5, unique_by=lambda answered: answered.index),
    tags=unknown_tags,
)
answers = st.builds(
    Answer,
    topics=st.lists(answered_topics, max_size=4, unique_by=(lambda topic: topic.name, lambda topic: topic.topic_id)),
    session_id=int32,
    throttle_time_ms=int32,
    endpoints=st.lists(st.tuples(int32, st.text(max_size=10), int32), max_size=2),
    header_tags=unknown_tags,
    tags=unknown_tags,
)


# --- what a version can say of a value


def request_in(version: int, request: Request) -> Request:
    return replace(
        request,
        topics=[_named_in(version, topic) for topic in request.topics],
        forgotten=[_named_in(version, topic) for topic in request.forgotten],
    )


def answer_in(version: int, answer: Answer) -> Answer:
    return replace(
        answer,
        topics=[_named_in(version, topic) for topic in answer.topics],
        endpoints=list(answer.endpoints) if version >= FIRST_VERSION_WITH_ENDPOINTS else [],
    )


def _named_in(version: int, topic: Any) -> Any:  # one of three dataclasses with the same two fields
    if version >= FIRST_VERSION_WITH_TOPIC_ID:
        return replace(topic, name="")
    return replace(topic, topic_id=None)


def key_in(version: int, topic: Topic | Forgotten | AnsweredTopic) -> bytes:
    """The bytes that stand for the topic."""
    if version < FIRST_VERSION_WITH_TOPIC_ID:
        return topic.name.encode()
    assert topic.topic_id is not None
    return topic.topic_id.bytes


# --- writing


def encoded_request(request: Request, version: int, correlation_id: int = 7) -> bytes:
    """A payload."""
    writer = Writer(flexible=True)
    writer.raw(struct.pack(">hhi", 1, version, correlation_id))
    client_id = None if request.client_id is None else request.client_id.encode()
    writer.raw(struct.pack(">h", -1 if client_id is None else len(client_id)) + (client_id or b""))
    write_tags(writer, request.header_tags)
    if version < FIRST_VERSION_WITH_REPLICA_STATE:
        writer.int32(request.replica_id)
    writer.raw(
        struct.pack(
            ">iiibii",
            request.max_wait_ms,
            request.min_bytes,
            request.max_bytes,
            request.isolation_level,
            request.session_id,
            request.session_epoch,
        )
    )
    writer.count(len(request.topics))
    for topic in request.topics:
        write_topic_key(writer, topic.name, topic.topic_id, version)
        writer.count(len(topic.partitions))
        for each in topic.partitions:
            fixed = (each.index, each.leader_epoch, each.fetch_offset, each.last_fetched_epoch, each.log_start_offset)
            writer.raw(struct.pack(">iiqiqi", *fixed, each.max_bytes))
            write_tags(writer, each.tags)
        write_tags(writer, topic.tags)
    writer.count(len(request.forgotten))
    for left in request.forgotten:
        write_topic_key(writer, left.name, left.topic_id, version)
        writer.count(len(left.partitions))
        writer.raw(struct.pack(f">{len(left.partitions)}i", *left.partitions))
        write_tags(writer, left.tags)
    writer.string(request.rack)
    tags = dict(request.tags)
    if version >= FIRST_VERSION_WITH_REPLICA_STATE and request.replica_id != -1:
        tags = {1: struct.pack(">iqb", request.replica_id, 5, 0), **tags}
    write_tags(writer, tags)
    return writer.finish()


def encoded_answer(answer: Answer, version: int, correlation_id: int = 7) -> bytes:
    """A payload. Whatever a version does not have is left out."""
    writer = Writer(flexible=True)
    writer.int32(correlation_id)
    write_tags(writer, answer.header_tags)
    writer.int32(answer.throttle_time_ms)
    writer.int16(answer.error_code)
    writer.int32(answer.session_id)
    writer.count(len(answer.topics))
    for topic in answer.topics:
        write_topic_key(writer, topic.name, topic.topic_id, version)
        writer.count(len(topic.partitions))
        for partition in topic.partitions:
            _write_answered_partition(writer, partition)
        write_tags(writer, topic.tags)
    write_tags(
        writer,
        with_endpoints(answer.tags, answer.endpoints) if version >= FIRST_VERSION_WITH_ENDPOINTS else answer.tags,
    )
    return writer.finish()


def _write_answered_partition(writer: Writer, partition: AnsweredPartition) -> None:
    offsets = (partition.high_watermark, partition.last_stable_offset, partition.log_start_offset)
    writer.raw(struct.pack(">ihqqq", partition.index, partition.error_code, *offsets))
    writer.count(None if partition.aborted is None else len(partition.aborted))
    for producer_id, first_offset in partition.aborted or ():
        writer.raw(struct.pack(">qqb", producer_id, first_offset, 0))
    writer.int32(partition.preferred_replica)
    writer.count(None if partition.records is None else len(partition.records))
    writer.raw(partition.records or b"")
    tags = dict(partition.tags)
    if partition.leader is not None:
        tags = {1: struct.pack(">iib", *partition.leader, 0), **tags}
    if partition.diverging is not None:
        tags = {0: struct.pack(">iqb", *partition.diverging, 0), **tags}
    write_tags(writer, tags)


# --- what kafka-python makes of bytes


def request_read_by_oracle(frame: bytes, version: int) -> Request:
    decoded = FetchRequest.decode(frame, version=version, header=True, framed=True)
    has_state = version >= FIRST_VERSION_WITH_REPLICA_STATE
    return Request(
        topics=[
            Topic(
                name=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    Partition(
                        index=each.partition,
                        fetch_offset=each.fetch_offset,
                        max_bytes=each.partition_max_bytes,
                        leader_epoch=each.current_leader_epoch,
                        last_fetched_epoch=each.last_fetched_epoch,
                        log_start_offset=each.log_start_offset,
                        tags=tags_left_over(each),
                    )
                    for each in topic.partitions
                ],
                tags=tags_left_over(topic),
            )
            for topic in decoded.topics
        ],
        forgotten=[
            Forgotten(topic.topic, topic.topic_id, topic.partitions, tags_left_over(topic))
            for topic in decoded.forgotten_topics_data
        ],
        replica_id=_replica_id(decoded) if has_state else decoded.replica_id,
        session_id=decoded.session_id,
        session_epoch=decoded.session_epoch,
        max_wait_ms=decoded.max_wait_ms,
        min_bytes=decoded.min_bytes,
        max_bytes=decoded.max_bytes,
        isolation_level=decoded.isolation_level,
        rack=decoded.rack_id,
        client_id=decoded.header.client_id,
        header_tags=tags_left_over(decoded.header),
        tags=tags_left_over(decoded),
    )


def answer_read_by_oracle(frame: bytes, version: int) -> Answer:
    decoded = FetchResponse.decode(frame, version=version, header=True, framed=True)
    return Answer(
        topics=[
            AnsweredTopic(
                name=topic.topic,
                topic_id=topic.topic_id,
                partitions=[_answered_partition(partition) for partition in topic.partitions],
                tags=tags_left_over(topic),
            )
            for topic in decoded.responses
        ],
        error_code=decoded.error_code,
        session_id=decoded.session_id,
        throttle_time_ms=decoded.throttle_time_ms,
        endpoints=[(node.node_id, node.host, node.port) for node in decoded.node_endpoints],
        header_tags=tags_left_over(decoded.header),
        tags=tags_left_over(decoded),
    )


def _replica_id(decoded: Any) -> int:  # kafka-python is not typed
    return int(decoded.replica_state.replica_id) if "replica_state" in (decoded.tags or ()) else -1


def _answered_partition(partition: Any) -> AnsweredPartition:  # kafka-python is not typed
    known = partition.tags or ()
    aborted = partition.aborted_transactions
    return AnsweredPartition(
        index=partition.partition_index,
        error_code=partition.error_code,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log_start_offset,
        aborted=None if aborted is None else [(each.producer_id, each.first_offset) for each in aborted],
        preferred_replica=partition.preferred_read_replica,
        records=partition.records,
        diverging=(
            (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset)
            if "diverging_epoch" in known
            else None
        ),
        leader=(
            (partition.current_leader.leader_id, partition.current_leader.leader_epoch)
            if "current_leader" in known
            else None
        ),
        tags=tags_left_over(partition),
    )
