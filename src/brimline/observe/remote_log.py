"""The remote segments of partitions, read from ``__remote_log_metadata``.

The topic keeps its records for ever, so only those of its partitions are read that can hold what was asked for,
and up to the end that they had when the reading began. A partition of it that cannot be read costs the answer for
what it holds, and nothing else.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from brimline.model import BrokerId, Failure, FailureKind, Offset, TopicPartition
from brimline.observe.connection import Connection, Deadline
from brimline.observe.fetch import fetch
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
    deadline: Deadline,
    progress: Progress | None = None,
) -> RemoteLogs:
    """Reads on for as long as its brokers answer; each answer has the time that ``deadline`` gives."""
    table = RemoteLogTable(partitions)
    source_of = {key: metadata_partition(*key, len(metadata_leaders)) for key in table.segments}
    sources = {source: metadata_leaders.get(source) for source in set(source_of.values())}
    failures: dict[int, Failure] = {
        source: Failure(kind=FailureKind.UNREACHABLE, message=f"partition {source} of {TOPIC} has no leader")
        for source, leader in sources.items()
        if leader is None
    }
    known = {TopicPartition(TOPIC, source): leader for source, leader in sources.items() if leader is not None}
    spans = _spans(connection, known, deadline)
    failures |= {name.partition: span for name, span in spans.items() if isinstance(span, Failure)}
    readable = {name: span for name, span in spans.items() if not isinstance(span, Failure)}
    failures |= _read(connection, known, readable, table, deadline, progress)
    return RemoteLogs(
        segments={key: segments for key, segments in table.segments.items() if source_of[key] not in failures},
        failures={key: failures[source] for key, source in source_of.items() if source in failures},
        skipped_records=table.skipped_records,
    )


def _spans(
    connection: Connection, leaders: Mapping[TopicPartition, BrokerId], deadline: Deadline
) -> Mapping[TopicPartition, tuple[int, int] | Failure]:
    """Where each metadata partition begins and ends now."""
    begin = list_offsets(connection, leaders, OffsetSpec.EARLIEST, deadline)
    end = list_offsets(connection, leaders, OffsetSpec.LATEST, deadline.renewed())
    return {name: _span(begin[name], end[name]) for name in leaders}


def _span(begin: Offset | Failure | None, end: Offset | Failure | None) -> tuple[int, int] | Failure:
    if isinstance(begin, Failure):
        return begin
    return end if isinstance(end, Failure) else (begin or 0, end or 0)


def _read(
    connection: Connection,
    leaders: Mapping[TopicPartition, BrokerId],
    spans: Mapping[TopicPartition, tuple[int, int]],
    table: "RemoteLogTable",
    deadline: Deadline,
    progress: Progress | None,
) -> dict[int, Failure]:
    """Feeds the table; returns why a metadata partition was not read to its end."""
    positions = {name: begin for name, (begin, end) in spans.items() if begin < end}
    total = sum(end - begin for begin, end in spans.values())
    failures: dict[int, Failure] = {}
    while positions:
        deadline = deadline.renewed()
        for name, fetched in fetch(connection, leaders, positions, deadline).items():
            end = spans[name][1]
            if isinstance(fetched, Failure):
                failures[name.partition] = fetched
                del positions[name]
                continue
            for offset, value in fetched.records:
                if offset < end:
                    table.add(value)
            positions[name] = fetched.next_offset
            if fetched.next_offset >= end:
                del positions[name]
        if progress is not None:
            unread = sum(spans[name][1] - position for name, position in positions.items())
            progress(total - unread, total)
    return failures


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
