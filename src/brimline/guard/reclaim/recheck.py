"""Is a plan still true? What was decided before is held against a survey of now, trim by trim.

**Invariant.** What comes out is in both: in the plan as it was made, and in the plan that the same rules make of the
world as it is now. So nothing goes that was not decided, nothing goes that need not go any more (because somebody else
trimmed, or the disk has been emptied), and nothing goes that has got a reason to stay. A trim is carried out to the
planned offset or to a lower one, never beyond; everything that is left out or cut short has its reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from brimline.act.ledger.entries import PlannedTrim, SegmentRange
from brimline.act.plan_file import FiledPlan
from brimline.decide.reclaim.summary import newest_ms
from brimline.guard.reclaim.survey import ReclaimSurvey
from brimline.model import BadInput, BrokerId, Bytes, Offset, TopicPartition
from brimline.model.reclaim import Views
from brimline.model.reclaim_plan import GOING, ReclaimReason
from brimline.model.scan import FolderKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """``down_to`` is ``None`` where nothing of the trim is carried out, else the lower offset that it is cut to."""

    trim: PlannedTrim
    why: str
    down_to: Offset | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StillTrue:
    """``trims`` by the device as it is called now; of a device without any there is no entry."""

    trims: Mapping[str, tuple[PlannedTrim, ...]]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """Segment rows from ``first`` up to, not including, ``until`` are what goes of a log now."""

    trim: PlannedTrim
    log: int
    first: int
    until: int

    def target(self, survey: ReclaimSurvey) -> Offset:
        return Offset(int(survey.tables.tables.segments.base_offset[self.until]))


def refuse_other_cluster(plan: FiledPlan, broker: BrokerId, cluster_id: str) -> None:
    """Raises ``BadInput`` for a plan that was made for another broker."""
    if (plan.cluster_id, plan.broker) != (cluster_id, broker):
        raise BadInput(
            f"the plan is for broker {plan.broker} of cluster {plan.cluster_id}; this is broker {broker} of "
            f"{cluster_id}"
        )


def recheck(trims: Sequence[PlannedTrim], survey: ReclaimSurvey) -> StillTrue:
    """``survey`` is one of now, made with the ceiling that counts for the plan."""
    logs = current_logs(survey, {trim.partition for trim in trims})
    heads: dict[int, list[_Head]] = {}
    left_out: list[LeftOut] = []
    for trim in trims:
        found = _judge(trim, logs.get((trim.log_dir, trim.partition)), survey)
        if isinstance(found, str):
            left_out.append(LeftOut(trim=trim, why=found))
            continue
        heads.setdefault(int(survey.tables.tables.logs.device[found.log]), []).append(found)
        if found.target(survey) < trim.target:
            why = ReclaimReason(int(survey.plan.reason[found.until])).sentence
            left_out.append(LeftOut(trim=trim, why=why, down_to=found.target(survey)))
    kept = {survey.volumes[device].device: _as_now(some, survey, device) for device, some in heads.items()}
    return StillTrue(trims=kept, left_out=tuple(left_out))


def current_logs(survey: ReclaimSurvey, wanted: set[TopicPartition]) -> Mapping[tuple[str, TopicPartition], int]:
    tables = survey.tables.tables
    rows = np.flatnonzero(tables.logs.kind == FolderKind.CURRENT).tolist()
    named = ((row, tables.topic_partition(row)) for row in rows)
    return {
        (survey.tables.log_dir(row), partition): row
        for row, partition in named
        if partition is not None and partition in wanted
    }


def _judge(trim: PlannedTrim, log: int | None, survey: ReclaimSurvey) -> _Head | str:
    """What of the trim is to be done now, or why it is left out."""
    if trim.log_dir not in survey.tables.log_dirs:
        return f"{trim.log_dir} is not among the log dirs of this broker"
    if log is None:
        return f"it is not in {trim.log_dir} any more"
    topic_id = survey.topic_id(trim.partition.topic)
    if topic_id is None:
        return f"the cluster does not tell the id of topic {trim.partition.topic}"
    if topic_id != trim.topic_id:
        return f"the topic {trim.partition.topic} was deleted and recreated since"
    tables, plan = survey.tables.tables, survey.plan
    log_start = int(tables.logs.log_start_offset[log])
    if log_start >= trim.target:
        return f"its log start is already {log_start}: nothing to do"
    if log_start < trim.log_start:
        return f"its log start is back at {log_start}: more would be deleted than was planned (from {trim.log_start})"
    begin, end = int(tables.logs.segments_begin[log]), int(tables.logs.segments_begin[log + 1])
    if trim.target not in tables.segments.base_offset[begin:end]:
        return f"none of its segments begins at {trim.target} now"
    taken_to = int(plan.logs.new_log_start_offset[log])
    if taken_to < 0:
        return _why_nothing(survey, log)
    first = int(plan.logs.first_taken[log])
    until = first + int(np.searchsorted(tables.segments.base_offset[first:end], min(taken_to, trim.target)))
    if until == first:
        return ReclaimReason.GOING_LOG_START.sentence
    return _Head(trim=trim, log=log, first=first, until=until)


def _as_now(heads: Sequence[_Head], survey: ReclaimSurvey, device: int) -> tuple[PlannedTrim, ...]:
    tables = survey.tables.tables
    base, allocated = tables.segments.base_offset, tables.segments.allocated_bytes
    oldest = newest_ms(tables, device, np.array([head.first for head in heads])).tolist()
    newest = newest_ms(tables, device, np.array([head.until - 1 for head in heads])).tolist()
    return tuple(
        replace(
            head.trim,
            log_start=Offset(int(tables.logs.log_start_offset[head.log])),
            target=head.target(survey),
            segments=SegmentRange(
                first=Offset(int(base[head.first])),
                last=Offset(int(base[head.until - 1])),
                count=head.until - head.first,
            ),
            allocated_bytes=Bytes(int(allocated[head.first : head.until].sum())),
            oldest_ms=oldest[number],
            newest_ms=newest[number],
        )
        for number, head in enumerate(heads)
    )


def _why_nothing(survey: ReclaimSurvey, log: int) -> str:
    standing = ReclaimReason(int(survey.plan.logs.standing[log]))
    if standing is ReclaimReason.VIEWS_DISAGREE:
        return Views(int(survey.tables.tables.logs.views[log])).sentence
    if standing is not ReclaimReason.CANDIDATE:
        return standing.sentence
    tables = survey.tables.tables
    begin, end = int(tables.logs.segments_begin[log]), int(tables.logs.segments_begin[log + 1])
    reasons = [ReclaimReason(int(code)) for code in survey.plan.reason[begin:end]]
    return next((reason for reason in reasons if reason not in GOING), reasons[0]).sentence
