"""The floor: every used byte is going, removable, or in a part of the floor that has a name."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from brimline.decide.reclaim.floor import Floor, FloorKind, floor_of
from brimline.decide.reclaim.plan import plan
from brimline.decide.reclaim.tables import BrokerView, ScannedLogDir, broker_tables
from brimline.model import Bytes, Offset, TopicPartition
from brimline.model.reclaim import CleanupRules, DeviceFacts, ReclaimPolicy, ReclaimTables
from brimline.model.scan import FileKind, FolderKind, LogDirScan
from tests.decide.reclaim.scenarios import tables_of
from tests.decide.reclaim.test_tables import NOW_MS, TOPIC_ID, scan_of
from tests.decide.reclaim.worlds import worlds
from tests.observe.scan.test_scanner import rich_log_dir

OUTSIDE = 1_000


def world_of(*, ceiling: int = 80, **policy: object) -> ReclaimTables:
    """1,000 bytes of which 910 are used: 700 by logs, 10 by small files, 200 from outside."""

    def segments(*sizes: int) -> list[dict[str, int]]:
        return [{"baseOffset": 10 * row, "bytes": size, "timestampMs": 10 * row} for row, size in enumerate(sizes)]

    return tables_of(
        {
            "devices": [
                {
                    "name": "/data",
                    "totalBytes": 1000,
                    "usableBytes": 90,
                    "nowMs": 1000,
                    "ceilingPercent": ceiling,
                    **policy,
                }
            ],
            "topics": [
                {"name": "plain"},
                {"name": "keyed", "cleanupPolicy": ["compact"]},
                {"name": "far", "isTiered": True},
            ],
            "logs": [
                {
                    "device": "/data",
                    "topic": "plain",
                    "partition": 0,
                    "segments": segments(50, 60, 40),
                    "otherBytes": 10,
                },
                {"device": "/data", "topic": "keyed", "partition": 0, "segments": segments(120, 30)},
                {"device": "/data", "topic": "keyed", "partition": 1, "segments": segments(110, 10)},
                {
                    "device": "/data",
                    "topic": "far",
                    "partition": 0,
                    "segments": segments(150, 90, 40),
                    "highestRemoteOffset": 9,
                },
            ],
        }
    )


def floor(tables: ReclaimTables) -> Floor:
    found = floor_of(tables, plan(tables), 0)
    assert found is not None
    return found


def test_every_part_is_named_with_its_largest_topics() -> None:
    found = floor(world_of())

    assert [(part.kind, part.bytes, part.percent) for part in found.parts] == [
        (FloorKind.TIERED, 240, 24.0),
        (FloorKind.COMPACTED, 230, 23.0),
        (FloorKind.OUTSIDE, 200, 20.0),
        (FloorKind.ACTIVE, 120, 12.0),
        (FloorKind.SMALL_FILES, 10, 1.0),
    ]
    assert [(share.topic, share.bytes) for share in found.parts[3].topics] == [
        ("far", 40),
        ("keyed", 40),
        ("plain", 40),
    ]
    assert [(share.topic, share.bytes) for share in found.parts[1].topics] == [("keyed", 230)]
    assert (found.removable_bytes, found.local_retention_bytes) == (110, 150)


@pytest.mark.parametrize(("ceiling", "is_impossible"), [(79, True), (80, False), (100, False)])
def test_a_ceiling_below_the_floor_is_impossible(ceiling: int, *, is_impossible: bool) -> None:
    found = floor(world_of(ceiling=ceiling))

    assert found.percent == 80.0
    assert found.is_impossible is is_impossible


def test_the_sentence() -> None:
    assert floor(world_of(ceiling=75)).sentence == (
        "80.0 % of /data cannot be removed, mostly tiered topics (24.0 %), compacted topics (23.0 %), files outside "
        "the log dirs, and file system overhead (20.0 %): a ceiling of 75 % is impossible"
    )


def test_minimum_retention_is_part_of_the_floor() -> None:
    found = floor(world_of(minRetentionBytes=100))

    assert next(part.bytes for part in found.parts if part.kind is FloorKind.MIN_RETENTION) == 60


def test_without_a_ceiling_the_floor_is_still_known() -> None:
    found = floor(world_of(ceiling=100))

    assert found.limit_bytes is None
    assert "ceiling" not in found.sentence


def test_of_a_device_that_cannot_be_read_nothing_is_said() -> None:
    tables = world_of()
    tables = replace(tables, devices=[replace(tables.devices[0], usable_bytes=None)])

    assert floor_of(tables, plan(tables), 0) is None


@given(worlds)
@settings(max_examples=150)
def test_every_used_byte_is_going_removable_or_floor(tables: ReclaimTables) -> None:
    planned = plan(tables)
    for number, facts in enumerate(tables.devices):
        found = floor_of(tables, planned, number)
        if found is None or facts.used_bytes is None:
            continue
        outside = sum(part.bytes for part in found.parts if part.kind is FloorKind.OUTSIDE)
        known = found.going_bytes + found.removable_bytes + found.bytes - outside
        assert outside == max(facts.used_bytes - known, 0)
        assert known == bytes_of_device(tables, number)


def bytes_of_device(tables: ReclaimTables, device: int) -> int:
    logs, total = tables.logs, 0
    for row in range(len(logs)):
        if logs.device[row] == device:
            begin, end = logs.segments_begin[row : row + 2]
            total += int(tables.segments.allocated_bytes[begin:end].sum())
            total += int(logs.deleted_bytes[row] + logs.foreign_bytes[row] + logs.other_bytes[row])
    return total


def test_the_floor_of_a_log_dir_with_one_of_everything(tmp_path: Path) -> None:
    scan = scan_of(rich_log_dir(tmp_path))
    used = scan.allocated_bytes + OUTSIDE
    facts = DeviceFacts(
        name="/data",
        total_bytes=Bytes(2 * used),
        usable_bytes=Bytes(used),
        now_ms=NOW_MS,
        policy=ReclaimPolicy(ceiling_percent=40),
    )
    tables = broker_tables([described(scan)], {"orders": CleanupRules(retention_ms=-1)}, [facts]).tables

    found = floor(tables)

    assert {part.kind for part in found.parts} == {
        FloorKind.ACTIVE,
        FloorKind.FUTURE,
        FloorKind.STRAY,
        FloorKind.METADATA,
        FloorKind.REMOTE_INDEX_CACHE,
        FloorKind.SMALL_FILES,
        FloorKind.FOREIGN,
        FloorKind.OUTSIDE,
    }
    assert found.bytes + found.going_bytes + found.removable_bytes == used
    assert next(part.bytes for part in found.parts if part.kind is FloorKind.OUTSIDE) == OUTSIDE


def test_the_ballast_has_a_name_of_its_own(tmp_path: Path) -> None:
    scan = scan_of(rich_log_dir(tmp_path))
    facts = DeviceFacts(
        name="/data",
        total_bytes=Bytes(2 * scan.allocated_bytes),
        usable_bytes=Bytes(scan.allocated_bytes),
        now_ms=NOW_MS,
        policy=ReclaimPolicy(ceiling_percent=40),
    )
    tables = broker_tables([described(scan)], {"orders": CleanupRules(retention_ms=-1)}, [facts]).tables
    ballast = scan.allocated_of(FolderKind.LOG_DIR, FileKind.BALLAST)

    without, found = floor(tables), floor_of(tables, plan(tables), 0, ballast)

    assert found is not None
    assert found.bytes == without.bytes
    assert ballast > 0
    assert bytes_of(found, FloorKind.BALLAST) == ballast
    assert bytes_of(found, FloorKind.SMALL_FILES) == bytes_of(without, FloorKind.SMALL_FILES) - ballast
    assert bytes_of(found, FloorKind.FOREIGN) == bytes_of(without, FloorKind.FOREIGN)


def bytes_of(floor: Floor, kind: FloorKind) -> int:
    return next(part.bytes for part in floor.parts if part.kind is kind)


def described(scan: LogDirScan) -> ScannedLogDir:
    view = BrokerView(size=Bytes(15_000), topic_id=TOPIC_ID, log_start_offset=Offset(0), high_watermark=Offset(10_000))
    replicas = {TopicPartition("orders", 0): view, TopicPartition("orders", 1): view}
    return ScannedLogDir(scan=scan, device=0, replicas=replicas)
