"""The remote segments of partitions, as the records of ``__remote_log_metadata`` tell them. How they are read:
``remote_log_follower``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from brimline.model import Failure
from brimline.wire.errors import WireError
from brimline.wire.remote_log_metadata import RemoteSegment, SegmentState, decode_record

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
