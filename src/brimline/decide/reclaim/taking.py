"""How much of each log is taken: what the rules allow of it, and the oldest of that until its device's excess is gone.

Whatever a rule allows or forbids is a run of segments from the log's head or to its end, so a log is described by a few
numbers of segments, each counted from the head: up to there it is going, up to there it may be taken, and so on.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from brimline.decide.reclaim import kernel
from brimline.decide.reclaim.device import DeviceColumns
from brimline.decide.reclaim.rules import GoingRuns, TopicColumns, beyond_bytes, going_runs
from brimline.model import Bytes
from brimline.model.reclaim import DeviceFacts, ReclaimPolicy, Views
from brimline.model.reclaim_plan import DeviceOutcome, Going, ReclaimReason
from brimline.model.scan import BoolColumn, FolderKind, Int64Column, UInt8Column

_OF_FOLDER = np.full(len(FolderKind), ReclaimReason.NOT_A_LOG, dtype=np.uint8)
_OF_FOLDER[FolderKind.FUTURE] = ReclaimReason.FUTURE_FOLDER
_OF_FOLDER[FolderKind.DELETE] = ReclaimReason.GOING_DELETE_FOLDER
_OF_FOLDER[FolderKind.STRAY] = ReclaimReason.STRAY_FOLDER
_OF_FOLDER[FolderKind.METADATA_LOG] = ReclaimReason.METADATA_LOG


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRuns:
    """From a log's head: going, then removable, then kept by the brakes, one after the other."""

    columns: DeviceColumns
    standing: UInt8Column
    """``ReclaimReason`` of each log: ``CANDIDATE``, or why it is left out."""
    going: GoingRuns
    removable: Int64Column
    """From where going ends to here everything may be taken."""
    old_enough: Int64Column
    """From the one before to here ``min_retention_bytes`` keeps them."""
    stable: Int64Column
    """From the one before to here ``min_retention_ms`` keeps them."""
    below_watermark: Int64Column
    """From the one before to here an open transaction keeps them."""
    closed: Int64Column
    """From the one before to here they end above the high watermark; what follows is active."""
    key: Int64Column
    """``kernel.monotone`` of every segment."""
    name_rank: Int64Column
    """Each log's topic's place among all names."""
    local_retention_bytes: Int64Column

    @property
    def is_current(self) -> BoolColumn:
        return np.equal(self.columns.logs.kind, FolderKind.CURRENT)


def runs_of(columns: DeviceColumns, topics: TopicColumns, *, yields: bool = False) -> LogRuns:
    """``yields``: without the minimum of age, since the device is down to its last reserve."""
    key, spares = columns.age_keys(), columns.of_policy(_spares_transactions)
    standing = _standing(columns, topics)
    going = going_runs(columns, topics)
    closed = np.maximum(columns.closed, going.until)
    below_watermark = np.maximum(columns.below_high_watermark, going.until)
    stable = below_watermark
    if np.any(spares):
        stable = np.where(spares, np.clip(columns.stable, going.until, below_watermark), below_watermark)
    old_enough = np.clip(stable if yields else _old_enough(columns, key), going.until, stable)
    beyond_minimum = np.where(standing == ReclaimReason.CANDIDATE, _beyond_minimum(columns), 0)
    return LogRuns(
        columns=columns,
        standing=standing,
        going=going,
        removable=np.clip(beyond_minimum, going.until, old_enough),
        old_enough=old_enough,
        stable=stable,
        below_watermark=below_watermark,
        closed=closed,
        key=key,
        name_rank=topics.name_rank[columns.logs.topic],
        local_retention_bytes=_local_retention_bytes(columns, topics, going),
    )


def _standing(columns: DeviceColumns, topics: TopicColumns) -> UInt8Column:
    logs, spares = columns.logs, columns.of_policy(_spares_transactions)
    protection = _protection(columns, topics)
    offsets_known = (logs.log_start_offset >= 0) & (logs.high_watermark >= 0)
    if np.any(spares):
        offsets_known &= (logs.last_stable_offset >= 0) | np.equal(spares, False)  # noqa: FBT003  ~ of one bool is a number
    standing = protection.copy()
    # The strongest comes last.
    for is_so, code in (
        (~offsets_known, ReclaimReason.OFFSETS_UNKNOWN),
        (logs.views != Views.AGREE, ReclaimReason.VIEWS_DISAGREE),
        (logs.is_moving, ReclaimReason.MOVING),
    ):
        standing[is_so & (protection == ReclaimReason.CANDIDATE)] = code
    return np.where(logs.kind == FolderKind.CURRENT, standing, _OF_FOLDER[logs.kind])


def _spares_transactions(policy: ReclaimPolicy) -> bool:
    return policy.spares_transactions


def _protection(columns: DeviceColumns, topics: TopicColumns) -> UInt8Column:
    """Devices mostly have one policy, and then ask once."""
    topic, codes = columns.logs.topic, [topics.protection(facts.policy) for facts in columns.devices]
    if all(each is codes[0] for each in codes):
        return codes[0][topic]
    until = columns.until.tolist()
    return np.concatenate([each[topic[a:b]] for each, a, b in zip(codes, until, until[1:], strict=False)])


def _old_enough(columns: DeviceColumns, key: Int64Column) -> Int64Column:
    minimum = columns.of_policy(lambda policy: policy.min_retention_ms)
    if not np.any(np.greater(minimum, 0)):
        return columns.closed
    now = columns.of_log([each.now_ms if each.believed_ms is None else each.believed_ms for each in columns.devices])
    return np.where(np.greater(minimum, 0), _older_than(columns, key, now - minimum), columns.closed)


def _older_than(columns: DeviceColumns, key: Int64Column, newest: kernel.Each) -> Int64Column:
    """Of every log: how many segments hold nothing that is later than this."""
    most = (np.arange(len(columns.logs), dtype=np.int64) << kernel.AGE_BITS) + np.maximum(newest, 0)
    return np.where(np.less(newest, 0), 0, np.searchsorted(key, most, side="right") - columns.begin)


def _beyond_minimum(columns: DeviceColumns) -> Int64Column:
    minimum = columns.of_policy(lambda policy: policy.min_retention_bytes)
    if not np.any(np.greater(minimum, 0)):
        return columns.closed
    return np.where(np.greater(minimum, 0), beyond_bytes(columns, minimum), columns.closed)


def _local_retention_bytes(columns: DeviceColumns, topics: TopicColumns, going: GoingRuns) -> Int64Column:
    """A tiered log's closed segments that are uploaded and not going: lower local limits would let them go."""
    logs = columns.logs
    could_go = topics.is_copying[logs.topic] & (logs.kind == FolderKind.CURRENT)
    if not could_go.any():
        return np.zeros(len(logs), dtype=np.int64)
    until = np.minimum(columns.uploaded, columns.below_high_watermark)
    return np.where(could_go, columns.allocated(going.until, np.maximum(until, going.until)), 0)


_EMPTIED_BY_BROKER = np.zeros(len(FolderKind), dtype=np.bool_)
_EMPTIED_BY_BROKER[[FolderKind.CURRENT, FolderKind.FUTURE, FolderKind.METADATA_LOG]] = True
"""Where a live broker removes its ``.deleted`` files. It does not know of a stray folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """Of one device: what is to go, what of that is going, what may be taken, and how its plan ends."""

    outcome: DeviceOutcome
    going: Going
    bytes: int | None
    removable_bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    devices: Sequence[Excess]
    taken: Int64Column
    """Of every log, after what is going: how many segments are taken."""
    held_back: Int64Column
    """After those: how many would be taken, but for the limit of a cycle."""


def taking_from(runs: LogRuns, for_reserve: int = 0) -> Taking:
    """``for_reserve``: the brakes yield, and so much is to go, which is never more than the excess."""
    columns = runs.columns
    taken, needed = (np.zeros(len(columns.logs), dtype=np.int64) for _ in range(2))
    removables = columns.by_device(columns.allocated(runs.going.until, runs.removable))
    kafkas = columns.by_device(_kafkas_bytes(columns))
    devices = []
    for facts, logs, going, removable, own in zip(
        columns.devices, columns.logs_of, _going(runs), removables, kafkas, strict=True
    ):
        over = _over(facts)
        excess = None if over is None else max(over - going.total, 0)
        if over is None or not excess:
            outcome = _idle_outcome(facts, over)
        elif for_reserve:
            taken[logs], needed[logs] = _oldest(runs, facts, logs, for_reserve, is_limited=False)
            outcome = DeviceOutcome.BRAKES_YIELD if taken[logs].any() else DeviceOutcome.FLOOR_REACHED
        else:
            wanted = _curable(facts, going, own, excess)
            taken[logs], needed[logs] = _oldest(runs, facts, logs, wanted)
            if (taken[logs] < needed[logs]).any():
                outcome = DeviceOutcome.CYCLE_LIMIT
            elif removable >= excess:
                outcome = DeviceOutcome.ENOUGH_TAKEN
            else:
                freed = int(columns.allocated(runs.going.until, runs.going.until + taken)[logs].sum())
                outcome = DeviceOutcome.NO_CURE if freed < removable else DeviceOutcome.FLOOR_REACHED
        devices.append(Excess(outcome=outcome, going=going, bytes=excess, removable_bytes=Bytes(removable)))
    return Taking(devices=devices, taken=taken, held_back=needed - taken)


def _curable(facts: DeviceFacts, going: Going, kafkas: int, excess: int) -> int:
    """The excess; or, where what is not Kafka's is above the ceiling by itself, what is beyond the fence.

    What Kafka has and may not go (fresh records, active segments, protected topics) is no reason to let the rest stay.
    """
    used, limit, fence = facts.used_bytes, facts.limit_bytes, facts.fence_bytes
    assert used is not None
    assert limit is not None
    assert fence is not None
    if not facts.policy.only_curable or used - kafkas <= limit:
        return excess
    return min(max(used - going.total - fence, 0), excess)


def _kafkas_bytes(columns: DeviceColumns) -> Int64Column:
    """Of every folder: what is not somebody else's."""
    logs = columns.logs
    return np.where(logs.kind == FolderKind.FOREIGN, 0, folder_bytes(columns) - logs.foreign_bytes)


def short_of_reserve(facts: DeviceFacts, going: Going, taken_bytes: int) -> int:
    """How much must go where a device is down to its last reserve and the brakes keep a plan from freeing it: as much
    as makes two of it. 0: the plan stands."""
    if facts.reserve_bytes is None or facts.total_bytes is None or facts.used_bytes is None:
        return 0
    left = facts.total_bytes - facts.used_bytes + going.total
    if left > facts.reserve_bytes:
        return 0
    needed = 2 * facts.reserve_bytes - left
    return needed if needed > taken_bytes else 0


def deleted_bytes(columns: DeviceColumns) -> Int64Column:
    """Of every log: the ``.deleted`` files that the broker removes."""
    return np.where(_EMPTIED_BY_BROKER[columns.logs.kind], columns.logs.deleted_bytes, 0)


def folder_bytes(columns: DeviceColumns) -> Int64Column:
    logs = columns.logs
    in_segments = columns.allocated(np.zeros_like(columns.count), columns.count)
    return in_segments + logs.deleted_bytes + logs.foreign_bytes + logs.other_bytes


def _oldest(
    runs: LogRuns, facts: DeviceFacts, logs: slice, excess: int, *, is_limited: bool = True
) -> tuple[Int64Column, Int64Column]:
    """How many segments of each of these logs are taken, and how many are needed: fewer only if the limit is in the
    way."""
    columns, start = runs.columns, runs.going.until[logs]
    rows = kernel.rows_of_ranges(columns.begin[logs] + start, runs.removable[logs] - start)
    log, sizes = columns.log_of_segment[rows] - logs.start, columns.segments.allocated_bytes[rows]
    age, rank = kernel.age_of(runs.key[rows]), _ranks(runs, logs)[log]
    is_needed = kernel.cut_oldest(age, rank, sizes, excess).reaching()
    needed = np.bincount(log[is_needed], minlength=len(start))
    if not is_limited:
        return needed, needed
    limit = _cycle_limit(facts, lambda: int(sizes[kernel.cut_oldest(age, rank, sizes, 1).reaching()].sum()))
    if limit is None or int(sizes[is_needed].sum()) <= limit:
        return needed, needed
    is_taken = kernel.cut_oldest(age, rank, sizes, limit + 1).below()
    return np.bincount(log[is_taken], minlength=len(start)), needed


def _cycle_limit(facts: DeviceFacts, oldest_bytes: Callable[[], int]) -> int | None:
    """``oldest_bytes``: of the first segment with any."""
    policy = facts.policy
    limits = [] if policy.max_bytes_per_cycle is None else [policy.max_bytes_per_cycle]
    if policy.max_percent_per_cycle is not None and facts.total_bytes is not None:
        limits.append(max(facts.total_bytes * policy.max_percent_per_cycle // 100, oldest_bytes()))
    return min(limits, default=None)


def _ranks(runs: LogRuns, logs: slice) -> Int64Column:
    """Each log's place by topic name, partition and row."""
    names, partitions = runs.name_rank[logs], runs.columns.logs.partition[logs]
    ranks = np.empty(len(names), dtype=np.int64)
    ranks[np.lexsort((partitions, names))] = np.arange(len(ranks))
    return ranks


def _going(runs: LogRuns) -> Iterator[Going]:
    columns, going = runs.columns, runs.going
    of_logs = {
        "log_start": columns.allocated(np.zeros_like(going.log_start), going.log_start),
        "retention_bytes": columns.allocated(going.log_start, going.retention_bytes),
        "retention_ms": columns.allocated(going.retention_bytes, going.retention_ms),
        "deleted_files": deleted_bytes(columns),
        "delete_folders": np.where(columns.logs.kind == FolderKind.DELETE, folder_bytes(columns), 0),
    }
    for figures in zip(*map(columns.by_device, of_logs.values()), strict=True):
        yield Going(**dict(zip(of_logs, map(Bytes, figures), strict=True)))


def _over(facts: DeviceFacts) -> int | None:
    used, limit = facts.used_bytes, facts.limit_bytes
    return None if used is None or limit is None else max(used - limit, 0)


def _idle_outcome(facts: DeviceFacts, over: int | None) -> DeviceOutcome:
    if over is None:
        return DeviceOutcome.SPACE_UNKNOWN if facts.used_bytes is None else DeviceOutcome.NO_CEILING
    return DeviceOutcome.GOING_SUFFICES if over else DeviceOutcome.UNDER_CEILING
