"""The remote segments of partitions, read from ``__remote_log_metadata``.

The topic keeps its records for ever, so only those of its partitions are read that can hold what was asked for,
and up to the end that they had when the reading began. A partition of it that cannot be read costs the answer for
what it holds, and nothing else.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka.errors import KafkaError as ClientError
from kafka.errors import UnsupportedCodecError

from brimline.model import BrokerId, Failure, FailureKind, Offset, TopicPartition
from brimline.observe.client_config import ClientConfig
from brimline.observe.connection import Connection, Deadline
from brimline.observe.failures import failure_of
from brimline.observe.offsets import OffsetSpec, list_offsets
from brimline.wire.errors import WireError
from brimline.wire.remote_log_metadata import (
    TOPIC,
    RemoteSegment,
    SegmentState,
    decode_record,
    metadata_partition,
)

# (records read, records there were): called now and then while reading.
Progress = Callable[[int, int], None]
PartitionKey = tuple[UUID, int]

_POLL_RECORDS = 5000
_FETCH_WAIT_MS = 250
# kafka-python insists on fetch wait < request timeout < idle time.
_SHORTEST_REQUEST_TIMEOUT_MS = 1000
_IDLE_BEYOND_TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogs:
    """The segments of every asked partition that could be read, by segment id; deleted ones are gone.

    ``failures`` holds the others. ``skipped_records`` counts records that could not be decoded: what they would have
    said is not known.
    """

    segments: Mapping[PartitionKey, Mapping[UUID, RemoteSegment]]
    failures: Mapping[PartitionKey, Failure]
    skipped_records: int


def read_remote_logs(
    connection: Connection,
    partitions: Iterable[PartitionKey],
    metadata_leaders: Mapping[int, BrokerId | None],
    timeout: timedelta,
    deadline: Deadline,
    progress: Progress | None = None,
) -> RemoteLogs:
    """Reads on for as long as records keep coming; a silence of ``timeout`` is a failure of what is still unread."""
    table = RemoteLogTable(partitions)
    source_of = {key: metadata_partition(*key, len(metadata_leaders)) for key in table.segments}
    sources = {source: metadata_leaders.get(source) for source in set(source_of.values())}
    failures: dict[int, Failure] = {
        source: Failure(kind=FailureKind.UNREACHABLE, message=f"partition {source} of {TOPIC} has no leader")
        for source, leader in sources.items()
        if leader is None
    }
    spans = _spans(connection, {source: leader for source, leader in sources.items() if leader is not None}, deadline)
    failures |= {source: span for source, span in spans.items() if isinstance(span, Failure)}
    readable = {source: span for source, span in spans.items() if not isinstance(span, Failure) and span[0] < span[1]}
    if readable:
        failures |= _read(connection.config, readable, table, timeout, progress)
    return RemoteLogs(
        segments={key: segments for key, segments in table.segments.items() if source_of[key] not in failures},
        failures={key: failures[source] for key, source in source_of.items() if source in failures},
        skipped_records=table.skipped_records,
    )


def consumer_options(config: ClientConfig, timeout: timedelta) -> dict[str, object]:
    """A consumer without a group that never waits longer than ``timeout`` for one answer."""
    request_timeout = max(int(timeout.total_seconds() * 1000), _SHORTEST_REQUEST_TIMEOUT_MS)
    return {
        **config.kafka_python_options(),
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "max_poll_records": _POLL_RECORDS,
        "fetch_max_wait_ms": _FETCH_WAIT_MS,
        "request_timeout_ms": request_timeout,
        "connections_max_idle_ms": request_timeout + _IDLE_BEYOND_TIMEOUT_MS,
    }


def _spans(
    connection: Connection, leaders: Mapping[int, BrokerId], deadline: Deadline
) -> Mapping[int, tuple[int, int] | Failure]:
    """Where each metadata partition begins and ends now."""
    by_name = {TopicPartition(TOPIC, source): leader for source, leader in leaders.items()}
    begin = list_offsets(connection, by_name, OffsetSpec.EARLIEST, deadline)
    end = list_offsets(connection, by_name, OffsetSpec.LATEST, deadline.renewed())
    return {name.partition: _span(begin[name], end[name]) for name in by_name}


def _span(begin: Offset | Failure | None, end: Offset | Failure | None) -> tuple[int, int] | Failure:
    if isinstance(begin, Failure):
        return begin
    return end if isinstance(end, Failure) else (begin or 0, end or 0)


def _read(
    config: ClientConfig,
    spans: Mapping[int, tuple[int, int]],
    table: "RemoteLogTable",
    timeout: timedelta,
    progress: Progress | None,
) -> dict[int, Failure]:
    """Feeds the table; returns why a metadata partition was not read to its end."""
    positions = {source: begin for source, (begin, _) in spans.items()}
    total = sum(end - begin for begin, end in spans.values())

    def unread(failure: Failure) -> dict[int, Failure]:
        return {source: failure for source, (_, end) in spans.items() if positions[source] < end}

    try:
        consumer = KafkaConsumer(**consumer_options(config, timeout))
    except ClientError as error:
        return unread(failure_of(error, TOPIC, config.security_protocol))
    try:
        names = {source: ClientPartition(TOPIC, source) for source in spans}
        consumer.assign(list(names.values()))
        for source, name in names.items():
            consumer.seek(name, positions[source])
        while any(positions[source] < end for source, (_, end) in spans.items()):
            before = sum(positions.values())
            for name, records in consumer.poll(timeout_ms=int(timeout.total_seconds() * 1000)).items():
                for record in records:
                    if record.offset < spans[name.partition][1]:
                        table.add(record.value)
            # Positions, not records, tell how far it is: an offset may hold no record.
            positions.update((source, consumer.position(name)) for source, name in names.items())
            if sum(positions.values()) == before:
                return unread(Failure(kind=FailureKind.TIMED_OUT, message=f"reading {TOPIC} stalled"))
            if progress is not None:
                progress(min(total, sum(positions.values()) - sum(begin for begin, _ in spans.values())), total)
    except UnsupportedCodecError as error:
        return unread(Failure(kind=FailureKind.UNREADABLE, message=f"{TOPIC} cannot be decompressed: {error}"))
    except ClientError as error:
        return unread(failure_of(error, TOPIC, config.security_protocol))
    finally:
        consumer.close()
    return {}


class RemoteLogTable:
    """What the records say so far. Later records win; one about an unknown segment says nothing."""

    def __init__(self, partitions: Iterable[PartitionKey]) -> None:
        self.segments: dict[PartitionKey, dict[UUID, RemoteSegment]] = {key: {} for key in partitions}
        self.skipped_records = 0

    def add(self, value: bytes | None) -> None:
        if value is None:
            return
        try:
            record = decode_record(value)
        except WireError:
            self.skipped_records += 1
            return
        if record is None:
            return
        segments = self.segments.get((record.topic_id, record.partition))
        if segments is None:
            return
        if isinstance(record, RemoteSegment):
            segments[record.segment_id] = record
        elif record.state is SegmentState.DELETE_FINISHED:
            segments.pop(record.segment_id, None)
        elif record.segment_id in segments:
            segments[record.segment_id] = replace(segments[record.segment_id], state=record.state)
