"""When a guard makes its ballast, gives it back and makes it again; real files, and readings made by hand."""

import errno
import io
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from brimline.act.ballast import NAME
from brimline.act.ledger.entries import BallastAct, BallastEntry, Recorded
from brimline.act.ledger.files import read_history
from brimline.act.ledger.ledger import Ledger
from brimline.decide.disk_state import DiskLimits, DiskState
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.guard.ballast.feature import BallastNews, ballast_document
from brimline.guard.ballast.task import RETRY, BallastStatus, BallastTask
from brimline.model import Bytes, Failure, FailureKind
from brimline.observe.volumes import VolumeReading
from brimline.service import log_lines
from tests.service.ticking import TickingClock

MIB = 1 << 20
OFF = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0))
TOTAL, ROOM, NONE = Bytes(1000 * MIB), 500 * MIB, 0
HUNG = Failure(kind=FailureKind.STALLED, message="the file system has not answered for 10 s")
ALLOCATED, RELEASED, RESTORED = BallastAct.ALLOCATED, BallastAct.RELEASED, BallastAct.RESTORED


class Kept:
    """The ballast of log dirs ``a`` and ``b``, on one device unless a test says otherwise."""

    def __init__(self, root: Path) -> None:
        self.clock = TickingClock()
        self.log_dirs = [str(root / name) for name in ("a", "b")]
        for path in self.log_dirs:
            Path(path).mkdir()
            Path(path, "meta.properties").touch()
        self.device = dict.fromkeys(self.log_dirs, "8:1")
        self.failed: set[str] = set()
        self.wanted = Bytes(2 * MIB)
        self.looks = 0
        self.woken = 0
        self.log = io.StringIO()
        log_lines.set_up(self.log, "json", "info")
        self.files = Ledger(root / "state", 1, self.clock.now).files
        self.tasks = [self._task(path, root) for path in self.log_dirs]

    def _task(self, path: str, root: Path) -> BallastTask:
        news = BallastNews()
        ledger = Ledger(root / "state", 1, self.clock.now, sleep=lambda _seconds: None)
        return BallastTask(
            path, self.log_dirs, ledger, self.clock, lambda: self.wanted, self._wake, self._look, news.tell
        )

    def seen(self, usable: int, limits: DiskLimits = OFF) -> DiskReport:
        self.clock.tick(1)
        volumes: dict[tuple[str, str], list[str]] = {}
        for path in self.log_dirs:
            volumes.setdefault((self.device[path], path if path in self.failed else ""), []).append(path)
        return DiskReport(
            volumes=tuple(self._volume(device, paths, usable, limits) for (device, _), paths in volumes.items()),
            limits=limits,
            checked=self.clock.seconds(),
        )

    def _volume(self, device: str, log_dirs: Sequence[str], usable: int, limits: DiskLimits) -> VolumeStatus:
        is_failed = log_dirs[0] in self.failed
        reading = VolumeReading(
            device=device,
            log_dirs=tuple(log_dirs),
            total_bytes=None if is_failed else TOTAL,
            usable_bytes=None if is_failed else Bytes(usable),
            reserved_bytes=None,
            observed_at=datetime(2026, 1, 1, tzinfo=UTC),
            seconds=self.clock.seconds(),
            failure=HUNG if is_failed else None,
        )
        state = DiskState.UNKNOWN if is_failed else DiskState.OK
        return VolumeStatus(
            reading=reading,
            fullness=state,
            breaches=(),
            bytes_to_limit=None,
            fill_rate=None,
            seconds_left=None,
            next_look=1,
            limits=limits,
        )

    def step(self, usable: int | None = None, limits: DiskLimits = OFF) -> list[BallastStatus | None]:
        """Every task once; with ``usable``: on a new reading."""
        if usable is not None:
            report = self.seen(usable, limits)
            for task in self.tasks:
                task.decided(report)
            self.clock.tick(0.1)
        for task in self.tasks:
            task.step()
        return [task.status for task in self.tasks]

    def _look(self) -> None:
        self.looks += 1

    def _wake(self) -> None:
        self.woken += 1

    def is_there(self, log_dir: int = 0) -> bool:
        return Path(self.log_dirs[log_dir], NAME).exists()

    def acts(self) -> list[tuple[BallastAct, bool]]:
        entries = [found.entry for found in read_history(self.files) if isinstance(found, Recorded)]
        return [(entry.act, entry.was_late) for entry in entries if isinstance(entry, BallastEntry)]

    def said(self) -> list[tuple[str, str]]:
        lines: list[dict[str, Any]] = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [(line["event"], line["message"]) for line in lines]

    def events(self) -> list[str]:
        return [event for event, _ in self.said()]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_made_given_back_and_made_again_and_told_everywhere(kept: Kept) -> None:
    made, of_b = kept.step(ROOM)
    was_there = kept.is_there()
    given_back, _ = kept.step(NONE)
    is_gone = not kept.is_there()
    kept.step(NONE)
    back, _ = kept.step(ROOM)

    assert made is not None
    assert given_back is not None
    assert back is not None
    assert of_b is None
    assert (made.size, was_there) == (2 * MIB, True)
    assert (given_back.size, is_gone, given_back.releases) == (0, True, 1)
    assert (back.size, back.is_in_place, back.releases) == (2 * MIB, True, 1)
    assert kept.acts() == [(ALLOCATED, False), (RELEASED, False), (RESTORED, False)]
    assert kept.events() == ["ballast-allocated", "ballast-released", "ballast-waits", "ballast-restored"]
    assert "0 B usable" in kept.said()[1][1]


def test_every_act_has_the_disks_looked_at_and_none_is_done_on_an_old_reading(kept: Kept) -> None:
    kept.step(ROOM)
    after_making = kept.looks
    Path(kept.log_dirs[0], NAME).unlink()
    kept.step()
    on_the_old_reading = kept.is_there()
    kept.step(ROOM)

    assert (after_making, on_the_old_reading, kept.is_there(), kept.looks) == (1, False, True, 2)


def test_a_task_is_woken_by_readings_and_by_nothing_else(kept: Kept) -> None:
    report = kept.seen(ROOM)
    for _ in range(3):
        kept.tasks[0].decided(report)
    once = kept.woken
    kept.tasks[0].decided(kept.seen(NONE))

    assert (once, kept.woken) == (1, 2)


def test_it_goes_when_it_is_no_longer_wanted(kept: Kept) -> None:
    kept.step(ROOM)
    kept.wanted = Bytes(0)
    status, _ = kept.step(ROOM)

    assert status is not None
    assert (kept.is_there(), status.is_quiet, status.releases) == (False, True, 0)
    assert kept.said()[-1][1].startswith("ballast removed: brimline.ballast.bytes is 0")
    assert ballast_document([status], kept.wanted) is None


def test_none_is_made_where_none_is_wanted(kept: Kept) -> None:
    kept.wanted = Bytes(0)

    status, _ = kept.step(ROOM)

    assert status is not None
    assert (status.is_quiet, kept.is_there(), kept.events()) == (True, False, [])


def test_it_never_makes_a_disk_full(kept: Kept) -> None:
    limits = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(499 * MIB))
    waiting, _ = kept.step(ROOM, limits)
    kept.step(ROOM, limits)

    assert waiting is not None
    assert not kept.is_there()
    assert kept.events() == ["ballast-waits"]
    document = ballast_document([waiting], kept.wanted)
    assert document is not None
    assert document.volumes[0].does.startswith("no ballast yet: waiting for 2.00 MiB")


def test_every_volume_has_one(kept: Kept) -> None:
    kept.device[kept.log_dirs[1]] = "8:2"

    kept.step(ROOM)

    assert (kept.is_there(0), kept.is_there(1)) == (True, True)


def test_a_log_dir_out_of_sight_keeps_its_place(kept: Kept) -> None:
    """Otherwise its neighbour would make a second one."""
    kept.step(ROOM)
    kept.failed.add(kept.log_dirs[0])
    hidden, neighbour = kept.step(ROOM)
    kept.failed.clear()
    kept.step(ROOM)

    assert hidden is not None
    assert hidden.failure is not None
    assert HUNG.message in hidden.failure
    assert neighbour is None
    assert not kept.is_there(1)
    assert kept.acts() == [(ALLOCATED, False)]


def test_one_that_may_not_be_made_is_tried_again_later(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_arguments: object) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", denied)
        failed, _ = kept.step(ROOM)
    kept.step(ROOM)
    at_once = kept.is_there()
    kept.clock.tick(RETRY)
    kept.step(ROOM)

    assert failed is not None
    assert failed.failure is not None
    assert "Permission denied" in failed.failure
    assert (at_once, kept.is_there()) == (False, True)
    assert kept.events() == ["ballast-failed", "ballast-allocated"]


def test_giving_back_is_tried_with_every_reading(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(_self: Path, *, missing_ok: bool) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    kept.step(ROOM)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", read_only)
        kept.step(NONE)
        kept.step(NONE)
    kept.step(NONE)

    assert not kept.is_there()
    assert kept.events() == ["ballast-allocated", "ballast-failed", "ballast-released"]


def test_a_ledger_that_takes_nothing_holds_up_no_release(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    kept.step(ROOM)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        given_back, _ = kept.step(NONE)
    late, _ = kept.step()

    assert given_back is not None
    assert late is not None
    assert (kept.is_there(), given_back.unrecorded, late.unrecorded) == (False, 1, 0)
    assert kept.acts() == [(ALLOCATED, False), (RELEASED, True)]
    assert kept.tasks[0].step() > 1


def test_a_guard_that_was_killed_goes_on_where_it_was(kept: Kept, tmp_path: Path) -> None:
    kept.step(ROOM)
    kept.step(NONE)
    kept.tasks = [kept._task(path, tmp_path) for path in kept.log_dirs]
    kept.step(NONE)
    kept.step(ROOM)

    assert kept.acts() == [(ALLOCATED, False), (RELEASED, False), (RESTORED, False)]


def test_it_leaves_the_reserve_of_its_volume_alone(kept: Kept) -> None:
    """What Kafka may still write after the fence is no room for a ballast: it would fence the disk."""
    limits = DiskLimits(max_used_percent=99, min_free_bytes=Bytes(0), reserve=Bytes(499 * MIB))

    kept.step(ROOM, limits)
    assert not kept.is_there()

    kept.step(ROOM + 2 * MIB, limits)
    assert kept.is_there()
