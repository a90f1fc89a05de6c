"""One broker of a made-up fleet, and its snapshot at any moment: the sections of a landing file.

The newest snapshot has what a guard sees: every folder, and the segments. Those before it have volumes and replicas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from brimline.decide.disk_state import DiskLimits, DiskState, Space, next_state
from brimline.fleet.synth.cluster import Cluster, TopicKind, make_cluster
from brimline.fleet.synth.contents import (
    RETENTION_PASS_MS,
    Disks,
    Extents,
    Replicas,
    allocated_of,
    extents_of,
    make_disks,
    replicas_of,
)
from brimline.fleet.synth.folders import Folders, all_folders, replica_folders, segments_of
from brimline.fleet.synth.spec import Draw, FleetSpec
from brimline.fleet.synth.traffic import A_DAY_MS, AN_HOUR_MS, Floats
from brimline.landing.header import Header, Source
from brimline.landing.schema import LOGS, SECTIONS, SEGMENTS, TOPICS, VOLUMES
from brimline.model import Bytes

LIMITS = DiskLimits(max_used_percent=95, min_free_bytes=Bytes(1 << 30))
MIN_RETENTION_MS = 2 * AN_HOUR_MS
PROTECTED_TOPICS = r".*\.audit-.*"
_MISSED = 0.004
"""Share of snapshots that never landed."""
_SIZING_LOOKS = 24
_MINUTE_MS = 60_000

Columns = Mapping[str, "npt.NDArray[np.generic] | Sequence[object]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUp:
    header: Header
    tables: Mapping[str, pa.Table]


class SynthBroker:
    def __init__(self, spec: FleetSpec, cluster: int, broker: int) -> None:
        self._spec = spec
        self._broker = broker
        self._cluster: Cluster = make_cluster(spec, cluster)
        generator = spec.generator(Draw.BROKER, cluster, broker)
        self._replicas: Replicas = replicas_of(generator, self._cluster, broker, spec.log_dirs)
        self._stagger_ms = int(generator.integers(0, _MINUTE_MS))
        self._pass_ms = int(generator.integers(0, RETENTION_PASS_MS))
        self._disks: Disks = make_disks(spec, generator, self._cluster, broker, self._most_held())
        self._missed = generator.random(self._looks_before) < _MISSED
        if generator.random() < 0.05 and self._looks_before:
            away = int(generator.integers(0, self._looks_before))
            self._missed[away : away + int(generator.integers(6, 48)) * 60 // spec.every_minutes] = True

    @property
    def _looks_before(self) -> int:
        return self._spec.days * 24 * 60 // self._spec.every_minutes

    @property
    def newest_ms(self) -> int:
        return self._spec.until_ms - self._stagger_ms

    def history(self) -> Sequence[int]:
        """When the snapshots before the newest were taken, oldest first."""
        every_ms = self._spec.every_minutes * _MINUTE_MS
        ago = np.flatnonzero(~self._missed[::-1])[::-1] + 1
        return [self.newest_ms - int(each) * every_ms for each in ago]

    def used_shares(self, ms: int) -> Floats:
        """Of every device: how much of its present size was used. For whoever wants the history without the files."""
        held = self._held(self._extents(ms))
        return np.asarray(self._disks.used_at(ms, held) / self._disks.total_bytes, dtype=np.float64)

    def snapshot(self, ms: int) -> MadeUp:
        extents = self._extents(ms)
        folders = replica_folders(self._cluster, self._replicas, extents, ms)
        return self._made_up(ms, self._readable(folders, ms), self._held(extents), segments=None)

    def newest(self) -> MadeUp:
        ms = self.newest_ms
        generator = self._spec.generator(Draw.SNAPSHOT, self._cluster.number, self._broker)
        extents = self._extents(ms)
        folders = all_folders(
            generator, self._cluster, self._replicas, extents, ms, self._last_pass(ms), self._spec.log_dirs
        )
        readable = self._readable(folders, ms)
        segments = segments_of(generator, self._cluster, readable, ms)
        return self._made_up(ms, readable, self._held_by(folders), segments=segments)

    def _extents(self, ms: int) -> Extents:
        return extents_of(self._cluster, self._replicas, ms, self._last_pass(ms))

    def _last_pass(self, ms: int) -> int:
        return ms - (ms - self._pass_ms) % RETENTION_PASS_MS

    def _held(self, extents: Extents) -> npt.NDArray[np.int64]:
        held = np.zeros(self._spec.log_dirs, dtype=np.int64)
        np.add.at(held, self._replicas.log_dir, allocated_of(self._replicas, extents))
        return held

    def _held_by(self, folders: Folders) -> npt.NDArray[np.int64]:
        held = np.zeros(self._spec.log_dirs, dtype=np.int64)
        np.add.at(held, folders.volume, folders.allocated_bytes)
        return held

    def _most_held(self) -> Floats:
        looks = np.linspace(0, self._spec.days * A_DAY_MS, _SIZING_LOOKS).astype(np.int64)
        held = [self._held(self._extents(self.newest_ms - int(ago))) for ago in looks]
        return np.asarray(np.max(held, axis=0), dtype=np.float64)

    def _readable(self, folders: Folders, ms: int) -> Folders:
        failing = [self._disks.failure(number, ms) is not None for number in range(self._spec.log_dirs)]
        return folders.only(~np.array(failing)[folders.volume])

    def _made_up(self, ms: int, folders: Folders, held: npt.NDArray[np.int64], segments: Columns | None) -> MadeUp:
        text = f"{self._spec.seed}/{self._cluster.cluster_id}/{self._broker}/{ms}"
        header = Header(
            snapshot_id=blake2b(text.encode(), digest_size=16).hexdigest(),
            cluster_id=self._cluster.cluster_id,
            broker_id=self._broker,
            source=Source.SYNTH,
            taken_at_ms=ms,
        )
        topics = np.unique(folders.topic[folders.topic >= 0])
        tables = {
            VOLUMES: _table(VOLUMES, self._volumes(ms, held)),
            TOPICS: _table(TOPICS, self._topics(topics)),
            LOGS: _table(LOGS, folders.columns(topics, has_segments=segments is not None)),
        }
        if segments is not None:
            tables[SEGMENTS] = _table(SEGMENTS, segments)
        return MadeUp(header=header, tables=tables)

    def _volumes(self, ms: int, held: npt.NDArray[np.int64]) -> Columns:
        spec, disks = self._spec, self._disks
        total, used = disks.total_at(ms), disks.used_at(ms, held)
        numbers = range(spec.log_dirs)
        failures = [disks.failure(number, ms) for number in numbers]
        spaces = [
            Space(total=Bytes(int(total[device])), usable=Bytes(int(total[device] - used[device])))
            if failure is None
            else None
            for device, failure in zip(disks.device.tolist(), failures, strict=True)
        ]
        return {
            "log_dir": [f"/var/lib/kafka/data-{number}" for number in numbers],
            "device": [f"/dev/nvme{device}n1" for device in disks.device.tolist()],
            "total_bytes": [None if space is None else space.total for space in spaces],
            "usable_bytes": [None if space is None else space.usable for space in spaces],
            "failure": [None if failure is None else _sentence(is_offline=failure.is_offline) for failure in failures],
            "state": [
                (DiskState.OFFLINE if failure and failure.is_offline else next_state(DiskState.OK, space, LIMITS)).value
                for space, failure in zip(spaces, failures, strict=True)
            ],
            "max_used_percent": [LIMITS.max_used_percent] * spec.log_dirs,
            "min_free_bytes": [LIMITS.min_free_bytes] * spec.log_dirs,
            "release_margin_percent": [LIMITS.release_margin_percent] * spec.log_dirs,
            "ceiling_percent": [spec.ceiling_percent] * spec.log_dirs,
            "min_retention_ms": [MIN_RETENTION_MS] * spec.log_dirs,
            "min_retention_bytes": [0] * spec.log_dirs,
            "protected_topics": [PROTECTED_TOPICS] * spec.log_dirs,
            "is_offline": [failure is not None and failure.is_offline for failure in failures],
        }

    def _topics(self, rows: npt.NDArray[np.int64]) -> Columns:
        topics = self._cluster.topics
        kind = topics.kind[rows]
        return {
            "topic": [topics.names[row] for row in rows.tolist()],
            "topic_id": [topics.ids[row] for row in rows.tolist()],
            "is_known": topics.is_known[rows],
            "deletes": ~np.isin(kind, (TopicKind.COMPACTED, TopicKind.INTERNAL)),
            "compacts": np.isin(kind, (TopicKind.COMPACTED, TopicKind.INTERNAL)),
            "retention_ms": topics.retention_ms[rows],
            "retention_bytes": topics.retention_bytes[rows],
            "local_retention_ms": topics.local_retention_ms[rows],
            "local_retention_bytes": topics.local_retention_bytes[rows],
            "is_tiered": topics.is_tiered[rows],
            "is_copy_disabled": topics.is_copy_disabled[rows],
            "is_internal": np.isin(kind, (TopicKind.INTERNAL,)),
        }


def _sentence(*, is_offline: bool) -> str:
    if is_offline:
        return "the broker took the log dir offline (KAFKA_STORAGE_ERROR)"
    return "Input/output error"


def _table(section: str, columns: Columns) -> pa.Table:
    """Columns that nobody names are not known."""
    schema = SECTIONS[section]
    rows = len(next(iter(columns.values())))
    arrays = [
        pa.array(columns[field.name], type=field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
