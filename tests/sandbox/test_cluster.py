"""A sandbox does what it says, on a real Kafka."""

import errno
import json
import os
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import BadSpec, Sandbox, SandboxSpec, VolumeSpec
from tests.waiting import eventually

pytestmark = pytest.mark.integration

MIB = 1024 * 1024


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may loop-mount an ext4 volume")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Its last volume is an ext4 one where that is allowed."""
    volumes = [VolumeSpec(size=Bytes(64 * MIB)), VolumeSpec(size=Bytes(32 * MIB), log_dirs=2)]
    if os.geteuid() == 0:
        volumes.append(VolumeSpec(size=Bytes(128 * MIB), filesystem="ext4"))
    with Sandbox(SandboxSpec(volumes=tuple(volumes))) as running:
        yield running


def create_topic(sandbox: Sandbox, topic: str, replicas: int = 1) -> None:
    done = sandbox.java_tool(
        *("topics", "--bootstrap-server", sandbox.bootstrap_servers, "--create", "--topic", topic),
        *("--replication-factor", str(replicas)),
    )
    assert done.returncode == 0, done.stdout


def produce(sandbox: Sandbox, servers: str, topic: str, records: int) -> None:
    done = sandbox.java_tool(
        *("producer-perf-test", "--topic", topic, "--num-records", str(records), "--record-size", "100"),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={servers}", "acks=all"),
    )
    assert done.returncode == 0, done.stderr
    assert f"{records} records sent" in done.stdout


def end_offsets(sandbox: Sandbox, servers: str, topic: str) -> str:
    return sandbox.java_tool("get-offsets", "--bootstrap-server", servers, "--topic", topic).stdout.strip()


def statvfs_bytes(path: Path) -> tuple[int, int]:
    status = os.statvfs(path)
    return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize


def test_the_stock_tool_sees_the_log_dirs(sandbox: Sandbox) -> None:
    done = sandbox.java_tool("log-dirs", "--bootstrap-server", sandbox.bootstrap_servers, "--describe")

    (described,) = json.loads(done.stdout.splitlines()[-1])["brokers"]
    assert {d["logDir"] for d in described["logDirs"]} == {str(path) for path in sandbox.broker(1).log_dirs}


def test_each_volume_has_its_size_and_two_log_dirs_share_one(sandbox: Sandbox) -> None:
    first, second, third = (sandbox.outside(path) for path in sandbox.broker(1).log_dirs[:3])

    assert statvfs_bytes(first)[0] == 64 * MIB
    assert statvfs_bytes(second)[0] == 32 * MIB
    assert second.stat().st_dev == third.stat().st_dev != first.stat().st_dev


def test_a_restart_keeps_the_data_and_the_address(sandbox: Sandbox) -> None:
    servers, pid = sandbox.bootstrap_servers, sandbox.broker(1).pid
    create_topic(sandbox, "kept")
    produce(sandbox, servers, "kept", 7)

    sandbox.broker(1).restart()

    assert end_offsets(sandbox, servers, "kept") == "kept:0:7"
    assert sandbox.broker(1).pid != pid


def test_fill_leaves_what_was_asked_and_not_a_byte_more(sandbox: Sandbox) -> None:
    log_dir = sandbox.broker(1).log_dirs[1]
    sandbox.broker(1).stop()  # it would write its checkpoints meanwhile
    _, usable_before = statvfs_bytes(sandbox.outside(log_dir))

    foreign_file = sandbox.fill(log_dir, leave_free=Bytes(4 * MIB))

    assert statvfs_bytes(sandbox.outside(log_dir))[1] == 4 * MIB
    with (sandbox.outside(log_dir.parent) / "more").open("wb", buffering=0) as file:
        with pytest.raises(OSError, match="No space left") as refused:
            os.posix_fallocate(file.fileno(), 0, 4 * MIB + 4096)
        assert refused.value.errno == errno.ENOSPC
    (sandbox.outside(log_dir.parent) / "more").unlink()
    sandbox.unfill(foreign_file)
    assert statvfs_bytes(sandbox.outside(log_dir))[1] == usable_before
    sandbox.broker(1).start()


def test_a_volume_cannot_be_filled_to_leave_more_than_it_has(sandbox: Sandbox) -> None:
    with pytest.raises(BadSpec, match="cannot be filled"):
        sandbox.fill(sandbox.broker(1).log_dirs[0], leave_free=Bytes(65 * MIB))


def test_a_command_inside_finds_the_brokers_paths(sandbox: Sandbox) -> None:
    log_dir = sandbox.broker(1).log_dirs[0]

    listed = subprocess.run(sandbox.inside(["ls", str(log_dir)]), capture_output=True, text=True, check=True)

    assert "meta.properties" in listed.stdout.split()
    assert not log_dir.exists()


def test_it_listens_on_loopback_only(sandbox: Sandbox) -> None:
    port = urllib.parse.urlsplit(f"//{sandbox.bootstrap_servers}").port
    listening = {
        address.rpartition(":")[0]
        for table in ("tcp", "tcp6")
        for _, address, _, state, *_ in map(str.split, Path("/proc/net", table).read_text().splitlines()[1:])
        if state == "0A" and int(address.rpartition(":")[2], 16) == port
    }

    assert listening <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert listening


def test_an_unknown_broker_is_refused_by_name(sandbox: Sandbox) -> None:
    with pytest.raises(BadSpec, match="no broker 7 in this sandbox: it has 1"):
        sandbox.broker(7)


@pytest.mark.long
def test_killing_one_of_two_leaves_the_other_serving() -> None:
    with Sandbox(SandboxSpec(brokers=2, volumes=(VolumeSpec(size=Bytes(32 * MIB)),))) as sandbox:
        create_topic(sandbox, "replicated", replicas=2)
        survivor = sandbox.broker(2).address

        sandbox.broker(1).kill()

        produce(sandbox, survivor, "replicated", 5)
        assert end_offsets(sandbox, survivor, "replicated") == "replicated:0:5"
        assert sandbox.broker(1).exit_code == -9
        sandbox.broker(1).start()
        eventually(lambda: sandbox.broker(1).knows({1, 2}))


@needs_root
def test_on_ext4_usable_is_less_than_free(sandbox: Sandbox) -> None:
    log_dir = sandbox.broker(1).log_dirs[-1]
    status = os.statvfs(sandbox.outside(log_dir))
    assert 0 < status.f_bavail < status.f_bfree

    foreign_file = sandbox.fill(log_dir, leave_free=Bytes(8 * MIB))
    usable = statvfs_bytes(sandbox.outside(log_dir))[1]
    sandbox.unfill(foreign_file)

    assert abs(usable - 8 * MIB) <= MIB // 4
