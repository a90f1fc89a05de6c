"""A broker's file read with the broker's eyes."""

from pathlib import Path

import pytest

from brimline.observe.broker_properties import BrokerProperties, BrokerPropertiesReader
from brimline.observe.java_properties import parse_properties


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
