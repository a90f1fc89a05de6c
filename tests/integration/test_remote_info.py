"""KIP-1187 on a real tiered broker: every figure against the files themselves, to the byte."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest
from kafka import TopicPartition as ClientPartition

from brimline import BrokerId, ClientConfig, DescribeLogDirsOptions
from brimline.model import Bytes, Reason, ReplicaInfo, TopicPartition
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.offsets import OffsetSpec, list_offsets
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import (
    RATHER_CALM,
    THROTTLED_FOR_GOOD,
    TIERED,
    admin,
    brimline,
    configure,
    create_topic,
    produce,
)
from tests.integration.kafka_clients import kafka_admin, kafka_producer
from tests.integration.segment_files import segment_files
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

VOLUMES = (VolumeSpec(size=Bytes(128 << 20)),)
WITH_REMOTE = DescribeLogDirsOptions(include_remote_info=True)


OLDER = [pytest.param(version, marks=pytest.mark.long) for version in ("3.9.2", "4.1.2")]


@pytest.fixture(scope="module", params=["4.3.1", *OLDER])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(version=request.param, volumes=VOLUMES, tiered=True)) as running:
        create_topic(running, "tiered", partitions=3, config=TIERED)
        create_topic(running, "plain")
        produce(running, "tiered", 6.5, partition=0)
        produce(running, "tiered", 3.2, partition=1)
        produce(running, "tiered", 0.3, partition=2)
        produce(running, "plain", 0.5)
        for partition in (0, 1):
            eventually(partial(is_settled, running, "tiered", partition, at_most=3))
            eventually(partial(is_described, running, "tiered", partition))
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


def only_local_on_disk(sandbox: Sandbox, topic: str, partition: int, broker: int = 1) -> int:
    remote = remote_segments(sandbox, topic, partition)
    return sum(size for base, size in local_segments(sandbox, topic, partition, broker).items() if base not in remote)


def replica(sandbox: Sandbox, topic: str, partition: int, broker: int = 1) -> ReplicaInfo:
    with admin(sandbox) as client:
        answer = client.describe_log_dirs(options=WITH_REMOTE)
    for log_dir in answer[BrokerId(broker)].answer().values():
        if TopicPartition(topic, partition) in log_dir.replica_infos:
            return log_dir.replica_infos[TopicPartition(topic, partition)]
    raise AssertionError(f"no replica of {topic}-{partition} on broker {broker}")


def is_described(sandbox: Sandbox, topic: str, partition: int) -> bool:
    """The cluster says of an upload a moment later than the store has it."""
    return replica(sandbox, topic, partition).only_local_size == only_local_on_disk(sandbox, topic, partition)


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
    assert info.size > 0


def test_a_plain_topic_has_no_remote_size_and_is_wholly_local(sandbox: Sandbox) -> None:
    info = replica(sandbox, "plain", 0)

    assert (info.remote_size, info.only_local_size) == (None, info.size)
    assert (info.remote_size_reason, info.only_local_size_reason) == (Reason.NOT_TIERED, Reason.KNOWN)


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


def test_the_api_does_not_tell_them_unless_it_is_asked(sandbox: Sandbox) -> None:
    with admin(sandbox) as client:
        (answer,) = client.describe_log_dirs().values()

    infos = [info for log_dir in answer.answer().values() for info in log_dir.replica_infos.values()]
    assert len(infos) > 3
    assert {(info.remote_size, info.only_local_size) for info in infos} == {(None, None)}
    assert {(info.remote_size_reason, info.only_local_size_reason) for info in infos} == {
        (Reason.NOT_ASKED, Reason.NOT_ASKED)
    }


@pytest.fixture(scope="module")
def slow_retention() -> Iterator[Sandbox]:
    """Nothing is deleted by itself. Everything is uploaded before a test begins: one leaves garbage to uploaders."""
    properties = {"log.retention.check.interval.ms": "600000"}
    with Sandbox(SandboxSpec(volumes=VOLUMES, tiered=True, properties=properties)) as running:
        for topic in ("trimmed", "littered"):
            create_topic(running, topic, config={**TIERED, "local.retention.bytes": str(64 << 20)})
            produce(running, topic, 4.5)
            eventually(partial(has_uploaded, running, topic, 4))
            eventually(partial(is_described, running, topic, 0))
        yield running


def has_uploaded(sandbox: Sandbox, topic: str, segments: int) -> bool:
    return len(remote_segments(sandbox, topic, 0)) == segments


def test_a_trimmed_log_is_not_guessed_at(slow_retention: Sandbox) -> None:
    """DeleteRecords moves the log start into the local log; the segments below go with a later pass."""
    sandbox = slow_retention
    with kafka_admin(sandbox.admin_servers) as client:
        client.delete_records({ClientPartition("trimmed", 0): 1500})

    after = replica(sandbox, "trimmed", 0)

    assert after.only_local_size is None
    assert after.only_local_size_reason is Reason.LOG_START_MOVED
    assert after.remote_size is not None


def test_garbage_in_the_metadata_topic_is_skipped_counted_and_said(slow_retention: Sandbox) -> None:
    sandbox = slow_retention
    clean = replica(sandbox, "littered", 0)
    with kafka_producer(sandbox.admin_servers) as producer:
        for partition in producer.partitions_for("__remote_log_metadata"):
            producer.send("__remote_log_metadata", b"garbage", partition=partition).get(timeout=PATIENCE_SECONDS)

    with admin(sandbox) as client:
        options = DescribeLogDirsOptions(include_remote_info=True, topics=frozenset({"littered"}))
        answer = client.describe_log_dirs(options=options)
    servers = ("--bootstrap-server", sandbox.bootstrap_servers)
    shown = brimline("log-dirs", *servers, "--describe", "--include-remote-info", "--topic-list", "littered")

    assert answer.skipped_records == 1
    assert replica(sandbox, "littered", 0) == clean
    assert shown.returncode == 0
    assert "1 record" in shown.stderr
    assert "__remote_log_metadata" in shown.stderr


@pytest.fixture(scope="module")
def pair() -> Iterator[Sandbox]:
    """Two brokers that both have the metadata topic; a leader may be elected that lacks records."""
    properties = {
        **RATHER_CALM,
        **THROTTLED_FOR_GOOD,
        "unclean.leader.election.enable": "true",
        "replica.lag.time.max.ms": "2000",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "2",
    }
    with Sandbox(SandboxSpec(brokers=2, volumes=VOLUMES, tiered=True, properties=properties)) as running:
        yield running


def test_replicas_that_cannot_be_known_name_their_reason(pair: Sandbox) -> None:
    """A follower shares the partition's remote size; what only it holds is not visible from outside."""
    create_topic(pair, "followed", config=TIERED, assignment={0: [1, 2]})
    produce(pair, "followed", 3.2)
    eventually(lambda: is_settled(pair, "followed", 0, at_most=3))
    eventually(lambda: is_described(pair, "followed", 0))

    leader, follower = replica(pair, "followed", 0), replica(pair, "followed", 0, broker=2)

    assert leader.only_local_size == only_local_on_disk(pair, "followed", 0)
    assert follower.remote_size == leader.remote_size
    assert follower.only_local_size is None
    assert follower.only_local_size_reason is Reason.FOLLOWER


SLOW_REPLICATION = {"follower.replication.throttled.rate": "1", "leader.replication.throttled.rate": "1"}
THROTTLED_REPLICAS = {
    "follower.replication.throttled.replicas": "0:2",
    "leader.replication.throttled.replicas": "0:1",
}
NO_MORE_UPLOADS = {"remote.log.copy.disable": "true", "local.retention.bytes": "-2", "local.retention.ms": "-2"}


def test_uploads_of_another_lineage_are_not_taken_for_what_the_leader_holds(pair: Sandbox) -> None:
    """An unclean election: the new leader writes other records at offsets that the old one had uploaded."""
    keep_local = {**TIERED, "local.retention.bytes": str(64 << 20)}
    create_topic(pair, "torn", config=keep_local, assignment={0: [1, 2]})
    produce(pair, "torn", 1.5)
    for broker in (1, 2):
        configure(pair, "BROKER", str(broker), SLOW_REPLICATION)
    pair.broker(2).stop()
    try:
        produce(pair, "torn", 3)
        eventually(lambda: len(remote_segments(pair, "torn", 0)) >= 4)
        configure(pair, "TOPIC", "torn", THROTTLED_REPLICAS)
        pair.broker(2).start()
        eventually(lambda: metadata_is_replicated(pair))
        pair.broker(1).stop()
        eventually(lambda: leader_of(pair, "torn") == 2)
        # No further upload may tidy up what is to be seen.
        configure(pair, "TOPIC", "torn", NO_MORE_UPLOADS)
        produce(pair, "torn", 4)

        info, uploaded = replica(pair, "torn", 0, broker=2), sum(remote_segments(pair, "torn", 0).values())
    finally:
        for number in (1, 2):
            pair.broker(number).start()

    assert info.remote_size == uploaded
    assert info.only_local_size is None
    assert info.only_local_size_reason is Reason.OTHER_LINEAGE


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


@pytest.mark.long
@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy"])
def test_recompressed_metadata_is_read_or_the_missing_codec_named(codec: str) -> None:
    """gzip is Python's own and never missing; the others may be. Whatever is compressed later, what was stays."""
    with Sandbox(SandboxSpec(volumes=VOLUMES, tiered=True, properties={"compression.type": "gzip"})) as sandbox:
        upload(sandbox, "gzip")
        in_gzip = replica(sandbox, "gzip", 0)
        without_in_gzip = described_without_codecs(sandbox, "gzip")
        configure(sandbox, "TOPIC", "__remote_log_metadata", {"compression.type": codec})
        upload(sandbox, codec)
        in_codec = replica(sandbox, codec, 0)
        without = described_without_codecs(sandbox, codec)
        sizes = {topic: sum(remote_segments(sandbox, topic, 0).values()) for topic in ("gzip", codec)}

    assert (in_gzip.remote_size, in_codec.remote_size) == (sizes["gzip"], sizes[codec])
    assert without_in_gzip.returncode == without.returncode == 0
    assert "codec-missing" not in without_in_gzip.stdout
    assert without.stdout.count("codec-missing") == 2
    assert "__remote_log_metadata cannot be decompressed" in without.stderr


def upload(sandbox: Sandbox, topic: str) -> None:
    create_topic(sandbox, topic, config={**TIERED, "compression.type": "producer"})
    produce(sandbox, topic, 3.2)
    eventually(lambda: is_settled(sandbox, topic, 0, at_most=3))
    eventually(lambda: is_described(sandbox, topic, 0))


def described_without_codecs(sandbox: Sandbox, topic: str) -> "subprocess.CompletedProcess[str]":
    options = ("--describe", "--include-remote-info", "--topic-list", topic, "--output", "csv")
    return subprocess.run(
        [
            *(sys.executable, "-c", WITHOUT_CODECS, "log-dirs", "--bootstrap-server", sandbox.bootstrap_servers),
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


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
            spec: list_offsets(connection, leaders, spec, Deadline(timedelta(seconds=PATIENCE_SECONDS)))
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
