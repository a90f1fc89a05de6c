"""A guard with a ballast beside a real broker, on a volume that a foreign file fills to the last block."""

import errno
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.act.ballast import NAME
from brimline.act.ledger.entries import BallastAct, BallastEntry, Recorded
from brimline.act.ledger.files import LedgerFiles, read_history
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic, produce
from tests.integration.full_disks import NO_LIMIT, verify_unharmed
from tests.integration.guarded import QUICK, RunningGuard, guard, write_config
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

MIB = 1 << 20
SIZE = 8 * MIB
QUIET = {
    "metadata.max.idle.interval.ms": "0",
    "replica.high.watermark.checkpoint.interval.ms": "600000",
    "log.flush.offset.checkpoint.interval.ms": "600000",
    "log.flush.start.offset.checkpoint.interval.ms": "600000",
}
"""A broker that writes only when it is asked to: on a loaded machine even moments without a free block may be long."""
ALLOCATED, RELEASED, RESTORED = BallastAct.ALLOCATED, BallastAct.RELEASED, BallastAct.RESTORED


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    volume = VolumeSpec(size=Bytes(96 * MIB), log_dirs=2)
    with Sandbox(SandboxSpec(volumes=(volume,), properties=QUIET)) as running:
        create_topic(running, "orders")
        yield running


def keys(state_dir: Path, size: int = SIZE) -> dict[str, str]:
    """Without limits, and calm but for the ballast: nothing else makes the guard look."""
    return {
        **NO_LIMIT,
        "disk.usage.check.interval.ms": "60000",
        "brimline.state.dir": str(state_dir),
        "brimline.ballast.bytes": str(size),
    }


def fill_to_the_last_block(sandbox: Sandbox, log_dir: Path) -> Path:
    """At once, so that nobody can give anything back meanwhile. A broker that writes in between makes it too large."""
    while True:
        try:
            return sandbox.fill(log_dir, leave_free=Bytes(0))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            for left_over in sandbox.outside(log_dir).parent.glob("foreign-*"):
                left_over.unlink()


def entries(state_dir: Path) -> list[BallastEntry]:
    files = LedgerFiles(state_dir, 1)
    if not files.current.exists():
        return []
    found = [each.entry for each in read_history(files) if isinstance(each, Recorded)]
    return [entry for entry in found if isinstance(entry, BallastEntry)]


def acts(state_dir: Path) -> list[BallastAct]:
    return [entry.act for entry in entries(state_dir)]


def in_place(running: RunningGuard) -> list[bool]:
    ballast = running.state()["ballast"]
    return [volume["inPlace"] for volume in ballast["volumes"]] if ballast else []


def test_it_is_given_back_in_time_and_made_again(sandbox: Sandbox, tmp_path: Path) -> None:
    first, second = (sandbox.outside(log_dir) for log_dir in sandbox.broker(1).log_dirs)
    with guard(sandbox, tmp_path / "log", keys(tmp_path / "state")) as running:
        eventually(lambda: in_place(running) == [True])
        blocks = (first / NAME).stat().st_blocks * 512
        in_second = (second / NAME).exists()
        foreign = fill_to_the_last_block(sandbox, sandbox.broker(1).log_dirs[0])
        eventually(lambda: in_place(running) == [False])
        # Only because of it is there room for these.
        produce(sandbox, "orders", 1)
        create_topic(sandbox, "clicks")
        eventually(lambda: list(running.samples("brimline_ballast_releases_total").values()) == [1])
        sandbox.unfill(foreign)
        eventually(lambda: in_place(running) == [True])
        state = running.state()["ballast"]
        write_config(sandbox, {**QUICK, "brimline.log.format": "json", **keys(tmp_path / "state", size=0)})
        running.process.send_signal(signal.SIGHUP)
        eventually(lambda: running.events().count("ballast-released") == 2)
        is_left = (first / NAME).exists()

    assert (blocks, in_second, is_left) == (SIZE, False, False)
    assert (state["wantedBytes"], state["volumes"][0]["bytes"], state["volumes"][0]["releases"]) == (SIZE, SIZE, 1)
    assert acts(tmp_path / "state") == [ALLOCATED, RELEASED, RESTORED, RELEASED]
    ran_out = entries(tmp_path / "state")[1]
    assert ran_out.usable_bytes < SIZE // 4
    assert "only" in ran_out.why
    verify_unharmed(sandbox)


def test_a_guard_that_is_killed_leaves_it_and_the_next_one_has_it(sandbox: Sandbox, tmp_path: Path) -> None:
    first = sandbox.outside(sandbox.broker(1).log_dirs[0])
    with guard(sandbox, tmp_path / "log-1", keys(tmp_path / "state")) as running:
        eventually(lambda: in_place(running) == [True])
        running.process.kill()
        running.process.wait(PATIENCE_SECONDS)
    is_left = (first / NAME).stat().st_size
    with guard(sandbox, tmp_path / "log-2", keys(tmp_path / "state")) as running:
        eventually(lambda: in_place(running) == [True])
        foreign = fill_to_the_last_block(sandbox, sandbox.broker(1).log_dirs[0])
        eventually(lambda: RELEASED in acts(tmp_path / "state"))
        sandbox.unfill(foreign)

    assert is_left == SIZE
    verify_unharmed(sandbox)
