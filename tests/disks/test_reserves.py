"""The reserve of each volume: worked out by the guard, read by both, never in force by surprise."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from brimline.decide.disk_state import DiskLimits, DiskState
from brimline.decide.unfenced_writes import CompactedLog, UnfencedWriters
from brimline.disks.reserves import Reserves, VolumeReserve, next_reserve
from brimline.disks.task import VolumeStatus
from brimline.model import Bytes
from brimline.observe.volumes import VolumeReading
from brimline.settings import keys

MIB, GIB = 1 << 20, 1 << 30
LIMITS = DiskLimits()


def reading(usable: int = 100 * GIB, files: int | None = 1_000_000) -> VolumeReading:
    return VolumeReading(
        device="8:1",
        log_dirs=("/data/a",),
        total_bytes=Bytes(500 * GIB),
        usable_bytes=Bytes(usable),
        reserved_bytes=Bytes(0),
        total_files=None if files is None else 10_000_000,
        usable_files=files,
        observed_at=datetime(2026, 1, 1, tzinfo=UTC),
        seconds=0.0,
    )


def volume(usable: int = 100 * GIB, files: int | None = 1_000_000, *, is_full: bool = False) -> VolumeStatus:
    return VolumeStatus(
        reading=reading(usable, files),
        fullness=DiskState.FULL if is_full else DiskState.OK,
        breaches=(),
        bytes_to_limit=None,
        fill_rate=None,
        seconds_left=None,
        next_look=1.0,
    )


def writers(compacted: int) -> UnfencedWriters:
    log = CompactedLog(bytes=compacted, largest_segment=compacted, segment_bytes=MIB, delete_delay=60.0, is_held=False)
    return UnfencedWriters(compacted=[log], partitions=100)


def reserves(folder: Path, choice: str = keys.AUTO) -> Reserves:
    return Reserves(folder, 1, lambda: choice)


def test_a_volume_with_room_is_held_to_its_reserve_at_once() -> None:
    found = next_reserve(volume(), writers(GIB), None)

    assert found.bytes >= 2 * GIB
    assert (found.is_in_force, found.are_files_in_force) == (True, True)


def test_one_that_has_less_when_it_is_first_seen_is_not_until_it_has_had_room() -> None:
    first = next_reserve(volume(GIB, files=100), writers(GIB), None)
    still = next_reserve(volume(GIB, files=100), writers(GIB), first)
    later = next_reserve(volume(100 * GIB), writers(GIB), still)
    again = next_reserve(volume(GIB, files=100), writers(GIB), later)

    assert [each.is_in_force for each in (first, still, later, again)] == [False, False, True, True]
    assert [each.are_files_in_force for each in (first, still, later, again)] == [False, False, True, True]


def test_what_is_measured_only_later_counts_as_of_the_first_look() -> None:
    """How much the coordinators write is known after a while: nobody is fenced for what it had too little of then."""
    had = Bytes(3 * GIB)
    first = next_reserve(volume(3 * GIB), writers(GIB), None, had)
    measured = next_reserve(volume(3 * GIB), writers(2 * GIB), first, had)
    known = next_reserve(volume(3 * GIB), writers(2 * GIB), measured)

    assert [each.is_in_force for each in (first, measured, known)] == [True, False, False]


def test_a_disk_that_fills_while_it_is_measured_is_held_to_its_reserve() -> None:
    had = Bytes(100 * GIB)
    first = next_reserve(volume(), writers(GIB), None, had)
    filling = next_reserve(volume(GIB), writers(2 * GIB), first, had)

    assert filling.is_in_force
    assert next_reserve(volume(GIB), writers(4 * GIB), filling).is_in_force


def test_while_the_disk_is_full_it_only_rises() -> None:
    before = next_reserve(volume(), writers(GIB), None)

    less = next_reserve(volume(is_full=True), writers(MIB), before)
    more = next_reserve(volume(is_full=True), writers(2 * GIB), before)

    assert (less.bytes, less.parts) == (before.bytes, before.parts)
    assert more.bytes > before.bytes


def test_a_guard_that_was_just_started_lets_none_fall() -> None:
    before = next_reserve(volume(), writers(GIB), None)

    assert next_reserve(volume(), replace(writers(MIB), is_measured=False), before).bytes == before.bytes
    assert next_reserve(volume(), replace(writers(2 * GIB), is_measured=False), before).bytes > before.bytes


def test_otherwise_it_falls_when_it_falls_by_much() -> None:
    before = next_reserve(volume(), writers(1000 * MIB), None)

    assert next_reserve(volume(), writers(900 * MIB), before).bytes == before.bytes
    assert next_reserve(volume(), writers(100 * MIB), before).bytes < before.bytes // 5


def test_it_is_never_more_than_half_of_the_volume() -> None:
    assert next_reserve(volume(), writers(400 * GIB), None).bytes == 250 * GIB


def test_a_file_system_that_counts_no_inodes_has_no_limit_of_them() -> None:
    found = next_reserve(volume(files=None), writers(MIB), None)

    assert (found.fewest_files, found.are_files_in_force) == (0, True)


def test_guard_and_gateway_have_the_same_limits_and_so_has_the_next_guard(tmp_path: Path) -> None:
    guard, gateway = reserves(tmp_path), reserves(tmp_path)
    guard.write([next_reserve(volume(), writers(GIB), None)])

    assert gateway.refresh()
    assert not gateway.refresh(), "it has not changed since"
    after_a_restart = reserves(tmp_path)
    after_a_restart.refresh()

    limits = guard.limits_of(reading(), LIMITS)
    assert limits.reserve >= 2 * GIB
    assert limits.min_free_files == 10_000
    assert gateway.limits_of(reading(), LIMITS) == limits
    assert after_a_restart.limits_of(reading(), LIMITS) == limits


def test_what_is_not_in_force_counts_only_where_a_person_says_so(tmp_path: Path) -> None:
    pending = VolumeReserve(log_dirs=("/data/a",), bytes=Bytes(GIB), fewest_files=10)
    for choice, expected in ((keys.AUTO, (0, 0)), (keys.ON, (GIB, 10)), (keys.OFF, (0, 0))):
        found = reserves(tmp_path, choice)
        found.volumes = (pending,)
        limits = found.limits_of(reading(), LIMITS)
        assert (limits.reserve, limits.min_free_files) == expected


def test_the_letter_of_the_kip_is_one_key_away(tmp_path: Path) -> None:
    found = reserves(tmp_path, keys.OFF)
    found.volumes = (next_reserve(volume(), writers(GIB), None),)

    assert found.limits_of(reading(), LIMITS) == LIMITS


def test_a_damaged_file_leaves_what_was_read_before(tmp_path: Path) -> None:
    found = reserves(tmp_path)
    found.write([next_reserve(volume(), writers(GIB), None)])
    before = found.volumes
    found.path.write_text("{")

    assert not found.refresh()
    assert found.volumes == before
    assert found.problem is not None


def test_no_file_no_reserve(tmp_path: Path) -> None:
    found = reserves(tmp_path)

    assert not found.refresh()
    assert found.limits_of(reading(), LIMITS) == LIMITS


def test_a_file_that_was_removed_is_there_again(tmp_path: Path) -> None:
    found = reserves(tmp_path)
    found.write([next_reserve(volume(), writers(GIB), None)])
    found.path.unlink()

    found.write(found.volumes)

    assert reserves(tmp_path).refresh()
