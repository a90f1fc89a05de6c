"""What a reclaim plan says: of every segment why it goes or stays, of every log what it loses, of every device whether
that is enough.
"""

from dataclasses import dataclass

import numpy as np

from brimline.model.quantities import Bytes, Labelled
from brimline.model.scan import Int64Column, UInt8Column


class ReclaimReason(Labelled):
    """Why a segment goes or stays."""

    TAKEN = 0
    GOING_LOG_START = 1
    GOING_RETENTION_BYTES = 2
    GOING_RETENTION_MS = 3
    GOING_DELETE_FOLDER = 4
    ENOUGH_TAKEN = 5
    CYCLE_LIMIT = 6
    GOING_SUFFICES = 7
    UNDER_CEILING = 8
    NO_CEILING = 9
    SPACE_UNKNOWN = 10
    ACTIVE = 11
    ABOVE_HIGH_WATERMARK = 12
    MIN_RETENTION_MS = 13
    MIN_RETENTION_BYTES = 14
    INTERNAL_TOPIC = 15
    REMOTE_LOG_METADATA = 16
    COMPACT_ONLY = 17
    NO_CLEANUP_POLICY = 18
    TIERED = 19
    PROTECTED_TOPIC = 20
    TOPIC_UNKNOWN = 21
    MOVING = 22
    VIEWS_DISAGREE = 23
    OFFSETS_UNKNOWN = 24
    FUTURE_FOLDER = 25
    STRAY_FOLDER = 26
    METADATA_LOG = 27
    NOT_A_LOG = 28
    """Of folders only: it has no segments."""
    CANDIDATE = 29
    """Of logs only: nothing speaks against trimming it, each of its segments has a reason of its own."""
    COMPACTED = 30
    FOR_EVER = 31
    OPEN_TRANSACTION = 32
    NO_CURE = 33

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


GOING = (
    ReclaimReason.GOING_LOG_START,
    ReclaimReason.GOING_RETENTION_BYTES,
    ReclaimReason.GOING_RETENTION_MS,
    ReclaimReason.GOING_DELETE_FOLDER,
)
"""They leave without us."""

_SENTENCES = {
    ReclaimReason.TAKEN: "among the oldest on a device above its ceiling",
    ReclaimReason.GOING_LOG_START: "below the log start: the broker deletes it at its next retention check",
    ReclaimReason.GOING_RETENTION_BYTES: "beyond retention.bytes: the broker deletes it at its next retention check",
    ReclaimReason.GOING_RETENTION_MS: "older than retention.ms: the broker deletes it at its next retention check",
    ReclaimReason.GOING_DELETE_FOLDER: "of a deleted replica: the broker deletes the folder after its delay",
    ReclaimReason.ENOUGH_TAKEN: "older segments on the device are enough to get below its ceiling",
    ReclaimReason.CYCLE_LIMIT: "over the limit of a cycle "
    "(brimline.reclaim.max.percent.per.cycle, brimline.reclaim.max.bytes.per.cycle)",
    ReclaimReason.GOING_SUFFICES: "above its ceiling, but deletions in progress cover it",
    ReclaimReason.UNDER_CEILING: "the device is below its ceiling",
    ReclaimReason.NO_CEILING: "no ceiling (log.retention.disk.usage.percent is 100)",
    ReclaimReason.SPACE_UNKNOWN: "the device's use is unknown",
    ReclaimReason.ACTIVE: "the active segment, which the broker writes to",
    ReclaimReason.ABOVE_HIGH_WATERMARK: "not yet on all in-sync replicas",
    ReclaimReason.MIN_RETENTION_MS: "younger than brimline.reclaim.min.retention.ms",
    ReclaimReason.MIN_RETENTION_BYTES: "within brimline.reclaim.min.retention.bytes of its partition",
    ReclaimReason.INTERNAL_TOPIC: "an internal topic of Kafka",
    ReclaimReason.REMOTE_LOG_METADATA: "remote log metadata",
    ReclaimReason.COMPACT_ONLY: "a compacted topic: the newest record of each key must stay",
    ReclaimReason.NO_CLEANUP_POLICY: "empty cleanup.policy: nothing is deleted",
    ReclaimReason.TIERED: "a tiered topic: a trim would delete remote data too, or it is unknown whether there is any",
    ReclaimReason.PROTECTED_TOPIC: "protected (brimline.reclaim.protected.topics)",
    ReclaimReason.TOPIC_UNKNOWN: "topic configuration unknown",
    ReclaimReason.MOVING: "being moved to another log dir: nothing is deleted until that ends",
    ReclaimReason.VIEWS_DISAGREE: "files and broker disagree about the log",
    ReclaimReason.OFFSETS_UNKNOWN: "log start or high watermark unknown",
    ReclaimReason.FUTURE_FOLDER: "a copy being moved to this log dir",
    ReclaimReason.STRAY_FOLDER: "a stray replica: the broker neither reports nor deletes it",
    ReclaimReason.METADATA_LOG: "the cluster's metadata log",
    ReclaimReason.NOT_A_LOG: "not a log",
    ReclaimReason.CANDIDATE: "may be trimmed",
    ReclaimReason.COMPACTED: "compact,delete: it may hold state, like Kafka Streams' changelogs "
    "(brimline.reclaim.protect.compacted)",
    ReclaimReason.OPEN_TRANSACTION: "at or above the last stable offset: a transaction is open there "
    "(brimline.reclaim.protect.transactions)",
    ReclaimReason.NO_CURE: "what is not Kafka's is above the ceiling by itself, and the device is below its "
    "fence (brimline.reclaim.only.curable)",
    ReclaimReason.FOR_EVER: "kept forever: retention.ms=-1 and no retention.bytes (brimline.reclaim.protect.forever)",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogOutcomes:
    """A row per log. What is taken of a log is its head: whole segments from ``first_taken`` on.

    Where nothing is taken the offsets, ages and the row are -1 and the other columns 0.
    """

    standing: UInt8Column
    """``ReclaimReason.CANDIDATE``, or why nothing of the log may be taken."""
    going_bytes: Int64Column
    """Segments and ``.deleted`` files that leave without us; of a ``-delete`` folder everything."""
    taken_segments: Int64Column
    taken_bytes: Int64Column
    first_taken: Int64Column
    """Row in the segments."""
    from_offset: Int64Column
    """The first offset that is lost."""
    new_log_start_offset: Int64Column
    """The base offset of the first segment that stays: where to trim to."""
    oldest_ms: Int64Column
    newest_ms: Int64Column
    """Range of age of what is taken, as the plan counts age."""
    local_retention_bytes: Int64Column
    """Of a tiered log: what lowering ``local.retention.*`` could free, because it is uploaded."""
    blocked_bytes: Int64Column
    """What an open transaction keeps."""

    def __len__(self) -> int:
        return len(self.standing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """Bytes of a device that leave without us."""

    log_start: Bytes
    retention_bytes: Bytes
    retention_ms: Bytes
    deleted_files: Bytes
    delete_folders: Bytes

    @property
    def total(self) -> Bytes:
        parts = (self.log_start, self.retention_bytes, self.retention_ms, self.deleted_files, self.delete_folders)
        return Bytes(sum(parts))


class DeviceOutcome(Labelled):
    """How a plan ends for a device."""

    NO_CEILING = 0
    SPACE_UNKNOWN = 1
    UNDER_CEILING = 2
    GOING_SUFFICES = 3
    ENOUGH_TAKEN = 4
    CYCLE_LIMIT = 5
    """More is needed; the rest is for later cycles. With nothing taken, the limit is smaller than the next segment."""
    FLOOR_REACHED = 6
    """Everything that may be taken is taken, and it is not enough."""
    BRAKES_YIELD = 7
    """The device is down to its last reserve, and nothing refuses writes: so much is taken as frees the reserve once
    more, however young it is."""

    NO_CURE = 8
    """What is not Kafka's is above the ceiling: so only as much is taken as keeps the device below its fence."""


_NONE = Bytes(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlan:
    """``used``, ``limit`` and ``excess`` are ``None`` where there is no ceiling or the space is not known."""

    outcome: DeviceOutcome
    used_bytes: Bytes | None
    limit_bytes: Bytes | None
    going: Going
    excess_bytes: Bytes | None
    """What is used beyond the limit and not going: what the plan has to free."""
    removable_bytes: Bytes
    """All that may be taken, now or another time."""
    taken_bytes: Bytes
    taken_segments: int
    local_retention_bytes: Bytes
    """What lowering ``local.retention.*`` of tiered topics could free."""
    wanted_bytes: Bytes = _NONE
    """What would go by and by: what is taken, and what the limit of a cycle leaves to the next ones."""

    @property
    def missing_bytes(self) -> Bytes:
        """What this plan leaves of the excess."""
        return Bytes(max((self.excess_bytes or 0) - self.taken_bytes, 0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReclaimPlan:
    reason: UInt8Column
    """``ReclaimReason`` of every segment; empty in a plan that was asked for without."""
    logs: LogOutcomes
    devices: tuple[DevicePlan, ...]

    @property
    def trimmed_logs(self) -> Int64Column:
        """Rows of the logs that lose something."""
        return np.flatnonzero(self.logs.taken_segments)
