"""KIP-1187 on a real tiered broker: every figure against the files themselves, to the byte."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka import TopicPartition as ClientPartition

from brimline import BrokerId, DescribeLogDirsOptions
from brimline.model import Bytes, Reason, ReplicaInfo, TopicPartition
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import TIERED, admin, brimline, create_topic, eventually, produce

pytestmark = pytest.mark.integration

VOLUMES = (VolumeSpec(size=Bytes(128 << 20)),)
WITH_REMOTE = DescribeLogDirsOptions(include_remote_info=True)


@pytest.fixture(scope="module", params=["3.9.2", "4.3.1"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(version=request.param, volumes=VOLUMES, tiered=True)) as running:
        create_topic(running, "tiered", partitions=3, config=TIERED)
        create_topic(running, "plain")
        produce(running, "tiered", 6.5, partition=0)
        produce(running, "tiered", 3.2, partition=1)
        produce(running, "plain", 0.5)
        eventually(lambda: is_settled(running, "tiered", 0, at_most=3))
        eventually(lambda: is_settled(running, "tiered", 1, at_most=3))
        yield running


def local_segments(sandbox: Sandbox, topic: str, partition: int, broker: int = 1) -> dict[int, int]:
    """Base offset → size, from the broker's disk."""
    (log_dir,) = sandbox.broker(broker).log_dirs
    return segment_files(sandbox.outside(log_dir) / f"{topic}-{partition}")


def remote_segments(sandbox: Sandbox, topic: str, partition: int) -> dict[int, int]:
    """Base offset → size, from LocalTieredStorage's files."""
    found: dict[int, int] = {}
    for folder in sandbox.outside(sandbox.tiered_dir).glob(f"{topic}-{partition}-*"):
        found.update(segment_files(folder))
    return found


def segment_files(folder: Path) -> dict[int, int]:
    return {int(file.name[:20]): file.stat().st_size for file in folder.glob("*.log")}


def is_settled(sandbox: Sandbox, topic: str, partition: int, at_most: int) -> bool:
    """All closed segments are uploaded, and local retention has done its work."""
    local = local_segments(sandbox, topic, partition)
    remote = remote_segments(sandbox, topic, partition)
    closed = sorted(local)[:-1]
    return len(local) <= at_most and bool(remote) and all(base in remote for base in closed)


def only_local_on_disk(sandbox: Sandbox, topic: str, partition: int) -> int:
    remote = remote_segments(sandbox, topic, partition)
    return sum(size for base, size in local_segments(sandbox, topic, partition).items() if base not in remote)


def replica(sandbox: Sandbox, topic: str, partition: int, broker: int = 1) -> ReplicaInfo:
    with admin(sandbox) as client:
        answer = client.describe_log_dirs(options=WITH_REMOTE)
    for log_dir in answer[BrokerId(broker)].answer().values():
        if TopicPartition(topic, partition) in log_dir.replica_infos:
            return log_dir.replica_infos[TopicPartition(topic, partition)]
    raise AssertionError(f"no replica of {topic}-{partition} on broker {broker}")


@pytest.mark.parametrize("partition", [0, 1])
def test_sizes_equal_the_files_to_the_byte(sandbox: Sandbox, partition: int) -> None:
    info = replica(sandbox, "tiered", partition)

    remote = remote_segments(sandbox, "tiered", partition)
    assert len(remote) >= 2
    assert info.remote_size == sum(remote.values())
    assert info.size == sum(local_segments(sandbox, "tiered", partition).values())
    assert info.only_local_size == only_local_on_disk(sandbox, "tiered", partition)


def test_a_tiered_partition_with_nothing_uploaded_is_all_local(sandbox: Sandbox) -> None:
    info = replica(sandbox, "tiered", 2)

    assert (info.remote_size, info.only_local_size) == (0, info.size)


def test_a_plain_topic_has_no_remote_sizes(sandbox: Sandbox) -> None:
    info = replica(sandbox, "plain", 0)

    assert (info.remote_size, info.only_local_size) == (None, None)
    assert info.remote_size_reason is info.only_local_size_reason is Reason.NOT_TIERED


def kafka_json(sandbox: Sandbox, *options: str) -> list[dict[str, object]]:
    shown = brimline("log-dirs", "--bootstrap-server", sandbox.bootstrap_servers, "--describe", *options)
    assert shown.returncode == 0, shown.stderr
    (broker,) = json.loads(shown.stdout.splitlines()[-1])["brokers"]
    (log_dir,) = broker["logDirs"]
    partitions: list[dict[str, object]] = log_dir["partitions"]
    return partitions


def test_the_command_shows_remote_and_only_local_sizes_with_the_option(sandbox: Sandbox) -> None:
    shown = kafka_json(sandbox, "--topic-list", "tiered", "--include-remote-info")

    assert [list(partition) for partition in shown] == 3 * [
        ["partition", "size", "offsetLag", "isFuture", "remoteSize", "onlyLocalSize"]
    ]
    for number, partition in enumerate(shown):
        assert partition["remoteSize"] == sum(remote_segments(sandbox, "tiered", number).values())
        assert partition["onlyLocalSize"] == only_local_on_disk(sandbox, "tiered", number)


def test_the_command_does_not_show_them_without_the_option(sandbox: Sandbox) -> None:
    shown = kafka_json(sandbox, "--topic-list", "tiered")

    assert [list(partition) for partition in shown] == 3 * [["partition", "size", "offsetLag", "isFuture"]]


def test_a_trimmed_log_is_not_guessed_at() -> None:
    """DeleteRecords moves the log start into the local log; the segments below go with a later pass."""
    slow_retention = {"log.retention.check.interval.ms": "600000"}
    with Sandbox(SandboxSpec(volumes=VOLUMES, tiered=True, properties=slow_retention)) as sandbox:
        create_topic(sandbox, "trimmed", config={**TIERED, "local.retention.bytes": str(64 << 20)})
        produce(sandbox, "trimmed", 4.5)
        eventually(lambda: len(remote_segments(sandbox, "trimmed", 0)) >= 4)
        before, on_disk = replica(sandbox, "trimmed", 0), only_local_on_disk(sandbox, "trimmed", 0)
        client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
        client.delete_records({ClientPartition("trimmed", 0): 1500})
        client.close()

        after = replica(sandbox, "trimmed", 0)

        assert before.only_local_size == on_disk
        assert after.only_local_size is None
        assert after.only_local_size_reason is Reason.LOG_START_MOVED
        assert after.remote_size is not None


def test_garbage_in_the_metadata_topic_is_skipped_counted_and_said() -> None:
    with Sandbox(SandboxSpec(volumes=VOLUMES, tiered=True)) as sandbox:
        create_topic(sandbox, "tiered", config=TIERED)
        produce(sandbox, "tiered", 3.2)
        eventually(lambda: is_settled(sandbox, "tiered", 0, at_most=3))
        clean = replica(sandbox, "tiered", 0)
        producer = KafkaProducer(bootstrap_servers=sandbox.admin_servers)
        for partition in producer.partitions_for("__remote_log_metadata"):
            producer.send("__remote_log_metadata", b"garbage", partition=partition).get(timeout=30)
        producer.close()

        with admin(sandbox) as client:
            answer = client.describe_log_dirs(options=WITH_REMOTE)
        shown = brimline(
            "log-dirs", "--bootstrap-server", sandbox.bootstrap_servers, "--describe", "--include-remote-info"
        )

        assert answer.skipped_records == 1
        assert replica(sandbox, "tiered", 0) == clean
        assert shown.returncode == 0
        assert "1 record" in shown.stderr
        assert "__remote_log_metadata" in shown.stderr


def test_replicas_that_cannot_be_known_name_their_reason() -> None:
    """A follower shares the partition's remote size; what only it holds is not visible from outside."""
    with Sandbox(SandboxSpec(brokers=2, volumes=VOLUMES, tiered=True)) as sandbox:
        create_topic(sandbox, "tiered", config=TIERED, assignment={0: [1, 2]})
        produce(sandbox, "tiered", 3.2)
        eventually(lambda: is_settled(sandbox, "tiered", 0, at_most=3))

        leader, follower = replica(sandbox, "tiered", 0), replica(sandbox, "tiered", 0, broker=2)

        assert leader.only_local_size == only_local_on_disk(sandbox, "tiered", 0)
        assert follower.remote_size == leader.remote_size
        assert follower.only_local_size is None
        assert follower.only_local_size_reason is Reason.FOLLOWER
