"""A marker in every key that takes text, and in every key that holds a secret: no output of guard or doctor has it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brimline.cli import main
from brimline.model import BadInput
from brimline.settings import keys
from brimline.settings.keys import KEYS, KeyKind
from brimline.settings.reload import reloaded
from tests.guard.files import config, problems
from tests.waiting import PATIENCE_SECONDS, eventually

MARK = "M4RK3R"
URI = f"s3://KEY:{MARK}/{MARK}@bucket/a?secret_key={MARK}&endpoint_override=127.0.0.1:1&scheme=http&region=x"
LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{MARK}";'
WRONG_LOGIN = f"PlainLoginModule required password={MARK}"
SECRETS = (
    "brimline.admin.sasl.jaas.config",
    "brimline.admin.ssl.key.password",
    "brimline.admin.ssl.keystore.key",
    "brimline.admin.ssl.keystore.password",
    "brimline.admin.ssl.truststore.password",
    "brimline.jmx.javax.net.ssl.keyStorePassword",
    "brimline.jmx.javax.net.ssl.trustStorePassword",
    "listener.name.client.plain.sasl.jaas.config",
    "listener.name.client.ssl.key.password",
    "listener.name.client.ssl.keystore.password",
    "sasl.jaas.config",
    "ssl.keystore.key",
    "ssl.keystore.password",
)
ADMIN_LOGINS = "brimline.admin.security.protocol=SASL_SSL\nbrimline.admin.sasl.mechanism=PLAIN\n"


def told_of(added: str) -> str:
    """What is said of a file without looking at anything: what is wrong with it, else what changes by it."""
    try:
        read = config(added)
    except BadInput as bad:
        return str(bad)
    changes = [*reloaded(config(), read)[1], *reloaded(read, config())[1]]
    return "\n".join((*read.warnings, *map(str, changes)))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_login_in_any_key_is_not_repeated(key: keys.Key) -> None:
    told = told_of(f"{key.name}={URI}\n")

    assert "s3://…@bucket" in told.lower()
    assert MARK.lower() not in told.lower()


@pytest.mark.parametrize("value", [MARK, WRONG_LOGIN, URI, f"${{file:/no/such/file:{MARK}"])
@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_is_not_repeated_whatever_is_wrong_with_it(key: str, value: str) -> None:
    assert MARK not in told_of(f"{ADMIN_LOGINS}{key}={value}\nbrimline.jmx.port=9999\n")


def test_a_secret_is_hidden_before_it_is_cut_short() -> None:
    (problem,) = problems(f"brimline.metrics.port=s3://KEY:{MARK * 20}@bucket")

    assert MARK not in problem
    assert "s3://…@bucket" in problem


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def properties(tmp_path: Path, closed_port: int) -> Path:
    """Of a broker that does not run; every secret is in its place, and so is a landing place with a login."""
    (tmp_path / "logs").mkdir()
    path = tmp_path / "server.properties"
    settings = {
        "node.id": "1",
        "log.dirs": str(tmp_path / "logs"),
        "listeners": f"CLIENT://127.0.0.1:{closed_port}",
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "brimline.admin.security.protocol": "SASL_PLAINTEXT",
        "brimline.admin.sasl.mechanism": "PLAIN",
        **{key: LOGIN if key.endswith("jaas.config") else MARK for key in SECRETS if "keystore.key" not in key},
        "brimline.jmx.port": str(closed_port),
        "brimline.jmx.java": "/bin/false",
        "brimline.metrics.port": "0",
        "brimline.landing.uri": URI,
        "brimline.landing.interval.ms": "1000",
        "brimline.state.dir": str(tmp_path / "state"),
        "brimline.log.level": "debug",
    }
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


@pytest.mark.parametrize("command", [["guard", "--check"], ["doctor"], ["doctor", "--output", "json"], ["gateway"]])
def test_no_command_says_a_secret(command: list[str], properties: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main([*command, "--config", str(properties)])

    said = "".join(capfd.readouterr())
    assert said
    assert MARK not in said


@pytest.mark.parametrize("key", [key for key in KEYS if key.kind is KeyKind.TEXT], ids=lambda key: key.name)
def test_the_doctor_repeats_no_login(key: keys.Key, properties: Path, capfd: pytest.CaptureFixture[str]) -> None:
    properties.write_text(f"{properties.read_text()}{key.name}={URI}\n")

    main(["doctor", "--config", str(properties)])

    assert MARK not in "".join(capfd.readouterr())


@contextmanager
def running_guard(properties: Path, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "brimline.cli", "guard", "--config", str(properties)]
    environment = os.environ | {"AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"}
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, env=environment, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def test_a_running_guard_says_no_secret(properties: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Not in its log, from its start to a reload that is refused and to its end, and not over HTTP."""
    log = tmp_path / "log"
    with running_guard(properties, log) as process:
        eventually(lambda: " started " in log.read_text())
        port = int(log.read_text().partition(" port=")[2].split()[0])
        eventually(lambda: fetched(port, "/v1/state")["landing"]["failure"] is not None)
        paths = ("/", "/v1/state", "/v1/history", "/metrics", "/healthz", "/readyz")
        pages = "".join(text_of(port, path) for path in paths)
        main(["status", "--url", f"http://127.0.0.1:{port}"])
        text = properties.read_text()
        properties.write_text(text.replace("KEY:", "OTHER:") + f"brimline.metrics.host={URI}\n")
        process.send_signal(signal.SIGHUP)
        eventually(lambda: "brimline.landing.uri: " in log.read_text())
        properties.write_text(f"{text}brimline.state.dir={URI}\nsasl.jaas.config={WRONG_LOGIN}\n")
        process.send_signal(signal.SIGHUP)
        eventually(lambda: "reload-refused" in log.read_text())

    said = log.read_text() + pages + "".join(capfd.readouterr())
    assert "s3://…@bucket" in said
    assert MARK not in said


def text_of(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_SECONDS) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as refused:
        return refused.read().decode()


def fetched(port: int, path: str) -> dict[str, dict[str, object]]:
    document: dict[str, dict[str, object]] = json.loads(text_of(port, path))
    return document


@pytest.mark.parametrize(
    "words",
    [
        ["show", "--warehouse", URI.replace("s3:", "odd:")],
        ["show", "--warehouse", URI.replace("s3:", "odd:"), "volume_pressure"],
        ["collect", "--bootstrap-server", "127.0.0.1:1", "--landing", URI],
        ["collect", "--bootstrap-server", URI, "--landing", "/tmp"],
        ["run", "--landing", "/l", "--warehouse", "/w", URI],
        ["run", "--landing", "/l", "--warehouse", "/w", "--conf", URI],
    ],
)
def test_no_command_of_the_fleet_repeats_a_login(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    main(["fleet", *words])

    said = "".join(capfd.readouterr())
    assert MARK not in said
