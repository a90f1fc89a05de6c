"""An entry as a document: what stands between a line's sequence number and its checksum.

A plan may name ten thousand trims: they are rows, with the names of their columns before them, and whatever repeats
(topics, log dirs, reasons) is a position in a list of its own. A row takes about 90 bytes however many segments it has.

Texts may hold names that others gave, such as consumer groups', which may be long and many: they are cut short here. So
no name makes the ledger large.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar
from uuid import UUID

from brimline.act.ledger.entries import (
    Answered,
    BallastEntry,
    CameBack,
    CordonEntry,
    CycleEnded,
    CycleId,
    Entry,
    GivenUp,
    Paused,
    Plan,
    Requested,
    Resumed,
    ShedEntry,
)

TRIM_COLUMNS = (
    "topic",
    "partition",
    "logDir",
    "logStart",
    "target",
    "firstBaseOffset",
    "lastBaseOffset",
    "segments",
    "allocatedBytes",
    "oldestMs",
    "newestMs",
    "reason",
)
REQUEST_COLUMNS = ("number", "leader", "logStart", "presentBytes")
ANSWER_COLUMNS = ("number", "lowWatermark", "error")
FREED_COLUMNS = ("number", "freedBytes")
GIVEN_UP_COLUMNS = ("number", "why", "freedBytes")

LONGEST_TEXT = 500

Value = TypeVar("Value")


def topic_id_text(topic_id: UUID | None) -> str | None:
    """As Kafka's own tools write it."""
    return None if topic_id is None else urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def document_of(entry: Entry) -> dict[str, object]:
    """The entry's own members, its kind first."""
    match entry:
        case Plan():
            return {"kind": "plan", "cycle": entry.cycle, **_plan_document(entry)}
        case Requested():
            requested = [(trim.number, trim.leader, trim.log_start, trim.present_bytes) for trim in entry.trims]
            return _with_rows("request", entry.cycle, REQUEST_COLUMNS, requested)
        case Answered():
            answered = [(trim.number, trim.low_watermark, trim.error and bounded(trim.error)) for trim in entry.trims]
            return _with_rows("answer", entry.cycle, ANSWER_COLUMNS, answered)
        case CameBack():
            freed = [(trim.number, trim.freed_bytes) for trim in entry.trims]
            return _with_rows("came-back", entry.cycle, FREED_COLUMNS, freed)
        case GivenUp():
            given_up = [(trim.number, bounded(trim.why), trim.freed_bytes) for trim in entry.trims]
            return _with_rows(entry.act.value, entry.cycle, GIVEN_UP_COLUMNS, given_up)
        case CycleEnded():
            figures = {"done": entry.done, "abandoned": entry.abandoned, "freedBytes": entry.freed_bytes}
            return {"kind": "ended", "cycle": entry.cycle, **figures}
        case BallastEntry():
            return {
                "kind": entry.act.value,
                "path": entry.path,
                "device": entry.device,
                "size": entry.size,
                "usableBytes": entry.usable_bytes,
                "why": bounded(entry.why),
                "late": entry.was_late,
            }
        case CordonEntry():
            return {"kind": entry.act.value, "logDir": entry.log_dir, "why": bounded(entry.why)}
        case ShedEntry():
            return {"kind": entry.act.value, **_shed_document(entry)}
        case Paused() | Resumed():
            kind = "paused" if isinstance(entry, Paused) else "resumed"
            return {"kind": kind, "by": bounded(entry.by), "reason": bounded(entry.reason)}


def _shed_document(entry: ShedEntry) -> dict[str, object]:
    return {
        "topic": entry.partition.topic,
        "partition": entry.partition.partition,
        "follower": entry.follower,
        "logDir": entry.log_dir,
        "before": list(entry.before),
        "size": entry.size,
        "why": bounded(entry.why),
    }


def bounded(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _passed_over(plan: Plan) -> dict[str, dict[str, list[int]]]:
    """Reason → topic → partitions."""
    found: dict[str, dict[str, list[int]]] = {}
    for each in plan.passed_over:
        found.setdefault(bounded(each.why), {}).setdefault(each.partition.topic, []).append(each.partition.partition)
    return found


def _plan_document(plan: Plan) -> dict[str, object]:
    topics = _Positions((trim.partition.topic, trim.topic_id) for trim in plan.trims)
    log_dirs = _Positions(plan.log_dirs)
    reasons = _Positions(trim.reason for trim in plan.trims)
    rows = [
        [
            topics.of((trim.partition.topic, trim.topic_id)),
            trim.partition.partition,
            log_dirs.of(trim.log_dir),
            trim.log_start,
            trim.target,
            trim.segments.first,
            trim.segments.last,
            trim.segments.count,
            trim.allocated_bytes,
            trim.oldest_ms,
            trim.newest_ms,
            reasons.of(trim.reason),
        ]
        for trim in plan.trims
    ]
    return {
        "device": plan.device,
        "logDirs": list(plan.log_dirs),
        "totalBytes": plan.total_bytes,
        "usedBytes": plan.used_bytes,
        "ceilingPercent": plan.ceiling_percent,
        "excessBytes": plan.excess_bytes,
        "goingBytes": plan.going_bytes,
        "passedOver": _passed_over(plan),
        "by": bounded(plan.by),
        "topics": [[topic, topic_id_text(topic_id)] for topic, topic_id in topics.values],
        "reasons": [bounded(reason) for reason in reasons.values],
        "columns": list(TRIM_COLUMNS),
        "trims": rows,
    }


def _with_rows(
    kind: str, cycle: CycleId, columns: tuple[str, ...], rows: Sequence[Sequence[object]]
) -> dict[str, object]:
    return {"kind": kind, "cycle": cycle, "columns": list(columns), "trims": rows}


class _Positions(Generic[Value]):
    """Distinct values in the order of their first mention."""

    def __init__(self, values: Iterable[Value]) -> None:
        self.values = list(dict.fromkeys(values))
        self._positions = {value: position for position, value in enumerate(self.values)}

    def of(self, value: Value) -> int:
        return self._positions[value]
