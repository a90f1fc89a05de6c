"""A file system that never answers: ``statvfs`` hangs for real, because the server behind it is stopped."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration import stallable_volume
from tests.integration.cluster import PATIENCE_SECONDS, create_topic, eventually, produce
from tests.integration.guarded import RunningGuard, guard, write_config

pytestmark = pytest.mark.integration

MIB = 1 << 20
HEALTHY, STALLABLE = "volume-0/log-dir-0", "broker-1/stallable"
LIMITS = {"disk.max.used.percent": "100", "disk.min.free.bytes": str(16 * MIB)}
PLAIN = "kafka_log_log_retentionsizeinpercent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stallable:
    """A log dir on a FUSE file system beside the broker's own, in the sandbox's mounts, so that nothing stays."""

    sandbox: Sandbox
    path: Path
    server: "subprocess.Popen[str]"

    def stall(self) -> None:
        os.kill(self.server.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.server.pid, signal.SIGCONT)

    @property
    def settings(self) -> dict[str, str]:
        """The scan is quick, so that it meets the hanging file system too."""
        both = f"{self.sandbox.broker(1).log_dirs[0]},{self.path}"
        published = {"brimline.metrics.publish": "all", "brimline.scan.interval.ms": "200"}
        return {**LIMITS, **published, "log.dirs": both}


@pytest.fixture
def volume() -> Iterator[Stallable]:
    with Sandbox(SandboxSpec(volumes=(VolumeSpec(size=Bytes(64 * MIB)),))) as sandbox, mounted(sandbox) as found:
        yield found


@contextmanager
def mounted(sandbox: Sandbox) -> Iterator[Stallable]:
    path = sandbox.broker(1).node.home / "stallable"
    sandbox.outside(path).mkdir()
    command = sandbox.inside([sys.executable, "-I", stallable_volume.__file__, str(path)])
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        if server.stdout.readline() != "mounted\n":
            pytest.skip(f"no FUSE file system can be mounted here: {server.communicate()[1].strip()}")
        yield Stallable(sandbox=sandbox, path=path, server=server)
    finally:
        server.kill()
        server.communicate()


def failure_of(running: RunningGuard) -> dict[str, str]:
    (failure,) = [volume["failure"] for volume in running.state()["volumes"] if volume["failure"]]
    assert isinstance(failure, dict)
    return failure


def test_a_hung_file_system_is_a_named_state_and_stalls_nothing_else(volume: Stallable, tmp_path: Path) -> None:
    sandbox = volume.sandbox
    create_topic(sandbox, "orders", config={"retention.bytes": str(10 * MIB)})
    with guard(sandbox, tmp_path / "log", volume.settings) as running:
        before = running.states()
        volume.stall()
        eventually(lambda: running.states()[STALLABLE] == "unknown")
        failure = failure_of(running)
        foreign = sandbox.fill(sandbox.broker(1).log_dirs[0], leave_free=Bytes(12 * MIB))
        eventually(lambda: running.states()[HEALTHY] == "full")
        produce(sandbox, "orders", 2)
        eventually(lambda: (running.percent(PLAIN, "orders") or 0) > 15)
        while_hung = running.states()
        pages = [running.get("/healthz"), running.get("/readyz")]
        full = running.samples("kafka_log_logmanager_diskfulllogdirectorycount")
        sandbox.unfill(foreign)
        volume.resume()
        eventually(lambda: running.states() == before)

    assert before == {HEALTHY: "ok", STALLABLE: "ok"}
    assert failure["kind"] == "stalled"
    assert str(volume.path) in failure["message"]
    assert while_hung == {HEALTHY: "full", STALLABLE: "unknown"}
    assert pages == ["ok\n", "ok\n"]
    assert list(full.values()) == [1]
    assert "task-died" not in running.events()


def test_it_starts_and_ends_while_a_file_system_hangs(volume: Stallable, tmp_path: Path) -> None:
    volume.stall()
    with guard(volume.sandbox, tmp_path / "log", volume.settings) as running:
        states = running.states()
        running.process.terminate()
        code = running.process.wait(PATIENCE_SECONDS)

    assert states == {HEALTHY: "ok", STALLABLE: "unknown"}
    assert code == 0
    assert "stopping" in running.events()


def test_doctor_names_a_hung_file_system(volume: Stallable) -> None:
    path = write_config(volume.sandbox, {**volume.settings, "brimline.disk.stall.timeout.ms": "1000"})
    command = [sys.executable, "-m", "brimline.cli", "doctor", "--config", str(path)]
    volume.stall()

    shown = subprocess.run(
        volume.sandbox.inside(command), capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )

    assert shown.returncode == 3
    assert f"the file system under {volume.path} has not answered" in shown.stdout


def test_a_file_system_whose_server_died_is_unknown_and_not_full(volume: Stallable, tmp_path: Path) -> None:
    with guard(volume.sandbox, tmp_path / "log", volume.settings) as running:
        volume.server.kill()
        eventually(lambda: running.states() == {HEALTHY: "ok", STALLABLE: "unknown"})
        failure = failure_of(running)

    assert failure["kind"] == "unreadable"
    assert "not connected" in failure["message"]
