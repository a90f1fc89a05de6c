"""One guard at a time has a device, whoever it is and whatever becomes of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from brimline.act import device_lock
from brimline.act.device_lock import CannotLock, DeviceLock, DeviceTurn, volume_root
from tests.waiting import PATIENCE_SECONDS

HOLD = (
    "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX); print(flush=True); input()"
)


@pytest.fixture
def log_dirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """On a volume of their own, as far as this test is concerned: the machine's real one is everybody's."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(device_lock, "volume_root", lambda log_dir: Path(log_dir).resolve(strict=True).parent)
    return [str(tmp_path / "a"), str(tmp_path / "b")]


def test_two_log_dirs_of_one_volume_have_one_lock(log_dirs: list[str]) -> None:
    first, second = (DeviceLock(log_dir) for log_dir in log_dirs)

    taken, also_taken = first.take(), second.take()
    first.release()
    taken_later = second.take()
    second.release()

    assert (taken, also_taken, taken_later) == (True, False, True)
    assert not first.is_held


def test_another_process_has_it_until_it_dies(log_dirs: list[str]) -> None:
    lock = DeviceLock(log_dirs[0])
    command = [sys.executable, "-c", HOLD, str(Path(log_dirs[0]).parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        while_it_lives = lock.take()
        holder.kill()
        holder.wait(PATIENCE_SECONDS)

    assert (while_it_lives, lock.take()) == (False, True)
    lock.release()


def test_who_has_it_knows_when_others_wait_for_it(log_dirs: list[str]) -> None:
    ours, other = (DeviceLock(log_dir) for log_dir in log_dirs)
    ours.take()
    at_first = ours.is_wanted_by_others
    other.take()
    other.take()
    while_it_waits = ours.is_wanted_by_others, other.is_wanted_by_others
    other.release()
    after_it_went_away = ours.is_wanted_by_others
    other.take()
    ours.release()
    other.take()

    assert (at_first, while_it_waits, after_it_went_away) == (False, (True, False), False)
    assert (other.is_held, other.is_wanted_by_others, ours.take(), other.is_wanted_by_others) == (
        True,
        False,
        False,
        True,
    )
    ours.release()
    other.release()


def test_a_log_dir_that_is_gone_cannot_be_locked(log_dirs: list[str]) -> None:
    Path(log_dirs[0]).rmdir()

    with pytest.raises(CannotLock, match="No such file or directory"):
        DeviceLock(log_dirs[0]).take()


def test_the_root_of_a_volume_is_where_its_file_system_begins() -> None:
    assert volume_root("/proc/self/fd") == Path("/proc")
    assert volume_root("/") == Path("/")


def test_a_turn_comes_after_its_delay_and_after_the_others(log_dirs: list[str]) -> None:
    now, delays = 100.0, iter([3.0, 5.0])
    other = DeviceLock(log_dirs[1])
    turn = DeviceTurn(DeviceLock(log_dirs[0]), lambda: next(delays), lambda: now)

    at_first = turn.wait()
    now += 2
    a_moment_later = turn.wait()
    other.take()
    now += 1
    taken_by_another = turn.wait()
    other.release()
    ours = turn.wait()
    still_ours = turn.wait(), other.take()
    turn.end()
    the_next = turn.wait()

    assert (at_first, a_moment_later) == (3.0, 1.0)
    assert taken_by_another > 0
    assert (ours, still_ours) == (0.0, (0.0, False))
    assert the_next == 5.0
    assert other.take()
    other.release()
