"""KIP-1187's two figures, worked out from what can be seen without the broker's disk. Pure: facts in, figures out.

**Remote size** is what the remote store holds for the partition: the sizes of all segments whose upload finished,
until their deletion has finished too. It is the partition's, so every replica shows the same figure.

**Only-local size** is what would be lost with this disk: the replica's bytes that no finished upload covers. A log
holds the same batches at the same offsets wherever it is, so the uploaded segments that lie wholly inside the local
log have exactly their remote size there, and the rest of the local log is only local. That holds on two conditions:
the local log begins at the local log start and no uploaded segment straddles it; and the uploads are of this leader's
lineage, for after an unclean election other records stand at the same offsets. Where this cannot be known, the figure
is unknown and the reason says why; it is never guessed.
"""

from collections.abc import Iterable, Mapping

from brimline.model import Bytes, Offset, Reason
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
