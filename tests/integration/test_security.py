"""SASL, TLS and ACLs against real listeners, through the command and its Java-named properties."""

import base64
import csv
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from brimline.model import Bytes
from brimline.sandbox import CLIENT_CERTIFICATE_PRINCIPAL, Sandbox, SandboxSpec, SecuritySpec, VolumeSpec
from tests.integration.cluster import TIERED, brimline, create_topic, produce
from tests.integration.kafka_clients import kafka_admin
from tests.integration.test_bad_input import refused
from tests.integration.test_remote_info import is_settled, remote_segments
from tests.waiting import eventually

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


@pytest.fixture(scope="module")
def mutual_tls() -> Iterator[Sandbox]:
    principal = CLIENT_CERTIFICATE_PRINCIPAL.removeprefix("User:")
    security = SecuritySpec(protocol="SSL", mutual_tls=True, acls=True, super_users=(principal,))
    with Sandbox(SandboxSpec(volumes=VOLUMES, security=security)) as running:
        yield running


def test_mutual_tls_with_pem_stores(mutual_tls: Sandbox, tmp_path: Path) -> None:
    create_topic(mutual_tls, "orders")
    trusting = f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={mutual_tls.ca_pem}\n"
    with_key = trusting + f"ssl.keystore.type=PEM\nssl.keystore.location={mutual_tls.client_pem}\n"
    known = log_dirs(mutual_tls, tmp_path, with_key)
    unknown = log_dirs(mutual_tls, tmp_path, trusting)

    assert known[0] == 0, known[2]
    assert "orders-0" in known[1]
    assert unknown[0] == 1
    assert "client certificate" in unknown[2]
    assert unknown[2].count("\n") == 1


def test_tls_to_a_plaintext_listener_and_the_other_way_round(mutual_tls: Sandbox) -> None:
    assert "does not speak TLS" in refused(mutual_tls.admin_servers, "--command-property", "security.protocol=SSL")
    # A broker may send its alert before it closes, or not.
    told = refused(mutual_tls.bootstrap_servers)
    assert re.search("may want SASL or TLS|if it is a TLS listener", told)
    assert "is down" not in told


@pytest.fixture(scope="module")
def sasl() -> Iterator[Sandbox]:
    security = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users={"eve": "e"}, acls=True)
    with Sandbox(SandboxSpec(volumes=VOLUMES, tiered=True, security=security)) as running:
        yield running


def test_plaintext_to_a_sasl_listener(sasl: Sandbox) -> None:
    assert "SASL" in refused(sasl.bootstrap_servers)


def test_each_missing_permission_costs_what_it_must_and_is_named(sasl: Sandbox, tmp_path: Path) -> None:
    """One permission after the other: the log dirs are shown from the first on, the remote sizes with the last."""
    properties = "security.protocol=SASL_PLAINTEXT\n" + login("PLAIN", "eve", "e")
    create_topic(sasl, "tiered", config=TIERED)
    produce(sasl, "tiered", 2.2)
    eventually(lambda: is_settled(sasl, "tiered", 0, at_most=3))
    allow(sasl, ResourceType.CLUSTER, "kafka-cluster", ACLOperation.DESCRIBE)
    eventually(lambda: log_dirs(sasl, tmp_path, properties)[0] == 0)
    assert tiered_row(sasl, tmp_path, properties)["remote_size_reason"] == "no-permission"
    for topic, operation in (
        ("tiered", ACLOperation.DESCRIBE),
        ("tiered", ACLOperation.DESCRIBE_CONFIGS),
        ("__remote_log_metadata", ACLOperation.DESCRIBE),
    ):
        allow(sasl, ResourceType.TOPIC, topic, operation)
        assert tiered_row(sasl, tmp_path, properties)["remote_size_reason"] == "no-permission"
    allow(sasl, ResourceType.TOPIC, "__remote_log_metadata", ACLOperation.READ)
    uploaded = sum(remote_segments(sasl, "tiered", 0).values())
    eventually(lambda: tiered_row(sasl, tmp_path, properties)["remote_size"] == str(uploaded))


def allow(sandbox: Sandbox, resource: ResourceType, name: str, operation: ACLOperation) -> None:
    rule = ACL("User:eve", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(resource, name))
    with kafka_admin(sandbox.admin_servers) as client:
        client.create_acls([rule])


def tiered_row(sandbox: Sandbox, folder: Path, properties: str) -> dict[str, str]:
    code, output, errors = log_dirs(sandbox, folder, properties, "--include-remote-info", "--output", "csv")
    assert code == 0, errors
    (row,) = (row for row in csv.DictReader(output.splitlines()) if row["topic"] == "tiered")
    return row


OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.fixture(scope="module")
def oauth() -> Iterator[Sandbox]:
    """The broker takes tokens that nobody has signed, as Kafka does without a validator of its own."""
    security = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users={"operator": "secret"})
    bearer = f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="broker";'
    properties = {
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.client.oauthbearer.sasl.jaas.config": bearer,
    }
    with Sandbox(SandboxSpec(volumes=VOLUMES, security=security, properties=properties)) as running:
        create_topic(running, "orders")
        yield running


def unsigned_token(subject: str, *, seconds: int) -> str:
    now = int(time.time())
    claims = {"sub": subject, "iat": now, "exp": now + seconds}
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    parts = [base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts]
    return b".".join([*parts, b""]).decode()


def test_a_token_from_a_file_logs_in(oauth: Sandbox, tmp_path: Path) -> None:
    token = tmp_path / "token"
    properties = (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.oauthbearer.token.endpoint.url=file://{token}\nsasl.jaas.config={OAUTH_MODULE} required;\n"
    )
    token.write_text(unsigned_token("operator", seconds=3600))
    code, shown, said = log_dirs(oauth, tmp_path, properties, "--output", "csv")
    assert (code, said) == (0, "")
    assert "orders" in shown

    token.unlink()
    code, shown, said = log_dirs(oauth, tmp_path, properties)
    assert (code, shown) == (1, "")
    assert f"no token: {token} cannot be read: No such file or directory" in said
