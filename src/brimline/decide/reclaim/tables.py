"""From the scans of a broker's log dirs and what the cluster says of its replicas to the tables of a plan.

**Invariant.** A log is trimmed only if both views are there and nothing in one contradicts the other. The scan comes
first and the broker is asked after it, so between the two looks a log may only have grown at its end:

- the broker describes the replica in this log dir, and the scan could read its folder;
- both know the topic id, and it is the same: offsets of a topic that was deleted and made anew mean nothing;
- the broker counts at least the bytes of the closed segments above its log start. Fewer means that some of them have
  gone since; the next cycle will see them gone. More is what was appended since. What is below the log start is on its
  way out, and may be there or not;
- the broker's high watermark is not below where the files begin, and its log start not above the high watermark;
- the cluster would let it be trimmed by whoever plans. Planned for, it would be refused in every cycle anew, and
  nothing would come back, however much of others may go.

The rows of the logs are the folders of the first scan, then those of the second, and so on; so are the segments. The
size of a preallocated active segment is the broker's: its file is longer than what was written to it.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from uuid import UUID

import numpy as np

from brimline.decide.reclaim import kernel
from brimline.model import Bytes, Offset, TopicPartition
from brimline.model.reclaim import (
    NO_TOPIC,
    CleanupRules,
    DeviceFacts,
    LogTable,
    ReclaimTables,
    SegmentTable,
    TopicFacts,
    Views,
)
from brimline.model.scan import FileKind, FolderKind, FolderState, Int64Column, LogDirScan


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """What the cluster says about a replica that this broker holds; ``None`` is not known.

    Size and place are this broker's word. The offsets are the leader's, who is also the one that is asked to trim.
    """

    size: Bytes
    topic_id: UUID | None
    log_start_offset: Offset | None
    """Of a tiered topic: where the local log begins."""
    high_watermark: Offset | None
    log_end_offset: Offset | None = None
    highest_remote_offset: Offset | None = None
    last_stable_offset: Offset | None = None
    is_forbidden: bool = False
    """Whoever plans may not delete its records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderView:
    """What the scan says about the replica's folder."""

    is_read: bool
    topic_id: UUID | None
    first_base_offset: Offset | None
    closed_bytes: Bytes
    """Of closed segments with records at or above the log start."""


def compare_views(folder: FolderView, broker: BrokerView | None) -> Views:
    if not folder.is_read:
        return Views.NOT_READABLE
    if broker is None:
        return Views.NOT_DESCRIBED
    if folder.topic_id is None or broker.topic_id is None:
        return Views.TOPIC_ID_UNKNOWN
    if folder.topic_id != broker.topic_id:
        return Views.OTHER_TOPIC_ID
    if broker.size < folder.closed_bytes:
        return Views.SEGMENTS_MISSING
    if not _offsets_fit(folder, broker):
        return Views.OTHER_OFFSETS
    return Views.NO_PERMISSION if broker.is_forbidden else Views.AGREE


def _offsets_fit(folder: FolderView, broker: BrokerView) -> bool:
    if broker.high_watermark is None:
        return True  # left out all the same, for a reason of its own
    begins_below = folder.first_base_offset is None or folder.first_base_offset <= broker.high_watermark
    return begins_below and (broker.log_start_offset is None or broker.log_start_offset <= broker.high_watermark)


_UNKNOWN = -1
_LOG_COLUMNS = tuple(field.name for field in fields(LogTable) if field.name != "segments_begin")
_OFFSETS = ("log_start_offset", "high_watermark", "log_end_offset", "highest_remote_offset", "last_stable_offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedLogDir:
    """``scan`` with timestamps and topic ids; ``replicas`` are the current ones that the broker describes in it."""

    scan: LogDirScan
    device: int
    """Row in the devices."""
    replicas: Mapping[TopicPartition, BrokerView]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrokerTables:
    """The tables of one broker, and which log dir each log is in."""

    tables: ReclaimTables
    log_dirs: tuple[str, ...]
    ends: tuple[int, ...]
    """Row at which the logs of each log dir end."""

    def log_dir(self, log: int) -> str:
        return self.log_dirs[bisect_right(self.ends, log)]


def broker_tables(
    log_dirs: Sequence[ScannedLogDir],
    topics: Mapping[str, CleanupRules],
    devices: Sequence[DeviceFacts],
    moving: Collection[TopicPartition] = (),
) -> BrokerTables:
    """A topic that is on the disk and not in ``topics`` is one of which nothing is known.

    ``moving``: what the broker says is being moved, be it to a log dir that is not among these.
    """
    names = sorted({name for each in log_dirs for name in each.scan.folders.topics if name is not None})
    places = {name: row for row, name in enumerate(names)}
    all_moving = frozenset(moving).union(*(_copied_to(each.scan) for each in log_dirs))
    parts = [_log_table(each, places, all_moving) for each in log_dirs]
    logs = LogTable(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in _LOG_COLUMNS},
        segments_begin=_joined_begins([part.segments_begin for part in parts]),
    )
    tables = ReclaimTables(
        devices=tuple(devices),
        topics=tuple(TopicFacts(name=name, rules=topics.get(name)) for name in names),
        logs=logs,
        segments=_segment_table(log_dirs),
    )
    return BrokerTables(
        tables=tables,
        log_dirs=tuple(each.scan.path for each in log_dirs),
        ends=tuple(accumulate(len(each.scan.folders) for each in log_dirs)),
    )


def _copied_to(scan: LogDirScan) -> Iterator[TopicPartition]:
    for row in scan.folders.rows_of(FolderKind.FUTURE):
        partition = scan.folders.topic_partition(row)
        if partition is not None:
            yield partition


def _log_table(log_dir: ScannedLogDir, places: Mapping[str, int], moving: frozenset[TopicPartition]) -> LogTable:
    folders, segments = log_dir.scan.folders, log_dir.scan.segments
    offsets = {name: np.full(len(folders), _UNKNOWN, dtype=np.int64) for name in _OFFSETS}
    views = np.full(len(folders), Views.NOT_DESCRIBED, dtype=np.uint8)
    is_moving = np.zeros(len(folders), dtype=np.bool_)
    for row, view, broker in _both_views(log_dir):
        is_moving[row] = folders.topic_partition(row) in moving
        views[row] = compare_views(view, broker)
        for name, column in offsets.items():
            offset = None if broker is None else getattr(broker, name)
            column[row] = _UNKNOWN if offset is None else offset
    in_segments = np.bincount(segments.folder, weights=segments.allocated_bytes, minlength=len(folders))
    deleted, foreign = folders.allocated[:, FileKind.DELETED], folders.allocated[:, FileKind.FOREIGN]
    return LogTable(
        device=np.full(len(folders), log_dir.device, dtype=np.int32),
        topic=np.array([places.get(name or "", NO_TOPIC) for name in folders.topics], dtype=np.int32),
        partition=folders.partition,
        kind=folders.kind,
        is_moving=is_moving,
        views=views,
        segments_begin=folders.segments_begin,
        **offsets,
        deleted_bytes=deleted,
        foreign_bytes=foreign,
        other_bytes=folders.allocated_bytes - deleted - foreign - in_segments.astype(np.int64),
    )


def _both_views(log_dir: ScannedLogDir) -> Iterator[tuple[int, FolderView, BrokerView | None]]:
    """Of the current replicas, by their rows."""
    folders, segments = log_dir.scan.folders, log_dir.scan.segments
    states, begin = folders.state.tolist(), folders.segments_begin.tolist()
    before = kernel.sums(segments.log_bytes)
    for row in folders.rows_of(FolderKind.CURRENT):
        broker = _broker_view(log_dir, row)
        first, end = begin[row], begin[row + 1]
        bases = segments.base_offset[first:end]
        view = FolderView(
            is_read=states[row] == FolderState.READ,
            topic_id=folders.topic_id(row),
            first_base_offset=Offset(int(bases[0])) if len(bases) else None,
            closed_bytes=Bytes(int(before[max(end - 1, first)] - before[first + _below_log_start(bases, broker)])),
        )
        yield row, view, broker


def _below_log_start(bases: Int64Column, broker: BrokerView | None) -> int:
    """How many of the closed segments have no record at or above the log start."""
    if broker is None or broker.log_start_offset is None:
        return 0
    return int(np.clip(np.searchsorted(bases, broker.log_start_offset, side="right") - 1, 0, None))


def _closed_bytes(scan: LogDirScan) -> Int64Column:
    """Of every folder: the lengths of all its logs but the last."""
    begin, end = scan.folders.segments_begin[:-1], scan.folders.segments_begin[1:]
    before = kernel.sums(scan.segments.log_bytes)
    return np.asarray(before[np.maximum(end - 1, begin)] - before[begin], dtype=np.int64)


def _segment_table(log_dirs: Sequence[ScannedLogDir]) -> SegmentTable:
    return SegmentTable(
        log_bytes=np.concatenate([_written_bytes(each) for each in log_dirs]),
        **{
            name: np.concatenate([getattr(each.scan.segments, name) for each in log_dirs])
            for name in ("base_offset", "allocated_bytes", "newest_timestamp_ms", "modified_ns")
        },
    )


def _written_bytes(log_dir: ScannedLogDir) -> Int64Column:
    scan = log_dir.scan
    written = scan.segments.log_bytes
    preallocated = np.flatnonzero(scan.segments.is_preallocated)
    if not len(preallocated):
        return written
    written, closed = written.copy(), _closed_bytes(scan)
    for row in preallocated.tolist():
        folder = int(scan.segments.folder[row])
        broker = _broker_view(log_dir, folder)
        if broker is not None:
            written[row] = max(broker.size - int(closed[folder]), 0)
    return written


def _broker_view(log_dir: ScannedLogDir, folder: int) -> BrokerView | None:
    partition = log_dir.scan.folders.topic_partition(folder)
    if partition is None or log_dir.scan.folders.kind[folder] != FolderKind.CURRENT:
        return None
    return log_dir.replicas.get(partition)


def _joined_begins(parts: Sequence[Int64Column]) -> Int64Column:
    """Each part's begins, moved behind the segments of the parts before it."""
    ends = list(accumulate((int(part[-1]) for part in parts), initial=0))
    moved = [part[:-1] + end for part, end in zip(parts, ends, strict=False)]
    return np.concatenate([*moved, np.array(ends[-1:], dtype=np.int64)])
