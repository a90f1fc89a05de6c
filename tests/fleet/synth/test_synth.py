"""A made-up fleet: the same to the byte when asked again, and as consistent as a real one."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from brimline.decide.reclaim.plan import plan
from brimline.fleet.synth.spec import FleetSpec
from brimline.fleet.synth.synth import WrittenFleet, synthesise
from brimline.landing.place import LandingPlace, PlaceFailed
from brimline.landing.reader import Snapshot
from brimline.landing.schema import LOGS, SEGMENTS, TOPICS, VOLUMES
from brimline.landing.tables import reclaim_tables
from brimline.model.scan import FolderKind

UNTIL_MS = 1_760_000_400_000
SPEC = FleetSpec(until_ms=UNTIL_MS, clusters=2, brokers=6, replicas=60, segments=8, days=3, every_minutes=360)


def written_to(folder: Path, spec: FleetSpec = SPEC, processes: int = 1) -> WrittenFleet:
    return synthesise(spec, str(folder), lambda _: None, processes=processes)


def files_of(folder: Path) -> Mapping[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landing")
    written_to(folder)
    return folder


@pytest.fixture(scope="module")
def snapshots(landing: Path) -> list[Snapshot]:
    place = LandingPlace(str(landing))
    return [Snapshot((landing / name).read_bytes()) for name in place.names()]


@pytest.fixture(scope="module")
def newest(snapshots: list[Snapshot]) -> list[Snapshot]:
    return [snapshot for snapshot in snapshots if snapshot.header.sections[SEGMENTS].rows]


def test_the_same_specification_is_the_same_files_however_many_processes_write(landing: Path, tmp_path: Path) -> None:
    written_to(tmp_path, processes=2)
    assert files_of(tmp_path) == files_of(landing)


def test_another_seed_is_another_fleet(landing: Path, tmp_path: Path) -> None:
    spec = FleetSpec(until_ms=UNTIL_MS, seed=1, clusters=1, brokers=1, replicas=10, days=0)
    written_to(tmp_path, spec)
    assert not files_of(tmp_path).keys() & files_of(landing).keys()


def test_what_was_written_is_counted(tmp_path: Path) -> None:
    told: list[WrittenFleet] = []
    spec = FleetSpec(until_ms=UNTIL_MS, clusters=1, brokers=3, replicas=20, days=1, every_minutes=480)
    together = synthesise(spec, str(tmp_path), told.append, processes=1)
    files = files_of(tmp_path)
    assert [each.brokers for each in told] == [1, 2, 3]
    assert told[-1] == together
    assert together.snapshots == len(files)
    assert together.bytes == sum(map(len, files.values()))


def test_every_broker_has_one_snapshot_with_segments_and_it_is_its_newest(snapshots: list[Snapshot]) -> None:
    taken = defaultdict(list)
    for snapshot in snapshots:
        header = snapshot.header
        taken[header.cluster_id, header.broker_id].append((header.taken_at_ms, header.sections[SEGMENTS].rows > 0))
    assert len(taken) == SPEC.brokers
    for of_broker in taken.values():
        assert [has_segments for _, has_segments in sorted(of_broker)] == [False] * (len(of_broker) - 1) + [True]
        assert max(of_broker)[0] <= UNTIL_MS


def test_the_fleet_is_about_as_large_as_asked(newest: list[Snapshot]) -> None:
    segments = sum(snapshot.header.sections[SEGMENTS].rows for snapshot in newest)
    logs = sum(snapshot.header.sections[LOGS].rows for snapshot in newest)
    assert SPEC.brokers * SPEC.replicas * 0.7 < logs < SPEC.brokers * SPEC.replicas * 1.2
    assert SPEC.segments * 0.6 < segments / logs < SPEC.segments * 1.4


def test_replicas_of_a_partition_tell_the_same_offsets(newest: list[Snapshot]) -> None:
    """Brokers are looked at within a minute of each other, so where they differ the later one has more."""
    told = defaultdict(list)
    for snapshot in newest:
        for topic, row in current_replicas(snapshot):
            told[snapshot.header.cluster_id, topic, row["partition"]].append((snapshot.header.taken_at_ms, row))
    assert max(len(replicas) for replicas in told.values()) == 3
    for replicas in told.values():
        in_time = [row for _, row in sorted(replicas, key=lambda each: each[0])]
        watermarks = [row["high_watermark"] for row in in_time]
        assert watermarks == sorted(watermarks)
        assert len([row for row in in_time if row["is_leader"]]) <= 1


def test_segments_of_replicas_begin_at_the_same_offsets(newest: list[Snapshot]) -> None:
    bases = defaultdict(list)
    for snapshot in newest:
        segments = snapshot.read(SEGMENTS).to_pydict()
        by_log = defaultdict(list)
        for log, base in zip(segments["log"], segments["base_offset"], strict=True):
            by_log[log].append(base)
        for topic, row in current_replicas(snapshot):
            bases[snapshot.header.cluster_id, topic, row["partition"]].append(by_log[row["log"]])
    for replicas in bases.values():
        first, *others = replicas
        for other in others:
            # A retention pass, or a roll, may lie between two looks.
            low, high = max(first[0], other[0]), min(first[-1], other[-1])
            assert [base for base in first if low <= base <= high] == [base for base in other if low <= base <= high]


def current_replicas(snapshot: Snapshot) -> list[tuple[str, dict[str, int]]]:
    topics: list[str] = snapshot.read(TOPICS).column("topic").to_pylist()
    rows = [{**row, "log": number} for number, row in enumerate(snapshot.read(LOGS).to_pylist())]
    return [(topics[row["topic"]], row) for row in rows if row["kind"] == FolderKind.CURRENT]


def test_a_device_uses_at_least_what_its_logs_hold(newest: list[Snapshot]) -> None:
    for snapshot in newest:
        tables = reclaim_tables(snapshot)
        counts = np.diff(tables.logs.segments_begin)
        log = np.repeat(np.arange(len(tables.logs)), counts)
        held = np.bincount(tables.logs.device[log], tables.segments.allocated_bytes, len(tables.devices))
        for device, in_logs in zip(tables.devices, held, strict=True):
            assert device.used_bytes is None or in_logs <= device.used_bytes


def test_some_device_must_give_up_segments_and_one_is_not_readable(newest: list[Snapshot]) -> None:
    outcomes = [device.outcome.label for snapshot in newest for device in plan(reclaim_tables(snapshot)).devices]
    assert "space-unknown" in outcomes
    assert "under-ceiling" in outcomes


def test_every_kind_of_topic_is_there(newest: list[Snapshot]) -> None:
    topics = pa.concat_tables([snapshot.read(TOPICS) for snapshot in newest]).to_pylist()
    assert any(topic["is_tiered"] for topic in topics)
    assert any(topic["compacts"] for topic in topics)
    assert any(topic["is_internal"] for topic in topics)
    assert any(topic["retention_bytes"] > 0 for topic in topics)
    assert any(topic["retention_ms"] > 0 and not topic["is_tiered"] for topic in topics)
    assert any(topic["retention_ms"] < 0 and topic["retention_bytes"] < 0 for topic in topics)


def test_history_leads_up_to_the_newest_snapshot(snapshots: list[Snapshot]) -> None:
    """Between two looks, six hours apart, no readable volume changes by more than a fifth of its size at once."""
    used = defaultdict(list)
    for snapshot in sorted(snapshots, key=lambda each: each.header.taken_at_ms):
        for row in snapshot.read(VOLUMES).to_pylist():
            if row["total_bytes"] is not None:
                share = (row["total_bytes"] - row["usable_bytes"]) / row["total_bytes"]
                header = snapshot.header
                used[header.cluster_id, header.broker_id, row["log_dir"], row["total_bytes"]].append(share)
    assert max(len(shares) for shares in used.values()) > 8
    for shares in used.values():
        assert np.abs(np.diff(shares)).max(initial=0) < 0.2


def test_a_wrong_place_is_told_before_anything_is_made() -> None:
    with pytest.raises(PlaceFailed):
        synthesise(SPEC, "nosuch://place", lambda _: None)


def test_kafkas_own_topics_hold_a_small_part_of_the_fleet(newest: list[Snapshot]) -> None:
    held: dict[bool, int] = defaultdict(int)
    for snapshot in newest:
        names = snapshot.read(TOPICS).column("topic").to_pylist()
        logs = snapshot.read(LOGS)
        for topic, size in zip(logs.column("topic").to_pylist(), logs.column("size_bytes").to_pylist(), strict=True):
            held[topic >= 0 and names[topic].startswith("__")] += size or 0

    assert 0 < held[True] < held[False] / 10
