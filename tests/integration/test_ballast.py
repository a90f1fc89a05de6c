"""The ballast beside a real broker: it starts over one, and lives through a disk that runs out, or that has."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brimline.act.ballast import NAME, Ballast
from brimline.act.ledger.entries import BallastAct, BallastEntry, Paused, Recorded
from brimline.act.ledger.files import read_history
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.writing import LONGEST_TEXT
from brimline.decide.ballast import BallastDecision, BallastRule
from brimline.decide.disk_state import DiskLimits, Space
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic, produce
from tests.integration.full_disks import log_dir_errors

pytestmark = [pytest.mark.integration, pytest.mark.long]

MIB = 1 << 20
SIZE = Bytes(8 * MIB)
RULE = BallastRule(size=SIZE, limits=DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0)))
PAGE = 4096


@pytest.fixture(scope="module", params=["4.3.1", "3.9.2"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(version=request.param, volumes=(VolumeSpec(size=Bytes(96 * MIB)),))) as running:
        create_topic(running, "orders")
        yield running


@pytest.fixture
def log_dir(sandbox: Sandbox) -> Iterator[Path]:
    """As this process finds it; without a ballast before and after."""
    path = sandbox.outside(sandbox.broker(1).log_dirs[0])
    yield path
    (path / NAME).unlink(missing_ok=True)
    sandbox.broker(1).start()


def ledger_in(folder: Path) -> Ledger:
    ledger = Ledger(folder, 1, lambda: datetime.now(UTC))
    ledger.refresh()
    return ledger


def space_of(log_dir: Path) -> Space:
    status = os.statvfs(log_dir)
    return Space(total=Bytes(status.f_blocks * status.f_frsize), usable=Bytes(status.f_bavail * status.f_frsize))


def told(ledger: Ledger) -> list[tuple[BallastAct, bool]]:
    found = [each.entry for each in read_history(ledger.files) if isinstance(each, Recorded)]
    return [(entry.act, entry.was_late) for entry in found if isinstance(entry, BallastEntry)]


def test_a_disk_that_runs_out_gets_it_back_and_has_it_again_when_there_is_room(
    sandbox: Sandbox, log_dir: Path, tmp_path: Path
) -> None:
    ledger = ledger_in(tmp_path)
    ballast = Ballast([str(log_dir)], "0:1", ledger)
    before = space_of(log_dir)
    ballast.step(before, RULE)
    taken = before.usable - space_of(log_dir).usable
    foreign = sandbox.fill(sandbox.broker(1).log_dirs[0], leave_free=Bytes(MIB))
    released = ballast.step(space_of(log_dir), RULE)
    after = space_of(log_dir)
    produce(sandbox, "orders", 1)
    waiting = ballast.step(space_of(log_dir), RULE)
    sandbox.unfill(foreign)
    restored = ballast.step(space_of(log_dir), RULE)

    # A broker writes a little meanwhile.
    assert abs(taken - SIZE) < MIB
    assert released.decision is BallastDecision.RELEASE_RUNNING_OUT
    assert after.usable > SIZE
    assert waiting.decision is BallastDecision.WAIT_FOR_ROOM
    assert restored.size == SIZE
    assert told(ledger) == [
        (BallastAct.ALLOCATED, False),
        (BallastAct.RELEASED, False),
        (BallastAct.RESTORED, False),
    ]
    assert sandbox.broker(1).is_running


def test_a_broker_starts_over_it_and_on_a_full_disk_because_of_it(sandbox: Sandbox, log_dir: Path) -> None:
    """With the ledger on that disk: it takes no entry before there is room."""
    broker = sandbox.broker(1)
    ledger = ledger_in(log_dir.parent / "state")
    ballast = Ballast([str(log_dir)], "0:1", ledger)
    ballast.step(space_of(log_dir), RULE)
    broker.restart()
    with_ballast = log_dir_errors(sandbox)
    broker.stop()
    use_up_the_last_page(ledger)
    foreign = sandbox.fill(broker.log_dirs[0], leave_free=Bytes(0))
    released = ballast.step(space_of(log_dir), RULE)
    broker.start()
    after = log_dir_errors(sandbox)
    sandbox.unfill(foreign)

    assert with_ballast == after == {str(broker.log_dirs[0]): 0}
    assert (released.decision, released.size) == (BallastDecision.RELEASE_RUNNING_OUT, 0)
    assert told(ledger) == [(BallastAct.ALLOCATED, False), (BallastAct.RELEASED, True)]


def use_up_the_last_page(ledger: Ledger) -> None:
    """What is allocated already can be written to however full a disk is. In lines whose text is not cut short."""
    ledger.append(Paused(by="", reason=""))
    text, line = "", 0
    while missing := -ledger.files.current.stat().st_size % PAGE:
        if line:
            rest = missing - line if missing >= line else missing + PAGE - line
            longest = LONGEST_TEXT if rest <= LONGEST_TEXT else LONGEST_TEXT - line
            text = "x" * min(rest, longest)
        size = ledger.files.current.stat().st_size
        ledger.append(Paused(by="", reason=text))
        line = ledger.files.current.stat().st_size - size - len(text)
    assert ledger.files.current.stat().st_size % PAGE == 0
