"""The remote segments of partitions, read from ``__remote_log_metadata``.

The topic keeps its records for ever, so only those of its partitions are read that can hold what was asked for,
and up to the end that they had when the reading began.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka.errors import KafkaError as ClientError

from brimline.model import Failure, FailureKind
from brimline.observe.client_config import ClientConfig
from brimline.observe.failures import failure_of
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogs:
    """The segments of every asked partition, by segment id, in whatever state; deleted ones are gone.

    ``skipped_records`` counts records that could not be decoded: what they would have said is not known.
    """

    segments: Mapping[PartitionKey, Mapping[UUID, RemoteSegment]]
    skipped_records: int


def read_remote_logs(
    config: ClientConfig,
    partitions: Iterable[PartitionKey],
    metadata_partitions: int,
    stall_timeout: timedelta,
    progress: Progress | None = None,
) -> RemoteLogs | Failure:
    """Reads on for as long as records keep coming; a silence of ``stall_timeout`` is a failure."""
    table = RemoteLogTable(partitions)
    sources = sorted({metadata_partition(*key, metadata_partitions) for key in table.segments})
    try:
        consumer = KafkaConsumer(
            **config.kafka_python_options(),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=_POLL_RECORDS,
        )
    except ClientError as error:
        return failure_of(error, TOPIC, config.security_protocol)
    try:
        _read(consumer, [ClientPartition(TOPIC, source) for source in sources], table, stall_timeout, progress)
    except ClientError as error:
        return failure_of(error, TOPIC, config.security_protocol)
    except TimeoutError:
        return Failure(kind=FailureKind.TIMED_OUT, message=f"reading {TOPIC} stalled")
    finally:
        consumer.close()
    return RemoteLogs(segments=table.segments, skipped_records=table.skipped_records)


def _read(
    consumer: KafkaConsumer,
    sources: list[ClientPartition],
    table: "RemoteLogTable",
    stall_timeout: timedelta,
    progress: Progress | None,
) -> None:
    consumer.assign(sources)
    begin, end = consumer.beginning_offsets(sources), consumer.end_offsets(sources)
    total = sum(end[source] - begin[source] for source in sources)
    for source in sources:
        consumer.seek(source, begin[source])
    # Positions, not records, tell how far it is: an offset may hold no record.
    while any(consumer.position(source) < end[source] for source in sources):
        before = sum(consumer.position(source) for source in sources)
        batches = consumer.poll(timeout_ms=int(stall_timeout.total_seconds() * 1000))
        for source, records in batches.items():
            for record in records:
                if record.offset < end[source]:
                    table.add(record.value)
        after = sum(consumer.position(source) for source in sources)
        if after == before:
            raise TimeoutError
        if progress is not None:
            progress(min(total, after - sum(begin.values())), total)


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
