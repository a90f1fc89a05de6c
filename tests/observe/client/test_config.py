"""Java's client properties: what is honoured, passed over, refused by name, and warned about."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from kafka import KafkaConsumer
from kafka.net.manager import KafkaConnectionManager

from brimline.model import BadInput
from brimline.observe.client.config import KNOWN, REFUSED, ClientConfig, SecurityProtocol
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def config_of(properties: Mapping[str, str] | None = None, servers: str = "broker:9092") -> ClientConfig:
    entries = [
        PropertyEntry(key, value, "client.properties", line)
        for line, (key, value) in enumerate((properties or {}).items(), start=1)
    ]
    return ClientConfig.from_properties(servers, JavaProperties(entries))


def refusal_of(properties: Mapping[str, str]) -> str:
    with pytest.raises(BadInput) as refused:
        config_of(properties)
    return str(refused.value)


def sasl(**changes: str) -> dict[str, str]:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} required username="alice" password="s3cret";',
    }
    return properties | {key.replace("_", "."): value for key, value in changes.items()}


def test_the_defaults() -> None:
    config = config_of()

    assert config.bootstrap_servers == ("broker:9092",)
    assert config.security_protocol is SecurityProtocol.PLAINTEXT
    assert (config.ssl_context, config.sasl_mechanism, config.api_timeout) == (None, None, None)
    assert config.warnings == ()


def test_what_is_honoured() -> None:
    config = config_of(
        {
            "client.id": " me ",
            "request.timeout.ms": "5000",
            "default.api.timeout.ms": "7000",
            "socket.connection.setup.timeout.ms": "100",
            "bootstrap.servers": "ignored:1",
            "metric.reporters": "com.example.Reporter",
            "retries": "3",
        }
    )

    assert config.client_id == "me"
    assert (config.request_timeout, config.api_timeout) == (timedelta(seconds=5), timedelta(seconds=7))
    assert config.connection_setup_timeout == timedelta(milliseconds=100)
    assert config.bootstrap_servers == ("broker:9092",)
    assert config.warnings == ()


def test_kafka_python_takes_every_option_we_give() -> None:
    config = config_of(sasl())

    assert set(config.kafka_python_options()) <= set(KafkaConsumer.DEFAULT_CONFIG)
    assert set(config.kafka_python_connection_options()) <= set(KafkaConnectionManager.DEFAULT_CONFIG)
    assert config.kafka_python_options()["sasl_plain_password"] == "s3cret"
    assert config.kafka_python_connection_options()["socket_connection_setup_timeout_ms"] == 10000


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("a:1,b:2", ("a:1", "b:2")),
        (" a:1 ,, b:2 ", ("a:1", "b:2")),
        ("PLAINTEXT://a:1", ("a:1",)),
        ("[::1]:9092", ("[::1]:9092",)),
    ],
)
def test_bootstrap_servers(servers: str, expected: tuple[str, ...]) -> None:
    assert config_of(servers=servers).bootstrap_servers == expected


@pytest.mark.parametrize("servers", ["", ",", "host", "host:", ":9092", "host:0", "host:65536", "::1:9092", "a b:1"])
def test_bootstrap_servers_that_are_none(servers: str) -> None:
    with pytest.raises(BadInput, match="bootstrap server"):
        config_of(servers=servers)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("module", [PLAIN, SCRAM])
def test_a_login(mechanism: str, module: str) -> None:
    jaas = f"{module} required username='al\"ice' password=word;"

    config = config_of(sasl(sasl_mechanism=mechanism) | {"sasl.jaas.config": jaas})

    assert (config.sasl_mechanism, config.sasl_username, config.sasl_password) == (mechanism, 'al"ice', "word")
    assert "word" not in repr(config)


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_what_cannot_be_honoured_is_refused_by_name(key: str) -> None:
    assert key in KNOWN
    assert refusal_of({key: "x.Y"}).startswith(f"client.properties line 1: {key}=x.Y: is not supported: ")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"security.protocol": "TLS"},
            "client.properties line 1: security.protocol=TLS: allowed: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (
            {"request.timeout.ms": "5s"},
            "client.properties line 1: request.timeout.ms=5s: allowed: milliseconds, "
            "a whole number from 0 to 2147483647",
        ),
        (
            {"request.timeout.ms": "9", "default.api.timeout.ms": "8"},
            "client.properties line 2: default.api.timeout.ms=8: must not be smaller than request.timeout.ms",
        ),
        (
            sasl(sasl_mechanism="GSSAPI"),
            "client.properties line 2: sasl.mechanism=GSSAPI: GSSAPI (Kerberos) is not supported; allowed: PLAIN, "
            "SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
        ),
        (
            {"security.protocol": "SASL_SSL"},
            "sasl.mechanism is missing; Kafka's default is GSSAPI, and GSSAPI (Kerberos) is not supported; allowed: "
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
        ),
        (
            {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"},
            "sasl.jaas.config is missing: PLAIN takes the user name and password from it",
        ),
        (
            {"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1,TLSv1.2"},
            "client.properties line 2: ssl.enabled.protocols=TLSv1.1,TLSv1.2: allowed: TLSv1.2, TLSv1.3, "
            "or both with a comma",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "/t.jks"},
            "client.properties line 2: ssl.truststore.location: cannot read /t.jks: No such file or directory",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "/no/t.pem", "ssl.truststore.type": "PEM"},
            "client.properties line 2: ssl.truststore.location: cannot read /no/t.pem: No such file or directory",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.certificates": "nothing", "ssl.truststore.type": "PEM"},
            "client.properties line 2: ssl.truststore.certificates=nothing: no certificate in it",
        ),
    ],
)
def test_a_refusal_names_key_value_allowed_values_file_and_line(properties: dict[str, str], message: str) -> None:
    assert refusal_of(properties) == message


@pytest.mark.parametrize(
    ("jaas", "message"),
    [
        ("com.sun.security.auth.module.Krb5LoginModule required;", "Krb5LoginModule is not supported"),
        (f"{SCRAM} required tokenauth=true username=hidden password=hidden;", "tokenauth is not supported"),
        (f"{PLAIN} required username=hidden;", "the option password is missing"),
        (f"{PLAIN} required username=hidden password=123;", "the option password has no value"),
        (f"{PLAIN} required username=hidden password=hidden", "does not end with a semicolon"),
        (f"{PLAIN} username=hidden password=hidden;", "no control flag after"),
        (f"{PLAIN} required; {PLAIN} required;", "one login module, has 2"),
    ],
)
def test_a_refused_login_does_not_show_its_secrets(jaas: str, message: str) -> None:
    refusal = refusal_of(sasl() | {"sasl.jaas.config": jaas})

    assert refusal.startswith("client.properties line 3: sasl.jaas.config: ")
    assert message in refusal
    assert "hidden" not in refusal


def test_unknown_properties_are_one_warning() -> None:
    assert config_of({"zzz": "1", "acks": "all", "aaa": "2"}).warnings == (
        "unknown to Kafka clients, no effect: aaa, zzz",
    )


def test_a_provider_reference_without_providers_is_literal_and_warned_about() -> None:
    config = config_of(sasl() | {"sasl.jaas.config": f'{PLAIN} required username=a password="${{file:/p:k}}";'})

    assert config.sasl_password == "${file:/p:k}"
    assert len(config.warnings) == 1
    assert "sasl.jaas.config" in config.warnings[0]
