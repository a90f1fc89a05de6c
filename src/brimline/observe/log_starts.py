"""Where the leaders' logs begin, and what of the local log an upload covers: the facts behind only-local sizes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from brimline.model import BrokerId, Bytes, Failure, FailureKind, Offset, Reason, TopicPartition
from brimline.observe.connection import Connection, Deadline
from brimline.observe.leader_epochs import epoch_ends
from brimline.observe.offsets import OffsetSpec, list_offsets
from brimline.observe.remote_sizes import only_local_size, uploads_also_local
from brimline.wire.remote_log_metadata import RemoteSegment

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
