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
from brimline.torture.faults import stallable_volume
from tests.integration.cluster import brimline_inside, create_topic, produce
from tests.integration.guarded import QUICK, RunningGuard, guard, write_config
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

MIB = 1 << 20
HEALTHY, STALLABLE = "volume-0/log-dir-0", "broker-1/stallable"
LIMITS = {"disk.max.used.percent": "100", "disk.min.free.bytes": str(16 * MIB)}
PLAIN = "kafka_log_log_retentionsizeinpercent"
FULL_COUNT = "kafka_log_logmanager_diskfulllogdirectorycount"


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
        quick = {"brimline.scan.interval.ms": "200", "brimline.disk.stall.timeout.ms": "2000"}
        return {**LIMITS, **quick, "brimline.metrics.publish": "all", "log.dirs": both}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(volumes=(VolumeSpec(size=Bytes(64 * MIB)),))) as running:
        yield running


@pytest.fixture
def volume(sandbox: Sandbox) -> Iterator[Stallable]:
    with mounted(sandbox) as found:
        yield found


@contextmanager
def mounted(sandbox: Sandbox) -> Iterator[Stallable]:
    path = sandbox.broker(1).node.home / "stallable"
    sandbox.outside(path).mkdir(exist_ok=True)
    command = sandbox.inside([sys.executable, "-I", stallable_volume.__file__, str(path)])
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        if server.stdout.readline() != "mounted\n":
            pytest.skip(f"no FUSE file system can be mounted here: {server.communicate()[1].strip()}")
        yield Stallable(sandbox=sandbox, path=path, server=server)
    finally:
        server.kill()
        server.communicate(timeout=PATIENCE_SECONDS)
        unmount = sandbox.inside(["umount", "--lazy", str(path)])
        subprocess.run(unmount, capture_output=True, check=False, timeout=PATIENCE_SECONDS)


def failures_of(running: RunningGuard) -> dict[str, str]:
    """Of each volume that has one, by its log dir: its kind and its sentence."""
    return {
        "/".join(Path(volume["logDirs"][0]).parts[-2:]): f"{volume['failure']['kind']}: {volume['failure']['message']}"
        for volume in running.state()["volumes"]
        if volume["failure"]
    }


def test_a_hung_file_system_is_a_named_state_and_stalls_nothing_else(volume: Stallable, tmp_path: Path) -> None:
    """Everything else goes on while it hangs, which it does from ``stall`` to ``resume``."""
    sandbox = volume.sandbox
    create_topic(sandbox, "orders", config={"retention.bytes": str(10 * MIB)})
    with guard(sandbox, tmp_path / "log", volume.settings) as running:
        eventually(lambda: running.states() == {HEALTHY: "ok", STALLABLE: "ok"})
        volume.stall()
        eventually(lambda: running.states() == {HEALTHY: "ok", STALLABLE: "unknown"})
        failure = failures_of(running)[STALLABLE]
        foreign = sandbox.fill(sandbox.broker(1).log_dirs[0], leave_free=Bytes(12 * MIB))
        eventually(lambda: running.states() == {HEALTHY: "full", STALLABLE: "unknown"})
        produce(sandbox, "orders", 2)
        eventually(lambda: (running.percent(PLAIN, "orders") or 0) > 15)
        pages = [running.get("/healthz"), running.get("/readyz")]
        eventually(lambda: list(running.samples(FULL_COUNT).values()) == [1])
        eventually(lambda: running.states() == {HEALTHY: "full", STALLABLE: "unknown"})
        sandbox.unfill(foreign)
        volume.resume()
        eventually(lambda: running.states() == {HEALTHY: "ok", STALLABLE: "ok"})

    assert failure.startswith("stalled: ")
    assert str(volume.path) in failure
    assert pages == ["ok\n", "ok\n"]
    assert "task-died" not in running.events()


def test_a_full_file_system_that_hangs_stays_full(volume: Stallable, tmp_path: Path) -> None:
    more_than_it_has = {**volume.settings, "disk.min.free.bytes": str(1 << 30)}
    with guard(volume.sandbox, tmp_path / "log", more_than_it_has) as running:
        eventually(lambda: running.states()[STALLABLE] == "full")
        volume.stall()
        eventually(lambda: failures_of(running).get(STALLABLE, "").startswith("stalled: "))
        while_it_hangs = running.states()
        write_config(volume.sandbox, {**QUICK, "brimline.log.format": "json", **volume.settings})
        running.process.send_signal(signal.SIGHUP)
        eventually(lambda: running.states() == {HEALTHY: "ok", STALLABLE: "full"})
        volume.resume()
        eventually(lambda: running.states() == {HEALTHY: "ok", STALLABLE: "ok"})

    assert while_it_hangs == {HEALTHY: "full", STALLABLE: "full"}
    assert "until it answers again" in running.log.read_text()


def test_it_starts_and_ends_while_a_file_system_hangs(volume: Stallable, tmp_path: Path) -> None:
    volume.stall()
    with guard(volume.sandbox, tmp_path / "log", volume.settings) as running:
        eventually(lambda: running.states() == {HEALTHY: "ok", STALLABLE: "unknown"})
        running.process.terminate()
        code = running.process.wait(PATIENCE_SECONDS)

    assert code == 0
    assert "stopping" in running.events()


def test_doctor_names_a_hung_file_system(volume: Stallable) -> None:
    path = write_config(volume.sandbox, {**volume.settings, "brimline.disk.stall.timeout.ms": "1000"})
    volume.stall()

    shown = brimline_inside(volume.sandbox, "doctor", "--config", str(path))

    assert shown.returncode == 3
    assert f"the file system under {volume.path} has not answered" in shown.stdout


def test_a_file_system_whose_server_died_is_unknown_and_not_full(volume: Stallable, tmp_path: Path) -> None:
    with guard(volume.sandbox, tmp_path / "log", volume.settings) as running:
        volume.server.kill()
        eventually(lambda: running.states() == {HEALTHY: "ok", STALLABLE: "unknown"})
        # A look that is under way when it dies is told of an aborted connection first
        eventually(lambda: "not connected" in failures_of(running).get(STALLABLE, ""))
        failure = failures_of(running)[STALLABLE]

    assert failure.startswith("unreadable: ")
