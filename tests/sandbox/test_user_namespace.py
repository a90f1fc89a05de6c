"""Without root a sandbox lives in a user namespace. Root tries it as somebody else; others always do."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.sandbox.jars.cache import cache_dir, kafka_jars

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="every other test already runs as an ordinary user"),
]

NOBODY = 65534
SOURCE = Path(__file__).parents[2] / "src"

SCRIPT = """
import os
from brimline.sandbox import NamespaceRefused, Sandbox, SandboxSpec, VolumeSpec
assert os.geteuid() != 0
with Sandbox(SandboxSpec()) as sandbox:
    log_dir = sandbox.outside(sandbox.broker(1).log_dirs[0])
    assert (log_dir / "meta.properties").is_file()
    status = os.statvfs(log_dir)
    assert status.f_blocks * status.f_frsize == 256 * 1024 * 1024
    foreign_file = sandbox.fill(sandbox.broker(1).log_dirs[0], leave_free=4096 * 1024)
    sandbox.unfill(foreign_file)
    assert os.system(" ".join(sandbox.inside(["test", "-d", str(sandbox.broker(1).log_dirs[0])]))) == 0
try:
    Sandbox(SandboxSpec(volumes=(VolumeSpec(filesystem="ext4"),))).start()
except NamespaceRefused as error:
    print(error)
"""

# A Python below root's home directory cannot start itself again, as a sandbox must.
PROBE = "import subprocess, sys, brimline.sandbox; subprocess.run([sys.executable, '-c', ''], check=True)"


@pytest.fixture
def cache_of_nobody() -> Iterator[Path]:
    """A cache that an ordinary user owns, warm; not under pytest's directories, which are root's alone."""
    jars = kafka_jars("4.3.1")[0].parent
    with tempfile.TemporaryDirectory(prefix="brimline-test-") as name:
        home = Path(name)
        assert jars.is_relative_to(cache_dir())
        shutil.copytree(jars, home / "brimline" / "kafka" / "4.3.1")
        for path in (home, *home.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        yield home


def run_as_nobody(python: str, cache: Path, code: str) -> "subprocess.CompletedProcess[str]":
    packages = sysconfig.get_path("purelib")
    return subprocess.run(
        ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", python, "-c", code],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": f"{SOURCE}:{packages}"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_ordinary_user_has_a_sandbox_too(cache_of_nobody: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv to become somebody else with")
    pythons = [sys.executable, "/usr/bin/python3"]
    usable = [python for python in pythons if run_as_nobody(python, cache_of_nobody, PROBE).returncode == 0]
    if not usable:
        pytest.skip("no Python that an ordinary user may run: the environment is in root's own directory")

    done = run_as_nobody(usable[0], cache_of_nobody, SCRIPT)

    if "no private mounts" in done.stderr:
        pytest.skip("user namespaces are forbidden on this machine")
    assert done.returncode == 0, done.stderr
    assert "only root may do: ask for tmpfs" in done.stdout
