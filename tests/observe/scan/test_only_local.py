from itertools import pairwise
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.model import Bytes, Offset
from brimline.observe.remote.only_local import coverage, covered_ranges
from brimline.observe.scan.exact_only_local import OnlyLocalReason, OnlyLocalSize, only_local_sizes
from brimline.observe.scan.scanner import LogDirScanner
from brimline.wire.remote_log_metadata import RemoteSegment, SegmentState
from tests.observe.scan.log_dir_trees import TOPIC_ID, later, make_replica
from tests.observe.scan.test_reconcile import HEX

KEY = (UUID("e91955b8-5490-43b9-95d4-fd1f05135a54"), 0)


def upload(start: int, end: int, state: SegmentState = SegmentState.COPY_FINISHED, epoch: int = 0) -> RemoteSegment:
    return RemoteSegment(
        topic_id=KEY[0],
        partition=KEY[1],
        segment_id=uuid4(),
        start_offset=Offset(start),
        end_offset=Offset(end),
        size=Bytes(1),
        state=state,
        last_leader_epoch=epoch,
    )


def only_local(root: Path, *uploads: RemoteSegment) -> OnlyLocalSize:
    (size,) = only_local_sizes(LogDirScanner(root, clock_ns=later).scan(topic_ids=True), {KEY: uploads})
    return size


# The local log of every case: segments of 5,000 bytes at 100, 200 and 300; the last is active.
@pytest.mark.parametrize(
    ("uploads", "size", "partly"),
    [
        pytest.param([], 15_000, 0, id="nothing uploaded"),
        pytest.param([upload(0, 99)], 15_000, 0, id="uploaded and gone locally"),
        pytest.param([upload(100, 199)], 10_000, 0, id="one uploaded"),
        pytest.param([upload(100, 199), upload(200, 299)], 5000, 0, id="all closed ones uploaded"),
        pytest.param([upload(100, 299)], 5000, 0, id="a follower with smaller segments"),
        pytest.param([upload(100, 149), upload(150, 199)], 10_000, 0, id="a follower with larger segments"),
        pytest.param([upload(150, 249)], 15_000, 10_000, id="other boundaries"),
        pytest.param([upload(100, 249), upload(200, 349)], 5000, 5000, id="uploads of two leaders overlap"),
        pytest.param([upload(100, 198), upload(200, 299)], 10_000, 5000, id="a hole of one offset"),
        pytest.param([upload(100, 199, SegmentState.COPY_STARTED)], 15_000, 0, id="not finished"),
        pytest.param([upload(100, 199, SegmentState.DELETE_STARTED)], 15_000, 0, id="being deleted"),
        pytest.param([upload(100, 199, epoch=1)], 15_000, 0, id="of an epoch that this log never had"),
    ],
)
def test_only_local_size(tmp_path: Path, uploads: list[RemoteSegment], size: int, partly: int) -> None:
    make_replica(tmp_path / "orders-0", 100, 200, 300)

    found = only_local(tmp_path, *uploads)

    assert (found.size, found.partly_uploaded, found.reason) == (size, partly, OnlyLocalReason.KNOWN)


def test_reasons(tmp_path: Path) -> None:
    make_replica(tmp_path / "a-0", 0)
    make_replica(tmp_path / "b-0", 0)
    (tmp_path / "b-0" / "partition.metadata").unlink()
    make_replica(tmp_path / f"c-0.{HEX}-future", 0)
    make_replica(tmp_path / "d-1", 0)
    make_replica(tmp_path / f"e-0.{HEX}-delete", 0)
    (tmp_path / "f-0").symlink_to("a-0")

    sizes = only_local_sizes(LogDirScanner(tmp_path, clock_ns=later).scan(topic_ids=True), {KEY: ()})

    assert [(size.size, size.reason) for size in sizes] == [
        (5000, OnlyLocalReason.KNOWN),
        (None, OnlyLocalReason.NO_TOPIC_ID),
        (None, OnlyLocalReason.FUTURE_REPLICA),
        (None, OnlyLocalReason.NOT_GIVEN),
        (None, OnlyLocalReason.NOT_READABLE),
    ]


RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), max_size=8)


@given(st.sets(st.integers(0, 40), min_size=1), RANGES)
def test_coverage_is_what_counting_offsets_one_by_one_says(bases: set[int], ranges: list[tuple[int, int]]) -> None:
    base_offsets = sorted(bases)
    covered = {offset for start, more in ranges for offset in range(start, start + more + 1)}

    uploads = [upload(start, start + more) for start, more in ranges]
    is_safe, is_touched = coverage(np.array(base_offsets), *covered_ranges(uploads, {0: 2**40}))

    closed = list(pairwise(base_offsets))
    assert is_safe.tolist() == [set(range(base, end)) <= covered for base, end in closed] + [False]
    assert is_touched.tolist() == [bool(set(range(base, end)) & covered) for base, end in closed] + [
        any(offset >= base_offsets[-1] for offset in covered)
    ]


def test_a_topic_id_is_read_from_where_the_name_may_have_been_cut(tmp_path: Path) -> None:
    cut = "t" * (255 - len(f"-0.{HEX}-delete")) + f"-0.{HEX}-delete"
    make_replica(tmp_path / cut, 0)
    make_replica(tmp_path / "orders-0", 0)

    folders = LogDirScanner(tmp_path, clock_ns=later).scan().folders

    assert len(cut) == 255
    assert folders.topic_may_be_cut.tolist() == [False, False, True]
    assert folders.topic_ids == (None, None, TOPIC_ID)
