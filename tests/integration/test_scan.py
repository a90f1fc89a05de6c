"""The scan on real brokers: to the byte what DescribeLogDirs and ``du`` say, and unmoved by a broker that is busy."""

import os
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from kafka import TopicPartition as ClientPartition
from kafka import TopicPartitionReplica

from brimline import BrokerLogDirs
from brimline.model import Bytes, TopicPartition
from brimline.model.scan import FileKind, FolderKind, LogDirScan, TimestampSource
from brimline.observe.scan.scanner import LogDirScanner
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import (
    CALM,
    THROTTLED_FOR_GOOD,
    TIERED,
    admin,
    create_topic,
    move_log_dirs_slowly,
    produce,
)
from tests.integration.kafka_clients import kafka_admin, kafka_consumer, kafka_producer, meanwhile
from tests.integration.segment_files import segment_files
from tests.integration.test_remote_info import is_settled
from tests.observe.scan.log_dir_trees import assert_same, du
from tests.observe.scan.reconciling import Difference, Reconciliation, Term, reconcile
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

VOLUME = VolumeSpec(size=Bytes(256 << 20))
SMALL_SEGMENTS = {"segment.bytes": str(1 << 20)}
# Nothing may happen by itself while two looks are compared.
QUIET = {
    "log.retention.check.interval.ms": "600000",
    "log.cleaner.enable": "false",
    "log.initial.task.delay.ms": "600000",
    "log.segment.delete.delay.ms": "600000",
}
BUSY = {
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.segment.delete.delay.ms": "200",
    "log.cleaner.backoff.ms": "100",
}
MANY_LOOKS = 50


# A loop-mounted ext4 volume needs root. What holds there holds in memory, too
FILESYSTEMS = ["ext4", pytest.param("tmpfs", marks=pytest.mark.long)] if os.geteuid() == 0 else ["tmpfs"]


@pytest.fixture(scope="module", params=FILESYSTEMS)
def quiet(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    volume = VolumeSpec(size=Bytes(256 << 20), filesystem=request.param)
    with Sandbox(SandboxSpec(volumes=(volume,), properties=QUIET)) as running:
        create_topic(running, "orders", partitions=3, config=SMALL_SEGMENTS)
        create_topic(running, "a.b-1.x-delete")
        produce(running, "orders", 3.5, partition=0)
        produce(running, "orders", 0.2, partition=1)
        yield running


def outside(sandbox: Sandbox, at: int = 0, broker: int = 1) -> Path:
    return sandbox.outside(sandbox.broker(broker).log_dirs[at])


def described(sandbox: Sandbox, broker: int = 1) -> BrokerLogDirs:
    with admin(sandbox) as client:
        return next(answer for each, answer in client.describe_log_dirs().items() if each == broker)


def reconciled(sandbox: Sandbox, at: int = 0) -> tuple[LogDirScan, Reconciliation]:
    answer = described(sandbox)
    scan = LogDirScanner(outside(sandbox, at)).scan()
    log_dir = answer.log_dirs[str(sandbox.broker(1).log_dirs[at])]
    return scan, reconcile(scan, log_dir, answer.observed_at)


def du_of_a_rest(sandbox: Sandbox, at: int = 0) -> tuple[LogDirScan, int]:
    """A scan between two equal answers of ``du``: even a quiet broker writes its checkpoints now and then."""
    rests: list[tuple[LogDirScan, int]] = []

    def is_a_rest() -> bool:
        before = du(outside(sandbox, at))
        rests.append((LogDirScanner(outside(sandbox, at)).scan(), before))
        return du(outside(sandbox, at)) == before

    eventually(is_a_rest, pause=0)
    return rests[-1]


def test_sizes_equal_describe_log_dirs_to_the_byte(quiet: Sandbox) -> None:
    _, found = reconciled(quiet)

    assert {str(replica.partition) for replica in found.replicas} == {
        "orders-0",
        "orders-1",
        "orders-2",
        "a.b-1.x-delete-0",
    }
    assert found.differing == ()
    assert found.term(Term.DIFFERENCES) == found.term(Term.FOREIGN) + found.term(Term.DELETE_FOLDERS) == 0
    assert found.term(Term.DESCRIBED) > 3_500_000
    assert found.term(Term.METADATA_LOG) > 0
    assert sum(size for _, size in found.terms) == found.allocated_bytes


def test_the_sum_of_the_kinds_equals_du_to_the_byte(quiet: Sandbox) -> None:
    scan, counted = du_of_a_rest(quiet)

    assert scan.allocated_bytes == counted


def test_nothing_of_a_real_broker_is_foreign(quiet: Sandbox) -> None:
    scan = LogDirScanner(outside(quiet)).scan()

    foreign = [scan.folders.names[row] for row in scan.folders.rows_of(FolderKind.FOREIGN)]
    # A fresh ext4 has a lost+found at its root, which is the log dir's parent.
    assert foreign == []
    assert scan.folders.files[:, FileKind.FOREIGN].sum() == 0
    # Four replicas and the metadata log.
    assert scan.folders.files[:, FileKind.PARTITION_METADATA].sum() == 5


def test_segments_and_their_newest_timestamps(quiet: Sandbox) -> None:
    begin_ms = int(time.time() * 1000)
    produce(quiet, "orders", 2.2, partition=2)
    end_ms = int(time.time() * 1000)

    scan = LogDirScanner(outside(quiet)).scan(timestamps=True, topic_ids=True)

    row = scan.folders.names.index("orders-2")
    rows = slice(int(scan.folders.segments_begin[row]), int(scan.folders.segments_begin[row + 1]))
    on_disk = segment_files(outside(quiet) / "orders-2")
    segments = scan.segments
    assert dict(zip(segments.base_offset[rows].tolist(), segments.log_bytes[rows].tolist(), strict=True)) == on_disk
    assert len(on_disk) >= 3
    assert segments.is_active[rows].tolist() == [False] * (len(on_disk) - 1) + [True]
    newest = segments.newest_timestamp_ms[rows].tolist()
    assert newest == sorted(newest)
    assert begin_ms <= newest[0] <= newest[-1] <= end_ms
    assert set(segments.timestamp_source[rows].tolist()[:-1]) == {TimestampSource.TIME_INDEX}
    assert scan.folders.topic_id(row) is not None


def test_a_remembering_scanner_sees_what_a_fresh_one_sees(quiet: Sandbox) -> None:
    scanner = LogDirScanner(outside(quiet), forget_after=timedelta(days=1))
    for _ in range(5):
        scanner.scan(timestamps=True, topic_ids=True)
        produce(quiet, "orders", 0.7, partition=1)

        def agrees() -> bool:
            """A checkpoint may be written between the two; then they are asked again."""
            try:
                assert_same(
                    scanner.scan(timestamps=True, topic_ids=True),
                    LogDirScanner(outside(quiet)).scan(timestamps=True, topic_ids=True),
                )
            except AssertionError:
                return False
            return True

        eventually(agrees)


@pytest.fixture(scope="module")
def changing() -> Iterator[Sandbox]:
    """What is deleted is renamed soon, and waits."""
    waits = {**BUSY, **THROTTLED_FOR_GOOD, "log.segment.delete.delay.ms": "600000"}
    with Sandbox(SandboxSpec(volumes=(VOLUME, VOLUME), properties=waits)) as running:
        yield running


def log_dir_of(sandbox: Sandbox, topic: str) -> int:
    """Which of the two."""
    (found,) = (at for at in (0, 1) if (outside(sandbox, at) / f"{topic}-0").exists())
    return found


def differences(sandbox: Sandbox, topic: str, at: int) -> list[tuple[bool, Difference]]:
    """Whether it is a future replica, and the difference, of each replica of this topic in a log dir."""
    _, found = reconciled(sandbox, at)
    return [(each.is_future, each.difference) for each in found.replicas if each.partition.topic == topic]


def test_deleted_records_and_a_deleted_topic_are_named(changing: Sandbox) -> None:
    """The segments are renamed and wait; the folder is renamed and waits. Neither is the broker's size any more."""
    create_topic(changing, "trimmed", config={**SMALL_SEGMENTS, "file.delete.delay.ms": "600000"})
    create_topic(changing, "gone", config={"file.delete.delay.ms": "600000"})
    produce(changing, "trimmed", 4.2)
    produce(changing, "gone", 1)
    trimmed, gone = log_dir_of(changing, "trimmed"), log_dir_of(changing, "gone")
    with kafka_admin(changing.admin_servers) as client:
        client.delete_records({ClientPartition("trimmed", 0): 2500})
        client.delete_topics(["gone"])
    eventually(lambda: any(outside(changing, gone).glob("gone-0.*-delete")))
    eventually(lambda: any(outside(changing, trimmed).glob("trimmed-0/*.log.deleted")))
    eventually(lambda: differences(changing, "trimmed", trimmed) == [(False, Difference.NONE)])

    _, of_trimmed = reconciled(changing, trimmed)
    scan, of_gone = reconciled(changing, gone)
    at_rest, counted = du_of_a_rest(changing, trimmed)

    (row,) = scan.folders.rows_of(FolderKind.DELETE)
    (size,) = (each.described for each in of_trimmed.replicas if each.partition.topic == "trimmed")
    assert scan.folders.topic_partition(row) == TopicPartition("gone", 0)
    assert of_trimmed.term(Term.DELETED_SEGMENTS) > 1_000_000
    assert of_gone.term(Term.DELETE_FOLDERS) > 1_000_000
    assert 0 < (size or 0) < 4_000_000
    assert at_rest.allocated_bytes == counted


def test_a_future_replica(changing: Sandbox) -> None:
    move_log_dirs_slowly(changing)
    create_topic(changing, "moving")
    produce(changing, "moving", 6)
    source = log_dir_of(changing, "moving")
    target = changing.broker(1).log_dirs[1 - source]
    with kafka_admin(changing.admin_servers) as client:
        client.alter_replica_log_dirs({TopicPartitionReplica("moving", 0, 1): str(target)})
    eventually(lambda: any(changing.outside(target).glob("moving-0.*-future")))
    eventually(lambda: differences(changing, "moving", 1 - source) == [(True, Difference.NONE)])

    scan = LogDirScanner(outside(changing, 1 - source)).scan()

    assert differences(changing, "moving", source) == [(False, Difference.NONE)]
    assert len(list(scan.folders.rows_of(FolderKind.FUTURE))) == 1


def test_a_preallocated_segment_is_the_one_difference(changing: Sandbox) -> None:
    create_topic(changing, "preallocated", config={**SMALL_SEGMENTS, "preallocate": "true"})
    produce(changing, "preallocated", 1.5)

    scan, found = reconciled(changing, log_dir_of(changing, "preallocated"))

    (replica,) = (each for each in found.replicas if each.partition.topic == "preallocated")
    assert replica.difference is Difference.PREALLOCATED
    assert replica.bytes > 0
    in_folder = scan.segments.folder == scan.folders.names.index("preallocated-0")
    assert scan.segments.is_preallocated[in_folder].tolist() == [False, True]


@pytest.fixture(scope="module")
def tiered() -> Iterator[Sandbox]:
    """Broker 1 leads what broker 2 follows."""
    with Sandbox(SandboxSpec(brokers=2, volumes=(VOLUME,), tiered=True, properties=CALM)) as running:
        create_topic(running, "tiered", config=TIERED, assignment={0: [1, 2]})
        create_topic(running, "plain", assignment={0: [1]})
        produce(running, "tiered", 4.3)
        for broker in (1, 2):
            eventually(partial(is_settled, running, "tiered", 0, at_most=3, broker=broker))
        yield running


@pytest.mark.long
def test_the_cache_of_remote_indexes_is_seen(tiered: Sandbox) -> None:
    with kafka_consumer(tiered.admin_servers, group_id=None) as consumer:
        consumer.assign([ClientPartition("tiered", 0)])
        consumer.seek(ClientPartition("tiered", 0), 0)
        # What only the remote store has: the broker fetches its indexes first.
        eventually(lambda: len(consumer.poll(timeout_ms=500)) > 0)

    scan, counted = du_of_a_rest(tiered)

    assert scan.allocated_of(FolderKind.REMOTE_INDEX_CACHE, FileKind.REMOTE_INDEX) > 0
    assert scan.folders.files[:, FileKind.FOREIGN].sum() == 0
    assert scan.allocated_bytes == counted


@pytest.mark.long
def test_a_busy_broker_never_upsets_a_scan() -> None:
    """Tiny segments, tiny retention, compaction, topics that come and go: in a tight loop, and right when it rests."""
    churn = {**SMALL_SEGMENTS, "retention.bytes": str(2 << 20), "file.delete.delay.ms": "200"}
    compacted = {"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.001"}
    seen: set[FileKind] = set()
    folders_seen: set[FolderKind] = set()
    with Sandbox(SandboxSpec(volumes=(VOLUME,), properties=BUSY)) as sandbox:
        create_topic(sandbox, "churn", partitions=4, config=churn)
        create_topic(sandbox, "compacted", config=compacted)
        scanner = LogDirScanner(outside(sandbox), forget_after=timedelta(days=1))
        looks = 0

        def has_seen_everything(worker: threading.Thread) -> bool:
            nonlocal looks
            scan = scanner.scan(timestamps=True, topic_ids=True)
            assert scan.allocated_bytes > 0
            seen.update(kind for kind in FileKind if scan.folders.files[:, kind].any())
            folders_seen.update(FolderKind(kind) for kind in set(scan.folders.kind.tolist()))
            looks += 1
            assert worker.is_alive(), "nobody keeps the broker busy"
            return looks > MANY_LOOKS and FileKind.DELETED in seen and FolderKind.DELETE in folders_seen

        with meanwhile(partial(keep_busy, sandbox)) as worker:
            eventually(lambda: has_seen_everything(worker), pause=0)
        eventually(lambda: not any(outside(sandbox).glob("*-delete")))
        # Only now does no folder go while its files are listed
        eventually(lambda: not any(outside(sandbox).glob("*/*.deleted")))
        eventually(lambda: scanner.scan().allocated_bytes == du(outside(sandbox)))

    assert FileKind.FOREIGN not in seen
    assert FolderKind.FOREIGN not in folders_seen


def keep_busy(sandbox: Sandbox, stop: threading.Event) -> None:
    with (
        kafka_producer(sandbox.admin_servers, linger_ms=5, max_block_ms=PATIENCE_SECONDS * 1000) as producer,
        kafka_admin(sandbox.admin_servers) as client,
    ):
        for number in count():
            for _ in range(300):
                producer.send("churn", b"x" * 1000, partition=number % 4)
            for key in range(50):
                producer.send("compacted", b"y" * 1000, key=str(key).encode())
            if number % 20 == 0:
                create_topic(sandbox, f"passing-{number}", partitions=2)
                client.delete_topics([f"passing-{number}"])
            if stop.wait(0.02):
                return
