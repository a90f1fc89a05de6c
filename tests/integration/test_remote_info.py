"""KIP-1187 on a real tiered broker: every figure against the files themselves, to the byte."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka import TopicPartition as ClientPartition

from brimline import BrokerId, ClientConfig, DescribeLogDirsOptions
from brimline.model import Bytes, Reason, ReplicaInfo, TopicPartition
from brimline.observe.connection import Connection, Deadline
from brimline.observe.offsets import OffsetSpec, list_offsets
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import TIERED, admin, brimline, create_topic, eventually, produce
from tests.integration.segment_files import segment_files

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


def is_settled(sandbox: Sandbox, topic: str, partition: int, at_most: int, broker: int = 1) -> bool:
    """All closed segments are uploaded, and local retention has done its work."""
    local = local_segments(sandbox, topic, partition, broker)
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


SLOW_REPLICATION = "follower.replication.throttled.rate=1,leader.replication.throttled.rate=1"
THROTTLED_REPLICAS = "follower.replication.throttled.replicas=0:2,leader.replication.throttled.replicas=0:1"
NO_MORE_UPLOADS = "remote.log.copy.disable=true,local.retention.bytes=-2,local.retention.ms=-2"


def test_uploads_of_another_lineage_are_not_taken_for_what_the_leader_holds() -> None:
    """An unclean election: the new leader writes other records at offsets that the old one had uploaded."""
    properties = {
        "unclean.leader.election.enable": "true",
        "replica.lag.time.max.ms": "2000",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "2",
    }
    keep_local = {**TIERED, "local.retention.bytes": str(64 << 20)}
    with Sandbox(SandboxSpec(brokers=2, volumes=VOLUMES, tiered=True, properties=properties)) as sandbox:
        create_topic(sandbox, "torn", config=keep_local, assignment={0: [1, 2]})
        produce(sandbox, "torn", 1.5)
        for broker in (1, 2):
            _configure(sandbox, broker, "brokers", str(broker), SLOW_REPLICATION)
        sandbox.broker(2).stop()
        produce(sandbox, "torn", 3)
        eventually(lambda: len(remote_segments(sandbox, "torn", 0)) >= 4)
        _configure(sandbox, 1, "topics", "torn", THROTTLED_REPLICAS)
        sandbox.broker(2).start()
        eventually(lambda: metadata_is_replicated(sandbox))
        sandbox.broker(1).stop()
        eventually(lambda: leader_of(sandbox, "torn") == 2)
        # No further upload may tidy up what is to be seen.
        _configure(sandbox, 2, "topics", "torn", NO_MORE_UPLOADS)
        produce(sandbox, "torn", 4)

        info = replica(sandbox, "torn", 0, broker=2)

    assert info.remote_size is not None
    assert info.only_local_size is None
    assert info.only_local_size_reason is Reason.OTHER_LINEAGE


def _configure(sandbox: Sandbox, broker: int, kind: str, name: str, config: str) -> None:
    changed = sandbox.java_tool(
        *("configs", "--bootstrap-server", sandbox.broker(broker).admin_address, "--alter"),
        *("--entity-type", kind, "--entity-name", name, "--add-config", config),
    )
    assert changed.returncode == 0, changed.stderr


def metadata_is_replicated(sandbox: Sandbox) -> bool:
    """Both brokers hold the same bytes of the metadata topic."""
    with admin(sandbox) as client:
        answer = client.describe_log_dirs()
    sizes = [
        {
            partition: info.size
            for log_dir in broker.log_dirs.values()
            for partition, info in log_dir.replica_infos.items()
            if partition.topic == "__remote_log_metadata"
        }
        for broker in answer.values()
    ]
    return len(sizes) == 2 and sizes[0] == sizes[1]


def leader_of(sandbox: Sandbox, topic: str) -> int | None:
    with admin(sandbox) as client:
        return client.topics([topic])[topic].leaders[0]


@pytest.mark.parametrize(
    "codec",
    ["zstd", "gzip", pytest.param("lz4", marks=pytest.mark.long), pytest.param("snappy", marks=pytest.mark.long)],
)
def test_recompressed_metadata_is_read_or_the_missing_codec_named(codec: str) -> None:
    properties = {"compression.type": codec}
    with Sandbox(SandboxSpec(volumes=VOLUMES, tiered=True, properties=properties)) as sandbox:
        create_topic(sandbox, "tiered", config={**TIERED, "compression.type": "producer"})
        produce(sandbox, "tiered", 3.2)
        eventually(lambda: is_settled(sandbox, "tiered", 0, at_most=3))

        info = replica(sandbox, "tiered", 0)
        without = subprocess.run(
            [
                *(sys.executable, "-c", WITHOUT_CODECS, "log-dirs", "--bootstrap-server", sandbox.bootstrap_servers),
                *("--describe", "--include-remote-info", "--topic-list", "tiered", "--output", "csv"),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

        assert info.remote_size == sum(remote_segments(sandbox, "tiered", 0).values())
        assert without.returncode == 0
        if codec == "gzip":
            assert "codec-missing" not in without.stdout
        else:
            assert without.stdout.count("codec-missing") == 2
            assert "__remote_log_metadata cannot be decompressed" in without.stderr


WITHOUT_CODECS = """
import sys
sys.modules.update(dict.fromkeys(["lz4", "lz4.frame", "snappy", "zstandard"]))
from brimline.cli import main
sys.exit(main())
"""


def test_the_special_offsets_are_where_the_files_say(sandbox: Sandbox) -> None:
    """Once settled, the active segment begins right behind the last upload."""
    connection = Connection(ClientConfig.from_properties(sandbox.bootstrap_servers))
    leaders = {TopicPartition(topic, 0): BrokerId(1) for topic in ("tiered", "plain")}
    try:
        found = {
            spec: list_offsets(connection, leaders, spec, Deadline(timedelta(seconds=30)))
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.EARLIEST_LOCAL, OffsetSpec.LATEST_TIERED)
        }
    finally:
        connection.close()

    local = sorted(local_segments(sandbox, "tiered", 0))
    assert found[OffsetSpec.EARLIEST] == {TopicPartition("tiered", 0): 0, TopicPartition("plain", 0): 0}
    assert found[OffsetSpec.EARLIEST_LOCAL] == {TopicPartition("tiered", 0): local[0], TopicPartition("plain", 0): 0}
    assert found[OffsetSpec.LATEST_TIERED] == {
        TopicPartition("tiered", 0): local[-1] - 1,
        TopicPartition("plain", 0): None,
    }
    assert local[0] > 0
