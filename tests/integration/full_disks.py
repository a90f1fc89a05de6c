"""A broker with two log dirs on two small volumes, topics put where a test wants them, and what becomes of all that."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import UUID

from confluent_kafka import Producer
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.torture.clients.table import JAVA_4
from tests.integration.cluster import create_topic
from tests.integration.gatewayed import RunningGateway
from tests.integration.kafka_clients import kafka_admin, kafka_consumer, meanwhile
from tests.waiting import PATIENCE_SECONDS, eventually

MIB = 1 << 20
VOLUME = Bytes(96 * MIB)
LIMIT_PERCENT = 80
BY_PERCENT = {"disk.max.used.percent": str(LIMIT_PERCENT), "disk.min.free.bytes": "0"}
NO_LIMIT = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
FIRST, SECOND = "volume-0/log-dir-0", "volume-1/log-dir-0"
"""The two log dirs, as ``RunningGateway.fenced`` names them."""

STORED = 0
KAFKA_STORAGE_ERROR = 56
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
PATIENT = {**JAVA_4.patience, "buffer.memory": str(4 * MIB)}
"""For Java producers that send faster than they may: they wait for room in a small buffer, and do not give up."""

KEEPS_ALL = {"retention.ms": "-1", "retention.bytes": "-1"}
SMALL_SEGMENTS = {**KEEPS_ALL, "segment.bytes": str(MIB), "file.delete.delay.ms": "0"}
"""For topics that make room in the course of a test."""

NEVER_LATE = {"broker.session.timeout.ms": "600000"}
"""A broker that a test stops for a moment, or that gets no time from its machine, stays a member of its cluster."""

_SIGNS_OF_DEATH = ("No space left", "KafkaStorageException", "offline", "Shutdown broker", "unsafe memory access")


def two_disks(version: str, *, fronted: bool = True) -> SandboxSpec:
    """The first log dir has the metadata log too: stock Kafka does not survive its end."""
    volume = VolumeSpec(size=VOLUME)
    return SandboxSpec(version=version, fronted=fronted, volumes=(volume, volume), properties=NEVER_LATE)


# Topics --------------------------------------------------------------------------------------------------------------


def admin_client(sandbox: Sandbox) -> AbstractContextManager[KafkaAdminClient]:
    return kafka_admin(sandbox.admin_servers)


def create_topic_in(sandbox: Sandbox, topic: str, *log_dirs: Path, config: Mapping[str, str] = KEEPS_ALL) -> None:
    """Partition n in the n-th of these log dirs."""
    with admin_client(sandbox) as client:
        # A broker that is asked to move a partition which it does not have yet says so, and remembers the log dir.
        client.alter_replica_log_dirs({(topic, n, 1): str(log_dir) for n, log_dir in enumerate(log_dirs)})
    create_topic(sandbox, topic, len(log_dirs), config=config)
    assert all(sandbox.outside(log_dir / f"{topic}-{n}").is_dir() for n, log_dir in enumerate(log_dirs))


def alter_topic(sandbox: Sandbox, topic: str, config: Mapping[str, str]) -> None:
    with admin_client(sandbox) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, dict(config))])


def delete_topics(sandbox: Sandbox, *topics: str) -> None:
    """Returns when the space is back, too."""
    with admin_client(sandbox) as client:
        client.delete_topics(list(topics))
    eventually(lambda: not any(_has_folder(sandbox, topic) for topic in topics))


def topic_id(sandbox: Sandbox, topic: str) -> UUID:
    with admin_client(sandbox) as client:
        (described,) = client.describe_topics([topic])
    return UUID(str(described["topic_id"]))


def clean_up(sandbox: Sandbox) -> None:
    """No topic of a test, no foreign file: as it was at the start, but for Kafka's own topics."""
    for broker in sandbox.brokers:
        for log_dir in broker.log_dirs:
            for foreign in sandbox.outside(log_dir).parent.glob("foreign-*"):
                foreign.unlink()
    with admin_client(sandbox) as client:
        topics = [topic for topic in client.list_topics() if not topic.startswith("__")]
    if topics:
        delete_topics(sandbox, *topics)


def _has_folder(sandbox: Sandbox, topic: str) -> bool:
    return any(
        entry.name.startswith(f"{topic}-")
        for broker in sandbox.brokers
        for log_dir in broker.log_dirs
        for entry in sandbox.outside(log_dir).iterdir()
    )


# Records -------------------------------------------------------------------------------------------------------------


def write_ballast(sandbox: Sandbox, topic: str, megabytes: int, timestamp_ms: int | None = None) -> None:
    """Straight to the broker, and fast; all acknowledged."""
    producer = Producer({"bootstrap.servers": sandbox.admin_servers, "linger.ms": 5})
    for _ in range(megabytes * 100):
        producer.produce(topic, b"x" * 10_000, partition=0, timestamp=timestamp_ms or 0)
    assert producer.flush(PATIENCE_SECONDS) == 0


def end_offset(sandbox: Sandbox, topic: str, partition: int = 0) -> int:
    with admin_client(sandbox) as client:
        where = TopicPartition(topic, partition)
        offsets = client.list_partition_offsets({where: OffsetSpec.LATEST})
    found: int = offsets[where].offset
    return found


def count_readable(servers: str, topic: str, wanted: int) -> int:
    """Read so many records of partition 0 from its beginning, as a client that starts now."""
    where = TopicPartition(topic, 0)
    with kafka_consumer(servers, auto_offset_reset="earliest", enable_auto_commit=False, check_crcs=False) as consumer:
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        eventually(lambda: consumer.poll(timeout_ms=500) is not None and consumer.position(where) >= wanted)
        position: int = consumer.position(where)
    return position


# The disks -----------------------------------------------------------------------------------------------------------


def fill_beyond_limit(sandbox: Sandbox, log_dir: Path) -> Path:
    return sandbox.fill(log_dir, leave_free=Bytes(10 * MIB))


def used_percent(sandbox: Sandbox, log_dir: Path) -> float:
    status = os.statvfs(sandbox.outside(log_dir))
    return 100 * (1 - status.f_bavail / status.f_blocks)


class Level:
    """How full a volume is at most, looked at all the time."""

    def __init__(self) -> None:
        self.highest = 0.0


@contextmanager
def watched_level(sandbox: Sandbox, log_dir: Path) -> Iterator[Level]:
    level = Level()

    def look(ended: threading.Event) -> None:
        while not ended.wait(0.02):
            level.highest = max(level.highest, used_percent(sandbox, log_dir))

    with meanwhile(look):
        yield level


def signs_of_death(sandbox: Sandbox) -> list[str]:
    """The lines of the broker's log in which it speaks of a disk that failed it."""
    home = sandbox.outside(sandbox.broker(1).node.home)
    logs = [home / "server.log.1", home / "server.log", home / "stdio.log"]
    lines = [line for log in logs if log.is_file() for line in log.read_text(errors="replace").splitlines()]
    return [line for line in lines if any(sign in line for sign in _SIGNS_OF_DEATH)]


def log_dir_errors(sandbox: Sandbox) -> dict[str, int]:
    """Log dir → error code of DescribeLogDirs; 0 is online."""
    with admin_client(sandbox) as client:
        (described,) = client.describe_log_dirs()
    return {each["log_dir"]: each["error_code"] for each in described["log_dirs"]}


def verify_unharmed(sandbox: Sandbox) -> None:
    """The broker lives, all its log dirs are online, and it never ran out of space."""
    assert sandbox.broker(1).is_running
    assert signs_of_death(sandbox) == []
    assert set(log_dir_errors(sandbox).values()) == {0}


# The gateway ---------------------------------------------------------------------------------------------------------


def refused_batches(running: RunningGateway, topic: str) -> int:
    return sum(int(row["batches"]) for row in running.state()["refusals"] if row["topic"] == topic)


def wait_for_refusal(running: RunningGateway, topic: str, *, beyond: int = 0) -> None:
    """Of more than ``beyond`` batches since the gateway was started."""
    eventually(lambda: refused_batches(running, topic) > beyond)


def changes(running: RunningGateway) -> list[str]:
    """What became of full disks, in the words of the gateway's log."""
    return [event for event in running.events() if event in ("fenced", "released")]
