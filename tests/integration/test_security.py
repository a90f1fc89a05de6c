"""SASL, TLS and ACLs against real listeners, through the command and its Java-named properties."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import CLIENT_CERTIFICATE_PRINCIPAL, Sandbox, SandboxSpec, SecuritySpec, VolumeSpec
from tests.integration.cluster import TIERED, brimline, create_topic, eventually, produce
from tests.integration.test_remote_info import is_settled, remote_segments

pytestmark = pytest.mark.integration

VOLUMES = (VolumeSpec(size=Bytes(64 << 20)),)
LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def login(mechanism: str, user: str, password: str) -> str:
    return (
        f"sasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={LOGIN_MODULES[mechanism]} required username="{user}" password="{password}";\n'
    )


def log_dirs(sandbox: Sandbox, folder: Path, properties: str, *options: str) -> tuple[int, str, str]:
    config = folder / "client.properties"
    config.write_text(properties)
    shown = brimline(
        "log-dirs",
        "--bootstrap-server",
        sandbox.bootstrap_servers,
        "--describe",
        "--command-config",
        str(config),
        *options,
    )
    return shown.returncode, shown.stdout, shown.stderr


@pytest.fixture(scope="module")
def sasl_ssl() -> Iterator[Sandbox]:
    security = SecuritySpec(
        protocol="SASL_SSL",
        mechanisms=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        users={"operator": 'p"w\\1', "guest": "guest"},
        super_users=("operator",),
        acls=True,
    )
    with Sandbox(SandboxSpec(volumes=VOLUMES, security=security)) as running:
        create_topic(running, "orders")
        yield running


def trust(sandbox: Sandbox) -> str:
    return f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={sandbox.ca_pem}\n"


@pytest.mark.parametrize("mechanism", LOGIN_MODULES)
def test_sasl_over_tls(sasl_ssl: Sandbox, tmp_path: Path, mechanism: str) -> None:
    code, output, errors = log_dirs(
        sasl_ssl, tmp_path, trust(sasl_ssl) + login(mechanism, "operator", 'p\\\\"w\\\\\\\\1')
    )

    assert (code, errors) == (0, "")
    assert "orders-0" in output


def test_a_wrong_password_is_said_to_be_wrong(sasl_ssl: Sandbox, tmp_path: Path) -> None:
    code, output, errors = log_dirs(sasl_ssl, tmp_path, trust(sasl_ssl) + login("SCRAM-SHA-512", "operator", "no"))

    assert (code, output) == (1, "")
    assert "the SASL credentials" in errors
    assert errors.count("\n") == 1


def test_a_certificate_nobody_vouches_for_is_refused(sasl_ssl: Sandbox, tmp_path: Path) -> None:
    code, _, errors = log_dirs(sasl_ssl, tmp_path, "security.protocol=SASL_SSL\n" + login("PLAIN", "operator", "x"))

    assert code == 1
    assert "not trusted" in errors
    assert errors.count("\n") == 1


def test_a_principal_without_describe_on_the_cluster(sasl_ssl: Sandbox, tmp_path: Path) -> None:
    code, output, errors = log_dirs(sasl_ssl, tmp_path, trust(sasl_ssl) + login("PLAIN", "guest", "guest"))

    assert code == 1
    assert "orders" not in output
    assert "DESCRIBE on the cluster" in errors
    assert errors.count("\n") == 1


def test_sasl_without_tls_to_a_tls_listener(sasl_ssl: Sandbox, tmp_path: Path) -> None:
    code, _, errors = log_dirs(
        sasl_ssl, tmp_path, "security.protocol=SASL_PLAINTEXT\n" + login("PLAIN", "operator", "x")
    )

    assert code == 1
    assert "TLS" in errors
    assert errors.count("\n") == 1


def test_mutual_tls_with_pem_stores(tmp_path: Path) -> None:
    principal = CLIENT_CERTIFICATE_PRINCIPAL.removeprefix("User:")
    security = SecuritySpec(protocol="SSL", mutual_tls=True, acls=True, super_users=(principal,))
    with Sandbox(SandboxSpec(volumes=VOLUMES, security=security)) as sandbox:
        create_topic(sandbox, "orders")
        trusting = f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={sandbox.ca_pem}\n"
        with_key = trusting + f"ssl.keystore.type=PEM\nssl.keystore.location={sandbox.client_pem}\n"
        known = log_dirs(sandbox, tmp_path, with_key)
        unknown = log_dirs(sandbox, tmp_path, trusting)

    assert known[0] == 0, known[2]
    assert "orders-0" in known[1]
    assert unknown[0] == 1
    assert "client certificate" in unknown[2]
    assert unknown[2].count("\n") == 1


def test_each_missing_permission_costs_what_it_must_and_is_named(tmp_path: Path) -> None:
    """One permission after the other: the log dirs are shown from the first on, the remote sizes with the last."""
    security = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users={"eve": "e"}, acls=True)
    properties = "security.protocol=SASL_PLAINTEXT\n" + login("PLAIN", "eve", "e")
    metadata = ("--topic", "__remote_log_metadata")
    with Sandbox(SandboxSpec(volumes=VOLUMES, tiered=True, security=security)) as sandbox:
        create_topic(sandbox, "tiered", config=TIERED)
        produce(sandbox, "tiered", 2.2)
        eventually(lambda: is_settled(sandbox, "tiered", 0, at_most=3))
        for operation, *resource in (
            ("Describe", "--cluster"),
            ("Describe", "--topic", "tiered"),
            ("DescribeConfigs", "--topic", "tiered"),
            ("Describe", *metadata),
        ):
            allow(sandbox, "eve", operation, *resource)
            assert tiered_row(sandbox, tmp_path, properties)["remote_size_reason"] == "no-permission"
        allow(sandbox, "eve", "Read", *metadata)
        uploaded = sum(remote_segments(sandbox, "tiered", 0).values())
        eventually(lambda: tiered_row(sandbox, tmp_path, properties)["remote_size"] == str(uploaded))


def allow(sandbox: Sandbox, user: str, operation: str, *resource: str) -> None:
    allowed = sandbox.java_tool(
        *("acls", "--bootstrap-server", sandbox.admin_servers, "--add", "--allow-principal", f"User:{user}"),
        *("--operation", operation, *resource),
    )
    assert allowed.returncode == 0, allowed.stderr


def tiered_row(sandbox: Sandbox, folder: Path, properties: str) -> dict[str, str]:
    code, output, errors = log_dirs(sandbox, folder, properties, "--include-remote-info", "--output", "csv")
    assert code == 0, errors
    (row,) = (row for row in csv.DictReader(output.splitlines()) if row["topic"] == "tiered")
    return row
