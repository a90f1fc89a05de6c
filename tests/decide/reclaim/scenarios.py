"""The scenarios of ``tests/scenarios/reclaim``: a file per rule, with small tables and the plan that must come of them.

Any planner can be held against them: they name rows by what they are, and a plan by labels and numbers. What a file
leaves out has the defaults below. ``bytes`` of a segment are its allocated bytes, and its log's unless ``logBytes``
says otherwise; a segment was last written when its newest record was made unless ``modifiedMs`` says otherwise.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from brimline.model.quantities import Bytes
from brimline.model.reclaim import (
    AN_HOUR_MS,
    NO_TOPIC,
    USE_RETENTION,
    CleanupRules,
    DeviceFacts,
    LogTable,
    ReclaimPolicy,
    ReclaimTables,
    SegmentTable,
    TopicFacts,
    Views,
)
from brimline.model.scan import FolderKind

FOLDER = Path(__file__).parents[2] / "scenarios" / "reclaim"
EVERYTHING_REPLICATED = 1_000_000
NS_PER_MS = 1_000_000

Row: TypeAlias = Mapping[str, Any]
"""A JSON object as it stands in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    rule: str
    tables: ReclaimTables
    devices: tuple[Row, ...]
    """Expected figures of each device, by the names of ``figures_of``; only those that the file gives."""
    trims: tuple[Row, ...]
    """Expected rows of the logs that lose something."""
    reasons: tuple[tuple[str, ...], ...]
    """Expected labels, log by log."""


def all_scenarios() -> list[Scenario]:
    return [read_scenario(path) for path in sorted(FOLDER.glob("*.json"))]


def read_scenario(path: Path) -> Scenario:
    document = json.loads(path.read_text())
    expected = document["expected"]
    return Scenario(
        name=path.stem,
        rule=document["rule"],
        tables=tables_of(document),
        devices=tuple(expected["devices"]),
        trims=tuple(expected["trims"]),
        reasons=tuple(tuple(labels) for labels in expected["reasons"]),
    )


def tables_of(document: Row) -> ReclaimTables:
    device_rows = {device["name"]: row for row, device in enumerate(document["devices"])}
    topic_rows = {topic["name"]: row for row, topic in enumerate(document["topics"])} | {None: NO_TOPIC}
    return ReclaimTables(
        devices=tuple(_device(device) for device in document["devices"]),
        topics=tuple(_topic(topic) for topic in document["topics"]),
        logs=_logs(document["logs"], device_rows, topic_rows),
        segments=_segments([segment for log in document["logs"] for segment in log["segments"]]),
    )


def _device(row: Row) -> DeviceFacts:
    total, usable = row["totalBytes"], row["usableBytes"]
    return DeviceFacts(
        name=row["name"],
        total_bytes=None if total is None else Bytes(total),
        usable_bytes=None if usable is None else Bytes(usable),
        now_ms=row["nowMs"],
        policy=ReclaimPolicy(
            ceiling_percent=row["ceilingPercent"],
            min_retention_ms=row.get("minRetentionMs", 0),
            min_retention_bytes=row.get("minRetentionBytes", 0),
            max_bytes_per_cycle=row.get("maxBytesPerCycle"),
            protected_topics=tuple(row.get("protectedTopics", ())),
            future_tolerance_ms=row.get("futureToleranceMs", AN_HOUR_MS),
            max_percent_per_cycle=row.get("maxPercentPerCycle"),
            max_used_percent=row.get("maxUsedPercent", 100),
            min_free_bytes=row.get("minFreeBytes", 0),
            yields_at_reserve=row.get("yieldsAtReserve", False),
            spares_compacted=row.get("sparesCompacted", False),
            spares_transactions=row.get("sparesTransactions", False),
            only_curable=row.get("onlyCurable", False),
            spares_for_ever=row.get("sparesForEver", False),
        ),
    )


def _topic(row: Row) -> TopicFacts:
    policy = row.get("cleanupPolicy", ["delete"])
    rules = CleanupRules(
        deletes="delete" in policy,
        compacts="compact" in policy,
        retention_ms=row.get("retentionMs", -1),
        retention_bytes=row.get("retentionBytes", -1),
        local_retention_ms=row.get("localRetentionMs", USE_RETENTION),
        local_retention_bytes=row.get("localRetentionBytes", USE_RETENTION),
        is_tiered=row.get("isTiered", False),
        is_copy_disabled=row.get("isCopyDisabled", False),
        is_internal=row.get("isInternal", False),
        is_for_ever=row.get("isForEver", False),
    )
    return TopicFacts(name=row["name"], rules=rules if row.get("isKnown", True) else None)


def _logs(rows: list[Row], devices: Mapping[str, int], topics: Mapping[str | None, int]) -> LogTable:
    def numbers(key: str, default: int) -> list[int]:
        return [row.get(key, default) for row in rows]

    kinds = {kind.name.lower().replace("_", "-"): kind for kind in FolderKind}
    views = {view.label: view for view in Views}
    lengths = [len(row["segments"]) for row in rows]
    return LogTable(
        device=np.array([devices[row["device"]] for row in rows], dtype=np.int32),
        topic=np.array([topics[row["topic"]] for row in rows], dtype=np.int32),
        partition=np.array([row["partition"] for row in rows], dtype=np.int32),
        kind=np.array([kinds[row.get("kind", "current")] for row in rows], dtype=np.uint8),
        is_moving=np.array([row.get("isMoving", False) for row in rows], dtype=np.bool_),
        views=np.array([views[row.get("views", "agree")] for row in rows], dtype=np.uint8),
        segments_begin=np.cumsum([0, *lengths], dtype=np.int64),
        log_start_offset=np.array(numbers("logStartOffset", 0), dtype=np.int64),
        high_watermark=np.array(numbers("highWatermark", EVERYTHING_REPLICATED), dtype=np.int64),
        log_end_offset=np.array(numbers("logEndOffset", -1), dtype=np.int64),
        last_stable_offset=np.array(
            [row.get("lastStableOffset", row.get("highWatermark", EVERYTHING_REPLICATED)) for row in rows],
            dtype=np.int64,
        ),
        highest_remote_offset=np.array(numbers("highestRemoteOffset", -1), dtype=np.int64),
        deleted_bytes=np.array(numbers("deletedBytes", 0), dtype=np.int64),
        foreign_bytes=np.array(numbers("foreignBytes", 0), dtype=np.int64),
        other_bytes=np.array(numbers("otherBytes", 0), dtype=np.int64),
    )


def _segments(rows: list[Row]) -> SegmentTable:
    modified_ms = [row.get("modifiedMs", row["timestampMs"]) for row in rows]
    return SegmentTable(
        base_offset=np.array([row["baseOffset"] for row in rows], dtype=np.int64),
        log_bytes=np.array([row.get("logBytes", row["bytes"]) for row in rows], dtype=np.int64),
        allocated_bytes=np.array([row["bytes"] for row in rows], dtype=np.int64),
        newest_timestamp_ms=np.array([row["timestampMs"] for row in rows], dtype=np.int64),
        modified_ns=np.array([ms * NS_PER_MS for ms in modified_ms], dtype=np.int64),
    )
