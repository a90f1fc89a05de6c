"""Refusals are remembered through restarts, kills in the middle of anything, and damage to the file."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.decide.sequences import RefusedSequence
from brimline.gateway.rules.sequence_memory import SequenceMemory, SteadyTimeOfDay, key_of
from brimline.model import BadInput

NOW = 1_700_000_000
EXPIRY = 300
KEY = key_of(7, "orders", 0)
OTHER = key_of(7, "orders", 1)
ENTRY = RefusedSequence(epoch=2, sequence=41, refused_at=NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sequences-1"


def opened(path: Path, *, now: int = NOW, capacity: int = 8) -> SequenceMemory:
    return SequenceMemory(path, now=now, capacity=capacity, expiry_seconds=EXPIRY)


@pytest.fixture
def memory(path: Path) -> Iterator[SequenceMemory]:
    memory = opened(path)
    yield memory
    memory.close()


def entry(number: int, refused_at: int = NOW) -> RefusedSequence:
    return RefusedSequence(epoch=0, sequence=number, refused_at=refused_at)


def key(number: int) -> bytes:
    return key_of(number, "orders", 0)


def test_a_new_memory_is_empty(memory: SequenceMemory) -> None:
    assert memory.is_empty
    assert memory.held == 0
    assert memory.get(KEY) is None
    assert memory.warnings == ()


def test_what_was_put_is_there(memory: SequenceMemory) -> None:
    memory.put(KEY, ENTRY)

    assert memory.get(KEY) == ENTRY
    assert memory.get(OTHER) is None
    assert memory.held == 1
    assert not memory.is_empty


def test_the_last_one_put_counts(memory: SequenceMemory) -> None:
    memory.put(KEY, ENTRY)
    memory.put(KEY, entry(40))

    assert memory.get(KEY) == entry(40)
    assert memory.held == 1


def test_what_was_forgotten_is_not_there(memory: SequenceMemory) -> None:
    memory.put(KEY, ENTRY)

    memory.forget(KEY)
    memory.forget(OTHER)

    assert memory.is_empty


@pytest.mark.parametrize(
    "other", [key_of(8, "orders", 0), key_of(7, "order", 0), key_of(7, "orders", 1), key_of(70, "orders", 0)]
)
def test_keys_tell_producers_topics_and_partitions_apart(other: bytes) -> None:
    assert key_of(7, "orders", 0) != other


def test_it_survives_a_restart(path: Path) -> None:
    memory = opened(path)
    memory.put(KEY, ENTRY)
    memory.put(OTHER, entry(5))
    memory.put(KEY, entry(40))
    memory.put(key(1), entry(1))
    memory.forget(key(1))
    memory.close()

    again = opened(path, now=NOW + 10)

    assert again.get(KEY) == entry(40)
    assert again.get(OTHER) == entry(5)
    assert again.held == 2
    assert again.warnings == ()
    again.close()


def test_a_restart_takes_up_where_it_was(path: Path) -> None:
    """Slots in use stay in use, and what is put after the restart is later than what was there before."""
    memory = opened(path, capacity=3)
    for number in range(3):
        memory.put(key(number), entry(number))
    memory.forget(key(0))
    memory.close()
    memory = opened(path, capacity=3)
    memory.put(key(1), entry(11))
    memory.put(key(3), entry(3))
    memory.close()

    again = opened(path, capacity=3)

    assert [again.get(key(number)) for number in range(4)] == [None, entry(11), entry(2), entry(3)]
    again.close()


def test_what_has_expired_meanwhile_is_forgotten_at_the_start(path: Path) -> None:
    memory = opened(path)
    memory.put(KEY, ENTRY)
    memory.put(OTHER, entry(5, NOW + 10))
    memory.close()

    again = opened(path, now=NOW + EXPIRY)

    assert again.get(KEY) is None
    assert again.get(OTHER) == entry(5, NOW + 10)
    again.close()


def test_a_clock_that_was_set_back_makes_nothing_last_longer_than_from_now(path: Path) -> None:
    memory = opened(path)
    memory.put(KEY, ENTRY)
    memory.close()

    a_year_earlier = NOW - 365 * 86_400
    again = opened(path, now=a_year_earlier)

    assert again.get(KEY) == ENTRY._replace(refused_at=a_year_earlier)
    again.forget_expired(a_year_earlier + EXPIRY)
    assert again.is_empty
    again.close()


def test_the_expired_are_forgotten_when_asked_for_and_only_they(memory: SequenceMemory) -> None:
    memory.put(KEY, entry(1, NOW))
    memory.put(OTHER, entry(2, NOW + 1))
    memory.put(KEY, entry(1, NOW + 2))

    memory.forget_expired(NOW + 1 + EXPIRY)

    assert memory.get(OTHER) is None
    assert memory.get(KEY) == entry(1, NOW + 2)
    assert memory.evicted == 0


def test_when_it_is_full_the_oldest_gives_way(memory: SequenceMemory) -> None:
    for number in range(8):
        memory.put(key(number), entry(number))
    memory.put(key(0), entry(100))

    memory.put(key(8), entry(8))

    assert memory.get(key(1)) is None
    assert [memory.get(key(number)) for number in (0, 2, 8)] == [entry(100), entry(2), entry(8)]
    assert memory.held == 8
    assert memory.evicted == 1


def test_one_topic_pushes_out_only_its_own(path: Path) -> None:
    """Whoever may write to a topic may make up as many producers as he likes; also after a restart."""
    memory = opened(path)
    others = [key_of(1, "payments", 0), key_of(1, "payments", 1), key_of(1, "clicks", 0)]
    for each in others:
        memory.put(each, entry(1))
    for number in range(50):
        memory.put(key(number), entry(number))
    memory.close()
    memory = opened(path)
    for number in range(50, 100):
        memory.put(key(number), entry(number))

    assert [memory.get(each) for each in others] == [entry(1)] * 3
    assert [memory.get(key(number)) for number in range(95, 100)] == [entry(number) for number in range(95, 100)]
    assert memory.held == 8
    memory.close()


def test_when_it_is_full_the_expired_give_way_first(memory: SequenceMemory) -> None:
    memory.put(key(0), entry(0, NOW - EXPIRY))
    for number in range(1, 8):
        memory.put(key(number), entry(number))

    memory.put(key(8), entry(8))

    assert memory.held == 8
    assert memory.evicted == 0


def test_a_full_memory_is_the_same_after_a_restart(path: Path) -> None:
    memory = opened(path)
    for number in range(20):
        memory.put(key(number), entry(number))
    memory.close()

    again = opened(path)

    assert [number for number in range(20) if again.get(key(number)) is not None] == list(range(12, 20))
    again.put(key(20), entry(20))
    assert again.get(key(12)) is None
    again.close()


def test_a_second_process_is_told_that_one_is_running(memory: SequenceMemory, path: Path) -> None:
    """A second descriptor of the same process is refused in the same way as another process's."""
    memory.put(KEY, ENTRY)

    with pytest.raises(BadInput, match="another gateway of this broker is running"):
        opened(path)

    assert memory.get(KEY) == ENTRY


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\0", id="one byte"),
        pytest.param(b"#!/bin/sh\necho hello\n" * 100, id="foreign"),
        pytest.param(bytes(1000), id="cut short before the header was written"),
    ],
)
def test_a_file_that_is_none_of_ours_is_replaced_and_named(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    memory = opened(path)

    assert len(memory.warnings) == 1
    assert str(path) in memory.warnings[0]
    assert_it_works(memory, path)


@pytest.mark.parametrize("damage", ["header", "shorter", "longer", "another capacity"])
def test_a_damaged_file_is_replaced_and_named(path: Path, damage: str) -> None:
    memory = opened(path, capacity=9 if damage == "another capacity" else 8)
    memory.put(KEY, ENTRY)
    memory.close()
    content = path.read_bytes()
    changed = {"header": b"x" + content[1:], "shorter": content[:-1], "longer": content + b"\0"}
    path.write_bytes(changed.get(damage, content))

    again = opened(path)

    assert again.is_empty
    assert len(again.warnings) == 1
    assert_it_works(again, path)


def test_an_empty_file_is_a_new_one(path: Path) -> None:
    path.touch()

    memory = opened(path)

    assert memory.warnings == ()
    assert_it_works(memory, path)


def assert_it_works(memory: SequenceMemory, path: Path) -> None:
    memory.put(KEY, ENTRY)
    memory.close()
    again = opened(path)
    assert again.get(KEY) == ENTRY
    assert again.warnings == ()
    again.close()


def test_damaged_records_count_for_nothing_and_the_others_do(path: Path) -> None:
    memory = opened(path)
    for number in range(4):
        memory.put(key(number), entry(number))
    memory.close()
    content = bytearray(path.read_bytes())
    for number in (1, 2):
        at = content.index(key(number))
        content[at] ^= 1
    path.write_bytes(content)

    again = opened(path)

    assert [number for number in range(4) if again.get(key(number)) is not None] == [0, 3]
    assert "2 damaged records" in again.warnings[0]
    again.close()


@pytest.mark.parametrize("place", ["no/such/folder", "."])
def test_where_there_can_be_no_file_it_goes_on_without(tmp_path: Path, place: str) -> None:
    memory = opened(tmp_path / place)
    memory.put(KEY, ENTRY)

    assert memory.get(KEY) == ENTRY
    assert "are forgotten when the gateway ends" in memory.warnings[0]
    memory.close()


def test_on_a_full_disk_it_goes_on_without_a_file_and_takes_no_space(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "posix_fallocate", no_space)

    memory = opened(path)
    memory.put(KEY, ENTRY)

    assert memory.get(KEY) == ENTRY
    assert "No space left on device" in memory.warnings[0]
    assert path.stat().st_size == 0
    memory.close()


def test_on_a_full_disk_it_still_knows_what_was_in_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = opened(path)
    memory.put(KEY, ENTRY)
    memory.close()
    monkeypatch.setattr(os, "posix_fallocate", no_space)

    again = opened(path)

    assert again.get(KEY) == ENTRY
    again.close()


def no_space(_fd: int, _offset: int, _size: int) -> None:
    raise OSError(28, os.strerror(28))


def test_no_block_of_the_file_is_a_hole(memory: SequenceMemory, path: Path) -> None:
    """A store into a hole on a full disk would be a deadly signal."""
    status = path.stat()

    assert not memory.warnings
    assert status.st_blocks * 512 >= status.st_size


def test_a_kill_at_any_byte_of_a_store_leaves_the_old_entry_or_the_new_one(path: Path) -> None:
    memory = opened(path)
    memory.put(OTHER, entry(5))
    memory.put(KEY, ENTRY)
    before = path.read_bytes()
    memory.put(KEY, entry(40))
    memory.close()
    after = path.read_bytes()
    changed = [at for at in range(len(before)) if before[at] != after[at]]
    # The new record's slot is behind the old one's, whose serial number is cleared when the new record is whole.
    old_slot, new_slot = before.index(KEY) - 8, after.rindex(KEY) - 8
    order = sorted(changed, key=lambda at: (at < new_slot, at))
    assert any(at >= new_slot for at in changed)
    assert all(at >= new_slot or old_slot <= at < old_slot + 8 for at in changed)

    survivors = []
    for cut in range(len(order) + 1):
        content = bytearray(before)
        for at in order[:cut]:
            content[at] = after[at]
        path.write_bytes(content)
        again = opened(path)
        survivors.append(again.get(KEY))
        assert again.get(OTHER) == entry(5)
        assert again.held == 2
        assert again.warnings == ()
        again.close()

    first_new = survivors.index(entry(40))
    assert survivors == [ENTRY] * first_new + [entry(40)] * (len(order) + 1 - first_new)


CHILD = """
import sys
from pathlib import Path
from brimline.decide.sequences import RefusedSequence
from brimline.gateway.rules.sequence_memory import SequenceMemory, key_of

memory = SequenceMemory(Path(sys.argv[1]), now=int(sys.argv[2]), capacity=8)
number = 0
while True:
    number += 1
    memory.put(key_of(7, "orders", 0), RefusedSequence(2, number, int(sys.argv[2])))
    print(number, flush=True)
"""


@pytest.mark.parametrize("lines", [1, 2, 100])
def test_a_kill_right_after_a_refusal_forgets_nothing(path: Path, lines: int) -> None:
    """The child says what it has put, and is killed while it goes on putting."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(NOW)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        said = [int(child.stdout.readline()) for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        said += [int(line) for line in child.stdout if line.endswith("\n")]

    again = opened(path)

    remembered = again.get(KEY)
    assert remembered is not None
    assert remembered.sequence in (said[-1], said[-1] + 1)
    assert again.held == 1
    assert again.warnings == ()
    again.close()


def test_the_steady_time_of_day_does_not_follow_a_clock_that_is_set() -> None:
    seconds = {"of day": 5000.0, "steady": 10.0}
    clock = SteadyTimeOfDay(lambda: seconds["of day"], lambda: seconds["steady"])
    first = clock()
    seconds["of day"] -= 3600
    seconds["steady"] += 7

    assert first == 5000
    assert clock() == 5007


def test_all_are_forgotten_for_good(path: Path) -> None:
    memory = opened(path)
    memory.put(KEY, ENTRY)
    memory.put(OTHER, ENTRY)
    memory.forget_all()
    assert memory.is_empty
    memory.close()

    again = opened(path)
    assert again.is_empty
    again.close()
