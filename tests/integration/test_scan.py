"""The scan on real brokers: to the byte what DescribeLogDirs and ``du`` say, and unmoved by a broker that is busy."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartitionReplica
from kafka import TopicPartition as ClientPartition

from brimline import BrokerLogDirs
from brimline.model import Bytes, TopicPartition
from brimline.model.scan import FileKind, FolderKind, LogDirScan, TimestampSource
from brimline.model.scan_figures import Difference, OnlyLocalReason, OnlyLocalSize, Reconciliation, Term
from brimline.observe.remote_log import RemoteLogTable
from brimline.observe.scan import LogDirScanner
from brimline.observe.scan_only_local import only_local_sizes
from brimline.observe.scan_reconcile import reconcile
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.wire.remote_log_metadata import TOPIC as METADATA_TOPIC
from brimline.wire.remote_log_metadata import RemoteSegment
from tests.integration.cluster import TIERED, admin, create_topic, eventually, produce
from tests.integration.segment_files import segment_files
from tests.integration.test_remote_info import is_settled, remote_segments
from tests.observe.log_dir_trees import assert_same, du

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


@pytest.fixture(scope="module", params=["tmpfs", "ext4"])
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
    for _ in range(20):
        before = du(outside(sandbox, at))
        scan = LogDirScanner(outside(sandbox, at)).scan()
        if du(outside(sandbox, at)) == before:
            return scan, before
    raise AssertionError("the broker never rested")


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


def test_deleted_records_and_a_deleted_topic_are_named() -> None:
    """The segments are renamed and wait; the folder is renamed and waits. Neither is the broker's size any more."""
    waits = {**BUSY, "log.segment.delete.delay.ms": "600000"}
    with Sandbox(SandboxSpec(volumes=(VOLUME,), properties=waits)) as sandbox:
        create_topic(sandbox, "trimmed", config={**SMALL_SEGMENTS, "file.delete.delay.ms": "600000"})
        create_topic(sandbox, "gone", config={"file.delete.delay.ms": "600000"})
        produce(sandbox, "trimmed", 4.2)
        produce(sandbox, "gone", 1)
        client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
        client.delete_records({ClientPartition("trimmed", 0): 2500})
        client.delete_topics(["gone"])
        client.close()
        eventually(lambda: any(outside(sandbox).glob("gone-0.*-delete")))
        eventually(lambda: any(outside(sandbox).glob("trimmed-0/*.log.deleted")))
        eventually(lambda: reconciled(sandbox)[1].differing == ())

        scan, found = reconciled(sandbox)
        at_rest, counted = du_of_a_rest(sandbox)

    (row,) = scan.folders.rows_of(FolderKind.DELETE)
    assert scan.folders.topic_partition(row) == TopicPartition("gone", 0)
    assert found.differing == ()
    assert found.term(Term.DELETED_SEGMENTS) > 1_000_000
    assert found.term(Term.DELETE_FOLDERS) > 1_000_000
    assert found.term(Term.DESCRIBED) < 4_000_000
    assert at_rest.allocated_bytes == counted


def move_slowly(sandbox: Sandbox) -> None:
    slow = "replica.alter.log.dirs.io.max.bytes.per.second=1"
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    options = ("--bootstrap-server", sandbox.admin_servers, "--alter", *broker, "--add-config", slow)
    changed = sandbox.java_tool("configs", *options)
    assert changed.returncode == 0, changed.stderr


def test_a_future_replica() -> None:
    with Sandbox(SandboxSpec(volumes=(VOLUME, VOLUME), properties=QUIET)) as sandbox:
        create_topic(sandbox, "moving")
        produce(sandbox, "moving", 6)
        move_slowly(sandbox)
        source = next(at for at in (0, 1) if (outside(sandbox, at) / "moving-0").exists())
        target = sandbox.broker(1).log_dirs[1 - source]
        client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
        client.alter_replica_log_dirs({TopicPartitionReplica("moving", 0, 1): str(target)})
        client.close()
        eventually(lambda: any(sandbox.outside(target).glob("moving-0.*-future")))
        eventually(lambda: reconciled(sandbox, 1 - source)[1].differing == ())

        _, current = reconciled(sandbox, source)
        scan, future = reconciled(sandbox, 1 - source)

    assert [(replica.is_future, replica.difference) for replica in current.replicas] == [(False, Difference.NONE)]
    assert [(replica.is_future, replica.difference) for replica in future.replicas] == [(True, Difference.NONE)]
    assert len(list(scan.folders.rows_of(FolderKind.FUTURE))) == 1


def test_a_preallocated_segment_is_the_one_difference() -> None:
    with Sandbox(SandboxSpec(volumes=(VOLUME,), properties={**QUIET, "log.preallocate": "true"})) as sandbox:
        create_topic(sandbox, "orders", config=SMALL_SEGMENTS)
        produce(sandbox, "orders", 1.5)

        scan, found = reconciled(sandbox)

    (replica,) = found.replicas
    assert replica.difference is Difference.PREALLOCATED
    assert replica.bytes > 0
    in_orders = scan.segments.folder == scan.folders.names.index("orders-0")
    assert scan.segments.is_preallocated[in_orders].tolist() == [False, True]


def uploads_of(sandbox: Sandbox, scan: LogDirScan, topic: str) -> dict[tuple[UUID, int], list[RemoteSegment]]:
    """Every record of the metadata topic, by a client that knows nothing of segments."""
    topic_id = scan.folders.topic_id(scan.folders.names.index(f"{topic}-0"))
    assert topic_id is not None
    table = RemoteLogTable([(topic_id, 0)])
    consumer = KafkaConsumer(bootstrap_servers=sandbox.admin_servers, auto_offset_reset="earliest", group_id=None)
    partitions = [ClientPartition(METADATA_TOPIC, number) for number in consumer.partitions_for_topic(METADATA_TOPIC)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    while any(consumer.position(partition) < ends[partition] for partition in partitions):
        for records in consumer.poll(timeout_ms=1000).values():
            for record in records:
                table.add(record.value)
    consumer.close()
    return {key: list(segments.values()) for key, segments in table.segments.items()}


def test_only_local_sizes_on_a_leader_and_on_a_follower() -> None:
    with Sandbox(SandboxSpec(brokers=2, volumes=(VOLUME,), tiered=True)) as sandbox:
        create_topic(sandbox, "tiered", config=TIERED, assignment={0: [1, 2]})
        create_topic(sandbox, "plain", assignment={0: [1]})
        produce(sandbox, "tiered", 4.3)
        eventually(lambda: is_settled(sandbox, "tiered", 0, at_most=3))
        sizes: dict[int, OnlyLocalSize] = {}
        on_disk = {}
        for broker in (1, 2):
            scanner = LogDirScanner(outside(sandbox, broker=broker))
            uploads = uploads_of(sandbox, scanner.scan(topic_ids=True), "tiered")
            scan = scanner.scan(topic_ids=True)
            figures = {scan.folders.names[size.folder]: size for size in only_local_sizes(scan, uploads)}
            sizes[broker] = figures["tiered-0"]
            local = segment_files(outside(sandbox, broker=broker) / "tiered-0")
            remote = remote_segments(sandbox, "tiered", 0)
            on_disk[broker] = sum(size for base, size in local.items() if base not in remote)
            if broker == 1:
                assert figures["plain-0"].reason is OnlyLocalReason.NOT_GIVEN

    assert {broker: size.size for broker, size in sizes.items()} == on_disk
    assert all(size.partly_uploaded == 0 for size in sizes.values())


def test_the_cache_of_remote_indexes_is_seen() -> None:
    with Sandbox(SandboxSpec(volumes=(VOLUME,), tiered=True)) as sandbox:
        create_topic(sandbox, "tiered", config=TIERED)
        produce(sandbox, "tiered", 4.3)
        eventually(lambda: is_settled(sandbox, "tiered", 0, at_most=3))
        consumer = KafkaConsumer(bootstrap_servers=sandbox.admin_servers, group_id=None)
        consumer.assign([ClientPartition("tiered", 0)])
        consumer.seek(ClientPartition("tiered", 0), 0)
        # What only the remote store has: the broker fetches its indexes first.
        eventually(lambda: bool(consumer.poll(timeout_ms=500)))
        consumer.close()

        scan, counted = du_of_a_rest(sandbox)

    assert scan.allocated_of(FolderKind.REMOTE_INDEX_CACHE, FileKind.REMOTE_INDEX) > 0
    assert scan.folders.files[:, FileKind.FOREIGN].sum() == 0
    assert scan.allocated_bytes == counted


def keep_looking(scanner: LogDirScanner, seconds: float, see: Callable[[LogDirScan], None]) -> int:
    give_up_at, scans = time.monotonic() + seconds, 0
    while time.monotonic() < give_up_at:
        see(scanner.scan(timestamps=True, topic_ids=True))
        scans += 1
    return scans


def test_a_busy_broker_never_upsets_a_scan() -> None:
    """Tiny segments, tiny retention, compaction, topics that come and go: in a tight loop, and right when it rests."""
    churn = {**SMALL_SEGMENTS, "retention.bytes": str(2 << 20), "file.delete.delay.ms": "200"}
    compacted = {"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.001"}
    seen: set[FileKind] = set()
    folders_seen: set[FolderKind] = set()
    with Sandbox(SandboxSpec(volumes=(VOLUME,), properties=BUSY)) as sandbox:
        create_topic(sandbox, "churn", partitions=4, config=churn)
        create_topic(sandbox, "compacted", config=compacted)
        stop = threading.Event()
        worker = threading.Thread(target=_work, args=(sandbox, stop))
        worker.start()

        def see(scan: LogDirScan) -> None:
            seen.update(kind for kind in FileKind if scan.folders.files[:, kind].any())
            folders_seen.update(FolderKind(kind) for kind in set(scan.folders.kind.tolist()))
            assert scan.allocated_bytes > 0

        scanner = LogDirScanner(outside(sandbox), forget_after=timedelta(days=1))
        try:
            scans = keep_looking(scanner, 12, see)
        finally:
            stop.set()
            worker.join(60)
        eventually(lambda: not any(outside(sandbox).glob("*/*.deleted")) and not any(outside(sandbox).glob("*-delete")))

        def is_right() -> bool:
            return scanner.scan().allocated_bytes == du(outside(sandbox))

        eventually(is_right)

    assert scans > 50
    assert FileKind.DELETED in seen
    assert FolderKind.DELETE in folders_seen
    assert FileKind.FOREIGN not in seen
    assert FolderKind.FOREIGN not in folders_seen


def _work(sandbox: Sandbox, stop: threading.Event) -> None:
    producer = KafkaProducer(bootstrap_servers=sandbox.admin_servers, linger_ms=5)
    client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
    number = 0
    try:
        while not stop.is_set():
            number += 1
            for _ in range(300):
                producer.send("churn", b"x" * 1000, partition=number % 4)
            for key in range(50):
                producer.send("compacted", b"y" * 1000, key=str(key).encode())
            if number % 20 == 1:
                create_topic(sandbox, f"passing-{number}", partitions=2)
                client.delete_topics([f"passing-{number}"])
            stop.wait(0.02)
    finally:
        producer.close(timeout=5)
        client.close()
