"""The ledger on a disk: nothing confirmed is lost, nothing unfinished counts, and all of the past stays readable."""

import errno
import fcntl
import multiprocessing
import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from brimline.act.ledger.entries import (
    BallastAct,
    BallastEntry,
    CycleEnded,
    Entry,
    Paused,
    Plan,
    Recorded,
    Requested,
    RequestedTrim,
    Resumed,
    TrimNumber,
)
from brimline.act.ledger.files import Damage, LedgerFiles, read_history
from brimline.act.ledger.ledger import ROTATE_AT, Ledger
from brimline.act.ledger.state import TrimPhase
from brimline.model import BrimlineError, BrokerId, Bytes, Offset
from brimline.service.durable_files import NotRecorded
from tests.act.ledger.entries import NOW, a_plan
from tests.waiting import PATIENCE_SECONDS

PAUSED = Paused(by="root", reason="CHG-1")
RESUMED = Resumed(by="root", reason="")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def ledger_in(folder: Path, rotate_at: int = ROTATE_AT, sleep: Callable[[float], None] = time.sleep) -> Ledger:
    ledger = Ledger(folder, 1, lambda: NOW, rotate_at=Bytes(rotate_at), sleep=sleep)
    ledger.refresh()
    return ledger


def request(cycle: str = "8:1-1") -> Requested:
    row = RequestedTrim(number=TrimNumber(0), leader=BrokerId(1), log_start=Offset(0), present_bytes=Bytes(4096))
    return Requested(cycle=a_plan(cycle).cycle, trims=(row,))


def end(cycle: str = "8:1-1") -> CycleEnded:
    return CycleEnded(cycle=a_plan(cycle).cycle, done=1, abandoned=0, freed_bytes=Bytes(4096))


def no_space(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def history(folder: Path) -> list[Entry]:
    found = list(read_history(LedgerFiles(folder, 1)))
    assert not [each for each in found if isinstance(each, Damage)], found
    assert [each.sequence for each in found if isinstance(each, Recorded)] == list(range(1, len(found) + 1))
    return [each.entry for each in found if isinstance(each, Recorded)]


def test_the_next_one_knows_what_is_under_way(folder: Path) -> None:
    ledger_in(folder).append(a_plan(), request())

    heir = ledger_in(folder)

    (cycle,) = heir.state.cycles.values()
    assert cycle.plan == a_plan()
    assert (cycle.trims[0].phase, cycle.trims[0].requests) == (TrimPhase.REQUESTED, 1)
    assert heir.state.last_sequence == 2
    assert heir.files.current.stat().st_mode & 0o777 == 0o600


def test_what_has_ended_is_no_longer_under_way_and_stays_in_the_past(folder: Path) -> None:
    ledger_in(folder).append(a_plan(), end())

    assert ledger_in(folder).state.cycles == {}
    assert history(folder) == [a_plan(), end()]


def test_it_is_on_the_disk_when_append_returns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, bool]] = []

    def sync(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        synced.append((path.name, path.is_file() and b"paused" in path.read_bytes()))

    monkeypatch.setattr(os, "fsync", sync)
    ledger_in(folder).append(PAUSED)

    assert synced == [("ledger-1.jsonl.tmp", False), ("state", False), ("ledger-1.jsonl", True)]


@pytest.mark.parametrize("tail", [b'{"v":1,"seq":2,"at":"2026', b"\0" * 500, b'{"v":1}\n', b"\n", b"half\nhalf"])
def test_a_tail_that_was_cut_short_is_taken_away(folder: Path, tail: bytes) -> None:
    ledger_in(folder).append(a_plan())
    with LedgerFiles(folder, 1).current.open("ab") as file:
        file.write(tail)

    heir = ledger_in(folder)
    heir.append(request())

    assert history(folder) == [a_plan(), request()]
    assert "cut short by a crash; nothing was done" in heir.warnings[0]


def test_damage_further_up_is_named_and_not_touched(folder: Path) -> None:
    ledger = ledger_in(folder)
    ledger.append(a_plan())
    ledger.append(PAUSED)
    ledger.append(request())
    lines = ledger.files.current.read_bytes().splitlines(keepends=True)
    ledger.files.current.write_bytes(lines[0] + b"#" + lines[1] + lines[2])

    heir = ledger_in(folder)

    found = list(read_history(heir.files))
    assert heir.warnings == [f"{heir.files.current}: 1 damaged lines ignored"]
    assert heir.state.cycles[a_plan().cycle].trims[0].requests == 1
    assert [str(each) for each in found if isinstance(each, Damage)] == [
        f"{heir.files.current} line 2: damaged or truncated",
        f"{heir.files.current} line 3: entries 2 to 2 are missing before it",
    ]


def test_damage_further_up_stops_all_deleting_until_a_person_resumes(folder: Path) -> None:
    ledger = ledger_in(folder)
    for entry in (a_plan(), PAUSED, request()):
        ledger.append(entry)
    lines = ledger.files.current.read_bytes().splitlines(keepends=True)
    ledger.files.current.write_bytes(lines[0] + bytes([lines[1][0] ^ 1]) + lines[1][1:] + lines[2])

    heir = ledger_in(folder, rotate_at=1)
    assert heir.pause is not None
    assert "has damaged lines" in heir.pause.reason
    heir.append(end())  # and rotates
    assert len(heir.files.parts()) == 1
    after_rotation = ledger_in(folder)
    assert after_rotation.pause == heir.pause
    after_rotation.append(RESUMED)

    assert ledger_in(folder).pause is None


def test_who_resumed_after_the_damage_is_not_asked_again(folder: Path) -> None:
    ledger = ledger_in(folder)
    for entry in (a_plan(), request(), RESUMED):
        ledger.append(entry)
    lines = ledger.files.current.read_bytes().splitlines(keepends=True)
    ledger.files.current.write_bytes(lines[0] + b"#" + lines[1] + lines[2])

    assert ledger_in(folder).pause is None


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"version": 1}'])
def test_a_pause_holds_by_its_file_alone(folder: Path, content: bytes | None) -> None:
    ledger = ledger_in(folder)
    ledger.pause_file.write(by="root", reason="CHG-1", since=NOW)
    if content is not None:
        ledger.pause_file.path.write_bytes(content)

    found = ledger_in(folder).pause

    assert found is not None
    assert ("CHG-1" if content is None else "cannot be read") in found.reason
    ledger.pause_file.remove()
    assert ledger_in(folder).pause is None


def test_on_a_full_disk_nothing_is_recorded_and_nothing_is_left_of_the_try(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = ledger_in(folder)
    ledger.append(a_plan())
    size = ledger.files.current.stat().st_size
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        with pytest.raises(NotRecorded, match="nothing was changed"):
            ledger.append(request())
        size_then = ledger.files.current.stat().st_size
    ledger.append(PAUSED)

    assert size_then == size
    assert history(folder) == [a_plan(), PAUSED]
    assert ledger.state.cycles[a_plan().cycle].trims[0].requests == 0


def test_writers_take_turns_and_continue_each_others_numbers(folder: Path) -> None:
    guard, by_hand = ledger_in(folder), ledger_in(folder)

    guard.append(a_plan())
    by_hand.append(PAUSED)
    guard.append(request())
    by_hand.refresh()

    assert history(folder) == [a_plan(), PAUSED, request()]
    assert guard.state.pause is not None
    assert guard.state.pause.by == "root"
    assert by_hand.state.cycles[a_plan().cycle].trims[0].requests == 1


def test_many_writers_at_once_lose_nothing(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_pauses, args=(folder, writer)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(PATIENCE_SECONDS)

    entries = history(folder)

    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert sorted(entry.reason for entry in entries if isinstance(entry, Paused)) == sorted(
        f"{writer}.{n}" for writer in range(3) for n in range(20)
    )


def _append_pauses(folder: Path, writer: int) -> None:
    ledger = Ledger(folder, 1, lambda: NOW, rotate_at=Bytes(1500))
    for n in range(20):
        while not _is_recorded(ledger, Paused(by="test", reason=f"{writer}.{n}")):
            pass


def _is_recorded(ledger: Ledger, entry: Paused) -> bool:
    """On a busy machine the others may have the lock for longer than anybody waits."""
    try:
        ledger.append(entry)
    except NotRecorded:
        return False
    return True


def test_one_who_keeps_the_lock_is_not_waited_for_for_ever(folder: Path) -> None:
    waits: list[float] = []
    ledger = ledger_in(folder, sleep=waits.append)
    with ledger.files.lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        with pytest.raises(NotRecorded, match="another process holds"):
            ledger.append(PAUSED)

    assert 1 < sum(waits) < 60
    assert history(folder) == []


def test_what_a_later_version_has_written_stops_this_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = ledger_in(folder)
    monkeypatch.setattr("brimline.act.ledger.files._VERSION", 2)
    ledger.append(PAUSED)
    monkeypatch.undo()

    with pytest.raises(NotRecorded, match="has an entry that is written by a later Brimline"):
        ledger_in(folder).append(a_plan())


def test_a_large_file_is_closed_and_the_new_one_has_what_is_under_way(folder: Path) -> None:
    ballast = BallastEntry(
        act=BallastAct.RELEASED,
        path="/data/a/x",
        device="8:1",
        size=Bytes(1),
        usable_bytes=Bytes(0),
        why="running out",
    )
    ledger = ledger_in(folder, rotate_at=1)
    written: list[Entry] = [
        a_plan("8:1-1"),
        a_plan("8:2-2"),
        request("8:2-2"),
        Resumed(by="root", reason=""),
        end("8:1-1"),
        ballast,
        PAUSED,
    ]
    for entry in written:
        ledger.append(entry)

    heir = ledger_in(folder)

    assert history(folder) == written
    assert len(ledger.files.parts()) == len(written)
    assert [cycle.plan.cycle for cycle in heir.state.cycles.values()] == ["8:2-2"]
    assert heir.state.cycles[a_plan("8:2-2").cycle].trims[0].requests == 1
    assert heir.state.pause is not None
    assert heir.state.ballast["/data/a/x"] == ballast
    assert heir.state.last_sequence == len(written)


def test_one_whose_file_was_rotated_by_another_goes_on_in_the_new_one(folder: Path) -> None:
    guard = ledger_in(folder)
    guard.append(a_plan())
    by_hand = ledger_in(folder, rotate_at=1)
    by_hand.append(PAUSED)
    by_hand.append(Resumed(by="root", reason=""))

    guard.append(request())

    assert history(folder) == [a_plan(), PAUSED, Resumed(by="root", reason=""), request()]
    assert guard.state.cycles[a_plan().cycle].trims[0].requests == 1


def test_a_rotation_that_was_killed_half_way_shows_nothing_twice(folder: Path) -> None:
    ledger = ledger_in(folder, rotate_at=1)
    ledger.append(a_plan())
    before = ledger.files.current.read_bytes()
    ledger.append(request(), end())
    # As if the closed part were there, and the new file were not.
    ledger.files.current.write_bytes(before)

    ledger_in(folder).append(PAUSED)

    assert history(folder) == [a_plan(), request(), end(), PAUSED]


def test_when_it_cannot_be_rotated_it_grows_and_says_so(folder: Path) -> None:
    ledger = ledger_in(folder, rotate_at=1)
    ledger.files.part(1).with_suffix(".gz.tmp").mkdir()

    ledger.append(PAUSED)
    ledger.append(PAUSED)

    assert "cannot be rotated (Is a directory): it keeps growing" in ledger.warnings[0]
    assert history(folder) == [PAUSED, PAUSED]


def test_when_the_file_is_moved_away_the_numbers_go_on(folder: Path) -> None:
    ledger = ledger_in(folder, rotate_at=1)
    ledger.append(a_plan(), end())
    ledger.files.current.unlink()

    ledger.append(PAUSED)

    assert history(folder) == [a_plan(), end(), PAUSED]


def test_parts_that_were_closed_before_are_left_out(folder: Path) -> None:
    ledger = ledger_in(folder, rotate_at=1)
    ledger.append(Resumed(by="root", reason=""))
    ledger.append(end())
    ledger.append(PAUSED)
    for age, part in enumerate(reversed(ledger.files.parts())):
        moment = (NOW - timedelta(days=age)).timestamp()
        os.utime(part, (moment, moment))

    found = [each for each in read_history(ledger.files, NOW - timedelta(hours=30)) if isinstance(each, Recorded)]

    assert [each.entry for each in found] == [end(), PAUSED]


def test_a_cycle_has_a_name_that_none_had_before(folder: Path) -> None:
    ledger = ledger_in(folder)
    first = ledger.new_cycle_id("8:1")
    ledger.append(a_plan(first), end(first))

    assert (first, ledger.new_cycle_id("8:1")) == ("8:1-1", "8:1-3")


def test_no_ledger_is_one_sentence(folder: Path) -> None:
    with pytest.raises(BrimlineError, match="no ledger yet"):
        list(read_history(LedgerFiles(folder, 1)))


def test_where_nothing_can_be_written_nothing_is_done(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")

    with pytest.raises(NotRecorded, match="nothing was changed"):
        Ledger(tmp_path / "state", 1, lambda: NOW).append(a_plan())


def test_entries_of_a_cycle_whose_plan_is_lost_count_for_nothing(folder: Path) -> None:
    ledger_in(folder).append(request("8:1-7"), end("8:1-7"))

    assert ledger_in(folder).state.cycles == {}


def test_a_plan_names_every_partition_once() -> None:
    trims = a_plan().trims

    with pytest.raises(ValueError, match="once"):
        Plan(
            **{
                **{name: getattr(a_plan(), name) for name in Plan.__slots__},
                "trims": (*trims, *trims),
            }
        )
