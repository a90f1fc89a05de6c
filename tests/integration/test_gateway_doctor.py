"""The doctor asks a real broker what it decides by the address of a client, which a gateway in front of it changes."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta

import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ConfigResource, ConfigResourceType, ResourcePattern
from kafka.admin import ResourceType as Resource
from kafka.protocol.admin import AlterClientQuotasRequest

from brimline import ClientConfig
from brimline.act.broker_setting import BrokerSetting
from brimline.act.move_pause import KEY, PAUSED
from brimline.model import BrokerId, Bytes, Failure, FailureKind, ObservationFailed
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.address_rules import AddressRules, ask_address_rules
from brimline.observe.properties.java_properties import parse_properties
from brimline.sandbox import Sandbox, SandboxSpec, SecuritySpec, VolumeSpec
from tests.integration.cluster import brimline_inside
from tests.integration.guarded import QUICK, write_config
from tests.integration.kafka_clients import kafka_admin
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

BROKER = BrokerId(1)
PATIENCE = timedelta(seconds=PATIENCE_SECONDS)
USERS = {"guard": "secret", "mover": "secret"}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="secret";'


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    security = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users=USERS, acls=True)
    with Sandbox(SandboxSpec(volumes=(VolumeSpec(size=Bytes(64 << 20)),), security=security)) as running:
        yield running


@pytest.fixture
def admin(sandbox: Sandbox) -> Iterator[Connection]:
    """As somebody who may do everything."""
    connection = Connection(ClientConfig.from_properties(sandbox.admin_servers))
    yield connection
    connection.close()


def rules(connection: Connection) -> AddressRules:
    return ask_address_rules(connection, BROKER, Deadline(PATIENCE))


def allow_from(sandbox: Sandbox, host: str) -> None:
    pattern = ResourcePattern(Resource.TOPIC, "orders")
    with kafka_admin(sandbox.admin_servers) as client:
        client.create_acls([ACL("User:app", host, ACLOperation.READ, ACLPermissionType.ALLOW, pattern)])


def limit_connections(sandbox: Sandbox) -> None:
    limit = ConfigResource(ConfigResourceType.BROKER, "1", configs={"max.connections.per.ip": "500"})
    with kafka_admin(sandbox.admin_servers) as client:
        client.alter_configs([limit])


def set_quota(connection: Connection, address: str | None, per_second: float = 9.0) -> None:
    request = AlterClientQuotasRequest
    entry = request.EntryData(
        entity=[request.EntryData.EntityData(entity_type="ip", entity_name=address)],
        ops=[request.EntryData.OpData(key="connection_creation_rate", value=per_second, remove=False)],
    )
    connection.ask(BROKER, request(entries=[entry], validate_only=False), Deadline(PATIENCE))


def test_what_the_broker_decides_by_address_is_found(sandbox: Sandbox, admin: Connection) -> None:
    for host in ("*", "10.0.0.5", "10.0.0.6"):
        allow_from(sandbox, host)
    set_quota(admin, "10.0.0.7")
    set_quota(admin, None)
    limit_connections(sandbox)
    eventually(lambda: {"10.0.0.5": 1, "10.0.0.6": 1}.items() <= hosts_of(rules(admin)).items())
    eventually(lambda: rules(admin).quotas_by_address == {"10.0.0.7": 9.0, "(default)": 9.0})
    eventually(lambda: dict(limits_of(rules(admin)))["max.connections.per.ip"] == "500")

    found = doctor(sandbox)

    assert " ACLs for hosts (10.0.0.5, 10.0.0.6" in found
    assert "2 quotas of addresses ((default), 10.0.0.7)" in found
    assert "the broker takes 500 connections from the gateway" in found
    assert "CLIENT: the gateway listens on 127.0.0.1:9092 (SASL_PLAINTEXT)" in found


def limits_of(asked: AddressRules) -> dict[str, str | None]:
    assert not isinstance(asked.limits, Failure)
    return dict(asked.limits)


def as_user(sandbox: Sandbox, name: str) -> ClientConfig:
    """As somebody who may do nothing yet."""
    login = f"sasl.mechanism=PLAIN\nsasl.jaas.config={PLAIN.format(name)}\n"
    credentials = f"security.protocol=SASL_PLAINTEXT\n{login}"
    properties = parse_properties(credentials.encode(), "guard.properties")
    return ClientConfig.from_properties(sandbox.bootstrap_servers, properties)


def test_a_principal_that_may_not_ask_is_told_so(sandbox: Sandbox) -> None:
    connection = Connection(as_user(sandbox, "guard"))

    try:
        refused = rules(connection)
    finally:
        connection.close()

    for answer in (refused.acls_by_host, refused.quotas_by_address, refused.limits):
        assert isinstance(answer, Failure)
        assert answer.kind is FailureKind.NOT_AUTHORIZED


def test_a_principal_that_may_not_change_a_setting_is_told_what_it_lacks(sandbox: Sandbox) -> None:
    setting = BrokerSetting(as_user(sandbox, "mover"), BROKER, KEY)
    try:
        lacks = [refusal_of(setting.own_value)]
        allow_mover(sandbox, ACLOperation.DESCRIBE_CONFIGS)
        eventually(lambda: refusal_of(setting.own_value) is None)
        lacks += [refusal_of(lambda: setting.check(PAUSED)), refusal_of(lambda: setting.alter(PAUSED))]
        allow_mover(sandbox, ACLOperation.ALTER_CONFIGS)
        eventually(lambda: refusal_of(lambda: setting.check(PAUSED)) is None)
        only_checked = setting.own_value()
        setting.alter(PAUSED)
        eventually(lambda: setting.own_value() == PAUSED)
        setting.alter(None)
        eventually(lambda: setting.own_value() is None)
    finally:
        setting.close()

    assert only_checked is None
    assert [lack.kind for lack in lacks if lack is not None] == [FailureKind.NOT_AUTHORIZED] * 3
    assert [str(lack).rpartition(": ")[2] for lack in lacks] == [
        "this principal needs DESCRIBE_CONFIGS on the cluster",
        "this principal needs ALTER_CONFIGS on the cluster",
        "this principal needs ALTER_CONFIGS on the cluster",
    ]


def refusal_of(question: Callable[[], object]) -> Failure | None:
    try:
        question()
    except ObservationFailed as error:
        return error.failure
    return None


def allow_mover(sandbox: Sandbox, operation: ACLOperation) -> None:
    pattern = ResourcePattern(Resource.CLUSTER, "kafka-cluster")
    with kafka_admin(sandbox.admin_servers) as client:
        client.create_acls([ACL("User:mover", "*", operation, ACLPermissionType.ALLOW, pattern)])


def test_an_acl_for_the_gateways_own_address_is_a_problem(sandbox: Sandbox, admin: Connection) -> None:
    allow_from(sandbox, "127.0.0.1")
    eventually(lambda: dict(hosts_of(rules(admin))).get("127.0.0.1") == 1)

    from_there = doctor(sandbox, {"brimline.gateway.source.address": "any"})
    from_its_own = doctor(sandbox)

    assert "1 ACL for 127.0.0.1, which the gateway connects from" in from_there
    assert "which the gateway connects from" not in from_its_own
    assert "the broker sees the gateway's address (127.0.92.1)" in from_its_own


def hosts_of(asked: AddressRules) -> dict[str, int]:
    assert not isinstance(asked.acls_by_host, Failure)
    return dict(asked.acls_by_host)


def doctor(sandbox: Sandbox, added: Mapping[str, str] | None = None) -> str:
    """With a file in which the client listener advertises another port than its own; nobody has to be there."""
    listeners = {"advertised.listeners": f"CLIENT://127.0.0.1:9092,ADMIN://{sandbox.admin_servers}"}
    path = write_config(sandbox, {**QUICK, **listeners, **(added or {})})
    done = brimline_inside(sandbox, "doctor", "--config", str(path))
    assert done.returncode in (0, 3), done.stderr
    return done.stdout
