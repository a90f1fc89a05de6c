"""One look at everything that a reclaim plan needs, and the plan: the files first, then the cluster, the disk last.

**The order is part of the rule.** Files are looked at first, so that between the two views a log can only have grown at
its end and lost at its head (``decide.reclaim_views``). The disk is asked last: what went away since the files were
looked at counts as going although it is gone, and too little is planned rather than too much.

A survey is of any number of volumes. The guard makes one for each device, so that a file system that hangs holds up
nobody else; ``brimline reclaim``, ``doctor`` and ``--check`` make one of all.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

from brimline.decide.reclaim import plan as reclaim
from brimline.decide.reclaim.bounds import BelievedTime, newest_record_ms
from brimline.decide.reclaim.floor import Floor, floor_of
from brimline.decide.reclaim.tables import BrokerTables, BrokerView, ScannedLogDir, broker_tables
from brimline.disks.task import Look
from brimline.model import Bytes, Failure, FailureKind, ObservationFailed, TopicPartition
from brimline.model.reclaim import DeviceFacts, ReclaimPolicy
from brimline.model.reclaim_plan import DevicePlan, ReclaimPlan, ReclaimReason
from brimline.model.scan import REPLICA_FOLDERS, FileKind, FolderKind, LogDirScan
from brimline.observe.cluster.replica_facts import Offsets, ReplicaFacts
from brimline.observe.scan.scanner import LogDirScanner
from brimline.observe.volumes import LogDirReading, VolumeReading, by_volume, look_at
from brimline.service.clock import Clock
from brimline.settings.config import GuardConfig

_MOST_WATCHED = 20_000
"""So many log starts are read before a batch. Who holds more has others' trims counted with the next plan."""


class SurveyClient(Protocol):
    """What is asked of the cluster; ``BrokerClient`` asks a real one."""

    def replica_facts(self, partitions: Collection[TopicPartition]) -> ReplicaFacts: ...

    def present_starts(self, facts: ReplicaFacts, partitions: Collection[TopicPartition]) -> Offsets: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReclaimSurvey:
    """Rows of ``volumes``, ``plan.devices`` and ``tables.tables.devices`` are the same devices."""

    made_at: datetime
    seconds: float
    """The same on the monotonic clock."""
    took: float = 0.0
    """Seconds of work on this host. What a silent leader is waited for is not among them: it keeps nobody busy."""
    volumes: tuple[VolumeReading, ...]
    tables: BrokerTables
    plan: ReclaimPlan
    facts: ReplicaFacts
    ballast_bytes: tuple[Bytes, ...]
    """What of each device is Brimline's own ballast."""

    def topic_id(self, topic: str) -> UUID | None:
        found = self.facts.topics.get(topic)
        return None if found is None else found.topic_id

    def device_row(self, device: str) -> int:
        return next(row for row, volume in enumerate(self.volumes) if volume.device == device)

    def device_plan(self, device: str) -> DevicePlan:
        return self.plan.devices[self.device_row(device)]

    def floor(self, row: int) -> Floor | None:
        """Named by its log dirs, for people; ``None`` when the device's space is not known."""
        found = floor_of(self.tables.tables, self.plan, row, self.ballast_bytes[row])
        return (
            None if found is None else replace(found, device=f"the volume of {', '.join(self.volumes[row].log_dirs)}")
        )


class Surveyor:
    """Remembers the files between surveys: the next one is cheap where little has changed. For one thread."""

    def __init__(self, client: SurveyClient, clock: Clock, look: Look = look_at) -> None:
        self._client = client
        self._clock = clock
        self._look = look
        self._scanners: dict[str, LogDirScanner] = {}
        self._believed = BelievedTime(steady_ms=_milliseconds(clock.now()), seconds=clock.seconds())

    def look(self, log_dir: str) -> LogDirReading:
        """At the disk under it."""
        return self._look(log_dir, None, self._clock.now(), self._clock.seconds())

    def survey(self, policy: ReclaimPolicy, log_dirs: Iterable[str]) -> ReclaimSurvey:
        """Of the volumes under these log dirs, which can be read without fear of hanging on them.

        Raises ``ObservationFailed`` when the broker gives no answer.
        """
        begun = self._clock.seconds()
        scans = self._scans(log_dirs)
        asked = self._clock.seconds()
        facts = self._client.replica_facts(_replicas(scans))
        begun += self._clock.seconds() - asked
        return self._survey(begun, policy, scans, facts, self._volumes([scan.path for scan in scans]))

    def again(self, policy: ReclaimPolicy, before: ReclaimSurvey) -> ReclaimSurvey:
        """With fresh files, log starts and disks; all else is as it was.

        What anybody trimmed since, and what has come back, is then seen: how much is still needed? Here the disk is
        asked first: what goes away meanwhile must not look like a reason to leave a plan half done.
        """
        begun = self._clock.seconds()
        volumes = self._volumes(before.tables.log_dirs)
        scans = self._scans(before.tables.log_dirs)
        asked = self._clock.seconds()
        starts = self._client.present_starts(before.facts, _watched(before))
        begun += self._clock.seconds() - asked
        facts = replace(before.facts, log_starts={**before.facts.log_starts, **starts})
        return self._survey(begun, policy, scans, facts, volumes)

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
    ) -> ReclaimSurvey:
        now, seconds = self._clock.now(), self._clock.seconds()
        rows = {path: row for row, volume in enumerate(volumes) for path in volume.log_dirs}
        views = _broker_views(facts)
        tables = broker_tables(
            [ScannedLogDir(scan=scan, device=rows[scan.path], replicas=views.get(scan.path, {})) for scan in scans],
            facts.rules,
            [_device(volume, policy, now) for volume in volumes],
            moving=_moving(facts),
        )
        tables = self._with_believed_time(tables, _milliseconds(now), seconds)
        return ReclaimSurvey(
            made_at=now,
            seconds=seconds,
            took=seconds - begun,
            volumes=volumes,
            tables=tables,
            plan=_planned(tables),
            facts=facts,
            ballast_bytes=tuple(_ballast(scans, volume) for volume in volumes),
        )

    def _with_believed_time(self, tables: BrokerTables, now_ms: int, seconds: float) -> BrokerTables:
        inner = tables.tables
        self._believed = self._believed.after(now_ms, seconds, newest_record_ms(inner))
        devices = tuple(replace(device, believed_ms=self._believed.time_ms) for device in inner.devices)
        return replace(tables, tables=replace(inner, devices=devices))


def survey(config: GuardConfig, client: SurveyClient, clock: Clock) -> ReclaimSurvey:
    """Of all log dirs of the broker, once."""
    return Surveyor(client, clock).survey(config.reclaim_policy, config.broker.log_dirs)


def _ballast(scans: Sequence[LogDirScan], volume: VolumeReading) -> Bytes:
    here = [scan for scan in scans if scan.path in volume.log_dirs]
    return Bytes(sum(scan.allocated_of(FolderKind.LOG_DIR, FileKind.BALLAST) for scan in here))


def _planned(tables: BrokerTables) -> ReclaimPlan:
    """Files that no broker writes, such as a segment twice, are a reason to leave everything alone, not to die of."""
    try:
        return reclaim.plan(tables.tables)
    except ValueError as error:
        message = f"no plan can be made for {', '.join(tables.log_dirs)}: {error}"
        raise ObservationFailed(Failure(kind=FailureKind.UNREADABLE, message=message)) from error


def _device(volume: VolumeReading, policy: ReclaimPolicy, now: datetime) -> DeviceFacts:
    return DeviceFacts(
        name=volume.device,
        total_bytes=volume.total_bytes,
        usable_bytes=volume.usable_bytes,
        now_ms=_milliseconds(now),
        policy=policy,
    )


def _milliseconds(moment: datetime) -> int:
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


def _watched(before: ReclaimSurvey) -> Sequence[TopicPartition]:
    """The logs that anybody may have trimmed: those of the plan, then all others that could have been in it."""
    tables, plan = before.tables.tables, before.plan
    planned = plan.trimmed_logs.tolist()
    candidates = (plan.logs.standing == ReclaimReason.CANDIDATE) & (tables.logs.kind == FolderKind.CURRENT)
    rows = dict.fromkeys([*planned, *candidates.nonzero()[0].tolist()])
    found = [partition for row in rows if (partition := tables.topic_partition(row)) is not None]
    return found[: max(_MOST_WATCHED, len(planned))]
