"""KIP-1187's two figures, worked out from what can be seen without the broker's disk. Pure: facts in, figures out.

**Remote size** is what the remote store holds for the partition: the sizes of all segments whose upload finished,
until their deletion has finished too. It is the partition's, so every replica shows the same figure.

**Only-local size** is what would be lost with this disk: the replica's bytes that no finished upload covers. A log
holds the same batches at the same offsets wherever it is, so the uploaded segments that lie wholly inside the local
log have exactly their remote size there, and the rest of the local log is only local. That holds on two conditions:
the local log begins at the local log start and no uploaded segment straddles it; and the uploads are of this leader's
lineage, for after an unclean election other records stand at the same offsets. Where this cannot be known, the figure
is unknown and the reason says why; it is never guessed.

Where the leaders' logs begin, and what of the local log an upload covers: the facts behind only-local sizes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from brimline.model import BrokerId, Bytes, Failure, FailureKind, Offset, Reason, TopicPartition
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.offsets import OffsetSpec, epoch_ends, list_offsets
from brimline.wire.remote_log_metadata import RemoteSegment, SegmentState


def remote_size(segments: Iterable[RemoteSegment]) -> Bytes:
    """The same states that the broker's own RemoteLogSizeBytes counts."""
    stored = (SegmentState.COPY_FINISHED, SegmentState.DELETE_STARTED)
    return Bytes(sum(segment.size for segment in segments if segment.state in stored))


# Epoch → the first offset after it in the leader's log; None when that log never had the epoch.
EpochEnds = Mapping[int, Offset | None]


def uploads_also_local(segments: Iterable[RemoteSegment], local_log_start: Offset) -> list[RemoteSegment]:
    """The finished uploads that reach into the local log, in the order of their offsets."""
    return sorted(
        (
            segment
            for segment in segments
            if segment.state is SegmentState.COPY_FINISHED and segment.end_offset >= local_log_start
        ),
        key=lambda segment: segment.start_offset,
    )


def only_local_size(
    replica_size: Bytes,
    log_start: Offset,
    local_log_start: Offset,
    segments: Iterable[RemoteSegment],
    epoch_ends: EpochEnds,
) -> Bytes | Reason:
    """The leader's figure. All facts must be of one moment: the caller sees to that.

    ``epoch_ends`` must know the last epoch of every upload that is also local.
    """
    uploaded = [segment for segment in segments if segment.state is SegmentState.COPY_FINISHED]
    if not uploaded:
        return replica_size
    if log_start == local_log_start > 0:
        # DeleteRecords and remote retention move both at once; the local segments below go with a later pass.
        return Reason.LOG_START_MOVED
    also_local = uploads_also_local(uploaded, local_log_start)
    expected_from = local_log_start
    for segment in also_local:
        epoch_end = epoch_ends[segment.last_leader_epoch]
        if epoch_end is None or epoch_end <= segment.end_offset:
            return Reason.OTHER_LINEAGE
        if segment.start_offset < expected_from:
            return Reason.BOUNDARIES_DIFFER
        expected_from = Offset(segment.end_offset + 1)
    uploaded_and_local = sum(segment.size for segment in also_local)
    if uploaded_and_local > replica_size:
        return Reason.BOUNDARIES_DIFFER
    return Bytes(replica_size - uploaded_and_local)


Offsets = Mapping[TopicPartition, Offset | Failure | None]
Leaders = Mapping[TopicPartition, BrokerId]
Uploads = Mapping[TopicPartition, Iterable[RemoteSegment]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStarts:
    """Log start and local log start, looked at before the log dirs are, with the epochs of the uploads there."""

    earliest: Offsets
    local: Offsets
    epoch_ends: Mapping[TopicPartition, Mapping[int, Offset | None] | Failure]

    def only_local(
        self, partition: TopicPartition, size: Bytes, segments: Iterable[RemoteSegment], local_after: Offsets
    ) -> Bytes | Reason:
        """The leader's figure; ``local_after`` is the look at the local start after the size was taken."""
        log_start, local = self.earliest.get(partition), self.local.get(partition)
        after, ends = local_after.get(partition), self.epoch_ends.get(partition, {})
        for look in (log_start, local, after, ends):
            if isinstance(look, Failure):
                return _reason(look)
        if log_start is None or local is None or after is None:
            return Reason.NO_LEADER
        if local != after:
            return Reason.CHANGING
        assert not isinstance(log_start, Failure)
        assert not isinstance(local, Failure)
        assert not isinstance(ends, Failure)
        return only_local_size(size, log_start, local, segments, ends)


def look_at_log_starts(connection: Connection, leaders: Leaders, uploads: Uploads, deadline: Deadline) -> LogStarts:
    earliest = list_offsets(connection, leaders, OffsetSpec.EARLIEST, deadline.renewed())
    local = look_at_local_starts(connection, leaders, deadline)
    epochs: dict[TopicPartition, set[int]] = {}
    for partition, start in local.items():
        if start is not None and not isinstance(start, Failure):
            also_local = uploads_also_local(uploads.get(partition, ()), start)
            epochs[partition] = {segment.last_leader_epoch for segment in also_local}
    return LogStarts(
        earliest=earliest, local=local, epoch_ends=epoch_ends(connection, leaders, epochs, deadline.renewed())
    )


def look_at_local_starts(connection: Connection, leaders: Leaders, deadline: Deadline) -> Offsets:
    return list_offsets(connection, leaders, OffsetSpec.EARLIEST_LOCAL, deadline.renewed())


def _reason(failure: Failure) -> Reason:
    if failure.kind is FailureKind.UNSUPPORTED:
        return Reason.BROKER_TOO_OLD
    # The cluster answered, but not for this partition: it has just moved.
    return Reason.CHANGING if failure.kind is FailureKind.KAFKA_ERROR else Reason.NO_ANSWER
