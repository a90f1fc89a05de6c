"""The remote segments of partitions, read from ``__remote_log_metadata`` and kept up to date.

The topic keeps its records for ever, so only those of its partitions are read that can hold what is asked for, up to
the end that they have when the reading begins, and never twice. One of them that cannot be read costs the answer for
what it holds, and nothing else.

**Invariant.** The table of a partition reflects every record of its metadata partition up to the position that the
follower holds there, and nothing beyond. A partition that is new to the table has records that were passed over, so its
metadata partition is read again from the beginning; one that is no longer asked for is forgotten. Connections come and
go: positions and table outlive them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from brimline.model import BrokerId, Failure, FailureKind, Offset, TopicPartition
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.fetch import fetch
from brimline.observe.cluster.offsets import OffsetSpec, list_offsets
from brimline.wire.primitives import WireError
from brimline.wire.remote_log_metadata import TOPIC, RemoteSegment, SegmentState, decode_record, metadata_partition

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


# (records read, records there were): called now and then while reading.
Progress = Callable[[int, int], None]


class RemoteLogFollower:
    """Used by one thread. For a single look, a new one serves."""

    def __init__(self) -> None:
        self._table = RemoteLogTable([])
        self._positions: dict[int, int] = {}
        self._sources: dict[PartitionKey, int] = {}
        self._skipped: dict[int, int] = {}

    @property
    def skipped_records(self) -> int:
        """Of what is read: a metadata partition that is read again is counted again, not twice."""
        return sum(self._skipped.values())

    def follow(
        self,
        connection: Connection,
        partitions: Iterable[PartitionKey],
        metadata_leaders: Mapping[int, BrokerId | None],
        deadline: Deadline,
        progress: Progress | None = None,
    ) -> RemoteLogs:
        """Reads up to the present ends, for as long as brokers answer; each answer has the time of ``deadline``."""
        self._choose({key: metadata_partition(*key, len(metadata_leaders)) for key in partitions})
        failures: dict[int, Failure] = {}
        leaders: dict[TopicPartition, BrokerId] = {}
        for source in set(self._sources.values()):
            leader = metadata_leaders.get(source)
            if leader is None:
                words = f"partition {source} of {TOPIC} has no leader"
                failures[source] = Failure(kind=FailureKind.UNREACHABLE, message=words)
            else:
                leaders[TopicPartition(TOPIC, source)] = leader
        spans = _spans(connection, leaders, deadline)
        failures |= {name.partition: span for name, span in spans.items() if isinstance(span, Failure)}
        readable = {name: span for name, span in spans.items() if not isinstance(span, Failure)}
        failures |= self._catch_up(connection, leaders, readable, deadline, progress)
        return RemoteLogs(
            segments={
                key: self._table.segments[key] for key, source in self._sources.items() if source not in failures
            },
            failures={key: failures[source] for key, source in self._sources.items() if source in failures},
            skipped_records=self.skipped_records,
        )

    def _choose(self, wanted: dict[PartitionKey, int]) -> None:
        new_sources = {source for key, source in wanted.items() if self._sources.get(key) != source}
        for key in set(self._sources) - set(wanted):
            del self._table.segments[key]
        self._sources = wanted
        for source in new_sources:
            self._read_again(source)
        for source in set(self._positions) - set(wanted.values()):
            self._read_again(source)

    def _read_again(self, source: int) -> None:
        self._positions.pop(source, None)
        self._skipped.pop(source, None)
        for key, held_by in self._sources.items():
            if held_by == source:
                self._table.segments[key] = {}

    def _catch_up(
        self,
        connection: Connection,
        leaders: Mapping[TopicPartition, BrokerId],
        spans: Mapping[TopicPartition, tuple[int, int]],
        deadline: Deadline,
        progress: Progress | None,
    ) -> dict[int, Failure]:
        """Feeds the table; returns why a metadata partition was not read to its end."""
        for name, (begin, end) in spans.items():
            at = self._positions.get(name.partition)
            if at is None or not begin <= at <= end:  # new, trimmed, or the topic was made anew
                self._read_again(name.partition)
                self._positions[name.partition] = begin
        failures: dict[int, Failure] = {}
        total = self._unread(spans)
        while behind := {
            name: self._positions[name.partition]
            for name, (_, end) in spans.items()
            if self._positions[name.partition] < end and name.partition not in failures
        }:
            deadline = deadline.renewed()
            for name, fetched in fetch(connection, leaders, behind, deadline).items():
                if isinstance(fetched, Failure):
                    failures[name.partition] = fetched
                    continue
                skipped_before = self._table.skipped_records
                for _, value in fetched.records:
                    self._table.add(value)
                skipped = self._table.skipped_records - skipped_before
                self._skipped[name.partition] = self._skipped.get(name.partition, 0) + skipped
                self._positions[name.partition] = fetched.next_offset
            if progress is not None:
                progress(total - self._unread(spans), total)
        return failures

    def _unread(self, spans: Mapping[TopicPartition, tuple[int, int]]) -> int:
        return sum(max(end - self._positions[name.partition], 0) for name, (_, end) in spans.items())


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
