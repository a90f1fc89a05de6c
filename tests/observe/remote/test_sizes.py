from uuid import UUID, uuid4

import pytest

from brimline.model import Bytes, Offset, Reason
from brimline.observe.remote.remote_log import RemoteLogTable
from brimline.observe.remote.sizes import only_local_size, remote_size
from brimline.wire.remote_log_metadata import RemoteSegment, SegmentState
from tests.wire.test_remote_log_metadata import SEGMENT_ID, segment_record, update_record
from tests.wire.test_remote_log_metadata import TOPIC_ID as WRITTEN_TOPIC_ID

TOPIC_ID = UUID(int=1)


def segment(
    start: int, end: int, size: int, state: SegmentState = SegmentState.COPY_FINISHED, epoch: int = 0
) -> RemoteSegment:
    return RemoteSegment(
        topic_id=TOPIC_ID,
        partition=0,
        segment_id=uuid4(),
        start_offset=Offset(start),
        end_offset=Offset(end),
        size=Bytes(size),
        state=state,
        last_leader_epoch=epoch,
    )


def test_remote_size_counts_what_the_store_still_holds() -> None:
    segments = [segment(state * 10, state * 10 + 9, 10**state, state) for state in SegmentState]

    assert remote_size(segments) == 10**SegmentState.COPY_FINISHED + 10**SegmentState.DELETE_STARTED


def only_local(size: int, log_start: int, local_log_start: int, *segments: RemoteSegment) -> Bytes | Reason:
    # The leader's log left epoch 0 at offset 1000 and epoch 2 at 2000; it never had epoch 1.
    ends = {0: Offset(1000), 1: None, 2: Offset(2000)}
    return only_local_size(Bytes(size), Offset(log_start), Offset(local_log_start), segments, ends)


# The local log of every case: 300 bytes or so from offset 100 on; the active segment is never uploaded.
@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        pytest.param(only_local(300, 0, 0), 300, id="nothing uploaded"),
        pytest.param(only_local(0, 0, 0), 0, id="empty log"),
        pytest.param(
            only_local(300, 0, 0, segment(0, 99, 100, SegmentState.COPY_STARTED)), 300, id="upload not finished"
        ),
        pytest.param(only_local(300, 0, 0, segment(0, 99, 100), segment(100, 199, 150)), 50, id="all still local"),
        pytest.param(
            only_local(300, 0, 100, segment(0, 99, 100), segment(100, 199, 150)), 150, id="head is gone locally"
        ),
        pytest.param(only_local(300, 0, 200, segment(0, 99, 100), segment(100, 199, 150)), 300, id="no overlap left"),
        pytest.param(only_local(250, 0, 0, segment(0, 99, 100), segment(100, 199, 150)), 0, id="everything uploaded"),
        pytest.param(only_local(300, 0, 100, segment(150, 199, 50)), 250, id="a gap before the first upload"),
        pytest.param(
            only_local(300, 0, 100, segment(50, 149, 90)), Reason.BOUNDARIES_DIFFER, id="an upload straddles the start"
        ),
        pytest.param(
            only_local(300, 0, 100, segment(100, 199, 90), segment(150, 249, 90)),
            Reason.BOUNDARIES_DIFFER,
            id="uploads of two leaders overlap",
        ),
        pytest.param(
            only_local(300, 100, 100, segment(100, 199, 90)), Reason.LOG_START_MOVED, id="trimmed to the local start"
        ),
        pytest.param(
            only_local(50, 0, 0, segment(0, 99, 100)), Reason.BOUNDARIES_DIFFER, id="more uploaded than there is"
        ),
        pytest.param(
            only_local(300, 0, 900, segment(900, 999, 100), segment(1000, 1099, 100, epoch=2)), 100, id="two epochs"
        ),
        pytest.param(
            only_local(300, 0, 900, segment(900, 1099, 100)),
            Reason.OTHER_LINEAGE,
            id="the epoch ended inside",
        ),
        pytest.param(
            only_local(300, 0, 900, segment(900, 999, 100, epoch=1)),
            Reason.OTHER_LINEAGE,
            id="epoch never seen",
        ),
        pytest.param(
            only_local(300, 0, 2000, segment(900, 1999, 100, epoch=1)),
            300,
            id="another lineage, not local",
        ),
    ],
)
def test_only_local_size(figure: Bytes | Reason, expected: Bytes | Reason) -> None:
    assert figure == expected
    assert isinstance(figure, Reason) == isinstance(expected, Reason)


class TestRemoteLogTable:
    """Fed with real bytes in the wire tests' manner; here only what the sequence of records means."""

    def test_records_of_partitions_that_were_not_asked_for_are_passed_over(self) -> None:
        table = RemoteLogTable([(TOPIC_ID, 0)])
        table.add(segment_record())

        assert table.segments == {(TOPIC_ID, 0): {}}
        assert table.skipped_records == 0

    def test_the_life_of_a_segment(self) -> None:
        key = (WRITTEN_TOPIC_ID, 3)
        table = RemoteLogTable([key])
        states = []
        for record in (update_record(1), segment_record(), update_record(1), None, b"garbage", update_record(2)):
            table.add(record)
            states.append([segment.state for segment in table.segments[key].values()])
        table.add(update_record(3))

        assert states == [
            [],
            [SegmentState.COPY_STARTED],
            [SegmentState.COPY_FINISHED],
            [SegmentState.COPY_FINISHED],
            [SegmentState.COPY_FINISHED],
            [SegmentState.DELETE_STARTED],
        ]
        assert SEGMENT_ID not in table.segments[key]
        assert table.skipped_records == 1
