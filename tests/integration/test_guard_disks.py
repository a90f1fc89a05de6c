"""KIP-1201's disk state on real volumes: up by Kafka's data and by a foreign file, down again; and unknown ones."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.sandbox.filling import usable_bytes
from brimline.sandbox.spec import Filesystem
from tests.integration.cluster import brimline, brimline_inside, configure, create_topic, produce
from tests.integration.guarded import QUICK, guard, states_of, write_config
from tests.integration.kafka_clients import kafka_admin, meanwhile
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a loop-mounted ext4 volume needs root")

MIB = 1 << 20
FIRST, SECOND, THIRD = "volume-0/log-dir-0", "volume-1/log-dir-0", "volume-1/log-dir-1"
BY_BYTES = {"disk.max.used.percent": "100", "disk.min.free.bytes": str(16 * MIB)}
BY_PERCENT = {"disk.max.used.percent": "60", "disk.min.free.bytes": "0"}
OFF = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """On what brokers have, where that may be mounted."""
    filesystem: Filesystem = "ext4" if os.geteuid() == 0 else "tmpfs"
    volumes = (
        VolumeSpec(size=Bytes(64 * MIB), filesystem=filesystem),
        VolumeSpec(size=Bytes(64 * MIB), filesystem=filesystem, log_dirs=2),
    )
    with Sandbox(SandboxSpec(volumes=volumes)) as running:
        yield running


@pytest.mark.parametrize("limits", [BY_BYTES, BY_PERCENT], ids=["bytes", "percent"])
def test_a_foreign_file_makes_exactly_its_volume_full_and_its_end_releases_it(
    sandbox: Sandbox, tmp_path: Path, limits: dict[str, str]
) -> None:
    with guard(sandbox, tmp_path / "log", limits) as running:
        before = running.states()
        foreign = sandbox.fill(sandbox.broker(1).log_dirs[0], leave_free=Bytes(12 * MIB))
        eventually(lambda: running.states()[FIRST] == "full")
        while_full = running.states()
        count = running.samples("kafka_log_logmanager_diskfulllogdirectorycount")
        sandbox.unfill(foreign)
        eventually(lambda: running.states()[FIRST] == "ok")

    assert set(before.values()) == {"ok"}
    assert while_full == {FIRST: "full", SECOND: "ok", THIRD: "ok"}
    assert list(count.values()) == [1]
    assert [event for event in running.events() if event == "disk-full"] == ["disk-full"]
    assert "would refuse writes" in running.log.read_text()


def test_two_log_dirs_on_one_volume_are_full_together(sandbox: Sandbox, tmp_path: Path) -> None:
    with guard(sandbox, tmp_path / "log", BY_BYTES) as running:
        foreign = sandbox.fill(sandbox.broker(1).log_dirs[1], leave_free=Bytes(12 * MIB))
        eventually(lambda: running.states()[SECOND] == "full")
        states, volumes = running.states(), running.state()["volumes"]
        full = running.samples("kafka_log_logmanager_logdirectorydiskfull")
        sandbox.unfill(foreign)

    assert (states[SECOND], states[THIRD]) == ("full", "full")
    assert sorted(len(volume["logDirs"]) for volume in volumes) == [1, 2]
    assert sum(full.values()) == 2


def test_100_and_0_switch_it_off(sandbox: Sandbox, tmp_path: Path) -> None:
    foreign = sandbox.fill(sandbox.broker(1).log_dirs[0], leave_free=Bytes(1 * MIB))
    try:
        with guard(sandbox, tmp_path / "log", OFF) as running:
            states = running.states()
    finally:
        sandbox.unfill(foreign)

    assert set(states.values()) == {"ok"}


def test_the_state_is_true_from_the_first_answer(sandbox: Sandbox, tmp_path: Path) -> None:
    foreign = sandbox.fill(sandbox.broker(1).log_dirs[0], leave_free=Bytes(12 * MIB))
    try:
        with guard(sandbox, tmp_path / "log", {**BY_BYTES, "disk.usage.check.interval.ms": "600000"}) as running:
            state = running.state()
    finally:
        sandbox.unfill(foreign)

    assert states_of(state)[FIRST] == "full", state["volumes"]


def test_near_the_limit_it_looks_long_before_the_interval_is_over(sandbox: Sandbox, tmp_path: Path) -> None:
    """The interval is ten minutes; filling is seen because the fill rate says to look sooner.

    The volume fills all the time, from before the first look on: had it stood still between the first two, the next one
    would be due in ten minutes.
    """
    added = {**BY_BYTES, "disk.usage.check.interval.ms": "600000"}
    log_dir = sandbox.broker(1).log_dirs[0]
    growing = sandbox.outside(log_dir.parent / "growing")
    with meanwhile(partial(fill_slowly, growing)), guard(sandbox, tmp_path / "log", added) as running:
        eventually(lambda: (running.state()["volumes"][0]["fillRateBytesPerSecond"] or 0) > 0)
        states = running.states()
        foreign = sandbox.fill(log_dir, leave_free=Bytes(12 * MIB))
        eventually(lambda: running.states()[FIRST] == "full")
    sandbox.unfill(foreign)
    growing.unlink()

    assert states[FIRST] == "ok"


def fill_slowly(path: Path, stop: threading.Event) -> None:
    """Less than half a megabyte a second, and never as far as the limit."""
    with path.open("wb", buffering=0) as file:
        while not stop.wait(0.01):
            if usable_bytes(path) > 24 * MIB:
                file.write(bytes(4096))


def test_a_limit_is_reloaded_and_a_port_is_not(sandbox: Sandbox, tmp_path: Path) -> None:
    with guard(sandbox, tmp_path / "log", OFF) as running:
        write_config(
            sandbox,
            {
                **QUICK,
                "brimline.log.format": "json",
                "disk.max.used.percent": "100",
                "disk.min.free.bytes": str(65 * MIB),  # more than the volume has
                "brimline.metrics.port": "1",
            },
        )
        running.process.send_signal(signal.SIGHUP)
        eventually(lambda: running.states()[FIRST] == "full")
        write_config(sandbox, {**QUICK, "disk.max.used.percent": "5"})
        running.process.send_signal(signal.SIGHUP)
        eventually(lambda: "reload-refused" in running.events())
        still = running.states()[FIRST]

    changed = {line["key"]: line["event"] for line in running.said() if "key" in line}
    assert changed == {"disk.min.free.bytes": "reloaded", "disk.free.limit.bytes": "reloaded"} | {
        "brimline.metrics.port": "needs-restart"
    }
    assert still == "full"


@needs_root
def test_a_log_dir_that_may_not_be_seen_is_unknown_and_named(sandbox: Sandbox, tmp_path: Path) -> None:
    """The guard as an ordinary user, and a volume that this user may not enter."""
    home, volume = sandbox.broker(1).node.home, sandbox.broker(1).log_dirs[0].parent
    above = [*home.parents, home]
    modes = {path: sandbox.outside(path).stat().st_mode & 0o7777 for path in [*above, volume]}
    for path in above:
        sandbox.outside(path).chmod(modes[path] | 0o755)
    sandbox.outside(volume).chmod(0o700)
    try:
        with guard(sandbox, tmp_path / "log", OFF, user=65534) as running:
            states = running.states()
            (failure,) = [v["failure"] for v in running.state()["volumes"] if v["state"] == "unknown"]
            up = running.get("/readyz")
    finally:
        for path, mode in modes.items():
            sandbox.outside(path).chmod(mode)

    assert states == {FIRST: "unknown", SECOND: "ok", THIRD: "ok"}
    assert failure["kind"] == "unreadable"
    assert "no permission" in failure["message"]
    assert up == "ok\n"


def test_status_shows_it_at_a_glance(sandbox: Sandbox, tmp_path: Path) -> None:
    with guard(sandbox, tmp_path / "log", BY_BYTES) as running:
        calm = brimline("status", "--url", f"http://127.0.0.1:{running.port}")
        foreign = sandbox.fill(sandbox.broker(1).log_dirs[0], leave_free=Bytes(12 * MIB))
        eventually(lambda: running.states()[FIRST] == "full")
        full = brimline("status", "--url", f"http://127.0.0.1:{running.port}")
        sandbox.unfill(foreign)

    assert "every volume has room" in calm.stdout
    assert full.returncode == 3
    assert "FULL" in full.stdout
    assert "would refuse writes" in full.stdout


def test_doctor_explains_volumes_and_impossible_limits(sandbox: Sandbox) -> None:
    path = write_config(sandbox, {**QUICK, "disk.min.free.bytes": str(1 << 30)})

    shown = brimline_inside(sandbox, "doctor", "--config", str(path))

    assert shown.returncode == 3
    assert "share one volume" in shown.stdout
    assert "it would always be full" in shown.stdout
    assert "broker 1 answers" in shown.stdout


def test_kafkas_own_data_makes_a_volume_full_and_retention_releases_it(sandbox: Sandbox, tmp_path: Path) -> None:
    config = {"segment.bytes": str(2 * MIB), "retention.bytes": str(60 * MIB), "file.delete.delay.ms": "0"}
    with guard(sandbox, tmp_path / "log", {"disk.max.used.percent": "40", "disk.min.free.bytes": "0"}) as running:
        create_topic(sandbox, "orders", config=config)
        (log_dir,) = (d for d in sandbox.broker(1).log_dirs if (sandbox.outside(d) / "orders-0").exists())
        name = "/".join(log_dir.parts[-2:])
        before = running.states()[name]
        produce(sandbox, "orders", 30)
        eventually(lambda: running.states()[name] == "full")
        configure(sandbox, "TOPIC", "orders", {"retention.bytes": str(4 * MIB)})
        eventually(lambda: running.states()[name] == "ok")
    with kafka_admin(sandbox.admin_servers) as client:
        client.delete_topics(["orders"])
    # The volume is handed on as it was: what Kafka frees later would be missing from the next test's fill
    eventually(lambda: not list(sandbox.outside(log_dir).glob("orders-0*")))

    assert before == "ok"


@pytest.mark.long
def test_a_volume_that_vanishes_is_unknown_and_the_guard_lives(tmp_path: Path) -> None:
    volumes = (VolumeSpec(size=Bytes(64 * MIB)), VolumeSpec(size=Bytes(64 * MIB)))
    with (
        Sandbox(SandboxSpec(volumes=volumes)) as sandbox,
        guard(sandbox, tmp_path / "log", OFF) as running,
    ):
        volume = sandbox.broker(1).log_dirs[1].parent
        subprocess.run(sandbox.inside(["umount", "--lazy", str(volume)]), check=True, timeout=PATIENCE_SECONDS)
        eventually(lambda: running.states()[SECOND] == "unknown")
        (failure,) = [v["failure"] for v in running.state()["volumes"] if v["state"] == "unknown"]

        assert failure["kind"] == "gone"
        assert running.states()[FIRST] == "ok"
        assert "disk-unknown" in running.events()
        assert running.get("/healthz") == "ok\n"
