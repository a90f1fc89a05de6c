"""Where the kernel refuses private mounts a sandbox has plain folders, and leaves as little behind."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import NamespaceRefused, Sandbox, SandboxSpec, VolumeSpec, why_no_real_volumes
from brimline.sandbox.namespace import FORCE_PLAIN, Namespace
from tests.integration.guarded import ENDS_WITH_US
from tests.processes import is_alive
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.usefixtures("plain_folders")

MORE_THAN_ANY_MEMORY = Bytes(1 << 60)

OWNER = """
import json, signal, sys
from pathlib import Path
from brimline.model import Bytes
from brimline.sandbox.namespace import Namespace
signal.signal(signal.SIGINT, signal.default_int_handler)
namespace = Namespace(Bytes(int(sys.argv[1])))
namespace.mount(namespace.volumes / "volume", "tmpfs", Bytes(1 << 24))
child = namespace.spawn("sleep", ["sleep", "3600"], directory=Path("/"), output=namespace.base / "log")
folders = [str(namespace.base), str(namespace.volumes)]
print(json.dumps({"pids": [namespace.pid, child], "folders": folders}), flush=True)
try:
    signal.pause()
finally:
    namespace.close()
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """So that nobody else's start sweeps here. Kafka's jars are in the real one."""
    if not request.node.get_closest_marker("integration"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture(params=[0, MORE_THAN_ANY_MEMORY], ids=["in memory", "on disk"])
def owner(request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[str]"]:
    command = [*ENDS_WITH_US, sys.executable, "-c", OWNER, str(request.param)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def made_by(owner: "subprocess.Popen[str]") -> tuple[list[int], list[Path]]:
    assert owner.stdout is not None
    made = json.loads(owner.stdout.readline())
    pids, folders = made["pids"], [Path(folder) for folder in made["folders"]]
    assert all(is_alive(pid) for pid in pids)
    assert all(folder.is_dir() for folder in folders)
    return pids, folders


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "ctrl-C"])
def test_nothing_stays_when_the_owner_ends(owner: "subprocess.Popen[str]", number: int) -> None:
    pids, folders = made_by(owner)

    owner.send_signal(number)

    eventually(lambda: [pid for pid in pids if is_alive(pid)] == [])
    eventually(lambda: [folder for folder in folders if folder.exists()] == [])


def test_nothing_stays_when_the_supervisor_is_told_to_end(owner: "subprocess.Popen[str]") -> None:
    pids, folders = made_by(owner)

    os.kill(pids[0], signal.SIGTERM)

    eventually(lambda: [pid for pid in pids if is_alive(pid)] == [])
    eventually(lambda: [folder for folder in folders if folder.exists()] == [])


def test_what_a_killed_supervisor_leaves_goes_with_the_next_start(owner: "subprocess.Popen[str]") -> None:
    pids, folders = made_by(owner)

    os.kill(pids[0], signal.SIGKILL)

    eventually(lambda: [pid for pid in pids if is_alive(pid)] == [])
    Namespace(Bytes(0)).close()  # if no other test has started one meanwhile, the first
    assert not any(folder.exists() for folder in folders)


def test_a_start_leaves_the_living_alone() -> None:
    one = Namespace(Bytes(0))
    other = Namespace(Bytes(0))

    assert one.base != other.base
    assert one.base.is_dir()
    assert one.volumes.is_dir()
    one.close()
    other.close()


def test_what_a_process_has_started_ends_with_it() -> None:
    namespace = Namespace(Bytes(0))
    log = namespace.base / "log"
    namespace.spawn("both", ["sh", "-c", "sleep 3600 & echo $!; wait"], directory=Path("/"), output=log)
    eventually(lambda: log.read_text().endswith("\n"))
    started = int(log.read_text())
    assert is_alive(started)

    namespace.close()

    eventually(lambda: not is_alive(started))


def test_volumes_are_in_memory_if_it_has_room_and_else_beside_the_rest() -> None:
    roomy = Namespace(Bytes(0))
    tight = Namespace(MORE_THAN_ANY_MEMORY)

    if os.access("/dev/shm", os.W_OK) and os.statvfs("/dev/shm").f_bavail * os.statvfs("/dev/shm").f_frsize > 1 << 27:
        assert roomy.volumes.parent == Path("/dev/shm")
    assert tight.volumes == tight.base
    roomy.close()
    tight.close()


def test_files_have_one_name_inside_and_outside() -> None:
    namespace = Namespace(Bytes(0))

    assert namespace.outside(namespace.base) == namespace.base
    assert namespace.inside(["ls", "/"]) == ["ls", "/"]
    namespace.close()


def test_a_reserved_port_is_refused_to_others() -> None:
    namespace = Namespace(Bytes(0))
    (port,) = namespace.reserve_ports(1)

    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", port))
    namespace.close()


def test_an_ext4_volume_is_refused_in_one_sentence() -> None:
    namespace = Namespace(Bytes(0))

    with pytest.raises(NamespaceRefused, match=r"^no ext4 volume without private mounts .*run as root") as refused:
        namespace.mount(namespace.volumes / "volume", "ext4", Bytes(1 << 24))
    assert "\n" not in str(refused.value)
    namespace.close()


def test_the_reason_can_be_had_without_a_cluster() -> None:
    assert why_no_real_volumes() == f"{FORCE_PLAIN} is set"


@pytest.mark.integration
def test_a_cluster_runs_says_so_once_and_never_fills_the_disk() -> None:
    told: list[str] = []
    with Sandbox(SandboxSpec(brokers=2, volumes=(VolumeSpec(),)), report=told.append) as sandbox:
        (log_dir,) = sandbox.broker(1).log_dirs
        folders = [log_dir, sandbox.broker(1).node.home]
        pids = [sandbox.pid, *(broker.pid for broker in sandbox.brokers)]
        assert not sandbox.has_real_volumes
        assert (sandbox.outside(log_dir) / "meta.properties").is_file()
        assert sandbox.broker(1).knows({1, 2})
        (sentence,) = (line for line in told if "no private mounts" in line)
        assert FORCE_PLAIN in sentence
        assert "for real ones, run as root" in sentence

        with pytest.raises(NamespaceRefused, match="cannot fill a plain folder"):
            sandbox.fill(log_dir, leave_free=Bytes(0))
        assert [path.name for path in log_dir.parent.iterdir()] == [log_dir.name]

    assert not any(is_alive(pid) for pid in pids)
    assert not any(folder.exists() for folder in folders)


@pytest.mark.integration
def test_the_command_says_so_and_goes_on() -> None:
    command = [str(Path(sys.executable).with_name("brimline")), "sandbox", "up"]
    done = subprocess.run(
        command, input="fill 1 0 90%\nquit\n", capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("volumes are plain, unbounded folders") == 1
    assert "cannot fill a plain folder" in done.stdout
    assert "unfill" not in done.stdout
