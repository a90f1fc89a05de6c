"""Small worlds in which everything that can collide does: few ages, few sizes, offsets close together.

A world is made from a seed. Drawing every number by itself would be many times slower, and would hardly ever find the
devices that are over their ceiling by a part of what may be taken, which are the interesting ones.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from brimline.model.quantities import Bytes
from brimline.model.reclaim import (
    CleanupRules,
    DeviceFacts,
    LogTable,
    ReclaimPolicy,
    ReclaimTables,
    SegmentTable,
    TopicFacts,
    Views,
)
from brimline.model.scan import SEGMENT_FOLDERS, FolderKind, Int64Column

Item = TypeVar("Item")

NOW_MS = 1_000
LONGEST = 2**63 - 1

KINDS = [FolderKind.CURRENT] * 60 + list(SEGMENT_FOLDERS)
VIEWS = [Views.AGREE] * 80 + list(Views)
SMALL = range(7)
MOSTLY_NONE = [0] * 20 + list(SMALL)
TIMESTAMPS = [-1, -1, 0, 1_100, 2_000, LONGEST, -(2**63), *range(980, 1_010)]
MODIFIED_NS = [-(2**60), 0, LONGEST, *(ms * 1_000_000 + 7 for ms in range(980, 1_050, 5))]
OFFSETS = [-1, 100, *range(20)]
LOG_STARTS = [0] * 90 + OFFSETS
WATERMARKS = [100] * 90 + OFFSETS
LOG_ENDS = [-1] * 20 + OFFSETS
LIMITS = [-1] * 40 + [0, 3, 8, 15, 30, LONGEST]
NAMES = [*["a", "aa", "b", "c", "payments"] * 5, "__consumer_offsets", "__remote_log_metadata"]

worlds = st.integers(0, 2**32).map(lambda seed: world(seed))


def world(seed: int) -> ReclaimTables:
    """Up to three devices, five topics and eleven logs."""
    generator = np.random.default_rng(seed)
    devices, topics = int(generator.integers(1, 4)), int(generator.integers(1, 6))
    lengths = generator.integers(0, 9, size=generator.integers(0, 12))
    logs, segments = _logs(generator, lengths, devices, topics), _segments(generator, lengths)
    held = np.bincount(np.repeat(logs.device, lengths), weights=segments.allocated_bytes, minlength=devices)
    return ReclaimTables(
        devices=[_device(generator, int(size)) for size in held.tolist()],
        topics=[_topic(generator) for _ in range(topics)],
        logs=logs,
        segments=segments,
    )


def _one(generator: np.random.Generator, pool: Sequence[Item]) -> Item:
    return pool[int(generator.integers(len(pool)))]


def _some(generator: np.random.Generator, pool: Sequence[int], length: int) -> Int64Column:
    return generator.choice(np.array(pool, dtype=np.int64), size=length)


def _device(generator: np.random.Generator, held: int) -> DeviceFacts:
    total = held * _one(generator, [1, 2, 4]) + int(generator.integers(0, 30))
    ceiling = _one(generator, [0, 5, 10, 20, 50, 70, 80, 90, 100])
    used = min(total * ceiling // 100 + _one(generator, [-5, 0, 1, 3, 5, 8, 12, 20, 30, 40, 100, 100, total]), total)
    return DeviceFacts(
        name="sda",
        total_bytes=_one(generator, [Bytes(total)] * 14 + [None]),
        usable_bytes=Bytes(total - used),
        policy=ReclaimPolicy(
            ceiling_percent=ceiling,
            min_retention_ms=_one(generator, [0] * 14 + [5, 12, 2_000, 2_000, LONGEST]),
            min_retention_bytes=_one(generator, [0] * 16 + [3, 10, LONGEST]),
            max_bytes_per_cycle=_one(generator, [None, None, None, None, 0, 5, 10]),
            protected_topics=_one(generator, [(), (), (), (), (), (), ("a",), ("pay.*", "b")]),
            future_tolerance_ms=_one(generator, [0, 100, 3_600_000]),
            max_percent_per_cycle=_one(generator, [None, None, None, 0, 5, 20]),
            max_used_percent=_one(generator, [100, 100, 95]),
            min_free_bytes=_one(generator, [0, 0, 0, 2, 40, 40]),
            yields_at_reserve=_one(generator, [False, True]),
            spares_compacted=_one(generator, [False, True]),
            spares_transactions=_one(generator, [False, True]),
            only_curable=_one(generator, [False, True, True, True]),
            spares_for_ever=_one(generator, [False, True]),
        ),
        now_ms=NOW_MS - _one(generator, [0, 0, 0, 0, 1, 7]),
    )


def _topic(generator: np.random.Generator) -> TopicFacts:
    rules = CleanupRules(
        deletes=_one(generator, [True] * 14 + [False]),
        compacts=_one(generator, [False] * 9 + [True]),
        retention_ms=_one(generator, LIMITS),
        retention_bytes=_one(generator, LIMITS),
        local_retention_ms=_one(generator, [-2, *LIMITS]),
        local_retention_bytes=_one(generator, [-2, *LIMITS]),
        is_tiered=_one(generator, [False] * 9 + [True]),
        is_copy_disabled=_one(generator, [False, True]),
        is_internal=_one(generator, [False] * 19 + [True]),
        is_for_ever=_one(generator, [False] * 14 + [True]),
    )
    return TopicFacts(name=_one(generator, NAMES), rules=_one(generator, [rules] * 19 + [None]))


def _logs(generator: np.random.Generator, lengths: Int64Column, devices: int, topics: int) -> LogTable:
    def some(pool: Sequence[int]) -> Int64Column:
        return _some(generator, pool, len(lengths))

    return LogTable(
        device=some(range(devices)).astype(np.int32),
        topic=some([-1, *list(range(topics)) * 20]).astype(np.int32),
        partition=some(range(3)).astype(np.int32),
        kind=np.where(lengths > 0, some(KINDS), some(list(FolderKind))).astype(np.uint8),
        is_moving=generator.random(len(lengths)) < 0.05,
        views=some(VIEWS).astype(np.uint8),
        segments_begin=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        log_start_offset=some(LOG_STARTS),
        high_watermark=some(WATERMARKS),
        log_end_offset=some(LOG_ENDS),
        last_stable_offset=some(WATERMARKS),
        highest_remote_offset=some(OFFSETS),
        deleted_bytes=some(MOSTLY_NONE),
        foreign_bytes=some(MOSTLY_NONE),
        other_bytes=some(SMALL),
    )


def _segments(generator: np.random.Generator, lengths: Int64Column) -> SegmentTable:
    def some(pool: Sequence[int]) -> Int64Column:
        return _some(generator, pool, int(lengths.sum()))

    base = [generator.integers(0, 3) + np.cumsum(generator.integers(1, 4, size=length)) - 1 for length in lengths]
    return SegmentTable(
        base_offset=np.concatenate([np.zeros(0, dtype=np.int64), *base]).astype(np.int64),
        log_bytes=some(SMALL),
        allocated_bytes=some(SMALL),
        newest_timestamp_ms=some(TIMESTAMPS),
        modified_ns=some(MODIFIED_NS),
    )
