"""``brimline topics`` on real brokers: sizes are the files' to the byte, and each reason for not shrinking was made."""

import csv
import io
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ToCommit

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import CALM, TIERED, brimline, brimline_inside, create_topic, produce
from tests.integration.guarded import write_config
from tests.integration.kafka_clients import kafka_admin
from tests.integration.reclaim_world import Writer
from tests.integration.segment_files import segment_files
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

MIB = 1 << 20
DAYS = 24.0
VOLUME = VolumeSpec(size=Bytes(256 * MIB))
NEVER = "600000000"
# Neither retention nor an upload happens by itself while a test looks.
STILL = {
    **CALM,
    "log.retention.check.interval.ms": NEVER,
    "log.initial.task.delay.ms": NEVER,
    "remote.log.manager.task.interval.ms": NEVER,
}
TOPICS: Mapping[str, Mapping[str, str]] = {
    "active-by-size": {"retention.bytes": str(MIB)},
    "active-by-age": {"retention.ms": "3600000"},
    "compacted": {"cleanup.policy": "compact"},
    "from-the-future": {"segment.bytes": str(MIB), "message.timestamp.after.max.ms": str(10**12)},
    "for-ever": {"retention.ms": "-1"},
    "not-uploaded": {**TIERED, "local.retention.bytes": str(MIB)},
    "past-its-limit": {"segment.bytes": str(MIB), "retention.bytes": str(MIB)},
    "calm": {},
}
MADE = {
    "active-by-size": "active-segment",
    "active-by-age": "active-segment",
    "compacted": "compaction",
    "from-the-future": "future-timestamp",
    "for-ever": "no-limit",
    "not-uploaded": "not-uploaded",
    "past-its-limit": "going",
    "calm": "within-limits",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(volumes=(VOLUME, VOLUME), tiered=True, properties=STILL)) as running:
        for name, config in TOPICS.items():
            create_topic(running, name, config=config)
        writer = Writer(running.bootstrap_servers, keys=True)
        writer.write("active-by-size", 3)
        writer.write("active-by-age", 0.1, hours_old=2)
        writer.write("active-by-age", 0.1)
        writer.write("compacted", 1)
        writer.write("from-the-future", 2.5, hours_old=-10 * DAYS)
        writer.write("for-ever", 2, hours_old=2)
        writer.write("not-uploaded", 3.5)
        writer.write("past-its-limit", 4.5)
        writer.write("calm", 1, hours_old=3)
        writer.write("calm", 1)
        commit(running, "calm", "billing", 10)
        yield running


def commit(sandbox: Sandbox, topic: str, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": sandbox.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[ToCommit(topic, 0, offset)], asynchronous=False)
    consumer.close()


def on_host(sandbox: Sandbox, *options: str) -> dict[str, Any]:
    config = write_config(sandbox, {})
    answer = brimline_inside(sandbox, "topics", "--config", str(config), "--output", "json", *options)
    assert answer.returncode == 0, answer.stderr
    return by_name(answer.stdout)


def from_outside(sandbox: Sandbox, *options: str) -> dict[str, Any]:
    arguments = ["--bootstrap-server", sandbox.bootstrap_servers, "--output", "json", *options]
    answer = brimline("topics", *arguments)
    assert answer.returncode == 0, answer.stderr
    return by_name(answer.stdout)


def by_name(text: str) -> dict[str, Any]:
    return {each["topic"]: each for each in json.loads(text)["topics"]}


def log_bytes(sandbox: Sandbox, topic: str) -> int:
    """Of all ``.log`` files of the topic, on all disks of all brokers."""
    folders: list[Path] = [
        folder
        for broker in sandbox.brokers
        for log_dir in broker.log_dirs
        for folder in sandbox.outside(log_dir).glob(f"{topic}-*")
    ]
    return sum(sum(segment_files(folder).values()) for folder in folders)


def test_sizes_equal_the_files_to_the_byte_and_the_largest_comes_first(sandbox: Sandbox) -> None:
    found = from_outside(sandbox)

    assert {name: found[name]["bytes"] for name in TOPICS} == {name: log_bytes(sandbox, name) for name in TOPICS}
    assert all(topic["oneCopyBytes"] == topic["bytes"] for topic in found.values())
    assert all(sum(disk["bytes"] for disk in topic["disks"]) == topic["bytes"] for topic in found.values())
    sizes = [topic["bytes"] for topic in found.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_on_the_host_every_reason_for_not_shrinking_is_the_one_that_was_made(sandbox: Sandbox) -> None:
    found = on_host(sandbox)

    assert {name: found[name]["stays"] for name in TOPICS} == MADE
    assert "active-by-size-0 has 3.0" in found["active-by-size"]["why"]
    assert "segment.bytes 1.00 GiB" in found["active-by-size"]["why"]
    assert found["past-its-limit"]["goingBytes"] >= 2 * MIB


def test_from_outside_the_reason_is_the_same_where_no_segment_has_to_be_seen(sandbox: Sandbox) -> None:
    found = from_outside(sandbox)

    seen_in_files_only = {"past-its-limit": "unknown"}
    assert {name: found[name]["stays"] for name in TOPICS} == MADE | seen_in_files_only


def test_who_reads_a_topic_how_far_behind_and_what_nobody_reads(sandbox: Sandbox) -> None:
    found = from_outside(sandbox)
    unread = from_outside(sandbox, "--unread")

    (billing,) = found["calm"]["groups"]
    assert (billing["group"], billing["activity"]) == ("billing", "empty")
    assert billing["recordsBehind"] > 100
    assert set(unread) == set(TOPICS) - {"calm"}


def test_written_in_the_last_hour_is_about_the_younger_half(sandbox: Sandbox) -> None:
    found = from_outside(sandbox)

    half = found["calm"]["bytes"] / 2
    assert half * 0.9 < found["calm"]["writtenLastHourBytes"] < half * 1.1
    assert found["for-ever"]["writtenLastHourBytes"] == 0
    assert found["not-uploaded"]["writtenLastHourBytes"] is None


def test_retention_names_who_set_it(sandbox: Sandbox) -> None:
    found = from_outside(sandbox)

    assert (found["for-ever"]["retentionMs"], found["for-ever"]["retentionMsSetBy"]) == (-1, "topic")
    assert found["calm"]["retentionMsSetBy"] == found["calm"]["retentionBytesSetBy"] == "broker"


def test_csv_has_a_row_per_topic_and_log_dir(sandbox: Sandbox) -> None:
    answer = brimline("topics", "--bootstrap-server", sandbox.bootstrap_servers, "--output", "csv")

    rows = [row for row in csv.DictReader(io.StringIO(answer.stdout)) if row["topic"] in TOPICS]
    assert {row["topic"]: int(row["bytes"]) for row in rows} == {name: log_bytes(sandbox, name) for name in TOPICS}
    assert {row["topic"]: row["stays"] for row in rows}["compacted"] == "compaction"


def test_the_table_by_disk_adds_up_to_the_log_dirs(sandbox: Sandbox) -> None:
    answer = brimline("topics", "--bootstrap-server", sandbox.bootstrap_servers, "--by", "disk")

    assert answer.returncode == 0, answer.stderr
    assert all(f"Broker 1  {log_dir}" in answer.stdout for log_dir in sandbox.broker(1).log_dirs)
    assert all(name in answer.stdout for name in TOPICS)


@pytest.mark.long
def test_what_too_few_replicas_in_sync_have_stays() -> None:
    """The high watermark stands still below min.insync.replicas since eligible leader replicas (KIP-966)."""
    spec = SandboxSpec(brokers=2, volumes=(VOLUME,), properties={**STILL, "broker.session.timeout.ms": "9000"})
    with Sandbox(spec) as sandbox:
        config = {"segment.bytes": str(MIB), "retention.bytes": str(MIB), "min.insync.replicas": "2"}
        create_topic(sandbox, "orders", replicas=2, config=config)
        produce(sandbox, "orders", 0.5)
        sandbox.broker(2).stop()
        eventually(lambda: in_sync(sandbox, "orders") == 1)
        producer = Producer({"bootstrap.servers": sandbox.broker(1).admin_address, "acks": "1"})
        for _ in range(4 * MIB // 10_000):
            producer.produce("orders", b"x" * 10_000, partition=0, timestamp=int(time.time() * 1000))
        assert producer.flush(PATIENCE_SECONDS) == 0

        found = on_host(sandbox, "--broker-list", "1")["orders"]

        assert found["stays"] == "not-in-sync"
        assert "min.insync.replicas is 2, and orders-0 has 1 replica in sync" in found["why"]


def in_sync(sandbox: Sandbox, topic: str) -> int:
    with kafka_admin(sandbox.broker(1).admin_address) as client:
        (described,) = client.describe_topics([topic])
    return len(described["partitions"][0]["isr_nodes"])
