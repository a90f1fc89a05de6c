"""Limits that a broker cannot keep behind a gateway: by address, and for strangers. The broker itself is the oracle."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from brimline import ClientConfig
from brimline.documents.codec import to_json
from brimline.documents.orders import AddressLimitsOrder
from brimline.gateway.net.source import OWN_ADDRESS
from brimline.guard.gateway_link.address_limits import AddressTask
from brimline.model import Bytes, Failure
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.address_rules import ask_connection_rules
from brimline.sandbox import Sandbox, SandboxSpec, SecuritySpec, VolumeSpec
from tests.integration.cluster import create_topic
from tests.integration.gatewayed import gateway
from tests.integration.raw_kafka import RawConnection, logged_in, raw_connection, request
from tests.integration.raw_produce import RawProducer
from tests.integration.test_gateway_doctor import BROKER, PATIENCE, set_quota
from tests.waiting import PATIENCE_SECONDS, eventually
from tests.wire.produce_messages import batch

pytestmark = pytest.mark.integration

USER = ("operator", "opens-it")
MOST = 3
ELSEWHERE, GATEWAYS_OWN = "127.0.0.2", OWN_ADDRESS
NOTHING_IS_FULL = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
TOO_MUCH = 600_000
"""For somebody who has not logged in: ``sasl.server.max.receive.size`` is 524,288."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    security = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users=dict((USER,)))
    limits = {
        "max.connections.per.ip": str(MOST),
        "max.connections.per.ip.overrides": f"{GATEWAYS_OWN}:1000",
    }
    volumes = (VolumeSpec(size=Bytes(128 << 20)),)
    with Sandbox(SandboxSpec(volumes=volumes, fronted=True, security=security, properties=limits)) as running:
        yield running


def let_in(servers: str, source: str, count: int) -> int:
    """How many of so many connections from an address are served at once."""
    host, _, port = servers.rpartition(":")
    with ExitStack() as stack:
        connections = [
            RawConnection(
                stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_SECONDS, (source, 0)))
            )
            for _ in range(count)
        ]
        answers = [connection.ask(request(ApiVersionsRequest(), 0)) for connection in connections]
        for connection in connections:
            connection.close()
    return sum(answer is not None for answer in answers)


def test_an_address_has_as_many_connections_as_at_the_broker(sandbox: Sandbox, tmp_path: Path) -> None:
    eventually(lambda: let_in(sandbox.direct_servers, ELSEWHERE, 2 * MOST) == MOST)
    with gateway(sandbox, tmp_path / "log", NOTHING_IS_FULL) as fronting:
        through = let_in(sandbox.bootstrap_servers, ELSEWHERE, 2 * MOST)
        excepted = let_in(sandbox.bootstrap_servers, GATEWAYS_OWN, 2 * MOST)
        eventually(lambda: fronting.state()["connections"]["closed"].get("address-limit") == MOST)
    assert through == MOST
    assert excepted == 2 * MOST


def test_a_stranger_may_not_announce_more_than_at_the_broker(sandbox: Sandbox, tmp_path: Path) -> None:
    """Neither waits for the rest. Whoever has logged in may, at once."""
    create_topic(sandbox, "large")
    announced = TOO_MUCH.to_bytes(4) + request(MetadataRequest(topics=[]), 9)[4:12]
    with raw_connection(sandbox.direct_servers) as nobody:
        assert nobody.ask(announced) is None
    with gateway(sandbox, tmp_path / "log", NOTHING_IS_FULL) as fronting:
        assert fronting.ask("fence", topic="another", reason="so that Produce is looked into")["ok"]
        produce = TOO_MUCH.to_bytes(4) + b"\0\0\0\3\0\0\0\7"
        for start in (announced, produce):
            with raw_connection(sandbox.bootstrap_servers) as nobody:
                assert nobody.ask(start) is None
        eventually(lambda: fronting.state()["connections"]["closed"] == {"malformed": 2})
        with logged_in(sandbox.bootstrap_servers, *USER) as somebody:
            large = {("large", 0): batch(value=bytes(TOO_MUCH))}
            assert RawProducer(somebody).produce(large)["large", 0].code == 0


def test_a_stranger_has_only_so_long_to_log_in(sandbox: Sandbox, tmp_path: Path) -> None:
    hurried = {**NOTHING_IS_FULL, "brimline.gateway.login.timeout.ms": "1000"}
    with (
        gateway(sandbox, tmp_path / "log", hurried) as fronting,
        logged_in(sandbox.bootstrap_servers, *USER) as somebody,
        raw_connection(sandbox.bootstrap_servers) as silent,
        raw_connection(sandbox.bootstrap_servers) as asking,
    ):
        asking.answers(request(ApiVersionsRequest(), 0))
        assert asking.receive() is None
        assert silent.receive() is None
        eventually(lambda: fronting.state()["connections"]["closed"] == {"not-logged-in": 2})
        somebody.answers(request(MetadataRequest(topics=[]), 9))


def test_the_quota_of_an_address_is_kept_when_the_broker_has_told_it(sandbox: Sandbox, tmp_path: Path) -> None:
    hurried, free = "127.0.0.3", "127.0.0.4"
    with (
        gateway(sandbox, tmp_path / "log", NOTHING_IS_FULL) as fronting,
        closing(Connection(ClientConfig.from_properties(sandbox.admin_servers))) as admin,
    ):
        # So little that a busy machine is still too fast: 200 connections are to take less than three minutes.
        set_quota(admin, hurried, per_second=1.0)

        def quotas() -> Mapping[str, float]:
            found = ask_connection_rules(admin, BROKER, Deadline(PATIENCE)).quotas_by_address
            assert not isinstance(found, Failure)
            return found

        def tell(said: AddressLimitsOrder) -> None:
            assert fronting.ask(said.OP, **to_json(said))["ok"]

        task = AddressTask(lambda: ask_connection_rules(admin, BROKER, Deadline(PATIENCE)), tell)

        def refused(source: str) -> int:
            for _ in range(200):
                let_in(sandbox.bootstrap_servers, source, 1)
            return int(fronting.state()["connections"]["closed"].get("address-rate", 0))

        assert refused(hurried) == 0
        eventually(lambda: hurried in quotas())
        task.step()
        assert refused(free) == 0
        assert refused(hurried) > 0
        assert let_in(sandbox.bootstrap_servers, ELSEWHERE, 2 * MOST) == MOST
