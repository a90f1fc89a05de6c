"""Three brokers with two small volumes each, a topic whose partitions lie apart on them, and guards beside the brokers.

Partition 0 has its replica on the follower's first volume, which tests fill, and partition 1 on its second one. The
follower's same thread fetches both from the same leader.
"""

import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import brimline_inside, create_topic
from tests.integration.full_disks import BY_PERCENT, SMALL_SEGMENTS, admin_client, end_offset
from tests.integration.gatewayed import ENFORCING, RunningGateway, gateway, state_dir
from tests.integration.guarded import RunningGuard, guard
from tests.integration.replicated import Load, read_back, wait_for_isr
from tests.integration.segment_files import batches, log_end, segment_files
from tests.waiting import PATIENCE_SECONDS, eventually

MIB = 1 << 20
VOLUME = Bytes(192 * MIB)
LEADER, FOLLOWER, OTHER_FOLLOWER = 1, 2, 3
FULL, HEALTHY = 0, 1
"""Partitions: the first lies on the follower's volume that is filled."""
BROKERS = [LEADER, FOLLOWER, OTHER_FOLLOWER]
ASSIGNMENT = {FULL: BROKERS, HEALTHY: BROKERS}
CALM = {
    # A broker that gets no processor for a while stays a member of its cluster, and in sync.
    "broker.session.timeout.ms": "180000",
    "replica.lag.time.max.ms": "600000",
}
RESTARTED = {
    # A broker that is started again is let in only when its last session is over.
    "broker.session.timeout.ms": "12000",
}
SHRINKING = {
    # A follower that is not sent everything is soon out of sync. So is one that gets no processor.
    "replica.lag.time.max.ms": "4000",
}
REPLICATING = {
    # The brokers fetch from each other over the clients' listener, which the gateways stand in front of.
    "inter.broker.listener.name": "CLIENT",
    **SHRINKING,
}
QUICK_RETENTION = {
    # What the leader has deleted is gone from every disk within a second or so.
    "log.retention.check.interval.ms": "500",
    "log.index.size.max.bytes": str(64 << 10),
}
ROOM_LEFT = Bytes(34 * MIB)
"""On a filled volume: below its limit of a fifth, and far more than what comes in until a busy machine has looked."""


def three_brokers(version: str, properties: Mapping[str, str] | None = None) -> SandboxSpec:
    volume = VolumeSpec(size=VOLUME)
    return SandboxSpec(
        version=version,
        brokers=3,
        fronted=True,
        volumes=(volume, volume),
        properties={**QUICK_RETENTION, **CALM, **(properties or {})},
    )


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A broker with its gateway and its guard."""

    gateway: RunningGateway
    guard: RunningGuard

    def followers(self) -> dict[str, object]:
        document: dict[str, object] = self.guard.state()["followers"]
        return document


@contextmanager
def guarded(
    sandbox: Sandbox, logs: Path, broker: int = LEADER, added: Mapping[str, str] | None = None
) -> Iterator[Guarded]:
    keys = {**ENFORCING, **BY_PERCENT, **(added or {})}
    with gateway(sandbox, logs / f"gateway-{broker}.log", keys, broker=broker) as running_gateway:
        with_state = {**keys, "brimline.state.dir": str(state_dir(sandbox, broker))}
        with guard(sandbox, logs / f"guard-{broker}.log", with_state, broker=broker) as running_guard:
            yield Guarded(gateway=running_gateway, guard=running_guard)


def run_advice(sandbox: Sandbox, advice: str) -> "subprocess.CompletedProcess[str]":
    """The command as it stands there, with the sandbox's own tool in the place of the script."""
    tool = shlex.join(sandbox.tool_command("reassign-partitions"))
    command = advice[advice.index("echo ") :].replace("kafka-reassign-partitions.sh", tool)
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)


def replicating_keys(sandbox: Sandbox, broker: int) -> dict[str, str]:
    """For a gateway in front of the replication listener, which is the clients' one."""
    address = sandbox.broker(broker).address
    return {"brimline.gateway.listeners": f"CLIENT://{address}", "brimline.admin.listener": "ADMIN"}


def doctor(sandbox: Sandbox, broker: int = LEADER) -> str:
    """What it says of the broker whose guard runs, without the folds of its lines."""
    config = sandbox.broker(broker).node.server_properties.with_name("guard.properties")
    done = brimline_inside(sandbox, "doctor", "--config", str(config), "--output", "json")
    return "\n".join(finding["sentence"] for finding in json.loads(done.stdout)["findings"])


def create_spread_topic(
    sandbox: Sandbox, topic: str, config: Mapping[str, str] = SMALL_SEGMENTS, brokers: Sequence[int] = BROKERS
) -> None:
    """Partition n in the n-th log dir of every one of these brokers."""
    assignment = {partition: list(brokers) for partition in ASSIGNMENT}
    with admin_client(sandbox) as client:
        # A broker that is asked to move a partition which it does not have yet says so, and remembers the log dir.
        client.alter_replica_log_dirs(
            {(topic, n, broker): str(sandbox.broker(broker).log_dirs[n]) for n in assignment for broker in brokers}
        )
    create_topic(sandbox, topic, config=config, assignment=assignment)
    assert all(replica(sandbox, topic, broker, n).is_dir() for n in assignment for broker in brokers)
    wait_for_isr(sandbox, topic, assignment)


@contextmanager
def load_on(sandbox: Sandbox, topic: str, *, first_bytes: int = 3 * MIB // 2) -> Iterator[Load]:
    """Goes on until the end of the block; then everything that was sent is acknowledged."""
    load = Load(sandbox.bootstrap_servers, topic, ASSIGNMENT, first_bytes=first_bytes)
    load.start()
    try:
        eventually(lambda: all(size(sandbox, topic, FOLLOWER, n) > MIB for n in ASSIGNMENT))
        yield load
    finally:
        load.stop()
    assert load.failures == []


def fill_follower(sandbox: Sandbox, broker: int = FOLLOWER, *, leave_free: Bytes = ROOM_LEFT) -> Path:
    """Its first volume, with a foreign file; returns that."""
    return sandbox.fill(sandbox.broker(broker).log_dirs[0], leave_free=leave_free)


def replica(sandbox: Sandbox, topic: str, broker: int, partition: int) -> Path:
    """The partition's folder."""
    return sandbox.outside(sandbox.broker(broker).log_dirs[partition]) / f"{topic}-{partition}"


def size(sandbox: Sandbox, topic: str, broker: int, partition: int) -> int:
    return sum(segment_files(replica(sandbox, topic, broker, partition)).values())


def verify_same_everywhere(sandbox: Sandbox, topic: str, load: Load) -> None:
    """Every replica holds the same batches at the same offsets, and every acknowledged record is there."""
    for partition in ASSIGNMENT:
        folders = [replica(sandbox, topic, broker, partition) for broker in BROKERS]
        end = end_offset(sandbox, topic, partition)
        eventually(lambda: all(log_end(folder) == end for folder in folders))  # noqa: B023 (called at once)
        logs = [batches(folder) for folder in folders]
        begin = max(min(log) for log in logs)
        first, *others = [{base: batch for base, batch in log.items() if base >= begin} for log in logs]
        assert all(other == first for other in others)
        load.verify(partition, read_back(sandbox, topic, partition))


def acknowledged(load: Load, partition: int) -> int:
    return sum(where[0] == partition for where in load.acknowledged.copy())


def signs_of_death(sandbox: Sandbox) -> list[str]:
    """Lines of the brokers' logs in which they speak of a disk that failed them."""
    signs = ("No space left", "KafkaStorageException", "unsafe memory access")
    homes = [sandbox.outside(broker.node.home) for broker in sandbox.brokers]
    logs = [home / name for home in homes for name in ("server.log.1", "server.log", "stdio.log")]
    lines = [line for log in logs if log.is_file() for line in log.read_text(errors="replace").splitlines()]
    return [line for line in lines if any(sign in line for sign in signs)]
