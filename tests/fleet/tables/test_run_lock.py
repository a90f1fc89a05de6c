"""One run at a time, and a dead run's lock goes when the last process that held it does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from brimline.fleet.session.errors import FleetError, WarehouseBusy
from brimline.fleet.tables.run_lock import only_run
from tests.waiting import PATIENCE_SECONDS

HOLD = """
import os, subprocess, sys
from brimline.fleet.tables.run_lock import only_run
with only_run(sys.argv[1]) as lock:
    child = subprocess.Popen(["sleep", "600"], pass_fds=lock, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(child.pid, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_second_run_is_refused_and_the_first_is_named(tmp_path: Path) -> None:
    busy = pytest.raises(WarehouseBusy, match=rf"pid {os.getpid()}\) is in progress")

    with only_run(str(tmp_path)), busy, only_run(str(tmp_path), patience_seconds=0):
        pass


def test_after_a_run_the_next_may_begin(tmp_path: Path) -> None:
    for _ in range(2):
        with only_run(str(tmp_path), patience_seconds=0):
            pass


def test_a_killed_run_keeps_its_warehouse_until_its_jvm_is_gone_too(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", HOLD, str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == -9
    jvm = int(run.stdout)
    try:
        with pytest.raises(WarehouseBusy), only_run(str(tmp_path), patience_seconds=0):
            pass
    finally:
        os.kill(jvm, 9)

    with only_run(str(tmp_path), patience_seconds=PATIENCE_SECONDS):
        pass


def test_a_warehouse_that_cannot_be_written_to_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FleetError, match="cannot be written to"), only_run(str(tmp_path / "file" / "warehouse")):
        pass
