"""A fleet's segments, made up: the same columns for everybody who plans, as files that are read into memory.

A device holds partitions of many topics; a tenth of the logs is trimmed in part already, some are held to
retention.bytes or retention.ms, one topic in twenty is compacted. Timestamps mostly ascend, with late and absurd ones
between.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from brimline.model.quantities import Bytes
from brimline.model.reclaim import (
    AN_HOUR_MS,
    CleanupRules,
    DeviceFacts,
    LogTable,
    ReclaimPolicy,
    ReclaimTables,
    SegmentTable,
    TopicFacts,
    Views,
)
from brimline.model.scan import FolderKind, Int64Column

NOW_MS = 1_760_000_000_000
A_DAY_MS = 24 * AN_HOUR_MS
MIN_RETENTION_MS = 2 * AN_HOUR_MS
MIN_RETENTION_BYTES = 1 << 28
CEILING_PERCENT = 70
TOPICS = 5_000
SEGMENTS_OF_A_LOG = 25
UNLIMITED = -1

SEGMENT_COLUMNS = ("base_offset", "log_bytes", "allocated_bytes", "newest_timestamp_ms", "modified_ns")
LOG_COLUMNS = ("device", "topic", "partition", "log_start_offset", "high_watermark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """``segments`` by the names of ``SEGMENT_COLUMNS``, ``logs`` by those of ``LOG_COLUMNS``."""

    segments: dict[str, Int64Column]
    segments_begin: Int64Column
    logs: dict[str, Int64Column]
    total_bytes: Int64Column
    used_bytes: Int64Column

    @property
    def bytes(self) -> int:
        columns = (*self.segments.values(), *self.logs.values(), self.segments_begin)
        return sum(column.nbytes for column in columns)

    @property
    def over_bytes(self) -> Int64Column:
        return self.used_bytes - self.total_bytes * CEILING_PERCENT // 100

    @property
    def device_numbers(self) -> Int64Column:
        return np.arange(len(self.total_bytes), dtype=np.int64)

    @property
    def log_of_segment(self) -> Int64Column:
        return np.repeat(np.arange(len(self.segments_begin) - 1), np.diff(self.segments_begin))


def make(folder: Path, segments: int, devices: int) -> None:
    generator = np.random.default_rng(61)
    logs = segments // SEGMENTS_OF_A_LOG
    begin = np.sort(generator.choice(np.arange(1, segments), size=logs - 1, replace=False))
    begin = np.concatenate(([0], begin, [segments]))
    lengths = np.diff(begin)
    log = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(segments) - begin[log]
    columns = _segments(generator, place, lengths[log])
    of_logs = _logs(generator, begin, columns["base_offset"], devices)
    held = np.bincount(of_logs["device"][log], weights=columns["allocated_bytes"], minlength=devices).astype(np.int64)
    total = held * 10 // 9
    for name, column in {
        **columns,
        **{f"log.{name}": column for name, column in of_logs.items()},
        "segments_begin": begin,
        "total_bytes": total,
        "used_bytes": held + (total - held) // 4,
    }.items():
        np.save(folder / f"{name}.npy", column.astype(np.int64))


def load(folder: Path) -> Fleet:
    def column(name: str) -> Int64Column:
        loaded: Int64Column = np.load(folder / f"{name}.npy")
        return loaded

    return Fleet(
        segments={name: column(name) for name in SEGMENT_COLUMNS},
        segments_begin=column("segments_begin"),
        logs={name: column(f"log.{name}") for name in LOG_COLUMNS},
        total_bytes=column("total_bytes"),
        used_bytes=column("used_bytes"),
    )


def retention_of_topic(topic: int) -> tuple[int, int]:
    """Milliseconds and bytes."""
    return (6 * A_DAY_MS if topic % 3 == 0 else UNLIMITED), (8 << 30 if topic % 7 == 0 else UNLIMITED)


def is_compacted(topic: int) -> bool:
    return topic % 20 == 11


def tables_of(fleet: Fleet) -> ReclaimTables:
    """For ``brimline.decide.reclaim.plan``: the same arrays, nothing is copied but what belongs to logs."""
    policy = ReclaimPolicy(
        ceiling_percent=CEILING_PERCENT, min_retention_ms=MIN_RETENTION_MS, min_retention_bytes=MIN_RETENTION_BYTES
    )
    devices = [
        DeviceFacts(
            name=str(number),
            total_bytes=Bytes(total),
            usable_bytes=Bytes(total - used),
            now_ms=NOW_MS,
            policy=policy,
        )
        for number, (total, used) in enumerate(zip(fleet.total_bytes.tolist(), fleet.used_bytes.tolist(), strict=True))
    ]
    logs = len(fleet.logs["device"])
    unknown, nothing = np.full(logs, -1, dtype=np.int64), np.zeros(logs, dtype=np.int64)
    return ReclaimTables(
        devices=devices,
        topics=[_topic(number) for number in range(TOPICS)],
        logs=LogTable(
            device=fleet.logs["device"].astype(np.int32),
            topic=fleet.logs["topic"].astype(np.int32),
            partition=fleet.logs["partition"].astype(np.int32),
            kind=np.full(logs, FolderKind.CURRENT, dtype=np.uint8),
            is_moving=np.zeros(logs, dtype=np.bool_),
            views=np.full(logs, Views.AGREE, dtype=np.uint8),
            segments_begin=fleet.segments_begin,
            log_start_offset=fleet.logs["log_start_offset"],
            high_watermark=fleet.logs["high_watermark"],
            log_end_offset=unknown,
            highest_remote_offset=unknown,
            last_stable_offset=fleet.logs["high_watermark"],
            deleted_bytes=nothing,
            foreign_bytes=nothing,
            other_bytes=nothing,
        ),
        segments=SegmentTable(**fleet.segments),
    )


def _topic(number: int) -> TopicFacts:
    milliseconds, size = retention_of_topic(number)
    rules = CleanupRules(
        deletes=not is_compacted(number),
        compacts=is_compacted(number),
        retention_ms=milliseconds,
        retention_bytes=size,
    )
    return TopicFacts(name=f"topic-{number:05d}", rules=rules)


def _segments(generator: np.random.Generator, place: Int64Column, length: Int64Column) -> dict[str, Int64Column]:
    rows = len(place)
    written = NOW_MS - (length - place) * (7 * A_DAY_MS // 50) + generator.integers(0, 7 * A_DAY_MS // 60, rows)
    newest = written.copy()
    odd = generator.random(rows)
    newest[odd < 0.02] -= 2 * A_DAY_MS
    newest[(odd >= 0.02) & (odd < 0.021)] = -1
    newest[(odd >= 0.021) & (odd < 0.022)] = 2**62
    log_bytes = generator.integers(1 << 20, 1 << 30, rows)
    return {
        "base_offset": 1_000 * place + generator.integers(0, 1_000, rows),
        "log_bytes": log_bytes,
        "allocated_bytes": (log_bytes // 4096 + 4) * 4096,
        "newest_timestamp_ms": newest,
        "modified_ns": written * 1_000_000,
    }


def _logs(
    generator: np.random.Generator, begin: Int64Column, base_offset: Int64Column, devices: int
) -> dict[str, Int64Column]:
    count = len(begin) - 1
    middle = base_offset[(begin[:-1] + begin[1:]) // 2]
    last = base_offset[begin[1:] - 1]
    chance = generator.random(count)
    return {
        "device": np.arange(count) * devices // count,
        "topic": generator.integers(0, TOPICS, count),
        "partition": np.arange(count) % 997,
        "log_start_offset": np.where(chance < 0.1, middle, base_offset[begin[:-1]]),
        "high_watermark": np.where(chance > 0.99, middle, last + 500),
    }
