"""The client listener has the security that was asked for; the admin listener stays open."""

import json
import socket
import ssl
from pathlib import Path

import pytest

from brimline.sandbox import BadSpec, Sandbox, SandboxSpec, SecuritySpec
from brimline.sandbox.spec import KeyStoreType
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.integration

USERS = {"alice": "a b,c", "bob": "secret"}


def log_dirs(sandbox: Sandbox, servers: str, config: Path) -> list[object] | None:
    """What the stock tool is told about the one broker; ``None`` if it is not let in."""
    done = sandbox.java_tool("log-dirs", "--bootstrap-server", servers, "--describe", "--command-config", str(config))
    if done.returncode != 0 or not done.stdout.rstrip().endswith("}"):
        return None
    (broker,) = json.loads(done.stdout.splitlines()[-1])["brokers"]
    found: list[object] = broker["logDirs"]
    return found


def scram_config(sandbox: Sandbox, user: str, password: str, directory: Path) -> Path:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    config = directory / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={module} required username="{user}" password="{password}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={sandbox.ca_pem}\n"
    )
    return config


@pytest.mark.long
def test_scram_over_tls_with_acls(tmp_path: Path) -> None:
    security = SecuritySpec(
        protocol="SASL_SSL",
        mechanisms=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        users=USERS,
        super_users=("alice",),
        acls=True,
    )
    open_config = tmp_path / "open.properties"
    open_config.touch()
    with Sandbox(SandboxSpec(security=security)) as sandbox:

        def asked_by(user: str, password: str) -> list[object] | None:
            config = scram_config(sandbox, user, password, tmp_path)
            return log_dirs(sandbox, sandbox.bootstrap_servers, config)

        assert asked_by("alice", USERS["alice"])
        assert not asked_by("bob", USERS["bob"])
        assert asked_by("bob", "wrong") is None
        assert log_dirs(sandbox, sandbox.admin_servers, open_config)
        assert_takes_a_renewed_certificate(sandbox, "PKCS12")


@pytest.mark.long
def test_mutual_tls_tells_who_the_client_is(tmp_path: Path) -> None:
    security = SecuritySpec(
        protocol="SSL", mutual_tls=True, acls=True, super_users=("CN=brimline-client",), key_store="JKS"
    )
    with Sandbox(SandboxSpec(security=security)) as sandbox:
        without = tmp_path / "without.properties"
        without.write_text(
            f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={sandbox.ca_pem}\n"
        )
        with_certificate = tmp_path / "with.properties"
        with_certificate.write_text(
            f"{without.read_text()}ssl.keystore.type=PEM\nssl.keystore.location={sandbox.client_pem}\n"
        )

        assert log_dirs(sandbox, sandbox.bootstrap_servers, with_certificate)
        assert log_dirs(sandbox, sandbox.bootstrap_servers, without) is None
        assert_takes_a_renewed_certificate(sandbox, "JKS")


@pytest.mark.long
def test_a_pem_key_store() -> None:
    security = SecuritySpec(protocol="SSL", key_store="PEM")
    with Sandbox(SandboxSpec(version="3.9.2", security=security)) as sandbox:
        assert_takes_a_renewed_certificate(sandbox, "PEM")


def assert_takes_a_renewed_certificate(sandbox: Sandbox, key_store: KeyStoreType) -> None:
    """In every format of key store."""
    assert sandbox.broker(1).properties["listener.name.client.ssl.keystore.type"] == key_store
    before = served_certificate(sandbox)

    sandbox.renew_broker_certificate()
    sandbox.broker(1).restart()

    assert served_certificate(sandbox) != before


def served_certificate(sandbox: Sandbox) -> bytes:
    """The broker's certificate, which its authority vouches for."""
    host, _, port = sandbox.bootstrap_servers.partition(":")
    context = ssl.create_default_context(cafile=sandbox.ca_pem)
    context.load_cert_chain(sandbox.client_pem)
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as connection,
        context.wrap_socket(connection, server_hostname=host) as secured,
    ):
        certificate = secured.getpeercert(binary_form=True)
    assert certificate is not None
    return certificate


def test_without_certificates_there_is_none_to_renew() -> None:
    with pytest.raises(BadSpec, match="has no certificates"):
        Sandbox().renew_broker_certificate()
