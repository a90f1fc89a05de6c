"""Produce requests and answers as plain values: random ones, their bytes, and what kafka-python reads in bytes.

kafka-python is the oracle, but it does not write tagged fields that it does not know. So requests and answers are
written by hand (``torture.hostile.produce`` and here), and one test of each holds these writers against kafka-python's.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from brimline.torture.hostile.produce import (
    FIRST_VERSION_WITH_TOPIC_ID,
    NO_TAGS,
    VERSIONS,
    Partition,
    PlainRequest,
    PlainTopic,
    Tags,
    batch,
    encoded_request,
    is_flexible,
    write_tags,
    write_topic_key,
)
from brimline.wire.primitives import Writer

# The requests themselves are the program's own; who writes tests about them finds everything here.
__all__ = [
    "FIRST_VERSION_WITH_TOPIC_ID",
    "VERSIONS",
    "Partition",
    "PlainRequest",
    "PlainTopic",
    "Tags",
    "batch",
    "encoded_request",
    "write_tags",
    "write_topic_key",
]


@dataclass(frozen=True)
class AnsweredPartition:
    """``leader`` is the known tagged field 0 (leader id and epoch), which exists from version 10."""

    index: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    message: str | None = None
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
    """``endpoints`` is the known tagged field 0 (node id, host, port), which exists from version 10."""

    topics: Sequence[AnsweredTopic]
    throttle_time_ms: int = 0
    header_tags: Tags = field(default_factory=dict)
    endpoints: Sequence[tuple[int, str, int]] = ()
    tags: Tags = field(default_factory=dict)


def old_message_set(value: bytes) -> bytes:
    builder = LegacyRecordBatchBuilder(magic=1, compression_type=0, batch_size=1 << 20)
    builder.append(0, timestamp=1, key=None, value=value)
    return bytes(builder.build())


# --- random values

topic_names = st.text("abcXYZ019._-", min_size=1, max_size=30) | st.text("t", min_size=120, max_size=249)
unknown_tags = st.just(NO_TAGS) | st.dictionaries(st.integers(50, 2**28), st.binary(max_size=200), max_size=2)
int16, int32, int64 = (st.integers(-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
record_batches = st.builds(
    batch,
    producer_id=st.just(-1) | st.integers(0, 2**63 - 1),
    producer_epoch=int16,
    base_sequence=int32,
    transactional=st.booleans(),
    control=st.booleans(),
    value=st.binary(max_size=300),
)
records = st.one_of(
    record_batches,
    st.none(),
    st.binary(max_size=60),
    st.builds(old_message_set, st.binary(min_size=30, max_size=100)),
)
partitions = st.builds(Partition, index=int32, records=records, tags=unknown_tags)
# The oracle reads an id of nothing but zeros as none.
topic_ids = st.uuids().filter(lambda topic_id: topic_id.int != 0)


def _topics(*, min_partitions: int) -> st.SearchStrategy[PlainTopic]:
    listed = st.lists(partitions, min_size=min_partitions, max_size=5)
    return st.builds(PlainTopic, name=topic_names, topic_id=topic_ids, partitions=listed, tags=unknown_tags)


topics_with_partitions = _topics(min_partitions=1)
requests = st.builds(
    PlainRequest,
    topics=st.lists(_topics(min_partitions=0), max_size=4),
    client_id=st.none() | st.text(max_size=20),
    header_tags=unknown_tags,
    transactional_id=st.none() | st.text(max_size=20),
    acks=int16,
    timeout_ms=int32,
    tags=unknown_tags,
)
answered_partitions = st.builds(
    AnsweredPartition,
    index=int32,
    error_code=int16,
    base_offset=int64,
    log_append_time=int64,
    log_start_offset=int64,
    record_errors=st.lists(st.tuples(int32, st.none() | st.text(max_size=10)), max_size=2),
    message=st.none() | st.text(max_size=20),
    leader=st.none() | st.tuples(st.integers(0, 99), int32),
    tags=unknown_tags,
)
plain_partitions = st.builds(AnsweredPartition, index=int32, base_offset=int64)
answered_topics = st.builds(
    AnsweredTopic,
    name=topic_names,
    topic_id=topic_ids,
    partitions=st.lists(plain_partitions | answered_partitions, max_size=5, unique_by=lambda answered: answered.index),
    tags=unknown_tags,
)
answers = st.builds(
    Answer,
    topics=st.lists(answered_topics, max_size=4, unique_by=(lambda topic: topic.name, lambda topic: topic.topic_id)),
    throttle_time_ms=int32,
    header_tags=unknown_tags,
    endpoints=st.lists(st.tuples(int32, st.text(max_size=10), int32), max_size=2),
    tags=unknown_tags,
)


# --- what a version can say of a value


def request_in(version: int, request: PlainRequest) -> PlainRequest:
    return replace(
        request,
        topics=[
            replace(
                topic,
                name=_name_in(version, topic),
                topic_id=_topic_id_in(version, topic),
                partitions=[
                    replace(partition, tags=_tags_in(version, partition.tags)) for partition in topic.partitions
                ],
                tags=_tags_in(version, topic.tags),
            )
            for topic in request.topics
        ],
        header_tags=_tags_in(version, request.header_tags),
        transactional_id=request.transactional_id if version >= 3 else None,
        tags=_tags_in(version, request.tags),
    )


def answer_in(version: int, answer: Answer) -> Answer:
    return replace(
        answer,
        topics=[
            replace(
                topic,
                name=_name_in(version, topic),
                topic_id=_topic_id_in(version, topic),
                partitions=[_answered_partition_in(version, partition) for partition in topic.partitions],
                tags=_tags_in(version, topic.tags),
            )
            for topic in answer.topics
        ],
        throttle_time_ms=answer.throttle_time_ms if version >= 1 else 0,
        header_tags=_tags_in(version, answer.header_tags),
        endpoints=list(answer.endpoints) if version >= 10 else [],
        tags=_tags_in(version, answer.tags),
    )


def _answered_partition_in(version: int, partition: AnsweredPartition) -> AnsweredPartition:
    return replace(
        partition,
        log_append_time=partition.log_append_time if version >= 2 else -1,
        log_start_offset=partition.log_start_offset if version >= 5 else -1,
        record_errors=list(partition.record_errors) if version >= 8 else [],
        message=partition.message if version >= 8 else None,
        leader=partition.leader if version >= 10 else None,
        tags=_tags_in(version, partition.tags),
    )


def _name_in(version: int, topic: PlainTopic | AnsweredTopic) -> str:
    return topic.name if version < FIRST_VERSION_WITH_TOPIC_ID else ""


def _topic_id_in(version: int, topic: PlainTopic | AnsweredTopic) -> UUID | None:
    return topic.topic_id if version >= FIRST_VERSION_WITH_TOPIC_ID else None


def _tags_in(version: int, tags: Tags) -> Tags:
    return tags if is_flexible(version) else {}


# --- writing


def encoded_answer(answer: Answer, version: int, correlation_id: int = 7) -> bytes:
    """A payload. Whatever a version does not have is left out."""
    writer = Writer(flexible=is_flexible(version))
    writer.int32(correlation_id)
    write_tags(writer, answer.header_tags)
    writer.count(len(answer.topics))
    for topic in answer.topics:
        write_topic_key(writer, topic.name, topic.topic_id, version)
        writer.count(len(topic.partitions))
        for partition in topic.partitions:
            _write_answered_partition(writer, partition, version)
        write_tags(writer, topic.tags)
    if version >= 1:
        writer.int32(answer.throttle_time_ms)
    write_tags(writer, with_endpoints(answer.tags, answer.endpoints) if version >= 10 else answer.tags)
    return writer.finish()


def _write_answered_partition(writer: Writer, partition: AnsweredPartition, version: int) -> None:
    writer.int32(partition.index)
    writer.int16(partition.error_code)
    writer.int64(partition.base_offset)
    if version >= 2:
        writer.int64(partition.log_append_time)
    if version >= 5:
        writer.int64(partition.log_start_offset)
    if version >= 8:
        writer.count(len(partition.record_errors))
        for batch_index, message in partition.record_errors:
            writer.int32(batch_index)
            writer.string_bytes(None if message is None else message.encode())
            writer.no_tags()
        writer.string_bytes(None if partition.message is None else partition.message.encode())
    tags = dict(partition.tags)
    if version >= 10 and partition.leader is not None:
        tags = {0: struct.pack(">iib", *partition.leader, 0), **tags}
    write_tags(writer, tags)


def with_endpoints(tags: Tags, endpoints: Sequence[tuple[int, str, int]]) -> Tags:
    if not endpoints:
        return tags
    writer = Writer(flexible=True)
    writer.count(len(endpoints))
    for node_id, host, port in endpoints:
        writer.int32(node_id)
        writer.string(host)
        writer.int32(port)
        writer.string_bytes(None)
        writer.no_tags()
    return {0: writer.finish(), **tags}


# --- what kafka-python makes of bytes


def request_read_by_oracle(frame: bytes, version: int) -> PlainRequest:
    decoded = ProduceRequest.decode(frame, version=version, header=True, framed=True)
    return PlainRequest(
        topics=[
            PlainTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    Partition(partition.index, partition.records, tags_left_over(partition))
                    for partition in topic.partition_data
                ],
                tags=tags_left_over(topic),
            )
            for topic in decoded.topic_data
        ],
        client_id=decoded.header.client_id,
        header_tags=tags_left_over(decoded.header),
        transactional_id=decoded.transactional_id,
        acks=decoded.acks,
        timeout_ms=decoded.timeout_ms,
        tags=tags_left_over(decoded),
    )


def answer_read_by_oracle(frame: bytes, version: int) -> Answer:
    decoded = ProduceResponse.decode(frame, version=version, header=True, framed=True)
    return Answer(
        topics=[
            AnsweredTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[_answered_partition(partition) for partition in topic.partition_responses],
                tags=tags_left_over(topic),
            )
            for topic in decoded.responses
        ],
        throttle_time_ms=decoded.throttle_time_ms,
        header_tags=tags_left_over(decoded.header),
        endpoints=[(node.node_id, node.host, node.port) for node in decoded.node_endpoints],
        tags=tags_left_over(decoded),
    )


def _answered_partition(partition: Any) -> AnsweredPartition:  # kafka-python is not typed
    has_leader = "current_leader" in (partition.tags or ())
    return AnsweredPartition(
        index=partition.index,
        error_code=partition.error_code,
        base_offset=partition.base_offset,
        log_append_time=partition.log_append_time_ms,
        log_start_offset=partition.log_start_offset,
        record_errors=[(error.batch_index, error.batch_index_error_message) for error in partition.record_errors],
        message=partition.error_message,
        leader=(partition.current_leader.leader_id, partition.current_leader.leader_epoch) if has_leader else None,
        tags=tags_left_over(partition),
    )


def tags_left_over(container: Any) -> Tags:  # kafka-python is not typed
    return {int(name[1:]): value for name, value in (container.unknown_tags or {}).items()}


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload
