"""Exact only-local sizes from the files of a partition."""

from itertools import pairwise
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.model import Bytes, Offset, Reason
from brimline.observe.remote.only_local import coverage, covered_ranges, only_local_in_files
from brimline.wire.remote_log_metadata import RemoteSegment, SegmentState


def uploaded(first: int, last: int, state: SegmentState = SegmentState.COPY_FINISHED, epoch: int = 0) -> RemoteSegment:
    return RemoteSegment(
        topic_id=UUID(int=1),
        partition=0,
        segment_id=UUID(int=first + 1),
        start_offset=Offset(first),
        end_offset=Offset(last),
        size=Bytes(100),
        state=state,
        last_leader_epoch=epoch,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Segments from 0, 10 and 20, of 100, 200 and 50 bytes; the last is active."""
    for base, size in ((0, 100), (10, 200), (20, 50)):
        (tmp_path / f"{base:020}.log").write_bytes(b"x" * size)
        (tmp_path / f"{base:020}.index").write_bytes(b"y" * 999)
    (tmp_path / f"{5:020}.log.deleted").write_bytes(b"z" * 999)
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 15\n")
    return tmp_path


def only_local(folder: Path, *segments: RemoteSegment, size: int = 350) -> Bytes | Reason:
    return only_local_in_files(str(folder), Bytes(size), segments)


def test_nothing_uploaded_is_all_local(folder: Path) -> None:
    assert only_local(folder) == 350


def test_an_uploaded_segment_does_not_count(folder: Path) -> None:
    assert only_local(folder, uploaded(0, 9)) == 250


def test_everything_closed_uploaded_leaves_the_active_segment(folder: Path) -> None:
    assert only_local(folder, uploaded(0, 9), uploaded(10, 19, epoch=3)) == 50


@pytest.mark.parametrize("epoch", [pytest.param(0, id="epoch ended at 15 here"), pytest.param(2, id="never had it")])
def test_an_upload_of_another_lineage_does_not_cover(folder: Path, epoch: int) -> None:
    """After an unclean election other records stand at the same offsets."""
    assert only_local(folder, uploaded(0, 9), uploaded(10, 19, epoch=epoch)) == 250


def test_an_upload_under_way_does_not_cover(folder: Path) -> None:
    assert only_local(folder, uploaded(0, 9), uploaded(10, 19, SegmentState.COPY_STARTED)) == 250


def test_uploads_of_another_leader_with_other_boundaries_cover_together(folder: Path) -> None:
    assert only_local(folder, uploaded(0, 4), uploaded(3, 12), uploaded(13, 19, epoch=3)) == 50


def test_a_gap_between_uploads_leaves_the_segment_local(folder: Path) -> None:
    assert only_local(folder, uploaded(0, 9), uploaded(10, 14), uploaded(16, 19, epoch=3)) == 250


def test_what_was_uploaded_and_is_gone_here_does_not_matter(folder: Path) -> None:
    (folder / f"{0:020}.log").unlink()

    assert only_local(folder, uploaded(0, 9), uploaded(10, 19, epoch=3), size=250) == 50


def test_a_preallocated_active_segment_counts_as_the_broker_counts(folder: Path) -> None:
    (folder / f"{20:020}.log").write_bytes(b"\0" * 5000)

    assert only_local(folder, uploaded(0, 9), size=350) == 250


def test_a_folder_that_has_left_is_changing(tmp_path: Path) -> None:
    assert only_local(tmp_path / "gone", uploaded(0, 9)) is Reason.CHANGING


def test_what_was_written_since_the_broker_told_its_size_is_of_the_next_look(folder: Path) -> None:
    assert only_local(folder, uploaded(0, 9), size=120) == 120


RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), max_size=8)


@given(st.sets(st.integers(0, 40), min_size=1), RANGES)
def test_coverage_is_what_counting_offsets_one_by_one_says(bases: set[int], ranges: list[tuple[int, int]]) -> None:
    base_offsets = sorted(bases)
    covered = {offset for start, more in ranges for offset in range(start, start + more + 1)}

    uploads = [uploaded(start, start + more) for start, more in ranges]
    is_safe, is_touched = coverage(np.array(base_offsets), *covered_ranges(uploads, {0: 2**40}))

    closed = list(pairwise(base_offsets))
    assert is_safe.tolist() == [set(range(base, end)) <= covered for base, end in closed] + [False]
    assert is_touched.tolist() == [bool(set(range(base, end)) & covered) for base, end in closed] + [
        any(offset >= base_offsets[-1] for offset in covered)
    ]
