"""What reclaim means on this broker, said before it is needed. Pure: facts in, sentences out.

A ceiling that cannot be held, a ceiling that comes after the fence, a topic that may not be trimmed: each is found out
too late if it is found out by what happens. So each is a finding, with what would help.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from brimline.act.ledger.entries import PlannedTrim
from brimline.decide.disk_state import DiskLimits
from brimline.decide.reclaim.bounds import most_above_ceiling, room_below_fence, written_per_second
from brimline.decide.reclaim.floor import ALWAYS_NAMED, Floor, FloorKind, FloorPart
from brimline.decide.reclaim.holding import HoldRules
from brimline.disks.sentences import named_log_dirs
from brimline.disks.task import DiskReport
from brimline.documents.notices import Weight
from brimline.guard.feature import Finding
from brimline.guard.reclaim.settings import ReclaimSettings
from brimline.guard.reclaim.survey import ReclaimSurvey
from brimline.guard.reclaim.trims import planned_trims
from brimline.model import Bytes, counted, human_bytes, human_percent, human_span
from brimline.model.reclaim import DeviceFacts, Views
from brimline.model.reclaim_plan import DeviceOutcome, ReclaimReason
from brimline.settings import keys
from brimline.settings.config import GuardConfig

TOPIC = "reclaim"
_SHOWN_TOPICS = 10
_NAMED = 3
_BRAKES = (
    keys.RECLAIM_MODE,
    keys.RECLAIM_MIN_RETENTION_MS,
    keys.RECLAIM_MIN_RETENTION_BYTES,
    keys.RECLAIM_MAX_BYTES,
    keys.RECLAIM_PROTECTED,
    *(key for key in keys.KEYS if key.kip_61 is not None and key is not keys.RECLAIM_MIN_RETENTION_MS),
)
_OUTCOMES = {
    DeviceOutcome.UNDER_CEILING: "nothing to delete now: it is below its ceiling",
    DeviceOutcome.GOING_SUFFICES: "nothing to delete now: above its ceiling, but deletions in progress cover it",
    DeviceOutcome.SPACE_UNKNOWN: "nothing would be deleted: its use is unknown",
    DeviceOutcome.CYCLE_LIMIT: "more would exceed the limit of a cycle (brimline.reclaim.max.percent.per.cycle, "
    "brimline.reclaim.max.bytes.per.cycle)",
    DeviceOutcome.BRAKES_YIELD: "the disk is down to its last reserve and nothing refuses writes: minimum retention "
    "and the limit of a cycle are overridden",
    DeviceOutcome.NO_CURE: "what is not Kafka's is above its ceiling: only enough is deleted to stay below its fence",
    DeviceOutcome.FLOOR_REACHED: "it stays above its ceiling: nothing more is removable",
}


def reclaim_finding(weight: Weight, sentence: str) -> Finding:
    return Finding(topic=TOPIC, weight=weight, sentence=sentence)


def explain_ceiling(config: GuardConfig, report: DiskReport) -> Iterator[Finding]:
    """What the file alone says, and the sizes of the volumes."""
    if not config.has_ceiling:
        yield from _brakes_without_ceiling(config)
        return
    ceiling, where = config.number(keys.RETENTION_PERCENT), config.settings[keys.RETENTION_PERCENT.name].where
    is_applied = config.text(keys.RECLAIM_MODE) == keys.APPLY
    yield reclaim_finding(
        Weight.FINE if is_applied else Weight.NOTE,
        f"above {ceiling} % used of a device the oldest closed segments of all topics "
        f"{'are' if is_applied else 'would be'} deleted ({where}), checked every "
        f"{config.seconds(keys.RECLAIM_INTERVAL):g} s"
        + ("" if is_applied else f"; {keys.RECLAIM_MODE.name}=plan: plans only, deletes nothing"),
    )
    yield from (reclaim_finding(Weight.NOTE, line) for line in changed_defaults(config))
    yield from _brakes(config)
    for volume in report.volumes:
        total, usable = volume.reading.total_bytes, volume.reading.usable_bytes
        if total is not None and usable is not None:
            facts = DeviceFacts(
                name=volume.reading.device,
                total_bytes=total,
                usable_bytes=usable,
                now_ms=0,
                policy=config.reclaim_policy,
            )
            yield from _against_the_fence(config, named_log_dirs(volume), facts)


def explain_survey(config: GuardConfig, survey: ReclaimSurvey) -> Iterator[Finding]:
    """What the files and the cluster say, device by device, and what the first cycle would do."""
    yield from _patterns(config, survey)
    settings = ReclaimSettings.of(config)
    for row, volume in enumerate(survey.volumes):
        floor = survey.floor(row)
        if floor is not None:
            yield from _floor(floor)
            yield from _bound(survey, row, floor, settings, config.limits)
        yield from _hanging(survey, row)
        yield from _first_cycle(survey, row, ", ".join(volume.log_dirs), is_applied=settings.is_applied)
        yield from _would_be_held(survey, row, ", ".join(volume.log_dirs), settings.hold)


def explain_rights(config: GuardConfig, survey: ReclaimSurvey, may_delete: Mapping[str, bool]) -> Iterator[Finding]:
    """``may_delete``: of topics that may be described, whether this principal may delete records."""
    tables, standing = survey.tables.tables, survey.plan.logs.standing
    is_candidate = (standing == ReclaimReason.CANDIDATE) | (tables.logs.views == Views.NO_PERMISSION)
    candidates = {
        tables.topics[int(topic)].name for topic in set(tables.logs.topic[is_candidate].tolist()) if topic >= 0
    }
    refused = sorted(name for name in candidates if may_delete.get(name) is False)
    if refused:
        weight = Weight.PROBLEM if config.text(keys.RECLAIM_MODE) == keys.APPLY else Weight.WARNING
        yield Finding(
            topic="permissions",
            weight=weight,
            sentence=f"this principal may not delete records of {_some(refused, 'topic')}: grant DELETE with "
            "kafka-acls.sh --add --allow-principal … --operation Delete "
            "--topic …, or protect the topics (brimline.reclaim.protected.topics)",
        )
    elif candidates and candidates <= set(may_delete):
        yield reclaim_finding(
            Weight.FINE, f"this principal may delete records of all {counted(len(candidates), 'topic')}"
        )


# The file ------------------------------------------------------------------------------------------------------------


def _brakes_without_ceiling(config: GuardConfig) -> Iterator[Finding]:
    idle = [key.name for key in _BRAKES if not config.settings[key.name].is_default]
    if idle:
        yield reclaim_finding(
            Weight.WARNING,
            f"{', '.join(idle)}: has no effect: there is no ceiling ({keys.RETENTION_PERCENT.name} is 100)",
        )


def changed_defaults(config: GuardConfig) -> Iterator[str]:
    """A line for every default that is not the KIP's, if a ceiling is set and no policy: perhaps before the
    policies were there."""
    if not config.has_ceiling or not config.settings[keys.RECLAIM_POLICY.name].is_default:
        return
    policy, changed = keys.RECLAIM_POLICY.name, 0
    for key in keys.KEYS:
        if key.kip_61 is not None and config.settings[key.name].is_default:
            changed += 1
            yield f"{key.name} is {keys.shown_value(key.default)} by default (before: {keys.shown_value(key.kip_61)})"
    if changed:
        these = "this default" if changed == 1 else f"these {changed} defaults"
        yield (
            f"{policy}={keys.CAREFUL} accepts {these} and ends these lines; "
            f"{policy}={keys.KIP_61} sets the values of before"
        )


def _brakes(config: GuardConfig) -> Iterator[Finding]:
    policy = config.reclaim_policy
    if policy.min_retention_ms:
        unless = ", unless the disk is down to its last reserve (nothing refuses writes)" * policy.yields_at_reserve
        span = human_span(policy.min_retention_ms / 1000)
        yield reclaim_finding(Weight.FINE, f"nothing younger than {span} is reclaimed{unless}")
    if policy.min_retention_bytes:
        kept = human_bytes(policy.min_retention_bytes)
        yield reclaim_finding(Weight.FINE, f"{kept} of every partition stay, as Kafka counts retention.bytes")
    if not policy.min_retention_ms and not policy.min_retention_bytes:
        yield reclaim_finding(
            Weight.WARNING,
            "only active segments and protected topics are safe: a foreign file that fills the volume makes the "
            f"ceiling delete everything else; set {keys.RECLAIM_MIN_RETENTION_MS.name} or "
            f"{keys.RECLAIM_MIN_RETENTION_BYTES.name}",
        )
    if policy.max_bytes_per_cycle is not None:
        most = human_bytes(policy.max_bytes_per_cycle)
        yield reclaim_finding(Weight.FINE, f"one cycle deletes at most {most} from a device")
    if policy.max_percent_per_cycle is not None:
        share = f"{policy.max_percent_per_cycle} % of a device"
        yield reclaim_finding(Weight.FINE, f"one cycle deletes at most {share}, or one segment")


def _against_the_fence(config: GuardConfig, log_dirs: str, facts: DeviceFacts) -> Iterator[Finding]:
    room = room_below_fence(facts, Bytes(0), config.limits)
    if room is None or room > 0:
        return
    yield reclaim_finding(
        Weight.WARNING,
        f"{log_dirs}: the ceiling of {facts.policy.ceiling_percent} % is not below the fence "
        f"({_fence(config.limits)}): the volume is full before reclaim starts; lower {keys.RETENTION_PERCENT.name}",
    )


def _fence(limits: DiskLimits) -> str:
    parts = []
    if not limits.percent_is_off:
        parts.append(f"{keys.MAX_USED_PERCENT.name}={limits.max_used_percent}")
    if not limits.bytes_is_off:
        parts.append(f"{keys.MIN_FREE_BYTES.name}={limits.min_free_bytes}")
    return ", ".join(parts)


# The files and the cluster -------------------------------------------------------------------------------------------


def _patterns(config: GuardConfig, survey: ReclaimSurvey) -> Iterator[Finding]:
    topics = [topic.name for topic in survey.tables.tables.topics]
    for pattern in config.reclaim_policy.protected_topics:
        matched = [name for name in topics if re.fullmatch(pattern, name)]
        if matched:
            yield reclaim_finding(Weight.FINE, f"{pattern} protects {_some(matched, 'topic')}")
        else:
            yield reclaim_finding(
                Weight.WARNING,
                f"{keys.RECLAIM_PROTECTED.name}: {pattern} matches no topic on this broker; it must match a whole "
                "name, as orders.* does",
            )


def _floor(floor: Floor) -> Iterator[Finding]:
    yield reclaim_finding(Weight.PROBLEM if floor.is_impossible else Weight.FINE, floor.sentence)
    if floor.is_impossible:
        for part in floor.parts[:_NAMED]:
            yield reclaim_finding(Weight.NOTE, _cure(part))
    for part in floor.parts:
        if part.kind in ALWAYS_NAMED and not (floor.is_impossible and part in floor.parts[:_NAMED]):
            yield reclaim_finding(Weight.NOTE, f"never trimmed: {_cure(part)}")
    if floor.local_retention_bytes:
        yield reclaim_finding(
            Weight.NOTE,
            f"{floor.device}: tiered topics are never trimmed, because that deletes remote data too; lowering their "
            f"local.retention.ms or local.retention.bytes could free {human_bytes(floor.local_retention_bytes)}",
        )


def _hanging(survey: ReclaimSurvey, row: int) -> Iterator[Finding]:
    hanging = [each for each in survey.hanging if each.row == row]
    for each in hanging[:_NAMED]:
        topic, number = each.partition.topic, each.partition.partition
        how = (
            "its coordinator knows it: end it at its producer"
            if each.is_known
            else "no coordinator knows it, so nobody ends it (kafka-transactions.sh find-hanging names the producer): "
            f"kafka-transactions.sh --bootstrap-server … abort --topic {topic} --partition {number} --start-offset "
            f"{each.offset} does"
        )
        yield reclaim_finding(
            Weight.WARNING,
            f"{each.partition}: a transaction has been open at offset {each.offset} for "
            f"{human_span(each.open_ms / 1000)} and blocks {human_bytes(each.bytes)}; {how}",
        )
    if len(hanging) > _NAMED:
        yield reclaim_finding(Weight.WARNING, f"… and {counted(len(hanging) - _NAMED, 'more hanging transaction')}")


def _cure(part: FloorPart) -> str:
    topics = ", ".join(f"{share.topic} {human_bytes(share.bytes)}" for share in part.topics)
    named = f" ({topics})" if topics else ""
    return f"{part.kind.value}: {human_bytes(part.bytes)}, {human_percent(part.percent)}{named}: {part.kind.cure}"


def _bound(
    survey: ReclaimSurvey, row: int, floor: Floor, settings: ReclaimSettings, limits: DiskLimits
) -> Iterator[Finding]:
    tables = survey.tables.tables
    facts = tables.devices[row]
    if facts.limit_bytes is None or facts.total_bytes is None:
        return
    active = Bytes(sum(part.bytes for part in floor.parts if part.kind is FloorKind.ACTIVE))
    rate = written_per_second(tables, row)
    delays = settings.delays(facts.total_bytes, survey.took, rate)
    above = most_above_ceiling(active, rate, delays)
    room = room_below_fence(facts, above, limits)
    end = f"the fence ({_fence(limits)})" if room is not None else "the end of the volume"
    left = facts.total_bytes - facts.limit_bytes - above if room is None else room
    how = (
        f"{floor.device} may rise {human_bytes(above)} above its ceiling before space is freed: active segments of "
        f"{human_bytes(active)}, and {human_span(delays.total)} at {human_bytes(round(rate))}/s or more, as in the "
        f"last hour (cycle {delays.cycle:g} s and up to {delays.jitter:g} s of jitter, survey {delays.survey:.1f} s, "
        f"trims {delays.trims:.1f} s, retention check {delays.retention_check:g} s, delete delay "
        f"{delays.delete_delay:g} s)"
    )
    if left > 0:
        bearable = human_bytes(int((left + above - active) / delays.total))
        yield reclaim_finding(
            Weight.FINE, f"{how}; then {human_bytes(left)} are left to {end}, enough for {bearable}/s"
        )
        return
    yield reclaim_finding(
        Weight.WARNING,
        f"{how}, beyond {end}: reclaim may be too late. Lower {keys.RETENTION_PERCENT.name}, or "
        "log.retention.check.interval.ms (with a restart of the broker), which is most of the delay",
    )


def _first_cycle(survey: ReclaimSurvey, row: int, log_dirs: str, *, is_applied: bool) -> Iterator[Finding]:
    planned = survey.plan.devices[row]
    outcome = _OUTCOMES.get(planned.outcome)
    if not planned.taken_segments:
        if outcome is not None:
            weight = Weight.FINE if planned.outcome is DeviceOutcome.UNDER_CEILING else Weight.NOTE
            yield reclaim_finding(weight, f"{log_dirs}: {outcome}")
        return
    rest = f"; {outcome}" if outcome is not None else ""
    excess = human_bytes(planned.excess_bytes)
    yield reclaim_finding(
        Weight.WARNING if is_applied else Weight.NOTE,
        f"{log_dirs}: {excess} over its ceiling, deletions in progress not counted: the first cycle "
        f"{'deletes' if is_applied else 'would delete'} {counted(planned.taken_segments, 'segment')}, "
        f"{human_bytes(planned.taken_bytes)}{rest}",
    )
    topics = _by_topic(planned_trims(survey, survey.volumes[row].device))
    now_ms = survey.tables.tables.devices[row].now_ms
    for topic in topics[:_SHOWN_TOPICS]:
        yield reclaim_finding(Weight.NOTE, topic.sentence(now_ms))
    if len(topics) > _SHOWN_TOPICS:
        yield reclaim_finding(
            Weight.NOTE,
            f"… and {counted(len(topics) - _SHOWN_TOPICS, 'topic')} more; all of it: brimline reclaim --config …",
        )


def _would_be_held(survey: ReclaimSurvey, row: int, log_dirs: str, rules: HoldRules) -> Iterator[Finding]:
    wanted, total = survey.plan.devices[row].wanted_bytes, survey.tables.tables.devices[row].total_bytes
    percent = rules.settings_percent
    if percent is not None and total is not None and wanted * 100 > total * percent:
        yield reclaim_finding(
            Weight.NOTE,
            f"{log_dirs}: {human_bytes(wanted)} would go over several cycles, more than {percent} % of the volume "
            f"({keys.RECLAIM_HOLD_PERCENT.name}): new settings are held until brimline reclaim --apply, for "
            f"{human_span(rules.seconds)}, or to the fence",
        )


@dataclass(slots=True, kw_only=True)
class _TopicLoss:
    name: str
    partitions: int = 0
    segments: int = 0
    bytes: int = 0
    oldest_ms: int = -1
    newest_ms: int = -1

    def add(self, trim: PlannedTrim) -> None:
        self.partitions += 1
        self.segments += trim.segments.count
        self.bytes += trim.allocated_bytes
        self.oldest_ms = trim.oldest_ms if self.oldest_ms < 0 else min(self.oldest_ms, trim.oldest_ms)
        self.newest_ms = max(self.newest_ms, trim.newest_ms)

    def sentence(self, now_ms: int) -> str:
        oldest, newest = (human_span(max(now_ms - age, 0) / 1000) for age in (self.oldest_ms, self.newest_ms))
        ages = oldest if oldest == newest else f"{oldest} to {newest}"
        return (
            f"{self.name}: {human_bytes(self.bytes)} in {counted(self.segments, 'segment')} of "
            f"{counted(self.partitions, 'partition')}, records {ages} old"
        )


def _by_topic(trims: Sequence[PlannedTrim]) -> list[_TopicLoss]:
    """The largest loss first."""
    topics: dict[str, _TopicLoss] = {}
    for trim in trims:
        topics.setdefault(trim.partition.topic, _TopicLoss(name=trim.partition.topic)).add(trim)
    return sorted(topics.values(), key=lambda topic: (-topic.bytes, topic.name))


def _some(names: Sequence[str], noun: str) -> str:
    shown = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    return f"{counted(len(names), noun)} ({shown})"
