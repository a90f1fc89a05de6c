"""``guard``, ``doctor`` and ``status`` as commands: what they print and how they end."""

import json
import platform
import socket
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from brimline import __version__
from brimline.cli import main
from brimline.cli.parser import COMMANDS


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    path = tmp_path / "log-dir"
    path.mkdir()
    return path


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Nobody listens, and nobody else can."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def properties(tmp_path: Path, log_dir: Path, closed_port: int) -> Path:
    """Of a broker that does not run."""
    path = tmp_path / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs={log_dir}\nlisteners=PLAINTEXT://127.0.0.1:{closed_port}\n"
        "brimline.admin.default.api.timeout.ms=60000\nbrimline.admin.request.timeout.ms=60000\n"
    )
    return path


@pytest.mark.parametrize("command", ["guard", "doctor", "status", "gateway", "fence", "unfence"])
def test_help_shows_examples_and_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command in COMMANDS

    assert main([command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "examples:" in shown
    assert "exit codes:" in shown


@pytest.mark.parametrize("command", [["guard"], ["guard", "--check"], ["doctor"]])
def test_all_mistakes_of_the_file_are_on_stderr(
    command: list[str], properties: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    properties.write_text(properties.read_text() + "disk.max.used.percent=1\nbrimline.log.format=xml\n")

    code = main([*command, "--config", str(properties)])

    said = capsys.readouterr().err
    assert code == 1
    assert f"{properties} line 6: disk.max.used.percent=1: allowed: a whole number from 10 to 100" in said
    assert f"{properties} line 7: brimline.log.format=xml: allowed: text, json" in said


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["guard", "--config", str(tmp_path / "missing")])

    assert code == 1
    assert capsys.readouterr().err.startswith("brimline: cannot read the properties file")


def test_check_explains_in_plain_words(properties: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["guard", "--check", "--config", str(properties)])

    shown = capsys.readouterr().out
    assert code == 3
    assert "a log dir is full when more than 99 % of its volume is used or less than 1.00 GiB of it is usable" in shown
    assert f"{log_dir}: device" in shown
    assert "PROBLEM the broker does not answer" in shown
    assert "refused the connection" in shown


def test_doctor_for_programs(properties: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--config", str(properties), "--output", "json"])

    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "brimline.doctor"
    (problem,) = [finding for finding in document["findings"] if finding["weight"] == "problem"]
    assert problem["topic"] == "broker"


def test_doctor_changes_no_file(properties: Path, tmp_path: Path) -> None:
    properties.write_text(f"{properties.read_text()}brimline.state.dir={tmp_path / 'state'}\n")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    main(["doctor", "--config", str(properties)])

    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_report_has_versions_settings_and_findings_and_no_secret(
    properties: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required username=admin password=hush;"
    secrets = (
        f"brimline.admin.sasl.jaas.config={login}",
        "brimline.landing.uri=s3://me:hush@bucket",
        "brimline.admin.ssl.keystore.password=hush",
        "brimline.admin.ssl.keystore.key=hush",
        "brimline.admin.sasl.oauthbearer.client.credentials.client.secret=hush",
        "brimline.jmx.javax.net.ssl.keyStorePassword=hush",
        f"listener.name.client.plain.sasl.jaas.config={login}",
        "ssl.keystore.password=hush",
        "ssl.key.password=hush",
        "ssl.truststore.password=hush",
        "ssl.keystore.key=hush",
        "password.encoder.secret=hush",
        "delegation.token.secret.key=hush",
        "plugin.api.key=hush",
    )
    properties.write_text(properties.read_text() + "\n".join([*secrets, "log.retention.hours=7", ""]))

    code = main(["doctor", "--config", str(properties), "--report"])

    captured = capsys.readouterr()
    shown = captured.out
    assert code == 3
    assert f"Brimline {__version__}\n  Python    {platform.python_version()}" in shown
    assert platform.release() in shown
    assert f"kafka-python {metadata.version('kafka-python')}" in shown
    assert f"\n  log.dirs={log_dir}\n" in shown
    assert "\n  brimline.landing.uri=s3://…@bucket\n" in shown
    assert "PROBLEM the broker does not answer" in shown
    assert "hush" not in shown + captured.err


def test_a_report_hides_what_a_misspelt_key_holds(properties: Path, capsys: pytest.CaptureFixture[str]) -> None:
    misspelt = ("brimline.admin.sasl.jas.config=hush", "brimline.api.key=hush")
    properties.write_text(properties.read_text() + "\n".join([*misspelt, ""]))

    code = main(["doctor", "--config", str(properties), "--report"])

    captured = capsys.readouterr()
    assert code == 1
    assert "brimline.admin.sasl.jas.config=…\n" in captured.out
    assert "hush" not in captured.out + captured.err


def test_a_report_on_a_file_that_cannot_be_used_shows_it(properties: Path, capsys: pytest.CaptureFixture[str]) -> None:
    properties.write_text(properties.read_text() + "disk.max.used.percent=1\n")

    code = main(["doctor", "--config", str(properties), "--report"])

    assert code == 1
    assert "  disk.max.used.percent=1\n" in capsys.readouterr().out


def test_an_impossible_minimum_is_named_with_its_line(properties: Path, capsys: pytest.CaptureFixture[str]) -> None:
    properties.write_text(properties.read_text() + f"disk.min.free.bytes={2**62}\n")

    main(["doctor", "--config", str(properties)])

    shown = capsys.readouterr().out
    assert "it would always be full" in shown
    assert "line 6" in shown


def test_a_log_dir_that_is_not_there(properties: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_dir.rmdir()

    main(["doctor", "--config", str(properties)])

    assert f"{log_dir} does not exist: is its volume mounted?" in capsys.readouterr().out


def test_status_without_a_guard_is_one_sentence(closed_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["status", "--url", f"http://127.0.0.1:{closed_port}"])

    assert code == 1
    assert "no guard answers at" in capsys.readouterr().err


def test_status_of_something_that_is_no_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--url", "file:///etc/passwd"]) == 1
    assert "write http://host:port" in capsys.readouterr().err
