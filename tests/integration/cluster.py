"""What the integration tests do to real clusters: create topics, produce, configure, wait, run the command."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from brimline import Admin, ClientConfig
from brimline.sandbox import Sandbox
from tests.integration.guarded import BRIMLINE
from tests.integration.kafka_clients import kafka_admin, kafka_producer
from tests.waiting import PATIENCE_SECONDS as PATIENCE_SECONDS
from tests.waiting import eventually as eventually

TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1 << 20),
    "local.retention.bytes": str(2 << 20),
    "file.delete.delay.ms": "0",
}
CALM = {
    "broker.session.timeout.ms": "600000",
    "replica.lag.time.max.ms": "600000",
    "auto.leader.rebalance.enable": "false",
}
"""Load alone moves no leader and shrinks no ISR."""
RATHER_CALM = {**CALM, "broker.session.timeout.ms": "9000"}
"""Where brokers stop and start again: however one ended, it may come back only after its session."""
_PATIENT = {
    "request_timeout_ms": int(PATIENCE_SECONDS * 1000),
    "delivery_timeout_ms": int(2 * PATIENCE_SECONDS * 1000),
    "max_block_ms": int(PATIENCE_SECONDS * 1000),
}


THROTTLED_FOR_GOOD = {
    "alter.log.dirs.replication.quota.window.size.seconds": "3600",
    "replication.quota.window.size.seconds": "3600",
}
"""A throttle is a rate over a window, of 11 s by default: what takes longer would get its next megabyte."""


def running_servers(sandbox: Sandbox) -> str:
    """kafka-python may knock at one closed door again and again until its time is over, and never at the next."""
    return ",".join(broker.admin_address for broker in sandbox.brokers if broker.is_running)


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
    with kafka_admin(running_servers(sandbox)) as client:
        client.create_topics([topic])
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


def produce(sandbox: Sandbox, topic: str, megabytes: float, partition: int = 0, *, keyed: bool = False) -> None:
    """Records of 1,000 bytes in batches of a few, so that segments have many batches; all acknowledged.

    ``keyed``: every key once, so that compaction has nothing to remove.
    """
    with kafka_producer(running_servers(sandbox), acks="all", linger_ms=20, **_PATIENT) as producer:
        sent = [
            producer.send(topic, b"x" * 1000, key=str(number).encode() if keyed else None, partition=partition)
            for number in range(int(megabytes * 1000))
        ]
        for future in sent:
            future.get(timeout=PATIENCE_SECONDS)


def configure(sandbox: Sandbox, kind: Literal["TOPIC", "BROKER"], name: str, config: Mapping[str, str]) -> None:
    """What ``kafka-configs.sh --alter --add-config`` does, without its JVM; until a broker has heard of it."""
    resource = ConfigResource(ConfigResourceType[kind], name, configs=dict(config))
    with kafka_admin(running_servers(sandbox)) as client:
        answer = client.alter_configs([resource], raise_on_unknown=False)
        assert answer == {kind.lower(): {name: "OK"}}, answer

        def configured() -> dict[str, str]:
            (found,) = client.describe_configs([ConfigResource(ConfigResourceType[kind], name)])[kind.lower()].values()
            return {key: str(entry["value"]) for key, entry in found.items()}

        eventually(lambda: config.items() <= configured().items())


def move_log_dirs_slowly(sandbox: Sandbox) -> None:
    """AlterReplicaLogDirs then stands still in the middle, ``THROTTLED_FOR_GOOD``, until ``move_log_dirs_quickly``.

    Said before there is anything to move: a broker may act on it a moment later than it knows of it.
    """
    configure(sandbox, "BROKER", "1", {"replica.alter.log.dirs.io.max.bytes.per.second": "1"})


def move_log_dirs_quickly(sandbox: Sandbox) -> None:
    configure(sandbox, "BROKER", "1", {"replica.alter.log.dirs.io.max.bytes.per.second": str(1 << 40)})


@contextmanager
def hung(sandbox: Sandbox, broker: int) -> Iterator[None]:
    """It accepts connections and never answers. On a busy machine its threads stop one after the other."""
    pid = sandbox.broker(broker).pid
    os.kill(pid, signal.SIGSTOP)
    try:
        eventually(lambda: thread_states(pid) == {"T"})
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def thread_states(pid: int) -> set[str]:
    """The letters of proc(5); a thread that ends meanwhile has none."""
    found = set()
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found.add(path.read_text().rpartition(")")[2].split()[0])
    return found


def admin(sandbox: Sandbox) -> Admin:
    return Admin(ClientConfig.from_properties(sandbox.bootstrap_servers))


def brimline_inside(
    sandbox: Sandbox, *arguments: str, program: Sequence[str] = BRIMLINE
) -> "subprocess.CompletedProcess[str]":
    """The same where the brokers' files are, as on their host."""
    return subprocess.run(
        sandbox.inside([*program, *arguments]),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def brimline(*arguments: str, timeout: float = PATIENCE_SECONDS) -> "subprocess.CompletedProcess[str]":
    """The real command in a process of its own, in a pipe."""
    return subprocess.run(
        [*BRIMLINE, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )
