"""What is tortured: a sandbox, and beside every broker of it a gateway and a guard, their state on a small volume.

Topics: ``kept`` is protected from reclaim, ``plain`` and ``bulk`` are not, ``doomed`` is deleted and created again by
faults. Partition n of each is in the n-th log dir of every broker that has it.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from brimline.model import BrimlineError, Bytes
from brimline.sandbox import Broker, Sandbox, SandboxSpec, SupervisedProcess, VolumeSpec
from brimline.sandbox.supervisor import read_line
from brimline.torture.faults.cuttable import Cuttable
from brimline.torture.kafka_clients import kafka_admin
from brimline.torture.read_back import LOG_END, log_offsets
from brimline.torture.waiting import came_true

MIB = 1 << 20
VOLUME = Bytes(96 * MIB)
STATE_BYTES = 32 * MIB
LIMIT_PERCENT = 80
CEILING_PERCENT = 60
KEPT, PLAIN, BULK, DOOMED = "kept", "plain", "bulk", "doomed"
TOPICS = (KEPT, PLAIN, BULK, DOOMED)
PARTITIONS = (0, 1)
"""As many as a broker has log dirs."""
_CONTROL_TIMEOUT = 2.0

_BROKER = {
    "broker.session.timeout.ms": "9000",
    "log.index.size.max.bytes": str(64 << 10),
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
}
_TOPIC = {
    # Kafka itself deletes nothing in the course of a run; whatever goes was taken by Brimline.
    "retention.ms": str(7 * 24 * 3600 * 1000),
    "retention.bytes": "-1",
    "segment.bytes": str(MIB),
    "file.delete.delay.ms": "500",
}
_OURS = {
    "brimline.enforcement": "gateway",
    "brimline.log.format": "json",
    "brimline.metrics.port": "0",
    "disk.usage.check.interval.ms": "300",
    "disk.max.used.percent": str(LIMIT_PERCENT),
    "disk.min.free.bytes": "0",
    "log.retention.disk.usage.percent": str(CEILING_PERCENT),
    "brimline.reclaim.interval.ms": "1000",
    "brimline.reclaim.policy": "kip-61",  # careful deletes nothing that a run has written
    "brimline.reclaim.protected.topics": KEPT,
    "brimline.disk.stall.timeout.ms": "3000",
}


class TortureFailed(BrimlineError):
    """The run could not be carried out; not a verdict."""


@dataclass(frozen=True, kw_only=True)
class Station:
    """A broker with its gateway and its guard. Paths are as the sandbox has them."""

    sandbox: Sandbox
    broker: Broker
    gateway: SupervisedProcess
    guard: SupervisedProcess
    state_dir: Path
    config: Path
    clock: Path

    @property
    def number(self) -> int:
        return self.broker.broker_id

    @property
    def processes(self) -> tuple[SupervisedProcess, ...]:
        return self.broker, self.gateway, self.guard

    def ask_gateway(self) -> dict[str, Any] | None:
        """The gateway's state; ``None`` if it does not answer."""
        try:
            # The kernel takes only 107 bytes as the name of a socket, and ours is deep: go by its directory.
            directory = os.open(self.sandbox.outside(self.state_dir), os.O_PATH | os.O_DIRECTORY)
        except OSError:
            return None
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_CONTROL_TIMEOUT)
                connection.connect(f"/proc/self/fd/{directory}/gateway-{self.number}.sock")
                connection.sendall(b'{"op": "state"}\n')
                with connection.makefile() as lines:
                    state: dict[str, Any] = read_line(lines.readline())["state"]
            return state
        except (OSError, ValueError, KeyError):
            return None
        finally:
            os.close(directory)

    def fenced(self) -> dict[str, str] | None:
        """The log dirs that the gateway says are fenced, and since when; ``None`` if it does not answer."""
        state = self.ask_gateway()
        if state is None:
            return None
        since: dict[str, str] = {}
        for fence in state["fences"]:
            if "logDir" in fence:
                since[fence["logDir"]] = min(fence["since"], since.get(fence["logDir"], fence["since"]))
        return since

    def launch(self, process: SupervisedProcess) -> bool:
        """Gateway or guard: start it and wait until it says that it is there; whether it is."""
        log = self.sandbox.outside(process.output)
        before = _starts_in(log)
        process.launch()
        came_true(lambda: _starts_in(log) > before or not process.is_running)
        return process.is_running

    def serves(self) -> bool:
        """Whether a client that connects to the gateway gets an answer of the broker."""
        port = int(self.broker.address.rpartition(":")[2])
        return log_offsets(port, [(KEPT, 0)], LOG_END) is not None


class World:
    """``cuts``: by broker, what stands between the guards and that broker's admin listener, where there are several."""

    def __init__(self, sandbox: Sandbox, cuts: Mapping[int, Cuttable]) -> None:
        self.sandbox = sandbox
        self.cuts = cuts
        self.stations = {broker.broker_id: _station(sandbox, broker) for broker in sandbox.brokers}

    @property
    def replicas(self) -> int:
        return len(self.stations)

    @cached_property
    def controller(self) -> SupervisedProcess | None:
        return self.sandbox.controller

    @property
    def processes(self) -> list[SupervisedProcess]:
        own = [self.controller] if self.controller else []
        return [*own, *(each for station in self.stations.values() for each in station.processes)]

    def start(self) -> None:
        for topic in TOPICS:
            self.create_topic(topic)
        for station in self.stations.values():
            for process in (station.gateway, station.guard):
                if not station.launch(process):
                    raise TortureFailed(f"{process.name} does not start: {process.complaint()[-2000:]}")

    @contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """Of the brokers that run: kafka-python may knock at one closed door for ever."""
        running = [station.broker.admin_address for station in self.stations.values() if station.broker.is_running]
        with kafka_admin(",".join(running)) as client:
            yield client

    def create_topic(self, topic: str) -> None:
        """Partition n in the n-th log dir of every broker, its leaders spread."""
        brokers = list(self.stations)
        assignment = {n: brokers[n % len(brokers) :] + brokers[: n % len(brokers)] for n in PARTITIONS}
        config = {**_TOPIC, "min.insync.replicas": str(min(2, len(brokers)))}
        with self.admin() as client:
            # A broker that is asked to move a partition which it does not have yet says so, and remembers the log dir.
            client.alter_replica_log_dirs(
                {
                    (topic, n, station.number): str(station.broker.log_dirs[n])
                    for n in PARTITIONS
                    for station in self.stations.values()
                }
            )
            client.create_topics([NewTopic(topic, replica_assignments=assignment, topic_configs=config)])

    def delete_topic(self, topic: str) -> None:
        with self.admin() as client:
            client.delete_topics([topic])

    def is_whole(self) -> bool:
        """Every process runs, every gateway serves, every replica is in sync."""
        if not all(process.is_running for process in self.processes):
            return False
        if not all(station.serves() for station in self.stations.values()):
            return False
        try:
            with self.admin() as client:
                described = client.describe_topics(list(TOPICS))
        except KafkaError:
            return False
        partitions = [partition for topic in described for partition in topic["partitions"]]
        return bool(partitions) and all(len(each["isr_nodes"]) == self.replicas for each in partitions)


@contextmanager
def made(version: str, brokers: int, report: Any) -> Iterator[World]:
    """A world that is ready to be tortured; it ends with the block and leaves nothing."""
    volume = VolumeSpec(size=VOLUME)
    spec = SandboxSpec(
        version=version, brokers=brokers, fronted=True, volumes=(volume,) * len(PARTITIONS), properties=_BROKER
    )
    cuts: dict[int, Cuttable] = {}
    with Sandbox(spec, report) as sandbox:
        if not sandbox.has_real_volumes:
            raise TortureFailed("torture fills volumes, and there are no private mounts here for small ones of its own")
        try:
            if brokers > 1:
                cuts = _watched(sandbox)
            world = World(sandbox, cuts)
            world.start()
            yield world
        finally:
            for cut in cuts.values():
                cut.close()


def _watched(sandbox: Sandbox) -> dict[int, Cuttable]:
    """A listener more for every broker, which the guards use, behind something that can be cut."""
    cuts = {}
    for broker in sandbox.brokers:
        watch, front = sandbox.reserve_ports(2)
        known = broker.properties
        broker.stop()
        broker.alter_properties(
            {
                "listeners": f"{known['listeners']},WATCH://127.0.0.1:{watch}",
                "advertised.listeners": f"{known['advertised.listeners']},WATCH://127.0.0.1:{front}",
                "listener.security.protocol.map": f"{known['listener.security.protocol.map']},WATCH:PLAINTEXT",
            }
        )
        cuts[broker.broker_id] = Cuttable(front, watch)
        broker.launch()
    for broker in sandbox.brokers:
        broker.wait_for({each.broker_id for each in sandbox.brokers})
    return cuts


def _station(sandbox: Sandbox, broker: Broker) -> Station:
    home, number = broker.node.home, broker.broker_id
    state_dir, config, clock = home / "state", home / "brimline.properties", home / "clock-offset"
    sandbox.outside(state_dir).mkdir()
    run_inside(sandbox, "mount", "-t", "tmpfs", "-o", f"size={STATE_BYTES},mode=0700", "brimline", str(state_dir))
    write_config(sandbox, broker, config, state_dir)
    program = [sys.executable, "-m", "brimline.torture.faults.jumping_clock", str(clock)]
    return Station(
        sandbox=sandbox,
        broker=broker,
        gateway=sandbox.process(f"gateway-{number}", [*program, "gateway", "--config", str(config)], home),
        guard=sandbox.process(f"guard-{number}", [*program, "guard", "--config", str(config)], home),
        state_dir=state_dir,
        config=config,
        clock=clock,
    )


def _starts_in(log: Path) -> int:
    return log.read_text(errors="replace").count('"event": "started"') if log.is_file() else 0


def write_config(
    sandbox: Sandbox, broker: Broker, path: Path, state_dir: Path, changes: Mapping[str, str] | None = None
) -> None:
    """The broker's own properties with ours behind them."""
    watch = {"brimline.admin.listener": "WATCH"} if "WATCH://" in broker.properties["listeners"] else {}
    front = {"brimline.gateway.listeners": f"CLIENT://{broker.address}"} if watch else {}
    keys = {**broker.properties, **_OURS, **watch, **front, "brimline.state.dir": str(state_dir), **(changes or {})}
    sandbox.outside(path).write_text("".join(f"{key}={value}\n" for key, value in keys.items()))


def run_inside(sandbox: Sandbox, *argv: str) -> None:
    """Raises ``TortureFailed`` with what the command had to say."""
    done = subprocess.run(
        sandbox.inside(argv), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60
    )
    if done.returncode:
        raise TortureFailed(f"{' '.join(argv)}: {' '.join(done.stderr.split())}")
