from dataclasses import replace
from pathlib import Path

import pytest

from brimline.sandbox.properties import ClusterFacts, Node, escape, listener_address, render, server_properties
from brimline.sandbox.spec import KeyStoreType, SandboxSpec, SecuritySpec

BROKER = Node(node_id=2, roles=("broker",), home=Path("/b"), log_dirs=(Path("/b/0"), Path("/b/1")), client_port=7)


def properties(spec: SandboxSpec, node: Node = BROKER) -> dict[str, str]:
    facts = ClusterFacts(
        spec=spec,
        controller_id=100,
        controller_port=9,
        controller_host="127.0.0.1",
        tiered_dir=Path("/t/kafka-tiered-storage"),
        key_store=Path("/k"),
        trust_store=Path("/c"),
    )
    return server_properties(node, facts)


def test_every_listener_is_on_loopback() -> None:
    listeners = properties(SandboxSpec())["listeners"].split(",")

    assert all("://127.0.0.1:" in listener for listener in listeners)


def test_a_broker_knows_its_log_dirs_and_its_controller() -> None:
    written = properties(SandboxSpec())

    assert written["log.dirs"] == "/b/0,/b/1"
    assert written["controller.quorum.voters"] == "100@127.0.0.1:9"


def test_the_callers_properties_win() -> None:
    spec = SandboxSpec(properties={"log.retention.check.interval.ms": "300000"})

    assert properties(spec)["log.retention.check.interval.ms"] == "300000"


def test_a_fronted_broker_tells_clients_another_port_than_its_own() -> None:
    written = properties(SandboxSpec(fronted=True), replace(BROKER, gateway_port=8, admin_port=6))

    assert written["listeners"] == "CLIENT://127.0.0.1:7,ADMIN://127.0.0.1:6"
    assert written["advertised.listeners"] == "CLIENT://127.0.0.1:8,ADMIN://127.0.0.1:6"


def test_a_listener_is_found_by_its_whole_name() -> None:
    assert listener_address("MYCLIENT://a:1,CLIENT://b:2", "CLIENT") == "b:2"


@pytest.mark.parametrize(("key_store", "has_password"), [("PKCS12", True), ("JKS", True), ("PEM", False)])
def test_a_pem_key_store_has_no_password(key_store: KeyStoreType, has_password: bool) -> None:  # noqa: FBT001
    written = properties(SandboxSpec(security=SecuritySpec(protocol="SSL", key_store=key_store)))

    assert written["listener.name.client.ssl.keystore.type"] == key_store
    assert ("listener.name.client.ssl.keystore.password" in written) == has_password


def test_security_is_for_clients_only() -> None:
    security = SecuritySpec(protocol="SASL_SSL", mechanisms=("PLAIN",), users={"alice": 'a"b'})

    written = properties(SandboxSpec(security=security))

    assert written["listener.security.protocol.map"] == "CLIENT:SASL_SSL,ADMIN:PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert 'user_alice="a\\"b"' in written["listener.name.client.plain.sasl.jaas.config"]


def test_a_controller_knows_of_tiered_storage_but_does_none() -> None:
    controller = Node(node_id=100, roles=("controller",), home=Path("/c"), log_dirs=(Path("/c/m"),))

    written = properties(SandboxSpec(tiered=True), controller)

    assert written["remote.log.storage.system.enable"] == "true"
    assert "remote.log.storage.manager.class.name" not in written


def test_a_backslash_is_escaped_for_java() -> None:
    assert escape("a\\b\nc") == "a\\\\b\\nc"
    assert render({"key": "a\\b"}) == "key=a\\\\b\n"


def test_kafkas_own_defaults_but_for_copies_that_one_broker_cannot_keep() -> None:
    alone, three = (properties(SandboxSpec(kafka_defaults=True, brokers=brokers)) for brokers in (1, 3))

    assert not {"log.segment.delete.delay.ms", "log.cleaner.dedupe.buffer.size"} & {*alone, *three}
    assert alone["offsets.topic.replication.factor"] == "1"
    assert "offsets.topic.replication.factor" not in three
