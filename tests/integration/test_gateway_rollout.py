"""Gateways come to a running cluster, broker by broker, and go again; its clients notice three restarts, and no more.

This is `docs/gateway-rollout.md` as a test: the same properties, in the same order.
"""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.torture.clients.table import JAVA_4, LIBRDKAFKA_IDEMPOTENT
from tests.integration.cluster import brimline_inside, create_topic
from tests.integration.gateway_clients.load import Load, producing
from tests.integration.gateway_clients.verification import verify_read_back
from tests.integration.gatewayed import ENFORCING, RunningGateway, gateway, write_gateway_config
from tests.integration.kafka_clients import kafka_admin
from tests.waiting import eventually

pytestmark = pytest.mark.integration

BROKERS = (1, 2, 3)
PARTITIONS = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
"""With the brokers that hold a replica, the one that should lead first."""
_PREFERRED = 0
LIMITS = {"disk.max.used.percent": "95", "disk.min.free.bytes": "0"}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A cluster as it was before anybody heard of a gateway: clients are told where the brokers listen."""
    volume = VolumeSpec(size=Bytes(64 << 20))
    with Sandbox(SandboxSpec(brokers=len(BROKERS), volumes=(volume,))) as running:
        yield running


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One broker's change of address. ``before`` and ``after`` are what its properties say of listeners."""

    broker: int
    before: Mapping[str, str]
    after: Mapping[str, str]

    @classmethod
    def behind_a_gateway(cls, sandbox: Sandbox, broker: int) -> "Step":
        """The broker goes to a private port; its old one is advertised as ever, and belongs to the gateway."""
        properties = sandbox.broker(broker).properties
        before = {key: properties[key] for key in ("listeners", "advertised.listeners")}
        (private,) = sandbox.reserve_ports(1)
        public = f"CLIENT://{sandbox.broker(broker).direct_address}"
        assert public in before["listeners"]
        assert public in before["advertised.listeners"]
        moved = before["listeners"].replace(public, f"CLIENT://127.0.0.1:{private}")
        return cls(broker=broker, before=before, after={**before, "listeners": moved})


class Cluster:
    def __init__(self, sandbox: Sandbox, logs: Path, stack: ExitStack) -> None:
        self._sandbox = sandbox
        self._logs = (logs / f"gateway-{number}" for number in count(1))
        self._stack = stack
        self.gateways: dict[int, RunningGateway] = {}

    def put_behind_a_gateway(self, step: Step) -> None:
        broker = self._sandbox.broker(step.broker)
        broker.alter_properties(step.after)
        broker.stop()
        running = gateway(self._sandbox, next(self._logs), LIMITS, broker=step.broker)
        self.gateways[step.broker] = self._stack.enter_context(running)
        broker.start()
        self._wait_until_whole()

    def take_from_behind_its_gateway(self, step: Step) -> None:
        broker = self._sandbox.broker(step.broker)
        broker.alter_properties(step.before)
        broker.stop()
        self.gateways.pop(step.broker).stop()
        broker.start()
        self._wait_until_whole()

    def _wait_until_whole(self) -> None:
        """Every replica in sync, and every broker leads again what it should: then the next one may be stopped."""
        with kafka_admin(self._sandbox.admin_servers) as client:
            eventually(lambda: [set(each["isr_nodes"]) for each in _partitions(client)] == [set(BROKERS)] * 3)
            eventually(lambda: _leaders_once_elected(client) == set(BROKERS))


def _partitions(client: KafkaAdminClient) -> list[dict[str, Any]]:
    (topic,) = client.describe_topics(["orders"])
    found: list[dict[str, Any]] = topic["partitions"]
    return found


def _leaders_once_elected(client: KafkaAdminClient) -> set[int]:
    """Asked for again as long as it takes: a broker that was late for a moment is passed over."""
    client.elect_leaders(_PREFERRED, {"orders": list(PARTITIONS)}, raise_errors=False)
    return {each["leader_id"] for each in _partitions(client)}


def doctor(sandbox: Sandbox, broker: int) -> "subprocess.CompletedProcess[str]":
    config = write_gateway_config(sandbox, {**ENFORCING, **LIMITS}, broker)
    return brimline_inside(sandbox, "doctor", "--config", str(config))


@pytest.mark.parametrize("moved", [BROKERS[:1], pytest.param(BROKERS, marks=pytest.mark.long)], ids=["one", "all"])
def test_gateways_come_to_a_running_cluster_and_go_again(
    sandbox: Sandbox, tmp_path: Path, moved: tuple[int, ...]
) -> None:
    create_topic(sandbox, "orders", config={"min.insync.replicas": "2"}, assignment=PARTITIONS)
    addresses = sandbox.bootstrap_servers
    loads: list[Load] = []
    with ExitStack() as stack:
        cluster = Cluster(sandbox, tmp_path, stack)
        for client in (JAVA_4, LIBRDKAFKA_IDEMPOTENT):
            running = producing(
                client, addresses, "orders", partitions=tuple(PARTITIONS), rate=100, properties=client.patience
            )
            loads.append(stack.enter_context(running))
        steps = [Step.behind_a_gateway(sandbox, broker) for broker in moved]
        for step in steps:
            cluster.put_behind_a_gateway(step)
            for load in loads:
                load.wait_for_acks(50)
        advertised = sandbox.bootstrap_servers
        checked = doctor(sandbox, 1)
        through_gateways = [cluster.gateways[broker].state()["requests"]["produce"] for broker in moved]
        for step in steps:
            cluster.take_from_behind_its_gateway(step)
            for load in loads:
                load.wait_for_acks(50)

    assert advertised == addresses
    assert checked.returncode == 0, checked.stdout
    assert "gateway running" in checked.stdout
    assert min(through_gateways) > 0
    for load in loads:
        assert load.failures == []
        assert load.acked() == set(range(load.sent))
        verify_read_back(sandbox, load, exactly_once=True)
