import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from brimline.model import KafkaError, LogDirDescription, ReplicaColumns, TopicPartition
from brimline.model.scan import LogDirScan
from brimline.observe.scan.scanner import LogDirScanner
from tests.observe.scan.log_dir_trees import du, later, make_replica
from tests.observe.scan.reconciling import Difference, Term, reconcile
from tests.observe.scan.test_scanner import rich_log_dir

HEX = "0123456789abcdef0123456789abcdef"


def description(*replicas: tuple[str, int, int, bool], error: KafkaError | None = None) -> LogDirDescription:
    """Replicas as topic, partition, size and whether they are future."""
    return LogDirDescription(
        path="/data",
        error=error,
        total_bytes=None,
        usable_bytes=None,
        is_cordoned=None,
        replicas=ReplicaColumns.of(
            topic_names=[topic for topic, _, _, _ in replicas],
            topic=np.arange(len(replicas), dtype=np.int32),
            partition=np.array([partition for _, partition, _, _ in replicas], dtype=np.int32),
            size=np.array([size for _, _, size, _ in replicas], dtype=np.int64),
            offset_lag=np.zeros(len(replicas), dtype=np.int64),
            is_future=np.array([is_future for _, _, _, is_future in replicas], dtype=np.bool_),
        ),
    )


def scan_of(root: Path) -> LogDirScan:
    return LogDirScanner(root, clock_ns=later).scan()


def before(scan: LogDirScan) -> datetime:
    return scan.observed_at - timedelta(seconds=1)


def test_every_byte_of_the_disk_has_a_name(tmp_path: Path) -> None:
    scan = scan_of(rich_log_dir(tmp_path))
    described = description(
        ("orders", 0, 15_000, False), ("orders", 1, 4000, False), ("orders", 2, 10_000, True), ("new", 0, 77, False)
    )

    found = reconcile(scan, described, before(scan))

    assert {
        (str(replica.partition), replica.is_future): (replica.difference, replica.bytes) for replica in found.replicas
    } == {
        ("orders-0", False): (Difference.NONE, 0),
        ("orders-1", False): (Difference.APPENDED, 1000),
        ("orders-2", True): (Difference.NONE, 0),
        ("elsewhere-0", False): (Difference.SYMBOLIC_LINK, 0),
        ("new-0", False): (Difference.NOT_ON_DISK, -77),
    }
    assert sum(size for _, size in found.terms) == found.allocated_bytes == du(tmp_path)
    assert found.term(Term.DESCRIBED) == 29_077
    assert found.term(Term.DIFFERENCES) == 1000 - 77
    for term in set(Term) - {Term.DESCRIBED, Term.DIFFERENCES, Term.FOLDERS}:
        assert found.term(term) > 0, term


def difference(scan: LogDirScan, described: LogDirDescription, at: datetime | None = None) -> Difference:
    (replica,) = reconcile(scan, described, at or before(scan)).replicas
    return replica.difference


def test_what_happened_between_the_two_looks(tmp_path: Path) -> None:
    make_replica(tmp_path / "orders-0", 0)
    scan = scan_of(tmp_path)
    after = scan.observed_at + timedelta(seconds=1)
    smaller, larger = description(("orders", 0, 4999, False)), description(("orders", 0, 5001, False))

    assert difference(scan, smaller) is Difference.APPENDED
    assert difference(scan, larger) is Difference.SEGMENTS_DELETED
    assert difference(scan, smaller, after) is Difference.SEGMENTS_DELETED
    assert difference(scan, larger, after) is Difference.APPENDED
    assert difference(scan, description()) is Difference.NOT_DESCRIBED
    assert difference(scan, description(error=KafkaError(56))) is Difference.LOG_DIR_OFFLINE


def test_a_preallocated_segment(tmp_path: Path) -> None:
    replica = make_replica(tmp_path / "orders-0", 0)
    os.truncate(replica / f"{0:020d}.log", 1 << 20)

    assert difference(scan_of(tmp_path), description(("orders", 0, 5000, False))) is Difference.PREALLOCATED


def test_a_replica_of_each_state_of_a_move(tmp_path: Path) -> None:
    make_replica(tmp_path / "orders-0", 0)
    make_replica(tmp_path / f"orders-0.{HEX}-future", 0, 100)
    described = description(("orders", 0, 5000, False), ("orders", 0, 10_000, True))

    found = reconcile(scan_of(tmp_path), described, datetime.now(UTC))

    assert found.differing == ()
    assert {replica.partition for replica in found.replicas} == {TopicPartition("orders", 0)}
