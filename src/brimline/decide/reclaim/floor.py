"""What no reclaim can remove from a device, said before it is needed: the floor under every ceiling.

**Invariant.** Every byte that is used on a device is exactly one of: going, removable, or part of the floor. A ceiling
below the floor cannot be held, whatever is deleted. The floor is of this moment: active segments will be closed and
minimum retention will pass, but others come in their place.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from brimline.decide.reclaim.device import DeviceColumns, columns_of_device
from brimline.decide.reclaim.taking import deleted_bytes
from brimline.model import Bytes, Percent, human_percent
from brimline.model.reclaim import ReclaimTables
from brimline.model.reclaim_plan import ReclaimPlan, ReclaimReason
from brimline.model.scan import FolderKind, Int64Column, UInt8Column

NAMED_TOPICS = 5
NAMED_KINDS = 3
_WORTH_NAMING = 0.1
"""Percent: what is shown as 0.0 % is none of the most."""
NO_BALLAST = Bytes(0)


class FloorKind(Enum):
    """Why bytes cannot be removed; the value says what they are."""

    ACTIVE = "active segments"
    NOT_REPLICATED = "segments above the high watermark"
    TRANSACTION = "segments behind an open transaction"
    MIN_RETENTION = "minimum retention"
    PROTECTED = "protected topics"
    INTERNAL = "internal topics"
    COMPACTED = "compacted topics"
    FOR_EVER = "topics kept forever"
    NO_CLEANUP = "topics with an empty cleanup.policy"
    TIERED = "tiered topics"
    MOVING = "logs being moved to another log dir"
    UNCERTAIN = "logs with incomplete information"
    FUTURE = "copies in the making (-future)"
    STRAY = "stray replicas (-stray)"
    METADATA = "the cluster's metadata log"
    REMOTE_INDEX_CACHE = "cache of remote indexes"
    SMALL_FILES = "checkpoints, folders and other small files of Kafka"
    BALLAST = "the ballast"
    FOREIGN = "files in the log dirs that are not Kafka's"
    OUTSIDE = "files outside the log dirs, and file system overhead"

    @property
    def cure(self) -> str:
        return _CURES[self]


_CURES = {
    FloorKind.ACTIVE: "lower segment.bytes or segment.ms, or use fewer partitions",
    FloorKind.NOT_REPLICATED: "bring lagging replicas back in sync",
    FloorKind.TRANSACTION: "ends with the transaction; brimline doctor names hanging ones",
    FloorKind.MIN_RETENTION: "lower brimline.reclaim.min.retention.ms or brimline.reclaim.min.retention.bytes",
    FloorKind.PROTECTED: "protect fewer topics, or move them to another volume",
    FloorKind.INTERNAL: "move partitions to another volume",
    FloorKind.COMPACTED: "compact more often (min.cleanable.dirty.ratio), or write tombstones",
    FloorKind.FOR_EVER: "set retention.ms or retention.bytes on topics whose records may be deleted",
    FloorKind.NO_CLEANUP: "set cleanup.policy=delete where records may be deleted",
    FloorKind.TIERED: "lower local.retention.ms or local.retention.bytes; with remote.log.copy.disable=true "
    "retention.ms or retention.bytes",
    FloorKind.MOVING: "ends with the move",
    FloorKind.UNCERTAIN: "temporary, unless a permission is missing: look again",
    FloorKind.FUTURE: "ends with the move to this log dir",
    FloorKind.STRAY: "remove the folders by hand once you are sure they are not needed",
    FloorKind.METADATA: "metadata.max.snapshot.interval.ms and metadata.max.retention.bytes bound it",
    FloorKind.REMOTE_INDEX_CACHE: "lower remote.log.index.file.cache.total.size.bytes",
    FloorKind.SMALL_FILES: "fewer partitions on this volume",
    FloorKind.BALLAST: "freed automatically when the volume runs out; or lower brimline.ballast.bytes",
    FloorKind.FOREIGN: "move them out of the log dirs",
    FloorKind.OUTSIDE: "give Kafka a volume of its own",
}

_OF_REASON = {
    ReclaimReason.ACTIVE: FloorKind.ACTIVE,
    ReclaimReason.ABOVE_HIGH_WATERMARK: FloorKind.NOT_REPLICATED,
    ReclaimReason.OPEN_TRANSACTION: FloorKind.TRANSACTION,
    ReclaimReason.MIN_RETENTION_MS: FloorKind.MIN_RETENTION,
    ReclaimReason.MIN_RETENTION_BYTES: FloorKind.MIN_RETENTION,
    ReclaimReason.INTERNAL_TOPIC: FloorKind.INTERNAL,
    ReclaimReason.REMOTE_LOG_METADATA: FloorKind.INTERNAL,
    ReclaimReason.COMPACT_ONLY: FloorKind.COMPACTED,
    ReclaimReason.COMPACTED: FloorKind.COMPACTED,
    ReclaimReason.FOR_EVER: FloorKind.FOR_EVER,
    ReclaimReason.NO_CLEANUP_POLICY: FloorKind.NO_CLEANUP,
    ReclaimReason.TIERED: FloorKind.TIERED,
    ReclaimReason.PROTECTED_TOPIC: FloorKind.PROTECTED,
    ReclaimReason.TOPIC_UNKNOWN: FloorKind.UNCERTAIN,
    ReclaimReason.MOVING: FloorKind.MOVING,
    ReclaimReason.VIEWS_DISAGREE: FloorKind.UNCERTAIN,
    ReclaimReason.OFFSETS_UNKNOWN: FloorKind.UNCERTAIN,
    ReclaimReason.FUTURE_FOLDER: FloorKind.FUTURE,
    ReclaimReason.STRAY_FOLDER: FloorKind.STRAY,
    ReclaimReason.METADATA_LOG: FloorKind.METADATA,
}
_OF_FOLDER = {
    FolderKind.LOG_DIR: FloorKind.SMALL_FILES,
    FolderKind.CURRENT: FloorKind.SMALL_FILES,
    FolderKind.FUTURE: FloorKind.FUTURE,
    FolderKind.STRAY: FloorKind.STRAY,
    FolderKind.METADATA_LOG: FloorKind.METADATA,
    FolderKind.REMOTE_INDEX_CACHE: FloorKind.REMOTE_INDEX_CACHE,
    FolderKind.FOREIGN: FloorKind.FOREIGN,
}


ALWAYS_NAMED = (FloorKind.COMPACTED, FloorKind.FOR_EVER)
"""Nobody wrote these down as protected: whoever looks is told which topics they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShare:
    topic: str
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorPart:
    kind: FloorKind
    bytes: Bytes
    percent: Percent
    """Of the whole device."""
    topics: tuple[TopicShare, ...]
    """The largest in it, largest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    device: str
    total_bytes: Bytes
    limit_bytes: Bytes | None
    """What the ceiling allows; ``None`` without a ceiling."""
    ceiling_percent: int
    going_bytes: Bytes
    removable_bytes: Bytes
    local_retention_bytes: Bytes
    """What lowering ``local.retention.*`` of tiered topics could take off the floor."""
    parts: tuple[FloorPart, ...]
    """Without empty ones, largest first."""

    @property
    def bytes(self) -> Bytes:
        return Bytes(sum(part.bytes for part in self.parts))

    @property
    def percent(self) -> Percent:
        return _share(self.bytes, self.total_bytes)

    @property
    def foreign_bytes(self) -> Bytes:
        """What is not Kafka's, and not ours."""
        return Bytes(sum(part.bytes for part in self.parts if part.kind in (FloorKind.FOREIGN, FloorKind.OUTSIDE)))

    @property
    def is_impossible(self) -> bool:
        """Whether the ceiling cannot be held even if everything goes that can."""
        return self.limit_bytes is not None and self.bytes > self.limit_bytes

    @property
    def sentence(self) -> str:
        """83.0 % of /data cannot be removed, mostly active segments …: a ceiling of 80 % is impossible."""
        parts = [part for part in self.parts[:NAMED_KINDS] if part.percent >= _WORTH_NAMING]
        largest = [f"{part.kind.value} ({human_percent(part.percent)})" for part in parts]
        mostly = f", mostly {', '.join(largest)}" if largest else ""
        ceiling = "" if self.limit_bytes is None else f": a ceiling of {self.ceiling_percent} % is {self._verdict}"
        return f"{human_percent(self.percent)} of {self.device} cannot be removed{mostly}{ceiling}"

    @property
    def _verdict(self) -> str:
        return "impossible" if self.is_impossible else "possible"


def floor_of(tables: ReclaimTables, plan: ReclaimPlan, device: int, ballast_bytes: Bytes = NO_BALLAST) -> Floor | None:
    """The floor of one device, from the plan made for it; ``None`` when its space is not known.

    ``ballast_bytes``: what of the small files in the device's log dirs is the ballast, by the same scan.
    """
    facts, planned = tables.devices[device], plan.devices[device]
    if facts.total_bytes is None or facts.used_bytes is None:
        return None
    columns = columns_of_device(tables, device)
    by_topic = _segments_by_topic(columns, plan.reason[columns.segment_rows], len(tables.topics))
    sums = {kind: int(by_topic[kind].sum()) for kind in FloorKind}
    for kind, size in _outside_of_segments(columns):
        sums[kind] += size
    sums[FloorKind.SMALL_FILES] -= ballast_bytes
    sums[FloorKind.BALLAST] = ballast_bytes
    known = sum(sums.values()) + planned.going.total + planned.removable_bytes
    sums[FloorKind.OUTSIDE] = max(facts.used_bytes - known, 0)
    parts = [
        FloorPart(
            kind=kind,
            bytes=Bytes(size),
            percent=_share(size, facts.total_bytes),
            topics=tuple(_largest(tables, by_topic[kind])),
        )
        for kind, size in sums.items()
        if size
    ]
    return Floor(
        device=facts.name,
        total_bytes=facts.total_bytes,
        limit_bytes=planned.limit_bytes,
        ceiling_percent=facts.policy.ceiling_percent,
        going_bytes=planned.going.total,
        removable_bytes=planned.removable_bytes,
        local_retention_bytes=planned.local_retention_bytes,
        parts=tuple(sorted(parts, key=lambda part: -part.bytes)),
    )


def _segments_by_topic(columns: DeviceColumns, reason: UInt8Column, topics: int) -> dict[FloorKind, Int64Column]:
    """Bytes of segments by kind and topic; the last column is of logs without a topic."""
    kinds = list(FloorKind)
    kind_of_reason = np.full(len(ReclaimReason), -1, dtype=np.int64)
    for code, kind in _OF_REASON.items():
        kind_of_reason[code] = kinds.index(kind)
    kind_of_segment = kind_of_reason[reason]
    staying = np.flatnonzero(kind_of_segment >= 0)
    topic = columns.logs.topic[columns.log_of_segment[staying]] % (topics + 1)
    cell = kind_of_segment[staying] * (topics + 1) + topic
    # Sums are floats on the way: exact up to 8 PiB.
    size = columns.segments.allocated_bytes[staying]
    summed = np.bincount(cell, weights=size, minlength=len(kinds) * (topics + 1)).astype(np.int64)
    return dict(zip(kinds, summed.reshape(len(kinds), topics + 1), strict=True))


def _outside_of_segments(columns: DeviceColumns) -> Iterator[tuple[FloorKind, int]]:
    logs = columns.logs
    stays = logs.kind != FolderKind.DELETE
    yield FloorKind.FOREIGN, int(logs.foreign_bytes[stays].sum())
    kept = logs.other_bytes + logs.deleted_bytes - deleted_bytes(columns)
    for folder, kind in _OF_FOLDER.items():
        yield kind, int(kept[logs.kind == folder].sum())


def _largest(tables: ReclaimTables, by_topic: Int64Column) -> Iterator[TopicShare]:
    sizes = by_topic[: len(tables.topics)]
    names = [topic.name for topic in tables.topics]
    rows = np.flatnonzero(sizes).tolist()
    for row in sorted(rows, key=lambda row: (-int(sizes[row]), names[row]))[:NAMED_TOPICS]:
        yield TopicShare(topic=names[row], bytes=Bytes(int(sizes[row])))


def _share(size: int, total: int) -> Percent:
    return Percent(100.0 if total <= 0 else size * 100.0 / total)
