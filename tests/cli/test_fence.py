"""``fence``, ``unfence`` and ``gateway`` as commands: what they tell the gateway, what they print, how they end."""

import os
import pwd
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TextIO

import pytest

from brimline.cli import main
from brimline.cli.fence import who
from brimline.settings.config import GuardConfig
from tests.guard.gateways import FakeGateway, document, fake_gateway, fence

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture(autouse=True)
def _nobody_behind_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_USER", raising=False)


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs=/data/a,/data/b/\nlisteners=PLAINTEXT://127.0.0.1:9092\nbrimline.state.dir={tmp_path}\n"
    )
    return path


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[FakeGateway]:
    with fake_gateway(tmp_path / "gateway-1.sock") as running:
        yield running


def test_a_log_dir_is_fenced_with_a_reason_on_record(
    properties: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["fence", "--config", str(properties), "--log-dir", "/data/a", "--reason", " moving it, CHG-1 "])

    assert code == 0
    assert gateway.told[0] == {"v": 1, "op": "fence", "logDir": "/data/a", "reason": "moving it, CHG-1", "by": ME}
    assert capsys.readouterr().out.splitlines() == [
        "fenced /data/a: Produce to its 12 partitions is refused with error 56",
        f"reason: moving it, CHG-1 (by {ME})",
        f"lift it with: brimline unfence --config {properties} --log-dir /data/a",
    ]


def test_a_topic_is_fenced(properties: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]) -> None:
    main(["fence", "--config", str(properties), "--topic", "clicks", "--reason", "runaway"])

    assert gateway.told[0] == {"v": 1, "op": "fence", "topic": "clicks", "reason": "runaway", "by": ME}
    assert capsys.readouterr().out.startswith("fenced topic clicks: Produce to its 12 partitions is refused")


@pytest.mark.parametrize("spelling", ["/data/b", "/data/b/", "/data/../data/b"])
def test_a_log_dir_is_named_to_the_gateway_as_the_broker_names_it(
    properties: Path, gateway: FakeGateway, spelling: str
) -> None:
    assert main(["fence", "--config", str(properties), "--log-dir", spelling, "--reason", "r"]) == 0

    assert os.path.normpath(gateway.told[0]["logDir"]) == "/data/b"


@pytest.mark.parametrize("name", ["", "a b/c!", "x" * 250])
def test_what_is_not_a_topics_name_is_not_fenced(
    properties: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["fence", "--config", str(properties), "--topic", name, "--reason", "r"]) == 1

    assert "is not a topic's name" in capsys.readouterr().err
    assert gateway.told == []


def test_a_log_dir_is_fenced_from_a_folder_that_is_gone(
    properties: Path, gateway: FakeGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert main(["fence", "--config", str(properties), "--log-dir", "/data/a", "--reason", "r"]) == 0

    assert gateway.told[0]["logDir"] == "/data/a"


def test_a_gateway_that_does_not_answer_in_time_may_still_fence(
    properties: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.is_silent = True

    assert main(["fence", "--config", str(properties), "--topic", "clicks", "--reason", "r"]) == 3

    assert "it may still do it: check brimline status" in capsys.readouterr().err


def test_a_gateway_that_observes_refuses_nothing_and_says_so(
    properties: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.document = document(enforcement="observe")

    main(["fence", "--config", str(properties), "--topic", "clicks", "--reason", "r"])

    assert "is counted, not refused (observe mode)" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["fence", "unfence"])
def test_no_gateway_is_one_sentence(command: str, properties: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([command, "--config", str(properties), "--log-dir", "/data/a", "--reason", "r"])

    assert code == 1
    assert capsys.readouterr().err == (
        f"brimline: no gateway is running: {properties.with_name('gateway-1.sock')} does not exist\n"
    )


@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize("command", ["fence", "unfence"])
def test_an_unknown_log_dir_is_refused_with_those_there_are(
    command: str, properties: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([command, "--config", str(properties), "--log-dir", "/data/z", "--reason", "r"])

    assert code == 1
    assert "brimline: /data/z is not a log dir of this broker; its log dirs are: /data/a, /data/b" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(("reason", "complaint"), [("  ", "--reason is empty"), ("a\nb", "one line of plain text")])
def test_a_reason_is_one_line_of_text(
    properties: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str], reason: str, complaint: str
) -> None:
    code = main(["fence", "--config", str(properties), "--topic", "t", "--reason", reason])

    assert code == 1
    assert complaint in capsys.readouterr().err
    assert gateway.told == []


@pytest.mark.parametrize(
    "options", [["--reason", "r"], ["--topic", "t", "--log-dir", "/data/a", "--reason", "r"], ["--topic", "t"]]
)
def test_a_fence_needs_one_target_and_a_reason(
    options: list[str], properties: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fence", "--config", str(properties), *options]) == 1
    assert "usage: brimline fence" in capsys.readouterr().err


def test_what_the_gateway_refuses_is_said_in_its_words(
    properties: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.error = "clicks is fenced by bob already"

    assert main(["fence", "--config", str(properties), "--topic", "clicks", "--reason", "r"]) == 1
    assert capsys.readouterr().err == "brimline: clicks is fenced by bob already\n"


def test_a_fence_by_hand_is_lifted(properties: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]) -> None:
    gateway.document = document(fences=[fence("manual", by="alice", topic="clicks")])

    code = main(["unfence", "--config", str(properties), "--topic", "clicks"])

    assert code == 0
    assert gateway.told[1] == {"v": 1, "op": "unfence", "topic": "clicks", "reason": "", "by": ME}
    assert capsys.readouterr().out.splitlines() == [
        "lifted the fence on topic clicks, by alice since 2026-01-01 00:10 UTC: moving this disk",
        "Produce to its 12 partitions is accepted again",
    ]


def test_a_disk_that_is_full_as_well_stays_fenced(
    properties: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.document = document(fences=[fence("full"), fence("manual", by="alice", logDir="/data/a")])

    code = main(["unfence", "--config", str(properties), "--log-dir", "/data/a"])

    assert code == 3
    assert "still fenced, because it is full: more than 90 % is used\nmake room:" in capsys.readouterr().out


def test_a_topic_is_still_refused_where_its_disk_is_full(
    properties: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.document = document(fences=[fence("full"), fence("manual", by="alice", topic="clicks")])

    code = main(["unfence", "--config", str(properties), "--topic", "clicks"])

    said = capsys.readouterr().out
    assert code == 3
    assert "is accepted again" not in said
    assert "still refused: its partitions in /data/a, which is fenced: more than 90 % is used\nmake room:" in said


@pytest.mark.parametrize("cause", ["full", "guard"])
def test_a_full_disk_cannot_be_released_by_hand(
    cause: str, properties: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.document = document(fences=[fence(cause)])

    code = main(["unfence", "--config", str(properties), "--log-dir", "/data/a"])

    assert code == 1
    assert capsys.readouterr().err == (
        "brimline: /data/a is fenced because it is full, not by hand (more than 90 % is used): make room: brimline "
        f"topics --config {properties} shows what fills it; lower the retention of a topic, delete a topic or move "
        "replicas; the fence lifts automatically when the disk has room\n"
    )
    assert [told["op"] for told in gateway.told] == ["state"]


@pytest.mark.parametrize(
    ("fences", "rest"), [([], "nothing is"), ([fence("manual", by="x", topic="t")], "fenced are: topic t")]
)
def test_what_is_not_fenced_cannot_be_released(
    fences: list[dict[str, object]],
    rest: str,
    properties: Path,
    gateway: FakeGateway,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gateway.document = document(fences=fences)

    code = main(["unfence", "--config", str(properties), "--log-dir", "/data/a"])

    assert code == 1
    assert capsys.readouterr().err == f"brimline: /data/a is not fenced; {rest}\n"


def test_behind_sudo_stands_a_person() -> None:
    named = who({"SUDO_USER": "alice"})

    assert who({}) == ME
    assert named == ("alice (sudo)" if ME == "root" else ME)


@pytest.fixture
def ended_by(monkeypatch: pytest.MonkeyPatch) -> list[GuardConfig]:
    """A gateway that ends at once by SIGINT; what it was started with."""
    started: list[GuardConfig] = []

    def run_gateway(config: GuardConfig, _log: TextIO, _environment: Mapping[str, str], _broker_cwd: str | None) -> int:
        started.append(config)
        return signal.SIGINT

    module = ModuleType("brimline.gateway.process")
    module.run_gateway = run_gateway  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return started


def test_a_gateway_starts_from_the_brokers_file_and_ends_with_its_signals_code(
    properties: Path, ended_by: list[GuardConfig]
) -> None:
    code = main(["gateway", "--config", str(properties)])

    assert code == 130
    assert [config.broker.node_id for config in ended_by] == [1]


def test_a_gateway_with_a_wrong_file_does_not_start(
    properties: Path, ended_by: list[GuardConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    properties.write_text(properties.read_text() + "disk.max.used.percent=1\n")

    assert main(["gateway", "--config", str(properties)]) == 1
    assert "line 5: disk.max.used.percent=1" in capsys.readouterr().err
    assert ended_by == []
