"""However a sandbox ends, nothing of it stays: no process, no mount, no file, no loop device."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.sandbox import BrokerFailed, Sandbox, SandboxGone, SandboxSpec, VolumeSpec
from brimline.sandbox.jars.cache import cache_dir
from tests.integration.guarded import ENDS_WITH_US
from tests.processes import is_alive
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

FILESYSTEM = "ext4" if os.geteuid() == 0 else "tmpfs"

OWNER = f"""
import json, os, signal
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
with Sandbox(SandboxSpec(volumes=(VolumeSpec(filesystem="{FILESYSTEM}"), VolumeSpec()))) as sandbox:
    if os.fork() == 0:  # a child that outlives its parent and holds every pipe open
        signal.pause()
        os._exit(0)
    device = sandbox.outside(sandbox.broker(1).log_dirs[0]).stat().st_dev
    pids = {{"supervisor": sandbox.pid, "broker": sandbox.broker(1).pid}}
    print(json.dumps({{"pids": pids, "loop": os.minor(device)}}), flush=True)
    signal.pause()
"""


@pytest.fixture
def owner(real_volumes: None) -> Iterator["subprocess.Popen[str]"]:
    command = [*ENDS_WITH_US, sys.executable, "-c", OWNER]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_SECONDS)
    assert process.stdout is not None
    process.stdout.close()


def assert_nothing_stays(pids: list[int]) -> None:
    eventually(lambda: [pid for pid in pids if is_alive(pid)] == [])
    base = cache_dir() / "sandbox"
    assert list(base.iterdir()) == []
    assert str(base) not in Path("/proc/self/mountinfo").read_text()


def test_after_the_owner_is_killed(owner: "subprocess.Popen[str]") -> None:
    assert owner.stdout is not None
    made = json.loads(owner.stdout.readline())
    loop = Path(f"/sys/block/loop{made['loop']}/loop/backing_file")
    pids = list(made["pids"].values())
    assert all(is_alive(pid) for pid in pids)
    assert loop.exists() == (FILESYSTEM == "ext4")

    owner.kill()

    assert_nothing_stays(pids)
    if FILESYSTEM == "ext4":
        eventually(lambda: not loop.exists())


def test_after_a_start_that_failed_and_the_error_says_why() -> None:
    with pytest.raises(BrokerFailed, match=r"(?s)broker-1 ended with exit code 1 .*num\.io\.threads"):
        Sandbox(SandboxSpec(properties={"num.io.threads": "none"})).start()

    assert_nothing_stays([])


def test_after_the_supervisor_is_killed_and_after_a_clean_end_of_another_that_saw_nothing_of_it() -> None:
    volumes = (VolumeSpec(),)
    with Sandbox(SandboxSpec(volumes=volumes)) as one, Sandbox(SandboxSpec(volumes=volumes)) as other:
        pids = {sandbox: [sandbox.pid, sandbox.broker(1).pid] for sandbox in (one, other)}
        log_dir = one.broker(1).log_dirs[0]
        assert log_dir == other.broker(1).log_dirs[0]
        (one.outside(log_dir).parent / "mine").touch()
        assert not (other.outside(log_dir).parent / "mine").exists()

        os.kill(one.pid, signal.SIGKILL)

        assert_nothing_stays(pids[one])
        with pytest.raises(SandboxGone):
            one.broker(1).restart()
        assert other.broker(1).is_running

    assert not any(is_alive(pid) for pid in pids[other])
    assert_nothing_stays(pids[other])
