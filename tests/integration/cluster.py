"""What the integration tests do to real clusters: create topics, produce, wait, run the command."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from brimline import Admin, ClientConfig
from brimline.sandbox import Sandbox

TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1 << 20),
    "local.retention.bytes": str(2 << 20),
    "file.delete.delay.ms": "0",
}
PATIENCE_SECONDS = 60


def create_topic(
    sandbox: Sandbox,
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    config: Mapping[str, str] | None = None,
    assignment: Mapping[int, list[int]] | None = None,
) -> None:
    topic = (
        NewTopic(name, replica_assignments=dict(assignment), topic_configs=dict(config or {}))
        if assignment
        else NewTopic(name, partitions, replicas, topic_configs=dict(config or {}))
    )
    client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
    try:
        client.create_topics([topic])
    finally:
        client.close()
    wanted = sum(map(len, assignment.values())) if assignment else partitions * replicas
    eventually(lambda: replicas_on_disk(sandbox, name) == wanted)


def replicas_on_disk(sandbox: Sandbox, topic: str) -> int:
    """A topic is there when its folders are: the cluster's metadata knows it earlier."""
    return sum(
        entry.name.rpartition("-")[0] == topic
        for broker in sandbox.brokers
        for log_dir in broker.log_dirs
        for entry in sandbox.outside(log_dir).iterdir()
    )


def produce(sandbox: Sandbox, topic: str, megabytes: float, partition: int = 0) -> None:
    """Records of 1,000 bytes in batches of a few, so that segments have many batches; all acknowledged."""
    producer = KafkaProducer(bootstrap_servers=sandbox.admin_servers, acks="all", linger_ms=20)
    try:
        sent = [producer.send(topic, b"x" * 1000, partition=partition) for _ in range(int(megabytes * 1000))]
        for future in sent:
            future.get(timeout=PATIENCE_SECONDS)
    finally:
        # Not a flush: this producer waits for ever on a partition that has lost its leader.
        producer.close(timeout=0)


def eventually(condition: Callable[[], bool]) -> None:
    """Real clusters need a moment. Fails when the moment is over."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up_at, f"did not come true within {PATIENCE_SECONDS} s"
        time.sleep(0.1)


def admin(sandbox: Sandbox) -> Admin:
    return Admin(ClientConfig.from_properties(sandbox.bootstrap_servers))


def brimline_inside(sandbox: Sandbox, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The same where the brokers' files are, as on their host."""
    command = sandbox.inside([sys.executable, "-m", "brimline.cli", *arguments])
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * PATIENCE_SECONDS)


def brimline(*arguments: str, timeout: float = PATIENCE_SECONDS) -> "subprocess.CompletedProcess[str]":
    """The real command in a process of its own, in a pipe."""
    return subprocess.run(
        [sys.executable, "-m", "brimline.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )
