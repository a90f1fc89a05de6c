"""The reserve, part by part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.unfenced_writes import (
    CLEANER_BURST,
    UNTIL_COMPACTED,
    UNTIL_HELD,
    Cleaner,
    CompactedLog,
    ReservePart,
    StateLog,
    UnfencedWriters,
    fewest_files,
    reserve_bytes,
    reserve_parts,
)
from brimline.model import Bytes

MIB, GIB = 1 << 20, 1 << 30


def log(size: int, **more: object) -> CompactedLog:
    given: dict[str, object] = {"largest_segment": 0, "segment_bytes": GIB, "delete_delay": 60.0, "is_held": True}
    return CompactedLog(**{"bytes": size, **given, **more})  # type: ignore[arg-type]


def parts(**writers: object) -> dict[str, int]:
    return {part.what: part.bytes for part in reserve_parts(UnfencedWriters(**writers))}  # type: ignore[arg-type]


def test_nothing_compacted_nothing_committed_needs_nothing() -> None:
    assert parts(partitions=4000) == {}


def test_a_group_is_a_segment_or_the_largest_one_there_and_never_more_than_the_log() -> None:
    assert log(100 * MIB).group == 100 * MIB
    assert log(10 * GIB).group == GIB
    assert log(10 * GIB, segment_bytes=100 * MIB, largest_segment=GIB).group == GIB


def test_its_indexes_come_on_top_as_far_as_they_can_grow() -> None:
    assert log(9 * MIB, index_bytes=10 * MIB).group == 12 * MIB
    assert log(10 * GIB, index_bytes=10 * MIB).group == GIB + 20 * MIB


def test_each_thread_needs_its_own_group_the_largest_first() -> None:
    logs = [log(size * MIB) for size in (10, 30, 20)]

    assert parts(compacted=logs)["cleaner"] == 30 * MIB
    assert parts(compacted=logs, cleaner=Cleaner(threads=2))["cleaner"] == 50 * MIB


def test_a_cleaner_that_can_be_held_writes_until_it_is() -> None:
    found = parts(compacted=[log(300 * GIB)])

    assert found["passes"] == UNTIL_HELD * CLEANER_BURST


def test_one_that_cannot_be_held_writes_for_a_deletion_delay() -> None:
    found = parts(compacted=[log(300 * GIB)], cleaner=Cleaner(can_be_held=False, most_bytes_per_second=10 * MIB))

    assert found["passes"] == 600 * MIB


def test_so_does_a_log_with_a_rhythm_of_its_own() -> None:
    found = parts(compacted=[log(300 * GIB, is_held=False)], cleaner=Cleaner(most_bytes_per_second=10 * MIB))

    assert found["passes"] == 600 * MIB


def test_no_pass_writes_more_than_the_logs_have() -> None:
    assert parts(compacted=[log(5 * MIB)], cleaner=Cleaner(can_be_held=False))["passes"] == 5 * MIB


def test_commits_count_at_their_rate_and_grow_by_a_segment_at_most() -> None:
    quick, slow = StateLog(segment_bytes=100 * MIB, rate=MIB), StateLog(segment_bytes=100 * MIB, rate=1024)

    found = parts(state_logs=[quick, slow])

    assert found == {"coordinators": int((MIB + 1024) * UNTIL_COMPACTED + 100 * MIB + 1024 * 900)}


def test_without_the_hold_they_stay_for_the_deletion_delay_and_a_round_of_the_cleaner() -> None:
    found = parts(state_logs=[StateLog(segment_bytes=MIB, rate=MIB)], cleaner=Cleaner(can_be_held=False))

    assert found["coordinators"] == (2 * 60 + 15) * MIB + MIB


def test_what_no_cleaner_keeps_short_grows_for_the_whole_span() -> None:
    found = parts(state_logs=[StateLog(segment_bytes=None, rate=MIB)])

    assert found["coordinators"] == UNTIL_COMPACTED * MIB + 900 * MIB


def test_a_move_writes_until_it_is_paused() -> None:
    assert parts(is_moved_into=True) == {"moves": 350 * MIB}


def test_the_metadata_log_needs_a_snapshot_and_its_growth() -> None:
    assert parts(metadata_snapshot=3 * MIB, metadata_rate=1024.0) == {"metadata": 3 * MIB + 1024 * 900}


@pytest.mark.parametrize(
    ("files", "partitions", "expected"),
    [
        pytest.param(140_715, 10, 1407, id="one percent"),
        pytest.param(100_000_000, 10, 10_000, id="ten thousand"),
        pytest.param(100_000_000, 4_000, 20_000, id="a roll of every partition"),
        pytest.param(140_715, 4_000, 20_000, id="of a small file system, too"),
    ],
)
def test_inodes_for_a_roll_of_every_partition(files: int, partitions: int, expected: int) -> None:
    assert fewest_files(files, partitions) == expected


@given(st.integers(0, 2**62))
def test_the_sum_is_rounded_up_by_little(exact: int) -> None:
    rounded = reserve_bytes([ReservePart(what="cleaner", bytes=Bytes(exact))])

    assert exact <= rounded <= exact + exact // 8 + 1
