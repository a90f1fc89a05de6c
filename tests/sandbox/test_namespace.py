"""The private world under a sandbox, without a Kafka in it."""

import errno
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import SandboxError, SandboxGone
from brimline.sandbox.namespace import Namespace
from tests.waiting import eventually


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    made = Namespace(Bytes(0))
    yield made
    made.close()


def test_a_reserved_port_is_refused_to_others_and_open_to_a_broker(namespace: Namespace) -> None:
    (port,) = namespace.reserve_ports(1)

    with socket.socket() as stranger, pytest.raises(OSError, match="in use") as refused:
        stranger.bind(("127.0.0.1", port))
    assert refused.value.errno == errno.EADDRINUSE

    with socket.socket() as broker:
        broker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java's server sockets do
        broker.bind(("127.0.0.1", port))
        broker.listen()


def test_a_volume_exists_inside_only(namespace: Namespace) -> None:
    volume = namespace.base / "volume"

    namespace.mount(volume, "tmpfs", Bytes(16 * 1024 * 1024))

    status = os.statvfs(namespace.outside(volume))
    assert status.f_blocks * status.f_frsize == 16 * 1024 * 1024
    assert not volume.exists()


def test_everything_under_a_short_name(namespace: Namespace, tmp_path: Path) -> None:
    """Inside, beside all that is outside; outside there is no such name."""
    short = Path("/brimline-short")
    (tmp_path / "seen").write_text("outside")

    if not namespace.rename(short):
        pytest.skip(f"no private mounts: {namespace.refusal}")
    namespace.mount(short / "a", "tmpfs", Bytes(16 * 1024 * 1024))
    (namespace.outside(short / "a") / "file").write_text("inside")

    seen = ["cat", str(tmp_path / "seen"), str(short / "a" / "file")]
    assert subprocess.run(namespace.inside(seen), capture_output=True, check=True).stdout == b"outsideinside"
    namespace.spawn("copy", ["cp", *seen[1:], str(short)], directory=short, output=short / "log")
    eventually(lambda: namespace.exit_code("copy") == 0)
    assert namespace.outside(short / "seen").read_text() == "outside"
    assert not short.exists()


def test_a_name_that_this_machine_has_is_not_taken(namespace: Namespace, tmp_path: Path) -> None:
    base = namespace.base

    assert not namespace.rename(tmp_path)
    assert namespace.base == base


def test_a_program_that_does_not_exist_is_named(namespace: Namespace) -> None:
    with pytest.raises(SandboxError, match=r"could not spawn: .*No such file"):
        namespace.spawn("x", ["/no/such/program"], directory=Path("/"), output=Path("/dev/null"))


def test_orphans_are_reaped(namespace: Namespace) -> None:
    script = ["sh", "-c", "sh -c 'exit 0' & sh -c 'exit 0' & exit 7"]

    namespace.spawn("parent", script, directory=Path("/"), output=Path("/dev/null"))

    eventually(lambda: namespace.exit_code("parent") == 7)
    children = Path(f"/proc/{namespace.pid}/task/{namespace.pid}/children")
    if not children.exists():
        pytest.skip("this kernel does not list a process's children")
    eventually(lambda: children.read_text() == "")


def test_after_the_end_there_is_nobody_to_ask(namespace: Namespace) -> None:
    namespace.close()

    with pytest.raises(SandboxGone):
        namespace.reserve_ports(1)


def test_a_mount_that_fails_says_why(namespace: Namespace) -> None:
    namespace.mount(namespace.base / "volume", "tmpfs", Bytes(16 * 1024 * 1024))

    with pytest.raises(SandboxError, match=r"could not mount: .*exists"):
        namespace.mount(namespace.base / "volume", "tmpfs", Bytes(16 * 1024 * 1024))
