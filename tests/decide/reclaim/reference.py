"""The rules of a reclaim plan a second time: slow, obvious, one object per segment, nothing shared with the planner but
the nouns. Kafka's retention is a loop that takes segments off a list, as the broker's is.
"""

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise

from brimline.model.reclaim import CleanupRules, DeviceFacts, ReclaimPolicy, ReclaimTables, Views
from brimline.model.reclaim_plan import ReclaimReason as Reason
from brimline.model.scan import FolderKind

INTERNAL = {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
FOLDERS = {
    FolderKind.FUTURE: Reason.FUTURE_FOLDER,
    FolderKind.DELETE: Reason.GOING_DELETE_FOLDER,
    FolderKind.STRAY: Reason.STRAY_FOLDER,
    FolderKind.METADATA_LOG: Reason.METADATA_LOG,
}


@dataclass
class Segment:
    row: int
    base: int
    size: int
    allocated: int
    timestamp: int
    modified_ms: int
    age: int = 0
    end: int | None = None
    """Where the next segment begins; of the active one the log's end, if that is known."""
    is_active: bool = False
    reason: Reason | None = None

    @property
    def broker_timestamp(self) -> int:
        return self.timestamp if self.timestamp >= 0 else self.modified_ms


@dataclass
class Log:
    row: int
    topic: str
    rules: CleanupRules | None
    partition: int
    kind: FolderKind
    is_moving: bool
    views: Views
    start: int
    watermark: int
    last_stable: int
    highest_remote: int
    other_bytes: int
    foreign_bytes: int
    deleted_bytes: int
    segments: list[Segment]
    standing: Reason = Reason.CANDIDATE
    going_bytes: int = 0
    local_retention_bytes: int = 0
    taken: list[Segment] = field(default_factory=list)


@dataclass
class Device:
    going: int = 0
    excess: int | None = None
    removable: int = 0
    taken: int = 0


@dataclass
class Reference:
    reasons: list[Reason]
    logs: list[Log]
    devices: list[Device]


def reference_plan(tables: ReclaimTables) -> Reference:
    logs = [_log(tables, row) for row in range(len(tables.logs))]
    devices = []
    for number, facts in enumerate(tables.devices):
        of_device = [log for log in logs if tables.logs.device[log.row] == number]
        devices.append(_plan_device(facts, of_device))
    by_row = {segment.row: segment.reason for log in logs for segment in log.segments}
    reasons = [by_row[row] for row in range(len(tables.segments))]
    assert all(reason is not None for reason in reasons)
    return Reference(reasons=[reason for reason in reasons if reason is not None], logs=logs, devices=devices)


def _log(tables: ReclaimTables, row: int) -> Log:
    logs, columns = tables.logs, tables.segments
    segments = [
        Segment(
            row=number,
            base=int(columns.base_offset[number]),
            size=int(columns.log_bytes[number]),
            allocated=int(columns.allocated_bytes[number]),
            timestamp=int(columns.newest_timestamp_ms[number]),
            modified_ms=int(columns.modified_ns[number]) // 1_000_000,
        )
        for number in range(int(logs.segments_begin[row]), int(logs.segments_begin[row + 1]))
    ]
    for segment, following in pairwise(segments):
        segment.end = following.base
    if segments:
        segments[-1].is_active = True
        log_end = int(logs.log_end_offset[row])
        segments[-1].end = max(log_end, segments[-1].base) if log_end >= 0 else None
    topic = int(logs.topic[row])
    return Log(
        row=row,
        topic="" if topic < 0 else tables.topics[topic].name,
        rules=None if topic < 0 else tables.topics[topic].rules,
        partition=int(logs.partition[row]),
        kind=FolderKind(int(logs.kind[row])),
        is_moving=bool(logs.is_moving[row]),
        views=Views(int(logs.views[row])),
        start=int(logs.log_start_offset[row]),
        watermark=int(logs.high_watermark[row]),
        last_stable=int(logs.last_stable_offset[row]),
        highest_remote=int(logs.highest_remote_offset[row]),
        other_bytes=int(logs.other_bytes[row]),
        foreign_bytes=int(logs.foreign_bytes[row]),
        deleted_bytes=int(logs.deleted_bytes[row]),
        segments=segments,
    )


def _plan_device(facts: DeviceFacts, logs: list[Log], for_reserve: int = 0) -> Device:
    policy, now = facts.policy, facts.now_ms
    device = Device()
    candidates: list[tuple[tuple[int, str, int, int, int], Segment, Log]] = []
    for log in logs:
        _set_ages(log, now, policy.future_tolerance_ms)
        if log.kind != FolderKind.CURRENT:
            log.standing = FOLDERS.get(log.kind, Reason.NOT_A_LOG)
            for segment in log.segments:
                segment.reason = log.standing
            if log.kind == FolderKind.DELETE:
                log.going_bytes = log.foreign_bytes + _kafkas(log)
            elif log.kind in (FolderKind.FUTURE, FolderKind.METADATA_LOG):
                log.going_bytes = log.deleted_bytes
            continue
        left = _after_retention(log, now)
        log.going_bytes = log.deleted_bytes + sum(each.allocated for each in log.segments if each not in left)
        log.local_retention_bytes = _uploaded_bytes(log, left)
        log.standing = _standing(log, policy)
        for segment in left:
            reason = _kept_for(segment, log, left, policy, now)
            if reason is None:
                order = (segment.age, log.topic, log.partition, log.row, segment.base)
                candidates.append((order, segment, log))
            segment.reason = reason
    device.going = sum(log.going_bytes for log in logs)
    candidates.sort(key=lambda each: each[0])
    device.removable = sum(segment.allocated for _, segment, _ in candidates)
    foreign = _used(facts) - sum(_kafkas(log) for log in logs)
    _take(facts, device, [(segment, log) for _, segment, log in candidates], for_reserve, foreign)
    needed = _short_of_reserve(facts, device)
    if needed and not for_reserve:
        for log in logs:
            log.taken.clear()
            log.going_bytes = log.local_retention_bytes = 0
            log.standing = Reason.CANDIDATE
            for segment in log.segments:
                segment.reason = None
        no_brakes = replace(policy, min_retention_ms=0, max_bytes_per_cycle=None, max_percent_per_cycle=None)
        return _plan_device(replace(facts, policy=no_brakes), logs, needed)
    return device


def _short_of_reserve(facts: DeviceFacts, device: Device) -> int:
    policy = facts.policy
    if not policy.yields_at_reserve or facts.total_bytes is None or facts.usable_bytes is None:
        return 0
    if policy.ceiling_percent == 100:
        return 0
    reserve = min(
        policy.min_free_bytes or facts.total_bytes // 100,
        (facts.total_bytes - facts.total_bytes * policy.ceiling_percent // 100) // 2,
    )
    left = min(facts.usable_bytes, facts.total_bytes) + device.going
    if left > reserve or device.taken >= 2 * reserve - left:
        return 0
    return 2 * reserve - left


def _set_ages(log: Log, now: int, tolerance: int) -> None:
    newest = 0
    for segment in log.segments:
        believable = 0 <= segment.timestamp <= now + tolerance
        age = segment.timestamp if believable else max(0, min(segment.modified_ms, now))
        newest = max(newest, age)
        segment.age = newest


def _after_retention(log: Log, now: int) -> list[Segment]:
    left = list(log.segments)
    if log.is_moving:
        return left
    rules = log.rules or CleanupRules(deletes=False)
    copying = rules.is_tiered and not rules.is_copy_disabled

    def may_go(segment: Segment) -> bool:
        if segment.end is None or log.watermark < segment.end:
            return False
        if segment.is_active and (rules.is_tiered or segment.size == 0):
            return False
        return not copying or segment.end - 1 <= log.highest_remote

    while left and not left[0].is_active and left[0].end is not None and left[0].end <= log.start:
        left.pop(0).reason = Reason.GOING_LOG_START
    if not (rules.deletes or (copying and not rules.compacts)):
        return left
    limit_ms, limit_bytes = rules.retention_ms, rules.retention_bytes
    if copying:
        limit_ms = limit_ms if rules.local_retention_ms == -2 else rules.local_retention_ms
        limit_bytes = limit_bytes if rules.local_retention_bytes == -2 else rules.local_retention_bytes
    if limit_bytes >= 0:
        spare = sum(each.size for each in left) - limit_bytes
        while left and spare - left[0].size >= 0 and may_go(left[0]):
            spare -= left[0].size
            left.pop(0).reason = Reason.GOING_RETENTION_BYTES
    if limit_ms >= 0:
        while left and now - left[0].broker_timestamp > limit_ms and may_go(left[0]):
            left.pop(0).reason = Reason.GOING_RETENTION_MS
    return left


def _uploaded_bytes(log: Log, left: list[Segment]) -> int:
    if log.rules is None or not log.rules.is_tiered or log.rules.is_copy_disabled:
        return 0
    closed = [each for each in left if not each.is_active and each.end is not None]
    bound = min(log.watermark, log.highest_remote + 1)
    return sum(each.allocated for each in closed if each.end is not None and each.end <= bound)


def _standing(log: Log, policy: ReclaimPolicy) -> Reason:
    rules = log.rules
    is_matched = any(re.fullmatch(pattern, log.topic) for pattern in policy.protected_topics)
    if log.topic in INTERNAL or (rules and rules.is_internal):
        return Reason.INTERNAL_TOPIC
    if log.topic == "__remote_log_metadata":
        return Reason.REMOTE_LOG_METADATA
    if rules is not None and rules.compacts and not rules.deletes:
        return Reason.COMPACT_ONLY
    if rules is not None and rules.compacts and policy.spares_compacted:
        return Reason.COMPACTED
    if rules is not None and rules.is_tiered:
        return Reason.TIERED
    if rules is not None and not rules.deletes:
        return Reason.NO_CLEANUP_POLICY
    if rules is not None and rules.is_for_ever and policy.spares_for_ever:
        return Reason.FOR_EVER
    if is_matched:
        return Reason.PROTECTED_TOPIC
    if rules is None:
        return Reason.TOPIC_UNKNOWN
    if log.is_moving:
        return Reason.MOVING
    if log.views != Views.AGREE:
        return Reason.VIEWS_DISAGREE
    if log.start < 0 or log.watermark < 0 or (policy.spares_transactions and log.last_stable < 0):
        return Reason.OFFSETS_UNKNOWN
    return Reason.CANDIDATE


def _kept_for(segment: Segment, log: Log, left: list[Segment], policy: ReclaimPolicy, now: int) -> Reason | None:
    if segment.is_active:
        return Reason.ACTIVE
    if log.standing != Reason.CANDIDATE:
        return log.standing
    assert segment.end is not None
    if segment.end > log.watermark:
        return Reason.ABOVE_HIGH_WATERMARK
    if policy.spares_transactions and segment.end > log.last_stable:
        return Reason.OPEN_TRANSACTION
    if policy.min_retention_ms > 0 and now - segment.age < policy.min_retention_ms:
        return Reason.MIN_RETENTION_MS
    rest = sum(each.size for each in left if each.base > segment.base)
    if policy.min_retention_bytes > 0 and rest < policy.min_retention_bytes:
        return Reason.MIN_RETENTION_BYTES
    return None


def _kafkas(log: Log) -> int:
    if log.kind == FolderKind.FOREIGN:
        return 0
    return log.other_bytes + log.deleted_bytes + sum(each.allocated for each in log.segments)


def _take(
    facts: DeviceFacts, device: Device, candidates: list[tuple[Segment, Log]], for_reserve: int, foreign: int
) -> None:
    idle = _idle_reason(facts, device)
    limit = _limit(facts, [segment.allocated for segment, _ in candidates])
    wanted = for_reserve or device.excess or 0
    ceiling = (facts.total_bytes or 0) * facts.policy.ceiling_percent // 100
    is_cure = for_reserve > 0 or not facts.policy.only_curable or foreign <= ceiling
    if not is_cure:
        wanted = min(max(_used(facts) - device.going - _fence(facts), 0), wanted)
    is_full = False
    needed = 0
    for segment, log in candidates:
        if idle is not None:
            segment.reason = idle
        elif needed >= wanted:
            segment.reason = Reason.ENOUGH_TAKEN
        else:
            needed += segment.allocated
            is_full = is_full or (limit is not None and needed > limit)
            segment.reason = Reason.CYCLE_LIMIT if is_full else Reason.TAKEN
            if not is_full:
                device.taken += segment.allocated
                log.taken.append(segment)

    is_spared = device.taken < device.removable and not is_full
    if idle is None and not is_cure and is_spared:
        for segment, _ in candidates:
            if segment.reason is Reason.ENOUGH_TAKEN:
                segment.reason = Reason.NO_CURE


def _used(facts: DeviceFacts) -> int:
    return max((facts.total_bytes or 0) - (facts.usable_bytes or 0), 0)


def _fence(facts: DeviceFacts) -> int:
    total, policy = facts.total_bytes or 0, facts.policy
    if policy.max_used_percent == 100 and policy.min_free_bytes == 0:
        return total - total // 100
    return min(total * policy.max_used_percent // 100, max(total - policy.min_free_bytes, 0))


def _limit(facts: DeviceFacts, sizes: list[int]) -> int | None:
    policy = facts.policy
    limits = [] if policy.max_bytes_per_cycle is None else [policy.max_bytes_per_cycle]
    if policy.max_percent_per_cycle is not None:
        share = (facts.total_bytes or 0) * policy.max_percent_per_cycle // 100
        limits.append(max(share, next((size for size in sizes if size), 0)))
    return min(limits, default=None)


def _idle_reason(facts: DeviceFacts, device: Device) -> Reason | None:
    if facts.total_bytes is None or facts.usable_bytes is None:
        return Reason.SPACE_UNKNOWN
    if facts.policy.ceiling_percent == 100:
        return Reason.NO_CEILING
    used = max(facts.total_bytes - facts.usable_bytes, 0)
    over = used - facts.total_bytes * facts.policy.ceiling_percent // 100
    device.excess = max(max(over, 0) - device.going, 0)
    if over <= 0:
        return Reason.UNDER_CEILING
    return Reason.GOING_SUFFICES if device.excess == 0 else None
