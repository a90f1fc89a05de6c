"""Tables from real files in Kafka's layout, and tables that nobody must plan with."""

import os
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from brimline.decide.reclaim.plan import plan
from brimline.decide.reclaim.tables import BrokerTables, BrokerView, ScannedLogDir, broker_tables
from brimline.model import Bytes, Offset, TopicPartition
from brimline.model.reclaim import CleanupRules, DeviceFacts, ReclaimPolicy, ReclaimTables, Views
from brimline.model.reclaim_plan import ReclaimReason
from brimline.model.scan import FolderKind, LogDirScan
from brimline.observe.scan.scanner import LogDirScanner
from tests.decide.reclaim.scenarios import all_scenarios
from tests.observe.scan.log_dir_trees import later, make_replica
from tests.observe.scan.test_scanner import rich_log_dir

TOPIC_ID = UUID("e91955b8-5490-43b9-95d4-fd1f05135a54")
FOREVER = CleanupRules(retention_ms=-1)
NOW_MS = 1_700_000_000_000


def scan_of(root: Path) -> LogDirScan:
    return LogDirScanner(root, clock_ns=later).scan(timestamps=True, topic_ids=True)


def described(size: int, watermark: int = 10_000) -> BrokerView:
    return BrokerView(size=Bytes(size), topic_id=TOPIC_ID, log_start_offset=Offset(0), high_watermark=Offset(watermark))


def device(used: int, *, total: int = 10**9, ceiling: int = 100) -> DeviceFacts:
    policy = ReclaimPolicy(ceiling_percent=ceiling)
    return DeviceFacts(
        name="sda", total_bytes=Bytes(total), usable_bytes=Bytes(total - used), now_ms=NOW_MS, policy=policy
    )


@pytest.fixture
def two_log_dirs(tmp_path: Path) -> BrokerTables:
    make_replica(tmp_path / "one" / "orders-0", 0, 40, 80)
    make_replica(tmp_path / "one" / "orders-1", 10, 60)
    make_replica(tmp_path / "two" / "bills-0", 0, 20, 30, 90)
    orders = {TopicPartition("orders", 0): described(15_000), TopicPartition("orders", 1): described(10_000)}
    bills = {TopicPartition("bills", 0): described(20_000)}
    log_dirs = [
        ScannedLogDir(scan=scan_of(tmp_path / "one"), device=0, replicas=orders),
        ScannedLogDir(scan=scan_of(tmp_path / "two"), device=0, replicas=bills),
    ]
    used = sum(each.scan.allocated_bytes for each in log_dirs)
    facts = device(used, total=used, ceiling=75)
    return broker_tables(log_dirs, {"orders": FOREVER, "bills": FOREVER}, [facts])


def test_the_rows_are_the_folders_of_one_log_dir_after_the_other(two_log_dirs: BrokerTables) -> None:
    tables = two_log_dirs.tables

    names = [(tables.topic_partition(row), Path(two_log_dirs.log_dir(row)).name) for row in range(len(tables.logs))]

    assert names == [
        (None, "one"),
        (TopicPartition("orders", 0), "one"),
        (TopicPartition("orders", 1), "one"),
        (None, "two"),
        (TopicPartition("bills", 0), "two"),
    ]
    assert np.diff(tables.logs.segments_begin).tolist() == [0, 3, 2, 0, 4]
    assert tables.logs.views[[1, 2, 4]].tolist() == [Views.AGREE] * 3


def test_a_plan_over_real_files_takes_the_oldest_of_both_log_dirs(two_log_dirs: BrokerTables) -> None:
    planned = plan(two_log_dirs.tables)

    reasons = [ReclaimReason(code) for code in planned.reason.tolist()]
    taken = [position for position, reason in enumerate(reasons) if reason is ReclaimReason.TAKEN]
    rows_by_age = [5, 0, 3, 6, 7, 1]  # bills 0, orders 0, orders 10 of partition 1, bills 20, bills 30, orders 40
    assert taken == sorted(rows_by_age[: len(taken)])
    assert 0 < len(taken) < len(rows_by_age)
    assert planned.devices[0].missing_bytes == 0


def test_every_allocated_byte_is_in_some_row(tmp_path: Path) -> None:
    scan = scan_of(rich_log_dir(tmp_path))
    log_dir = ScannedLogDir(scan=scan, device=0, replicas={})

    tables = broker_tables([log_dir], {}, [device(0)]).tables

    in_logs = tables.logs.deleted_bytes + tables.logs.foreign_bytes + tables.logs.other_bytes
    assert int(in_logs.sum() + tables.segments.allocated_bytes.sum()) == scan.allocated_bytes
    assert (tables.logs.other_bytes >= 0).all()


def test_what_the_broker_does_not_describe_is_left_out(tmp_path: Path) -> None:
    make_replica(tmp_path / "orders-0", 0, 40, 80)
    log_dir = ScannedLogDir(scan=scan_of(tmp_path), device=0, replicas={})

    tables = broker_tables([log_dir], {"orders": FOREVER}, [device(10**9, ceiling=0)]).tables

    assert tables.logs.kind[1] == FolderKind.CURRENT
    assert tables.logs.views[1] == Views.NOT_DESCRIBED
    assert plan(tables).logs.standing[1] == ReclaimReason.VIEWS_DISAGREE


@pytest.mark.parametrize(
    ("log_start", "size", "views"),
    [
        pytest.param(0, 2 * 8192 - 1, Views.SEGMENTS_MISSING, id="gone above the log start"),
        pytest.param(40, 8192, Views.AGREE, id="gone below it"),
        pytest.param(40, 8191, Views.SEGMENTS_MISSING, id="more than that gone"),
        pytest.param(79, 8192, Views.AGREE, id="the log start is inside a segment"),
        pytest.param(90, 0, Views.AGREE, id="the log start is in the active segment"),
    ],
)
def test_segments_below_the_log_start_may_be_gone_already(
    tmp_path: Path, log_start: int, size: int, views: Views
) -> None:
    make_replica(tmp_path / "orders-0", 0, 40, 80, log_bytes=8192)
    told = replace(described(size), log_start_offset=Offset(log_start))
    log_dir = ScannedLogDir(scan=scan_of(tmp_path), device=0, replicas={TopicPartition("orders", 0): told})

    tables = broker_tables([log_dir], {"orders": FOREVER}, [device(0)]).tables

    assert tables.logs.views[1] == views


def test_a_replica_with_a_copy_in_the_making_is_moving(tmp_path: Path) -> None:
    make_replica(tmp_path / "one" / "orders-0", 0, 40)
    make_replica(tmp_path / "one" / "orders-1", 0, 40)
    make_replica(tmp_path / "two" / f"orders-0.{'0' * 32}-future", 0)
    log_dirs = [ScannedLogDir(scan=scan_of(tmp_path / each), device=0, replicas={}) for each in ("one", "two")]

    tables = broker_tables(log_dirs, {}, [device(0)]).tables

    assert [str(tables.topic_partition(row)) for row in np.flatnonzero(tables.logs.is_moving).tolist()] == ["orders-0"]


def test_a_topic_nobody_described_is_unknown(tmp_path: Path) -> None:
    make_replica(tmp_path / "orders-0", 0, 40)
    replicas = {TopicPartition("orders", 0): described(10_000)}
    log_dir = ScannedLogDir(scan=scan_of(tmp_path), device=0, replicas=replicas)

    tables = broker_tables([log_dir], {}, [device(10**9, ceiling=0)]).tables

    assert plan(tables).logs.standing[1] == ReclaimReason.TOPIC_UNKNOWN


def test_a_preallocated_active_segment_counts_what_was_written(tmp_path: Path) -> None:
    folder = make_replica(tmp_path / "orders-0", 0, 40, log_bytes=8192)
    os.truncate(folder / f"{40:020d}.log", 1 << 30)
    replicas = {TopicPartition("orders", 0): described(8192 + 100)}
    log_dir = ScannedLogDir(scan=scan_of(tmp_path), device=0, replicas=replicas)

    tables = broker_tables([log_dir], {"orders": FOREVER}, [device(0)]).tables

    assert tables.segments.log_bytes.tolist() == [8192, 100]


TABLES = next(each.tables for each in all_scenarios() if each.name == "over-the-ceiling")


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        pytest.param(
            replace(TABLES, logs=replace(TABLES.logs, device=np.array([0, 1], dtype=np.int32))),
            "device that is not there",
            id="a device too many",
        ),
        pytest.param(
            replace(TABLES, logs=replace(TABLES.logs, segments_begin=np.array([0, 9, 8]))),
            "do not follow one another",
            id="ranges out of order",
        ),
        pytest.param(
            replace(TABLES, segments=replace(TABLES.segments, base_offset=np.array([0, 10, 10, 30, 0, 10, 20, 30]))),
            "do not ascend",
            id="a base offset twice",
        ),
        pytest.param(
            replace(TABLES, segments=replace(TABLES.segments, allocated_bytes=np.full(8, -1))),
            "is negative",
            id="a negative size",
        ),
    ],
)
def test_tables_out_of_order_are_refused(tables: ReclaimTables, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        plan(tables)
