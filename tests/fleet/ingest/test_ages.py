"""The edges of the buckets, and timestamps that are none."""

import numpy as np
import pytest

from brimline.fleet.ingest.file import AGES_DAYS, age_columns
from brimline.model import Bytes
from brimline.model.reclaim import (
    CleanupRules,
    DeviceFacts,
    LogTable,
    ReclaimPolicy,
    ReclaimTables,
    SegmentTable,
    TopicFacts,
)

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
LARGEST = 2**63 - 1


def tables(newest_ms: list[int], modified_ms: int = NOW_MS) -> ReclaimTables:
    """One log with these segments."""
    many = len(newest_ms)
    device = DeviceFacts(name="d", total_bytes=Bytes(1), usable_bytes=Bytes(1), now_ms=NOW_MS, policy=ReclaimPolicy())
    unknown = np.array([-1], dtype=np.int64)
    none = np.zeros(1, dtype=np.int64)
    logs = LogTable(
        device=np.zeros(1, dtype=np.int32),
        topic=np.zeros(1, dtype=np.int32),
        partition=np.zeros(1, dtype=np.int32),
        kind=np.ones(1, dtype=np.uint8),
        is_moving=np.zeros(1, dtype=np.bool_),
        views=np.zeros(1, dtype=np.uint8),
        segments_begin=np.array([0, many], dtype=np.int64),
        log_start_offset=unknown,
        high_watermark=unknown,
        log_end_offset=unknown,
        highest_remote_offset=unknown,
        last_stable_offset=unknown,
        deleted_bytes=none,
        foreign_bytes=none,
        other_bytes=none,
    )
    segments = SegmentTable(
        base_offset=np.arange(many, dtype=np.int64),
        log_bytes=np.full(many, 7, dtype=np.int64),
        allocated_bytes=np.full(many, 8, dtype=np.int64),
        newest_timestamp_ms=np.array(newest_ms, dtype=np.int64),
        modified_ns=np.full(many, modified_ms * 1_000_000, dtype=np.int64),
    )
    return ReclaimTables(
        devices=(device,), topics=(TopicFacts(name="t", rules=CleanupRules()),), logs=logs, segments=segments
    )


@pytest.mark.parametrize(
    ("age_ms", "bucket"),
    [
        (0, 0),
        (DAY_MS - 1, 0),
        (DAY_MS, 1),
        (8 * DAY_MS, 7),
        (14 * DAY_MS, 14),
        (4000 * DAY_MS, 365),
        (-3_600_000, 0),
        (-3_600_001, None),
    ],
)
def test_a_segment_is_in_the_bucket_that_its_age_has_reached(age_ms: int, bucket: int | None) -> None:
    found = age_columns(tables([NOW_MS - age_ms]), NOW_MS)

    assert found["min_age_days"].to_pylist() == [bucket]


def test_without_a_timestamp_the_files_last_change_counts() -> None:
    found = age_columns(tables([-1], modified_ms=NOW_MS - 3 * DAY_MS), NOW_MS)

    assert found["min_age_days"].to_pylist() == [3]


def test_any_64_bit_number_may_be_a_timestamp() -> None:
    found = age_columns(tables([LARGEST, 0]), NOW_MS)

    assert found["min_age_days"].to_pylist() == [AGES_DAYS[-1], None]


def test_a_bucket_has_the_sums_of_its_segments() -> None:
    found = age_columns(tables([NOW_MS, NOW_MS, NOW_MS - 2 * DAY_MS]), NOW_MS)

    assert {name: column.to_pylist() for name, column in found.items()} == {
        "topic": ["t", "t"],
        "min_age_days": [0, 2],
        "segments": [2, 1],
        "log_bytes": [14, 7],
        "allocated_bytes": [16, 8],
    }


def test_no_segments_no_rows() -> None:
    assert {name: len(column) for name, column in age_columns(tables([]), NOW_MS).items()} == dict.fromkeys(
        ("topic", "min_age_days", "segments", "log_bytes", "allocated_bytes"), 0
    )
