"""A second guard of one broker ends with one sentence; the death of the first leaves nothing in its way."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brimline.guard.only_guard import OnlyGuard
from brimline.model import BadInput
from tests.waiting import PATIENCE_SECONDS, eventually


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    (tmp_path / "log-dir").mkdir()
    path = tmp_path / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs={tmp_path / 'log-dir'}\nlisteners=PLAINTEXT://127.0.0.1:1\nbrimline.metrics.port=0\n"
        f"brimline.state.dir={tmp_path / 'state'}\n"
    )
    return path


@contextmanager
def running(properties: Path, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as stream:
        command = [sys.executable, "-m", "brimline.cli", "guard", "--config", str(properties)]
        process = subprocess.Popen(command, stderr=stream, stdin=subprocess.DEVNULL)
    try:
        eventually(lambda: " started " in log.read_text() or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE_SECONDS)


def test_a_second_guard_of_a_broker_is_refused_until_the_first_is_dead(properties: Path, tmp_path: Path) -> None:
    with running(properties, tmp_path / "first.log") as first, running(properties, tmp_path / "second.log") as second:
        code, said = second.wait(PATIENCE_SECONDS), (tmp_path / "second.log").read_text()
        first.kill()
        first.wait(PATIENCE_SECONDS)
        with running(properties, tmp_path / "third.log") as third:
            lives = third.poll() is None

    assert code == 1
    assert said.startswith(f"brimline: another guard of broker 1 is running (process {first.pid}): it holds ")
    assert said.count("\n") == 1
    assert lives


def test_brokers_that_share_a_folder_have_a_lock_each(tmp_path: Path) -> None:
    first = OnlyGuard(tmp_path, 1)
    second = OnlyGuard(tmp_path, 2)

    with pytest.raises(BadInput, match="another guard of broker 1"):
        OnlyGuard(tmp_path, 1)
    assert first.warning is None
    assert second.warning is None


def test_on_a_full_disk_the_lock_holds_without_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    first = OnlyGuard(tmp_path, 1)

    with pytest.raises(BadInput, match=r"another guard of broker 1 is running \(process unknown\)"):
        OnlyGuard(tmp_path, 1)
    assert first.warning is None


def test_without_a_place_for_a_lock_there_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")

    assert "another guard may be running" in (OnlyGuard(tmp_path / "state", 1).warning or "")
