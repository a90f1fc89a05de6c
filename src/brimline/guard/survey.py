"""One look at everything that a broker's files, its cluster and its disks tell: the files first, the disk last.

**The order is part of the rule.** Files are looked at first, so that between the two views a log can only have grown at
its end and lost at its head (``decide.reclaim.tables``). The disk is asked last: what went away since the files were
looked at counts as going although it is gone, and too little is planned rather than too much.

A survey is of any number of volumes. The guard makes one for each device, so that a file system that hangs holds up
nobody else; a snapshot for the fleet, ``brimline reclaim``, ``doctor`` and ``--check`` make one of all.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

from brimline.decide.reclaim.bounds import BelievedTime, newest_record_ms
from brimline.decide.reclaim.tables import BrokerTables, BrokerView, ScannedLogDir, broker_tables
from brimline.disks.task import Look
from brimline.model import Bytes, TopicPartition
from brimline.model.reclaim import DeviceFacts, ReclaimPolicy
from brimline.model.scan import REPLICA_FOLDERS, FileKind, FolderKind, LogDirScan
from brimline.observe.cluster.replica_facts import Offsets, ReplicaFacts
from brimline.observe.scan.scanner import LogDirScanner
from brimline.observe.volumes import LogDirReading, VolumeReading, by_volume, look_at
from brimline.service.clock import Clock


class SurveyClient(Protocol):
    """What is asked of the cluster; ``BrokerClient`` asks a real one."""

    def replica_facts(self, partitions: Collection[TopicPartition]) -> ReplicaFacts: ...

    def present_starts(self, facts: ReplicaFacts, partitions: Collection[TopicPartition]) -> Offsets: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """Rows of ``volumes`` and ``tables.tables.devices`` are the same devices."""

    made_at: datetime
    seconds: float
    """The same on the monotonic clock."""
    took: float = 0.0
    """Seconds of work on this host. What a silent leader is waited for is not among them: it keeps nobody busy."""
    volumes: tuple[VolumeReading, ...]
    tables: BrokerTables
    facts: ReplicaFacts
    ballast_bytes: tuple[Bytes, ...]
    """What of each device is Brimline's own ballast."""

    def topic_id(self, topic: str) -> UUID | None:
        found = self.facts.topics.get(topic)
        return None if found is None else found.topic_id

    def device_row(self, device: str) -> int:
        return next(row for row, volume in enumerate(self.volumes) if volume.device == device)


class BrokerSurveyor:
    """Remembers the files between surveys: the next one is cheap where little has changed. For one thread."""

    def __init__(self, client: SurveyClient, clock: Clock, look: Look = look_at) -> None:
        self._client = client
        self._clock = clock
        self._look = look
        self._scanners: dict[str, LogDirScanner] = {}
        self._believed = BelievedTime(steady_ms=milliseconds(clock.now()), seconds=clock.seconds())

    def look(self, log_dir: str) -> LogDirReading:
        """At the disk under it."""
        return self._look(log_dir, None, self._clock.now(), self._clock.seconds())

    def inspect(self, policy: ReclaimPolicy, log_dirs: Iterable[str]) -> Survey:
        """Of the volumes under these log dirs, which can be read without fear of hanging on them.

        Raises ``ObservationFailed`` when the broker gives no answer.
        """
        begun = self._clock.seconds()
        scans = self._scans(log_dirs)
        asked = self._clock.seconds()
        facts = self._facts(_replicas(scans))
        begun += self._clock.seconds() - asked
        return self._survey(begun, policy, scans, facts, self._volumes([scan.path for scan in scans]))

    def inspect_again(self, policy: ReclaimPolicy, before: Survey, watched: Collection[TopicPartition]) -> Survey:
        """With fresh files, disks and log starts of the ``watched``; all else is as it was.

        What anybody trimmed since, and what has come back, is then seen: how much is still needed? Here the disk is
        asked first: what goes away meanwhile must not look like a reason to leave a plan half done.
        """
        begun = self._clock.seconds()
        volumes = self._volumes(before.tables.log_dirs)
        scans = self._scans(before.tables.log_dirs)
        asked = self._clock.seconds()
        starts = self._client.present_starts(before.facts, watched)
        begun += self._clock.seconds() - asked
        facts = replace(before.facts, log_starts={**before.facts.log_starts, **starts})
        return self._survey(begun, policy, scans, facts, volumes)

    def _facts(self, partitions: Collection[TopicPartition]) -> ReplicaFacts:
        return self._client.replica_facts(partitions)

    def _scans(self, log_dirs: Iterable[str]) -> list[LogDirScan]:
        return [
            self._scanners.setdefault(path, LogDirScanner(path)).scan(timestamps=True, topic_ids=True)
            for path in log_dirs
        ]

    def _volumes(self, log_dirs: Iterable[str]) -> tuple[VolumeReading, ...]:
        return by_volume([self.look(path) for path in log_dirs])

    def _survey(
        self,
        begun: float,
        policy: ReclaimPolicy,
        scans: Sequence[LogDirScan],
        facts: ReplicaFacts,
        volumes: tuple[VolumeReading, ...],
    ) -> Survey:
        now, seconds = self._clock.now(), self._clock.seconds()
        rows = {path: row for row, volume in enumerate(volumes) for path in volume.log_dirs}
        views = _broker_views(facts)
        tables = broker_tables(
            [ScannedLogDir(scan=scan, device=rows[scan.path], replicas=views.get(scan.path, {})) for scan in scans],
            facts.rules,
            [_device(volume, policy, now) for volume in volumes],
            moving=_moving(facts),
        )
        tables = self._with_believed_time(tables, milliseconds(now), seconds)
        return Survey(
            made_at=now,
            seconds=seconds,
            took=seconds - begun,
            volumes=volumes,
            tables=tables,
            facts=facts,
            ballast_bytes=tuple(_ballast(scans, volume) for volume in volumes),
        )

    def _with_believed_time(self, tables: BrokerTables, now_ms: int, seconds: float) -> BrokerTables:
        inner = tables.tables
        self._believed = self._believed.after(now_ms, seconds, newest_record_ms(inner))
        devices = tuple(replace(device, believed_ms=self._believed.time_ms) for device in inner.devices)
        return replace(tables, tables=replace(inner, devices=devices))


def _ballast(scans: Sequence[LogDirScan], volume: VolumeReading) -> Bytes:
    here = [scan for scan in scans if scan.path in volume.log_dirs]
    return Bytes(sum(scan.allocated_of(FolderKind.LOG_DIR, FileKind.BALLAST) for scan in here))


def _device(volume: VolumeReading, policy: ReclaimPolicy, now: datetime) -> DeviceFacts:
    return DeviceFacts(
        name=volume.device,
        total_bytes=volume.total_bytes,
        usable_bytes=volume.usable_bytes,
        now_ms=milliseconds(now),
        policy=policy,
    )


def milliseconds(moment: datetime) -> int:
    return math.floor(moment.timestamp() * 1000)


def _replicas(scans: Sequence[LogDirScan]) -> frozenset[TopicPartition]:
    return frozenset(
        partition
        for scan in scans
        for row in scan.folders.rows_of(*REPLICA_FOLDERS)
        if (partition := scan.folders.topic_partition(row)) is not None
    )


def _broker_views(facts: ReplicaFacts) -> Mapping[str, Mapping[TopicPartition, BrokerView]]:
    views: dict[str, dict[TopicPartition, BrokerView]] = {}
    for path, log_dir in facts.answer.log_dirs.items():
        replicas = log_dir.replicas
        views[path] = {
            partition: BrokerView(
                size=Bytes(size),
                topic_id=None if topic is None else topic.topic_id,
                is_forbidden=topic is not None and topic.may_delete is False,
                log_start_offset=facts.log_starts.get(partition),
                high_watermark=facts.high_watermarks.get(partition),
                log_end_offset=facts.log_ends.get(partition),
                highest_remote_offset=facts.highest_remote.get(partition),
                last_stable_offset=facts.last_stable.get(partition),
            )
            for row, (size, is_future) in enumerate(
                zip(replicas.size.tolist(), replicas.is_future.tolist(), strict=True)
            )
            if not is_future
            for partition in [replicas.topic_partition(row)]
            for topic in [facts.topics.get(partition.topic)]
        }
    return views


def _moving(facts: ReplicaFacts) -> frozenset[TopicPartition]:
    """What the broker copies to another of its log dirs, wherever that is."""
    return frozenset(
        log_dir.replicas.topic_partition(row)
        for log_dir in facts.answer.log_dirs.values()
        for row in log_dir.replicas.is_future.nonzero()[0].tolist()
    )
