"""The folders of a made-up broker's log dirs as the rows of a snapshot, and the segments in them.

Beside the replicas there is what every real log dir has: the log dir itself, the cluster's metadata log, copies that a
move is making, and what was left behind by topics that were deleted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from brimline.fleet.synth.cluster import Cluster
from brimline.fleet.synth.contents import Extents, Replicas, allocated, extents_of, removed_by_pass
from brimline.fleet.synth.traffic import AN_HOUR_MS, Floats
from brimline.model.log_dirs import Reason
from brimline.model.reclaim import NO_TOPIC, Views
from brimline.model.scan import BoolColumn, FolderKind, Int64Column

UNKNOWN = -1
_DELETE_DELAY_MS = 60_000
_FOLDER_BYTES = 16_384
_METADATA_SEGMENT = 8 << 20
_FUTURE_TIMESTAMP_MS = 4_102_444_800_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Folders:
    """A row per folder. The first columns are bytes since the partition was created, -1 is not known elsewhere."""

    start: Int64Column
    end: Int64Column
    closed: Int64Column
    segment_bytes: Int64Column
    record_bytes: Int64Column
    bytes_a_day: Floats
    volume: Int64Column
    topic: Int64Column
    """In the cluster's topics; ``NO_TOPIC``."""
    partition: Int64Column
    kind: Int64Column
    is_moving: BoolColumn
    views: Int64Column
    log_start_offset: Int64Column
    high_watermark: Int64Column
    highest_remote_offset: Int64Column
    deleted_bytes: Int64Column
    other_bytes: Int64Column
    offset_lag: Int64Column
    is_leader: BoolColumn
    remote_bytes: Int64Column
    only_local_bytes: Int64Column
    oldest_ms: Int64Column

    def __len__(self) -> int:
        return len(self.start)

    def only(self, keep: BoolColumn | Int64Column) -> "Folders":
        return Folders(**{field.name: getattr(self, field.name)[keep] for field in fields(self)})

    @property
    def segments(self) -> Int64Column:
        return np.where(self.end > UNKNOWN, self.closed + 1, 0)

    @property
    def allocated_bytes(self) -> Int64Column:
        active = allocated(np.maximum(self.end - self.start - self.closed * self.segment_bytes, 0))
        in_segments = np.where(self.segments > 0, self.closed * allocated(self.segment_bytes) + active, 0)
        return in_segments + self.deleted_bytes + self.other_bytes

    def columns(self, topics: Int64Column, *, has_segments: bool) -> Mapping[str, npt.NDArray[np.generic] | pa.Array]:
        """For the section; ``topics`` are the rows of the section of topics."""
        is_replica = np.isin(self.kind, (FolderKind.CURRENT, FolderKind.FUTURE))
        is_current = self.kind == FolderKind.CURRENT
        known = {
            "size_bytes": (np.maximum(self.end - self.start, 0), is_replica),
            "offset_lag": (self.offset_lag, is_current),
            "is_leader": (self.is_leader, is_current),
            "remote_bytes": (self.remote_bytes, is_current & (self.remote_bytes >= 0)),
            "only_local_bytes": (self.only_local_bytes, is_current & (self.only_local_bytes >= 0)),
            "oldest_timestamp_ms": (self.oldest_ms, is_replica),
        }
        nothing = np.zeros(len(self), dtype=np.int64)
        return {
            "volume": self.volume,
            "topic": np.where(self.topic >= 0, np.searchsorted(topics, self.topic), NO_TOPIC),
            "partition": self.partition,
            "kind": self.kind,
            "is_moving": self.is_moving,
            "views": self.views,
            "segments": self.segments if has_segments else nothing,
            "log_start_offset": self.log_start_offset,
            "high_watermark": self.high_watermark,
            "log_end_offset": self.high_watermark,
            "highest_remote_offset": self.highest_remote_offset,
            "deleted_bytes": self.deleted_bytes,
            "foreign_bytes": nothing,
            "other_bytes": self.other_bytes,
            **{name: pa.array(values, mask=~is_known) for name, (values, is_known) in known.items()},
            "remote_reason": self._remote_reasons(),
        }

    def _remote_reasons(self) -> pa.Array:
        """Why a remote or only-local size is not known."""
        reasons = np.array([None, Reason.NOT_TIERED.label, Reason.FOLLOWER.label], dtype=object)
        is_plain, is_follower = self.remote_bytes < 0, self.only_local_bytes < 0
        code = np.where(is_plain, 1, np.where(is_follower, 2, 0))
        return pa.array(reasons[np.where(self.kind == FolderKind.CURRENT, code, 0)], type=pa.string())


def replica_folders(cluster: Cluster, replicas: Replicas, extents: Extents, ms: int) -> Folders:
    topics, topic = cluster.topics, replicas.topic
    is_tiered = topics.is_tiered[topic]
    first_end = np.minimum(extents.start + replicas.segment_bytes, extents.end)
    oldest = topics.courses.when(topic, first_end / replicas.bytes_a_day)
    nothing = np.zeros(len(replicas), dtype=np.int64)
    only_local = np.maximum(extents.end - np.maximum(extents.uploaded, extents.start), 0)
    folders = Folders(
        start=extents.start,
        end=extents.own_end,
        closed=extents.closed,
        segment_bytes=replicas.segment_bytes,
        record_bytes=replicas.record_bytes,
        bytes_a_day=replicas.bytes_a_day,
        volume=replicas.log_dir,
        topic=topic,
        partition=replicas.partition,
        kind=np.full(len(replicas), FolderKind.CURRENT, dtype=np.int64),
        is_moving=np.zeros(len(replicas), dtype=np.bool_),
        views=np.full(len(replicas), Views.AGREE, dtype=np.int64),
        log_start_offset=extents.start // replicas.record_bytes,
        high_watermark=extents.end // replicas.record_bytes,
        highest_remote_offset=np.where(is_tiered, extents.uploaded // replicas.record_bytes - 1, UNKNOWN),
        deleted_bytes=nothing,
        other_bytes=np.full(len(replicas), _FOLDER_BYTES, dtype=np.int64),
        offset_lag=replicas.lag,
        is_leader=replicas.is_leader,
        remote_bytes=np.where(is_tiered, extents.uploaded - extents.remote_start, UNKNOWN),
        only_local_bytes=np.where(is_tiered & replicas.is_leader, only_local, UNKNOWN),
        oldest_ms=np.minimum(oldest.astype(np.int64), ms),
    )
    return folders.only(extents.is_there)


def all_folders(
    generator: np.random.Generator,
    cluster: Cluster,
    replicas: Replicas,
    extents: Extents,
    ms: int,
    last_pass_ms: int,
    log_dirs: int,
) -> Folders:
    """Everything that a guard finds, log dir by log dir, as it walks."""
    is_there = extents.is_there
    folders = replica_folders(cluster, replicas, extents, ms)
    removed = removed_by_pass(cluster, replicas, last_pass_ms)[is_there]
    is_waiting = ms - last_pass_ms < _DELETE_DELAY_MS
    folders.deleted_bytes[:] = allocated(removed) * ((removed > 0) & is_waiting)
    _trim_some(generator, folders)
    _disagree_sometimes(generator, folders)
    parts = [folders, _moving(generator, folders, log_dirs), _left_behind(generator, cluster, replicas, ms)]
    together = _joined([_own_folders(log_dirs), *parts])
    place = np.where(together.kind == FolderKind.LOG_DIR, -2, np.where(together.topic < 0, -1, together.topic))
    return together.only(np.lexsort((together.kind, together.partition, place, together.volume)))


def segments_of(
    generator: np.random.Generator, cluster: Cluster, folders: Folders, ms: int
) -> Mapping[str, npt.NDArray[np.generic]]:
    """Newest timestamps mostly ascend; a few producers send none, or nonsense."""
    counts = folders.segments
    log = np.repeat(np.arange(len(folders), dtype=np.int32), counts)
    place = np.arange(len(log), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    size, start, end = folders.segment_bytes[log], folders.start[log], folders.end[log]
    first = start + place * size
    last = np.minimum(first + size, end)
    progress = last / folders.bytes_a_day[log]
    written = cluster.topics.courses.when(np.maximum(folders.topic, 0)[log], progress).astype(np.int64)
    written = np.minimum(written, ms)
    odd = generator.random(len(log))
    newest = np.where(odd < 0.001, UNKNOWN, np.where(odd < 0.0013, _FUTURE_TIMESTAMP_MS, written))
    late_ms = generator.integers(0, 3_000, len(log))
    log_bytes = last - first
    return {
        "log": log,
        "base_offset": first // folders.record_bytes[log],
        "log_bytes": log_bytes,
        "allocated_bytes": allocated(log_bytes),
        "newest_timestamp_ms": newest,
        "modified_ns": np.minimum(written + late_ms, ms) * 1_000_000,
    }


def _trim_some(generator: np.random.Generator, folders: Folders) -> None:
    """Somebody has called DeleteRecords; the broker's next pass will find it."""
    rows = np.flatnonzero((generator.random(len(folders)) < 0.005) & (folders.closed > 1) & (folders.remote_bytes < 0))
    middle = folders.start[rows] + folders.closed[rows] // 2 * folders.segment_bytes[rows] + 1
    folders.log_start_offset[rows] = middle // folders.record_bytes[rows]


def _disagree_sometimes(generator: np.random.Generator, folders: Folders) -> None:
    chance = generator.random(len(folders))
    folders.views[chance < 0.002] = Views.SEGMENTS_MISSING
    folders.views[chance < 0.0005] = Views.TOPIC_ID_UNKNOWN


def _moving(generator: np.random.Generator, folders: Folders, log_dirs: int) -> Folders:
    """Copies in the making: the first half of the log, in the next log dir."""
    chance = generator.random(len(folders))
    rows = np.flatnonzero((chance < 0.003) & (folders.closed > 1) & (log_dirs > 1))
    folders.is_moving[rows] = True
    copies = folders.only(rows)
    copies.volume[:] = (copies.volume + 1) % log_dirs
    copies.closed[:] //= 2
    copies.end[:] = copies.start + copies.closed * copies.segment_bytes + 1
    return _no_replicas(copies, FolderKind.FUTURE)


def _left_behind(generator: np.random.Generator, cluster: Cluster, replicas: Replicas, ms: int) -> Folders:
    """Of deleted topics: all folders for an hour, a few for good, each as it was when its topic was deleted."""
    gone = cluster.topics.deleted_ms[replicas.topic]
    is_fresh = (gone <= ms) & (ms < gone + AN_HOUR_MS)
    is_stray = (gone + AN_HOUR_MS <= ms) & (generator.random(len(replicas)) < 0.05)
    rows = np.flatnonzero(is_fresh | is_stray)
    left, before = replicas.only(rows), gone[rows] - 1
    folders = replica_folders(cluster, left, extents_of(cluster, left, before, before), ms)
    return _no_replicas(folders, np.where(is_fresh[rows], FolderKind.DELETE, FolderKind.STRAY))


def _no_replicas(folders: Folders, kind: FolderKind | Int64Column) -> Folders:
    """The broker does not describe them, so their offsets are not known."""
    folders.kind[:] = kind
    folders.views[:] = Views.NOT_DESCRIBED
    for column in (folders.log_start_offset, folders.high_watermark, folders.highest_remote_offset):
        column[:] = UNKNOWN
    folders.deleted_bytes[:] = 0
    folders.is_moving[:] = False
    return folders


def _own_folders(log_dirs: int) -> Folders:
    """The log dirs themselves, and the metadata log in the first."""
    rows = log_dirs + 1
    is_log_dir = np.arange(rows) < log_dirs

    def column(of_log_dir: int, of_metadata: int) -> Int64Column:
        return np.where(is_log_dir, of_log_dir, of_metadata).astype(np.int64)

    unknown = column(UNKNOWN, UNKNOWN)
    return Folders(
        start=column(0, 0),
        end=column(UNKNOWN, 3 * _METADATA_SEGMENT + 100_000),
        closed=column(0, 3),
        segment_bytes=column(1, _METADATA_SEGMENT),
        record_bytes=column(1, 100),
        bytes_a_day=np.full(rows, 1e6),
        volume=np.append(np.arange(log_dirs), 0),
        topic=column(NO_TOPIC, NO_TOPIC),
        partition=column(UNKNOWN, 0),
        kind=column(FolderKind.LOG_DIR, FolderKind.METADATA_LOG),
        is_moving=np.zeros(rows, dtype=np.bool_),
        views=column(Views.NOT_DESCRIBED, Views.NOT_DESCRIBED),
        log_start_offset=unknown,
        high_watermark=unknown,
        highest_remote_offset=unknown,
        deleted_bytes=column(0, 0),
        other_bytes=column(1 << 20, _FOLDER_BYTES),
        offset_lag=unknown,
        is_leader=np.zeros(rows, dtype=np.bool_),
        remote_bytes=unknown,
        only_local_bytes=unknown,
        oldest_ms=unknown,
    )


def _joined(parts: list[Folders]) -> Folders:
    return Folders(
        **{field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Folders)}
    )
