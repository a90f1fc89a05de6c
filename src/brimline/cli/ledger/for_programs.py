"""``brimline ledger`` for programs.

``--output csv``: one row per trim, RFC 4180, the header always. Unknown is empty, never 0.
``--output json``: all that the ledger tells, one object, nothing left out.
"""

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TextIO

from brimline.act.ledger.entries import BallastEntry, CordonEntry, ShedEntry
from brimline.act.ledger.files import LedgerFiles
from brimline.act.ledger.state import CycleRecord, TrimPhase, TrimRecord
from brimline.act.ledger.story import Act, Story
from brimline.act.ledger.writing import topic_id_text
from brimline.model.times import time_text

RANGE_COLUMNS = ("log_start", "target", "segments", "first_base_offset", "last_base_offset", "allocated_bytes")
"""What goes of a log."""
COLUMNS = (
    "cycle",
    "begun_at",
    "device",
    "by",
    "topic",
    "partition",
    "topic_id",
    "log_dir",
    *RANGE_COLUMNS,
    "oldest",
    "newest",
    "reason",
    "state",
    "requests",
    "requested_at",
    "low_watermark",
    "error",
    "freed_bytes",
    "why",
    "ended_at",
)


def write_ledger_csv(story: Story, out: TextIO) -> None:
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for cycle in story.cycles:
        writer.writerows(_rows(cycle))


def _rows(cycle: CycleRecord) -> Iterator[tuple[object, ...]]:
    plan = cycle.plan
    for trim in cycle.trims:
        planned = trim.planned
        yield (
            plan.cycle,
            time_text(cycle.begun_at),
            plan.device,
            plan.by,
            planned.partition.topic,
            planned.partition.partition,
            topic_id_text(planned.topic_id),
            planned.log_dir,
            planned.log_start,
            planned.target,
            planned.segments.count,
            planned.segments.first,
            planned.segments.last,
            planned.allocated_bytes,
            moment_text(planned.oldest_ms),
            moment_text(planned.newest_ms),
            planned.reason,
            trim.phase.value,
            trim.requests,
            None if trim.requested_at is None else time_text(trim.requested_at),
            trim.low_watermark,
            trim.error,
            trim.freed_bytes,
            trim.why,
            None if trim.ended_at is None else time_text(trim.ended_at),
        )


_FORMAT, _VERSION = "brimline.ledger", 1


def write_ledger_json(story: Story, files: LedgerFiles, out: TextIO) -> None:
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "broker": files.node_id,
        "path": str(files.current),
        "cycles": [_cycle(cycle) for cycle in story.cycles],
        "acts": [_act(chapter) for chapter in story.chapters if isinstance(chapter, Act)],
        "damage": [{"where": damage.where, "what": damage.what} for damage in story.damage],
    }
    json.dump(document, out, ensure_ascii=False, indent=1)
    out.write("\n")


def moment_text(milliseconds: int) -> str | None:
    """``None`` for what is unknown, or is no date: a producer may write any number as a timestamp."""
    try:
        return None if milliseconds < 0 else time_text(datetime.fromtimestamp(milliseconds / 1000, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def _cycle(cycle: CycleRecord) -> dict[str, object]:
    plan = cycle.plan
    return {
        "cycle": plan.cycle,
        "device": plan.device,
        "logDirs": list(plan.log_dirs),
        "by": plan.by,
        "begunAt": time_text(cycle.begun_at),
        "endedAt": None if cycle.ended_at is None else time_text(cycle.ended_at),
        "totalBytes": plan.total_bytes,
        "usedBytes": plan.used_bytes,
        "ceilingPercent": plan.ceiling_percent,
        "excessBytes": plan.excess_bytes,
        "goingBytes": plan.going_bytes,
        "plannedBytes": plan.planned_bytes,
        "freedBytes": cycle.freed_bytes,
        "done": cycle.count(TrimPhase.DONE),
        "abandoned": cycle.count(TrimPhase.ABANDONED),
        "withdrawn": cycle.count(TrimPhase.WITHDRAWN),
        "underWay": cycle.count(TrimPhase.PLANNED, TrimPhase.REQUESTED),
        "trims": [_trim(trim) for trim in cycle.trims],
        "passedOver": [
            {"topic": each.partition.topic, "partition": each.partition.partition, "why": each.why}
            for each in plan.passed_over
        ],
    }


def _trim(trim: TrimRecord) -> dict[str, object]:
    planned = trim.planned
    return {
        "topic": planned.partition.topic,
        "partition": planned.partition.partition,
        "topicId": topic_id_text(planned.topic_id),
        "logDir": planned.log_dir,
        "logStart": planned.log_start,
        "target": planned.target,
        "segments": planned.segments.count,
        "firstBaseOffset": planned.segments.first,
        "lastBaseOffset": planned.segments.last,
        "allocatedBytes": planned.allocated_bytes,
        "oldest": moment_text(planned.oldest_ms),
        "newest": moment_text(planned.newest_ms),
        "reason": planned.reason,
        "state": trim.phase.value,
        "byOthers": trim.was_done_by_others,
        "requests": trim.requests,
        "requestedAt": None if trim.requested_at is None else time_text(trim.requested_at),
        "lowWatermark": trim.low_watermark,
        "error": trim.error,
        "presentBytes": trim.present_bytes,
        "freedBytes": trim.freed_bytes,
        "why": trim.why,
        "endedAt": None if trim.ended_at is None else time_text(trim.ended_at),
    }


def _act(act: Act) -> dict[str, object]:
    at = time_text(act.at)
    if isinstance(act.entry, BallastEntry):
        return {
            "at": at,
            "act": act.entry.act.value,
            "path": act.entry.path,
            "device": act.entry.device,
            "size": act.entry.size,
            "usableBytes": act.entry.usable_bytes,
            "why": act.entry.why,
            "late": act.entry.was_late,
        }
    if isinstance(act.entry, CordonEntry):
        return {"at": at, "act": act.entry.act.value, "logDir": act.entry.log_dir, "why": act.entry.why}
    if isinstance(act.entry, ShedEntry):
        where = {"topic": act.entry.partition.topic, "partition": act.entry.partition.partition}
        whose = {"follower": act.entry.follower, "logDir": act.entry.log_dir, "size": act.entry.size}
        assignment = {"before": list(act.entry.before), "left": list(act.entry.left)}
        return {"at": at, "act": act.entry.act.value, **where, **whose, **assignment, "why": act.entry.why}
    return {"at": at, "act": type(act.entry).__name__.lower(), "by": act.entry.by, "reason": act.entry.reason}
