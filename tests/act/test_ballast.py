"""The ballast's file on a real file system: blocks that are really taken, and really given back."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.act.ballast import NAME, Ballast, BallastFailed
from brimline.act.ledger.entries import BallastAct, BallastEntry, Recorded
from brimline.act.ledger.files import read_history
from brimline.act.ledger.ledger import Ledger
from brimline.decide.ballast import BallastDecision, BallastRule
from brimline.decide.disk_state import DiskLimits, Space
from brimline.model import Bytes
from tests.act.ledger.entries import NOW

MIB = 1 << 20
RULE = BallastRule(size=Bytes(2 * MIB), limits=DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0)))
OFF = BallastRule(size=Bytes(0), limits=RULE.limits)
ROOM = Space(total=Bytes(1000 * MIB), usable=Bytes(500 * MIB))
NONE_LEFT = Space(total=Bytes(1000 * MIB), usable=Bytes(0))


@pytest.fixture
def log_dirs(tmp_path: Path) -> list[str]:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").touch()
    return [str(tmp_path / "a"), str(tmp_path / "b")]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "state", 1, lambda: NOW)


@pytest.fixture
def ballast(log_dirs: list[str], ledger: Ledger) -> Ballast:
    return Ballast(log_dirs, "8:1", ledger)


def told(ledger: Ledger) -> list[tuple[BallastAct, bool]]:
    found = [each.entry for each in read_history(ledger.files) if isinstance(each, Recorded)]
    return [(entry.act, entry.was_late) for entry in found if isinstance(entry, BallastEntry)]


def test_none_is_made_in_a_folder_whose_volume_is_not_mounted(ballast: Ballast, log_dirs: list[str]) -> None:
    """It lies on another disk then, and has nothing of a broker's in it."""
    for log_dir in log_dirs:
        Path(log_dir, "meta.properties").unlink()

    with pytest.raises(
        BallastFailed,
        match=r"it has no meta\.properties, so it is not a broker's; is its volume "
        "mounted",
    ):
        ballast.step(ROOM, RULE)
    assert list(Path(log_dirs[0]).iterdir()) == []


def test_it_is_allocated_released_and_restored_and_the_ledger_tells(
    ballast: Ballast, ledger: Ledger, log_dirs: list[str]
) -> None:
    path = Path(log_dirs[0], NAME)

    allocated = ballast.step(ROOM, RULE)
    blocks = path.stat().st_blocks * 512
    again = ballast.step(ROOM, RULE)
    released = ballast.step(NONE_LEFT, RULE)
    was_there = path.exists()
    waiting = ballast.step(NONE_LEFT, RULE)
    restored = ballast.step(ROOM, RULE)

    assert (allocated.path, allocated.size) == (str(path), 2 * MIB)
    assert blocks >= 2 * MIB
    assert [report.decision for report in (allocated, again, released, waiting, restored)] == [
        BallastDecision.ALLOCATE,
        BallastDecision.KEEP,
        BallastDecision.RELEASE_RUNNING_OUT,
        BallastDecision.WAIT_FOR_ROOM,
        BallastDecision.ALLOCATE,
    ]
    assert (released.size, was_there, restored.size) == (0, False, 2 * MIB)
    assert told(ledger) == [
        (BallastAct.ALLOCATED, False),
        (BallastAct.RELEASED, False),
        (BallastAct.RESTORED, False),
    ]
    assert not Path(log_dirs[1], NAME).exists()


def test_a_full_disk_that_takes_no_entry_gets_its_space_first_and_the_entry_says_so(
    ballast: Ballast, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, log_dirs: list[str]
) -> None:
    ballast.step(ROOM, RULE)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        released = ballast.step(NONE_LEFT, RULE)
        is_gone = not Path(log_dirs[0], NAME).exists()
    while_full = told(ledger)
    later = ballast.step(NONE_LEFT, RULE)

    assert (is_gone, released.unrecorded, later.unrecorded) == (True, 1, 0)
    assert while_full == [(BallastAct.ALLOCATED, False)]
    assert told(ledger)[1:] == [(BallastAct.RELEASED, True)]


def no_space(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_another_guard_goes_on_with_the_same_file(ballast: Ballast, ledger: Ledger, log_dirs: list[str]) -> None:
    ballast.step(ROOM, RULE)
    ballast.step(NONE_LEFT, RULE)

    inherited = Ledger(ledger.files.folder, 1, lambda: NOW)
    inherited.refresh()
    Ballast(log_dirs, "8:1", inherited).step(ROOM, RULE)

    assert told(ledger)[-1] == (BallastAct.RESTORED, False)


def test_one_in_another_log_dir_is_the_one(log_dirs: list[str], ledger: Ledger) -> None:
    Ballast(log_dirs[1:], "8:1", ledger).step(ROOM, RULE)

    report = Ballast(log_dirs, "8:1", ledger).step(ROOM, RULE)

    assert report.path == str(Path(log_dirs[1], NAME))
    assert report.decision is BallastDecision.KEEP
    assert not Path(log_dirs[0], NAME).exists()


def test_switched_off_it_goes(ballast: Ballast, ledger: Ledger, log_dirs: list[str]) -> None:
    ballast.step(ROOM, RULE)

    report = ballast.step(ROOM, OFF)

    assert report.size == 0
    assert not Path(log_dirs[0], NAME).exists()
    assert told(ledger)[-1] == (BallastAct.RELEASED, False)


def test_a_file_with_holes_is_filled(ballast: Ballast, log_dirs: list[str]) -> None:
    path = Path(log_dirs[0], NAME)
    path.touch()
    os.truncate(path, RULE.size)

    ballast.step(ROOM, RULE)

    assert path.stat().st_blocks * 512 >= RULE.size


def test_a_file_system_that_gives_no_blocks_is_named_and_keeps_no_file(
    ballast: Ballast, monkeypatch: pytest.MonkeyPatch, log_dirs: list[str]
) -> None:
    """As one that compresses: zeros take no space there."""
    monkeypatch.setattr(os, "posix_fallocate", lambda fd, _, size: os.ftruncate(fd, size))

    with pytest.raises(BallastFailed, match=r"gives 0 B to a file of 2\.00 MiB"):
        ballast.step(ROOM, RULE)
    assert not Path(log_dirs[0], NAME).exists()


def test_what_does_not_fit_leaves_nothing_behind(
    ballast: Ballast, monkeypatch: pytest.MonkeyPatch, log_dirs: list[str], ledger: Ledger
) -> None:
    def half(fd: int, _: int, size: int) -> None:
        os.write(fd, b"x" * (size // 2))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", half)

    with pytest.raises(BallastFailed, match="No space left on device"):
        ballast.step(ROOM, RULE)
    ledger.refresh()
    assert not Path(log_dirs[0], NAME).exists()
    assert told(ledger) == []


def test_of_two_on_one_volume_the_second_goes(ballast: Ballast, ledger: Ledger, log_dirs: list[str]) -> None:
    """Made while the first log dir could not be seen, or had a volume of its own."""
    Ballast(log_dirs[1:], "8:1", ledger).step(ROOM, RULE)
    Ballast(log_dirs[:1], "8:1", ledger).step(ROOM, RULE)

    report = ballast.step(ROOM, RULE)

    assert (report.path, report.size) == (str(Path(log_dirs[0], NAME)), 2 * MIB)
    assert not Path(log_dirs[1], NAME).exists()
    assert told(ledger)[-1] == (BallastAct.RELEASED, False)


def test_a_link_is_not_followed(ballast: Ballast, log_dirs: list[str], tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.write_bytes(b"")
    Path(log_dirs[0], NAME).symlink_to(other)

    with pytest.raises(BallastFailed, match="no ballast in"):
        ballast.step(ROOM, RULE)
    assert other.stat().st_size == 0


def test_a_release_that_fails_is_told_once_and_tried_again(
    ballast: Ballast, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(_self: Path, *, missing_ok: bool) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    ballast.step(ROOM, RULE)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", read_only)
        for _ in range(3):
            with pytest.raises(BallastFailed, match="cannot be removed: Read-only file system"):
                ballast.step(NONE_LEFT, RULE)
    ballast.step(NONE_LEFT, RULE)

    assert told(ledger) == [(BallastAct.ALLOCATED, False), (BallastAct.RELEASED, False)]


def test_a_release_that_was_recorded_and_not_done_does_not_hide_the_next(
    ballast: Ballast, ledger: Ledger, log_dirs: list[str]
) -> None:
    """Whoever did it was killed in between, and then there was room."""
    ballast.step(ROOM, RULE)
    path = str(Path(log_dirs[0], NAME))
    ledger.append(replace(ledger.state.ballast[path], act=BallastAct.RELEASED))
    again = Ballast(log_dirs, "8:1", ledger)
    again.step(ROOM, RULE)
    again.step(ROOM, RULE)
    again.step(NONE_LEFT, RULE)

    assert [act for act, _ in told(ledger)] == [
        BallastAct.ALLOCATED,
        BallastAct.RELEASED,
        BallastAct.RESTORED,
        BallastAct.RELEASED,
    ]


def test_one_that_was_made_and_not_recorded_is(ballast: Ballast, ledger: Ledger, log_dirs: list[str]) -> None:
    path = Path(log_dirs[0], NAME)
    path.write_bytes(b"x" * RULE.size)
    ledger.refresh()

    ballast.step(ROOM, RULE)
    ballast.step(ROOM, RULE)

    assert told(ledger) == [(BallastAct.ALLOCATED, False)]


def test_where_unlinking_needs_space_the_file_is_emptied_first(
    ballast: Ballast, monkeypatch: pytest.MonkeyPatch, log_dirs: list[str]
) -> None:
    path = Path(log_dirs[0], NAME)
    unlink = Path.unlink

    def needs_space(self: Path, *, missing_ok: bool) -> None:
        if self.stat().st_size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        unlink(self, missing_ok=missing_ok)

    ballast.step(ROOM, RULE)
    monkeypatch.setattr(Path, "unlink", needs_space)
    ballast.step(NONE_LEFT, RULE)

    assert not path.exists()
