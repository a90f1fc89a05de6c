"""The guard as a process beside a gateway's control socket: its decision arrives, the gateway's figures are served."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.cli import main
from tests.guard.gateways import FakeGateway, fake_gateway, fence
from tests.waiting import PATIENCE_SECONDS, eventually

ALWAYS_FULL = 2**62


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[FakeGateway]:
    with fake_gateway(tmp_path / "gateway-1.sock") as running:
        running.document["fences"] = [fence("guard", logDir=str(tmp_path / "log-dir"))]
        yield running


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "guard.log"


@pytest.fixture
def url(tmp_path: Path, log: Path) -> Iterator[str]:
    """Of a guard whose one log dir is full, and whose broker does not run."""
    (tmp_path / "log-dir").mkdir()
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"node.id=1\nlog.dirs={tmp_path / 'log-dir'}\nlisteners=PLAINTEXT://127.0.0.1:1\n"
        f"disk.min.free.bytes={ALWAYS_FULL}\nbrimline.metrics.port=0\nbrimline.log.format=json\n"
        f"brimline.enforcement=gateway\nbrimline.state.dir={tmp_path}\n"
    )
    with log.open("w") as stream:
        command = [sys.executable, "-m", "brimline.cli", "guard", "--config", str(properties)]
        process = subprocess.Popen(command, stderr=stream, stdin=subprocess.DEVNULL)
    try:
        eventually(lambda: bool(said(log, "started")) or process.poll() is not None)
        (started,) = said(log, "started")
        yield f"http://127.0.0.1:{started['port']}"
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def said(log: Path, event: str) -> list[dict[str, Any]]:
    """A line that is still being written does not count yet."""
    lines = [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in lines if line["event"] == event]


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        text: str = answer.read().decode()
    return text


def shown(url: str) -> list[str]:
    return get(f"{url}/metrics").splitlines()


def test_what_is_full_is_leased_and_what_the_gateway_does_is_shown(
    gateway: FakeGateway, url: str, tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    eventually(lambda: "brimline_gateway_added_latency_seconds_count 16" in shown(url))
    eventually(lambda: main(["status", "--url", url]) == 3 and "FENCED" in capsys.readouterr().out)

    lease = next(told for told in gateway.told if told["op"] == "lease")
    ((log_dir, why),) = lease["full"].items()
    assert log_dir == str(tmp_path / "log-dir")
    assert why.startswith(f"log dir {log_dir} is ")
    assert why.endswith(f"usable, limit disk.min.free.bytes={1 << 62}")
    assert [line["message"] for line in said(log, "refuse")] == [f"writes to {log_dir} are refused"]


def test_a_gateway_that_ends_and_comes_back_is_followed(
    gateway: FakeGateway, url: str, log: Path, tmp_path: Path
) -> None:
    eventually(lambda: "brimline_gateway_up 1" in shown(url))
    gateway.stop()
    eventually(lambda: "brimline_gateway_up 0" in shown(url))
    while_down = get(f"{url}/metrics")
    gateway.path.unlink()
    with fake_gateway(tmp_path / "gateway-1.sock") as again:
        eventually(lambda: "brimline_gateway_up 1" in shown(url))
        eventually(lambda: {"lease", "state"} <= {told["op"] for told in again.told})

    assert "brimline_gateway_connections" not in while_down
    operations = [told["op"] for told in again.told]
    assert operations.index("lease") < operations.index("state")
    assert len(said(log, "gateway-answers")) >= 2
    assert said(log, "gateway-silent")[0]["level"] == "warning"
