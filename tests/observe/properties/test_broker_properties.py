"""A broker's file read with the broker's eyes."""

from pathlib import Path

import pytest

from brimline.observe.properties.broker_properties import BrokerProperties, BrokerPropertiesReader, ClientAuth, is_read
from brimline.observe.properties.connection_limits import ConnectionLimits
from brimline.observe.properties.java_properties import parse_properties


def read(text: str, cwd: str | None = None) -> tuple[BrokerProperties, BrokerPropertiesReader]:
    reader = BrokerPropertiesReader(parse_properties(text.encode(), "server.properties"), cwd)
    return reader.read(), reader


def test_the_default_log_dir_is_kafkas() -> None:
    assert read("node.id=1")[0].log_dirs == ("/tmp/kafka-logs",)


def test_log_dirs_wins_over_log_dir() -> None:
    assert read("log.dir=/x\nlog.dirs=/a, /b")[0].log_dirs == ("/a", "/b")


def test_log_dir_alone_counts() -> None:
    assert read("log.dir=/x")[0].log_dirs == ("/x",)


def test_paths_are_written_as_java_writes_them() -> None:
    assert read("log.dirs=/a//b/,/c/../d")[0].log_dirs == ("/a/b", "/c/../d")


def test_duplicates_collapse_with_a_warning() -> None:
    properties, reader = read("log.dirs=/a,/a/,/b")

    assert properties.log_dirs == ("/a", "/b")
    assert "more than once" in reader.warnings[0]


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("broker.id=1\nzookeeper.connect=zk:2181", True),
        ("node.id=1\nprocess.roles=broker", False),
        ("node.id=1\nprocess.roles=broker\nzookeeper.connect=zk:2181", False),
    ],
)
def test_a_cluster_with_zookeeper_is_named_as_unsupported(text: str, *, is_named: bool) -> None:
    _, reader = read(text)

    assert any("ZooKeeper clusters are not supported" in warning for warning in reader.warnings) is is_named


def test_a_relative_log_dir_is_refused_by_name_without_the_brokers_directory() -> None:
    _, reader = read("node.id=1\nlog.dirs=data,/b")

    (problem,) = reader.problems
    assert "line 2" in str(problem)
    assert "--broker-cwd" in str(problem)


def test_a_relative_log_dir_is_joined_to_the_brokers_directory() -> None:
    assert read("log.dirs=data,./x", cwd="/opt/kafka/")[0].log_dirs == ("/opt/kafka/data", "/opt/kafka/./x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("node.id=3", 3), ("broker.id=4", 4), ("node.id=3\nbroker.id=4", 3), ("broker.id=-1\nlog.dirs=/nowhere", None)],
)
def test_the_id(text: str, expected: int | None) -> None:
    assert read(text)[0].node_id == expected


def test_a_generated_id_is_read_from_the_log_dir(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1001\n")

    assert read(f"log.dirs={tmp_path}")[0].node_id == 1001


def test_listeners_are_as_advertised_and_without_the_controllers() -> None:
    properties, _ = read(
        "listeners=client://:9092,CTRL://:9093\nadvertised.listeners=CLIENT://b.example:19092\n"
        "controller.listener.names=CTRL\nlistener.security.protocol.map=client:SSL,CTRL:PLAINTEXT"
    )

    assert list(properties.listeners) == ["CLIENT"]
    assert properties.listeners["CLIENT"].address == "b.example:19092"
    assert properties.listeners["CLIENT"].security_protocol == "SSL"


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_a_listener_on_every_address_is_on_this_machine(host: str) -> None:
    properties, _ = read(f"listeners=PLAINTEXT://{host}:9092")

    assert properties.listeners["PLAINTEXT"].address == "localhost:9092"


def test_garbage_in_listeners_is_refused() -> None:
    _, reader = read("listeners=localhost:9092")

    assert "NAME://host:port" in str(reader.problems[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "PLAINTEXT"),
        ("security.inter.broker.protocol=SASL_SSL", "SASL_SSL"),
        ("inter.broker.listener.name=internal", "INTERNAL"),
    ],
)
def test_the_listener_among_brokers(text: str, expected: str) -> None:
    assert read(text)[0].inter_broker_listener == expected


def test_the_rhythms_have_kafkas_defaults() -> None:
    properties, _ = read("")

    assert (properties.retention_check_interval, properties.remote_task_interval) == (300.0, 30.0)


def test_listeners_as_they_are_bound_are_all_of_them() -> None:
    properties, _ = read(
        "listeners=client://:9092,CTRL://:9093\nadvertised.listeners=CLIENT://b.example:19092\n"
        "controller.listener.names=ctrl\nlistener.security.protocol.map=client:SSL,CTRL:PLAINTEXT"
    )

    assert {name: bound.port for name, bound in properties.bound_listeners.items()} == {"CLIENT": 9092, "CTRL": 9093}
    assert properties.controller_listeners == ("CTRL",)


def test_the_listener_of_the_remote_log_metadata() -> None:
    assert read("")[0].remote_log_metadata_listener is None
    assert read("remote.log.metadata.manager.listener.name=inner")[0].remote_log_metadata_listener == "INNER"


@pytest.mark.parametrize(
    ("protocol", "lines", "expected"),
    [
        ("SSL", "", ClientAuth.NONE),
        ("SSL", "ssl.client.auth=required", ClientAuth.REQUIRED),
        ("SSL", "ssl.client.auth=required\nlistener.name.in.ssl.client.auth=Requested", ClientAuth.REQUESTED),
        ("SASL_SSL", "ssl.client.auth=required", ClientAuth.NONE),
        ("SASL_SSL", "listener.name.in.ssl.client.auth=required", ClientAuth.REQUIRED),
    ],
)
def test_whether_clients_are_asked_for_certificates(protocol: str, lines: str, expected: ClientAuth) -> None:
    properties, _ = read(f"listeners=IN://:9092\nlistener.security.protocol.map=IN:{protocol}\n{lines}")

    assert properties.client_auth == {"IN": expected}


def test_an_unknown_wish_for_certificates_is_refused() -> None:
    _, reader = read("ssl.client.auth=perhaps")

    assert "allowed: none, requested, required" in str(reader.problems[0])


def test_the_largest_request() -> None:
    assert read("")[0].largest_request == 104857600
    assert read("socket.request.max.bytes=2147483647")[0].largest_request == 2147483647
    assert "from 1 to 2147483647" in str(read("socket.request.max.bytes=0")[1].problems[0])


def test_limits_of_connections() -> None:
    limits = read(
        "listeners=IN://:9092\nlistener.security.protocol.map=IN:PLAINTEXT\nmax.connections.per.ip=10\n"
        "max.connections.per.ip.overrides=127.0.0.1:200\nlistener.name.in.max.connection.creation.rate=5\n"
        "principal.builder.class=com.example.Names"
    )[0].connection_limits

    assert (limits.per_ip, limits.per_ip_overrides) == (10, "127.0.0.1:200")
    assert limits.creation_rates == {"listener.name.in.max.connection.creation.rate": 5}
    assert limits.principal_builders == {"principal.builder.class": "com.example.Names"}


def test_no_limits_of_connections_by_default() -> None:
    assert read("max.connections.per.ip=2147483647")[0].connection_limits == ConnectionLimits()


def test_a_limit_that_is_no_number_is_refused() -> None:
    assert "max.connections.per.ip=many" in str(read("max.connections.per.ip=many")[1].problems[0])


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("listeners", True),
        ("max.connections.per.ip", True),
        ("listener.name.client.ssl.client.auth", True),
        ("listener.name.client.ssl.keystore.password", False),
        ("ssl.keystore.password", False),
    ],
)
def test_no_secret_is_looked_at(key: str, *, expected: bool) -> None:
    assert is_read(key) is expected
