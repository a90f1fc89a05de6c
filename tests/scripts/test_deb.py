"""The Debian package: built by dpkg-deb, unpacked, and run from where it was unpacked."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline import __version__
from scripts.deb import PYTHON, UV, build

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed: no Debian"),
    pytest.mark.skipif(not UV.exists(), reason="uv is not set up: make setup"),
    pytest.mark.skipif(
        not PYTHON.exists()
        or subprocess.run([PYTHON, "-V"], capture_output=True, text=True, check=False).stdout.split(".")[:2]
        != [f"Python {sys.version_info.major}", str(sys.version_info.minor)],
        reason="the system's Python is another one: its packages are not in the caches",
    ),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_OFFLINE", "1")  # what is locked is in the cache since the set-up
        yield build(tmp_path_factory.mktemp("deb"))


def test_it_says_what_it_is(package: Path) -> None:
    said = subprocess.run(["dpkg-deb", "--field", package], capture_output=True, text=True, check=True).stdout

    assert f"Package: brimline\nVersion: {__version__}\n" in said
    assert re.search(r"^Depends: python3 \(>= 3\.\d+\), python3 \(<< 3\.\d+\), passwd$", said, re.MULTILINE)


def test_it_has_units_pages_and_completion_and_belongs_to_root(package: Path) -> None:
    listed = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True).stdout
    lines = listed.splitlines()
    paths = {line.split()[5].removeprefix("./") for line in lines}

    assert {
        "usr/bin/brimline",
        "usr/bin/brimline-interception",
        "lib/systemd/system/brimline-guard.service",
        "lib/systemd/system/brimline-gateway.service",
        "lib/systemd/system/brimline-gateway.socket",
        "lib/systemd/system/brimline-interception.socket",
        "lib/systemd/system/brimline-interception@.service",
        "usr/share/man/man1/brimline-doctor.1.gz",
        "usr/share/bash-completion/completions/brimline",
        "usr/share/zsh/vendor-completions/_brimline",
        "usr/share/fish/vendor_completions.d/brimline.fish",
    } <= paths
    assert {line.split()[1] for line in lines} == {"root/root"}


def test_what_is_in_it_runs(package: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path], check=True)
    python = str(tmp_path / "usr/lib/brimline/bin/python")

    command = [python, "-m", "brimline.cli", "log-dirs", "--bootstrap-server", "127.0.0.1:1", "--timeout", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"HOME": str(tmp_path)})

    assert done.returncode == 1
    assert "refused the connection" in done.stderr
    assert (tmp_path / "usr/bin/brimline").read_text().startswith("#!/usr/lib/brimline/bin/python\n")
