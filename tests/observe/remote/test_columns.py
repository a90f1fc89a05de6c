"""What is known of every replica's remote and only-local size, and the reason where it is not."""

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

import pytest

from brimline.model import BrokerId, BrokerLogDirs, Bytes, Offset, Reason, ReplicaInfo, TopicPartition
from brimline.observe.cluster.topics import Topic
from brimline.observe.remote.columns import OnDisk, RemoteFacts, filled, unseen
from brimline.observe.remote.remote_log import RemoteLogs
from brimline.observe.remote.sizes import LogStarts
from brimline.wire.remote_log_metadata import RemoteSegment, SegmentState
from tests.cli.log_dirs.clusters import log_dir, row

OWN, OTHER = BrokerId(1), BrokerId(2)
TOPIC_ID = UUID(int=7)
UPLOAD = RemoteSegment(
    topic_id=TOPIC_ID,
    partition=0,
    segment_id=UUID(int=1),
    start_offset=Offset(0),
    end_offset=Offset(9),
    size=Bytes(60),
    state=SegmentState.COPY_FINISHED,
    last_leader_epoch=0,
)
TIERED, PLAIN = TopicPartition("tiered", 0), TopicPartition("plain", 0)
NO_STARTS = LogStarts(earliest={}, local={}, epoch_ends={})


def figures(leader: BrokerId, on_disk: OnDisk, *, future: bool = False) -> dict[TopicPartition, ReplicaInfo]:
    rows = [row("tiered", 0, 100, future=future), row("plain", 0, 70, future=future)]
    described = BrokerLogDirs(
        broker=OWN, address="", observed_at=datetime(2026, 1, 1, tzinfo=UTC), log_dirs={"/a": log_dir("/a", rows)}
    )
    facts = RemoteFacts(
        topics={"tiered": Reason.KNOWN, "plain": Reason.NOT_TIERED},
        tiered={"tiered": Topic(name="tiered", topic_id=TOPIC_ID, leaders={0: leader}, error=None)},
        logs=RemoteLogs(segments={(TOPIC_ID, 0): {UPLOAD.segment_id: UPLOAD}}, failures={}, skipped_records=0),
    )
    found = filled({OWN: described}, facts, NO_STARTS, {}, on_disk)
    return dict(found[OWN].log_dirs["/a"].replica_infos)


def by_files(path: str, partition: TopicPartition, size: Bytes, uploads: Iterable[RemoteSegment]) -> Bytes:
    assert (path, partition, size, list(uploads)) == ("/a", TIERED, 100, [UPLOAD])
    return Bytes(40)


def test_a_follower_is_unknown_from_outside_and_known_by_its_files() -> None:
    outside, beside = figures(OTHER, unseen)[TIERED], figures(OTHER, by_files)[TIERED]

    assert (outside.remote_size, outside.only_local_size) == (60, None)
    assert outside.only_local_size_reason is Reason.FOLLOWER
    assert (beside.remote_size, beside.only_local_size) == (60, 40)
    assert beside.only_local_size_reason is Reason.KNOWN


def test_what_is_not_tiered_is_wholly_local() -> None:
    found = figures(OTHER, unseen)[PLAIN]

    assert (found.remote_size, found.only_local_size) == (None, 70)
    assert (found.remote_size_reason, found.only_local_size_reason) == (Reason.NOT_TIERED, Reason.KNOWN)


@pytest.mark.parametrize("on_disk", [unseen, by_files])
def test_a_future_replica_is_a_copy_in_the_making_whoever_looks(on_disk: OnDisk) -> None:
    found = figures(OWN, on_disk, future=True)

    assert (found[TIERED].remote_size, found[TIERED].only_local_size) == (60, None)
    assert found[TIERED].only_local_size_reason is Reason.FUTURE_REPLICA
    assert found[PLAIN].only_local_size is None
