"""What one cycle by hand would do, with everything that a person wants to know before saying yes.

The same survey and the same rules as the guard's own cycles. Only looks: nothing is written, locked or sent.
"""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta

from brimline import __version__
from brimline.act.ledger.entries import PlannedTrim
from brimline.act.plan_file import CeilingFrom, FiledDevice, FiledPlan
from brimline.decide.reclaim.floor import Floor
from brimline.decide.reclaim.summary import Ages, ReasonSum, ages_of, blast_radius, reason_sums, rows_of_heads
from brimline.guard.broker_client import BrokerClient
from brimline.guard.reclaim.recheck import LeftOut, current_logs, recheck, refuse_other_cluster
from brimline.guard.reclaim.settings import Difference, differences
from brimline.guard.reclaim.survey import ReclaimSurvey, Surveyor
from brimline.guard.reclaim.trims import doomed_range, planned_trims
from brimline.model import BadInput, BrokerId, Bytes, TopicPartition
from brimline.model.blast_radius import BlastRadius, GroupsSeen
from brimline.model.reclaim import CEILING_OFF, DeviceFacts, ReclaimPolicy
from brimline.model.reclaim_plan import DevicePlan
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.group_offsets import committed_offsets
from brimline.observe.cluster.topics import cluster_id
from brimline.service.clock import Clock
from brimline.settings.config import GuardConfig

_PATIENCE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for. ``ceiling``: instead of the file's. ``log_dirs`` and ``devices``: only these volumes; none
    named is all. ``plan``: what was decided before; then the others are not given."""

    ceiling: int | None = None
    log_dirs: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    plan: FiledPlan | None = None

    def policy(self, own: ReclaimPolicy) -> ReclaimPolicy:
        """``own`` is that of the properties file."""
        ceiling = self.ceiling
        if self.plan is not None and self.plan.ceiling_from is CeilingFrom.HAND:
            ceiling = self.plan.policy.ceiling_percent
        return own if ceiling is None else replace(own, ceiling_percent=ceiling)

    @property
    def ceiling_from(self) -> CeilingFrom:
        if self.plan is not None:
            return self.plan.ceiling_from
        return CeilingFrom.PROPERTIES if self.ceiling is None else CeilingFrom.HAND

    @property
    def is_ceiling_by_hand(self) -> bool:
        return self.ceiling_from is CeilingFrom.HAND


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DevicePreview:
    """``trims`` are what would be sent; of a plan that was made before perhaps less than ``planned`` says."""

    device: str
    log_dirs: tuple[str, ...]
    facts: DeviceFacts
    planned: DevicePlan
    floor: Floor | None
    trims: tuple[PlannedTrim, ...]
    ages: Ages
    sums: tuple[ReasonSum, ...]

    @property
    def trimmed_bytes(self) -> Bytes:
        return Bytes(sum(trim.allocated_bytes for trim in self.trims))

    @property
    def trimmed_segments(self) -> int:
        return sum(trim.segments.count for trim in self.trims)

    @property
    def used_after_going(self) -> int | None:
        used = self.facts.used_bytes
        return None if used is None else max(used - self.planned.going.total, 0)

    @property
    def used_after(self) -> int | None:
        used = self.used_after_going
        return None if used is None else max(used - self.trimmed_bytes, 0)

    @property
    def is_held(self) -> bool:
        """Whether the device is below its ceiling when all of it has gone."""
        limit, after = self.facts.limit_bytes, self.used_after
        return self.facts.policy.ceiling_percent >= CEILING_OFF or (
            limit is not None and after is not None and after <= limit
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Preview:
    """``filed`` is the same as a file; ``left_out`` and ``differs`` are of a plan that was made before."""

    policy: ReclaimPolicy
    own_ceiling_percent: int
    """The properties file's; the policy's may be another one, by hand."""
    devices: tuple[DevicePreview, ...]
    radius: BlastRadius
    filed: FiledPlan
    brakes: tuple[str, ...] = ()
    """What there is to say of those that other brokers' guards left here."""
    left_out: tuple[LeftOut, ...] = ()
    differs: tuple[Difference, ...] = ()

    @property
    def trims(self) -> tuple[PlannedTrim, ...]:
        return self.filed.trims

    @property
    def trimmed_bytes(self) -> Bytes:
        return Bytes(sum(device.trimmed_bytes for device in self.devices))

    @property
    def trimmed_segments(self) -> int:
        return sum(device.trimmed_segments for device in self.devices)


def preview(config: GuardConfig, clock: Clock, wanted: Wanted, say: Callable[[str], None]) -> Preview:
    """``say`` hears what is being looked at. Raises ``ObservationFailed`` when the broker gives no answer."""
    broker = config.node_id
    say("asking the cluster for its id")
    with closing(Connection(config.admin)) as connection:
        cluster = cluster_id(connection, Deadline(_PATIENCE))
        if wanted.plan is not None:
            refuse_other_cluster(wanted.plan, broker, cluster)
        say("reading the files and asking for their partitions")
        with closing(broker_client(config, clock)) as client:
            policy = wanted.policy(config.reclaim_policy)
            survey = Surveyor.of(config, client, clock, writes=False).survey(policy, config.broker.log_dirs)

        def ask(partitions: Collection[TopicPartition]) -> GroupsSeen:
            def heard(done: int, total: int) -> None:
                say(f"asking for the offsets of consumer groups: {done:,} of {total:,}")

            return committed_offsets(connection, partitions, heard)

        return preview_of(survey, wanted, config.reclaim_policy, broker, cluster, ask)


def preview_of(
    survey: ReclaimSurvey,
    wanted: Wanted,
    own: ReclaimPolicy,
    broker: BrokerId,
    cluster: str,
    ask_groups: Callable[[Collection[TopicPartition]], GroupsSeen],
) -> Preview:
    """``own`` is the policy of the properties file; the survey was made with what is wanted instead."""
    chosen = _chosen(survey, wanted)
    trims, left_out = _trims(survey, wanted, chosen)
    doomed = [doomed_range(trim) for some in trims.values() for trim in some]
    seen = ask_groups([each.partition for each in doomed])
    devices = tuple(_device(survey, row, trims[row]) for row in chosen)
    policy = wanted.policy(own)
    return Preview(
        policy=policy,
        own_ceiling_percent=own.ceiling_percent,
        devices=devices,
        radius=blast_radius(doomed, seen),
        filed=_filed(survey, wanted, policy, devices, broker, cluster),
        brakes=survey.brakes,
        left_out=left_out,
        differs=() if wanted.plan is None else differences(wanted.plan, own),
    )


def broker_client(config: GuardConfig, clock: Clock) -> BrokerClient:
    return BrokerClient(config.admin, config.node_id, clock)


def _chosen(survey: ReclaimSurvey, wanted: Wanted) -> list[int]:
    """Rows of the devices. Raises ``BadInput`` for one that is not there."""
    names = {volume.device: row for row, volume in enumerate(survey.volumes)}
    paths = {os.path.normpath(path): row for row, volume in enumerate(survey.volumes) for path in volume.log_dirs}
    for device in wanted.devices:
        if device not in names:
            raise BadInput(f"no log dir of this broker is on {device}; its devices are: {', '.join(names)}")
    for log_dir in wanted.log_dirs:
        if os.path.normpath(log_dir) not in paths:
            raise BadInput(f"{log_dir} is not a log dir of this broker; its log dirs are: {', '.join(paths)}")
    named = {names[device] for device in wanted.devices} | {paths[os.path.normpath(path)] for path in wanted.log_dirs}
    return sorted(named) if wanted.devices or wanted.log_dirs else list(range(len(survey.volumes)))


def _trims(
    survey: ReclaimSurvey, wanted: Wanted, chosen: Sequence[int]
) -> tuple[dict[int, tuple[PlannedTrim, ...]], tuple[LeftOut, ...]]:
    """By the row of their device."""
    devices = {row: survey.volumes[row].device for row in chosen}
    if wanted.plan is None:
        return {row: planned_trims(survey, device) for row, device in devices.items()}, ()
    still = recheck(wanted.plan.trims, survey)
    return {row: still.trims.get(device, ()) for row, device in devices.items()}, still.left_out


def _device(survey: ReclaimSurvey, row: int, trims: tuple[PlannedTrim, ...]) -> DevicePreview:
    tables = survey.tables.tables
    return DevicePreview(
        device=survey.volumes[row].device,
        log_dirs=survey.volumes[row].log_dirs,
        facts=tables.devices[row],
        planned=survey.plan.devices[row],
        floor=survey.floor(row),
        trims=trims,
        ages=ages_of(tables, row, rows_of_heads(_heads(survey, trims))),
        sums=reason_sums(tables, survey.plan, row),
    )


def _heads(survey: ReclaimSurvey, trims: Sequence[PlannedTrim]) -> list[tuple[int, int]]:
    """First row and number of the segments that each trim takes."""
    logs = current_logs(survey, {trim.partition for trim in trims})
    begins, base = survey.tables.tables.logs.segments_begin, survey.tables.tables.segments.base_offset
    heads = []
    for trim in trims:
        log = logs[trim.log_dir, trim.partition]
        begin, end = int(begins[log]), int(begins[log + 1])
        heads.append((begin + int(base[begin:end].searchsorted(trim.segments.first)), trim.segments.count))
    return heads


def _filed(
    survey: ReclaimSurvey,
    wanted: Wanted,
    policy: ReclaimPolicy,
    devices: Sequence[DevicePreview],
    broker: BrokerId,
    cluster: str,
) -> FiledPlan:
    """Devices whose space is not known have no plan."""
    return FiledPlan(
        made_at=survey.made_at,
        made_by=f"brimline {__version__}",
        cluster_id=cluster,
        broker=broker,
        policy=policy,
        ceiling_from=wanted.ceiling_from,
        devices=tuple(
            FiledDevice(
                device=device.device,
                log_dirs=device.log_dirs,
                total_bytes=device.facts.total_bytes,
                used_bytes=Bytes(device.facts.used_bytes),
                going_bytes=device.planned.going.total,
                excess_bytes=device.planned.excess_bytes or Bytes(0),
                trims=device.trims,
            )
            for device in devices
            if device.facts.total_bytes is not None and device.facts.used_bytes is not None
        ),
    )
