"""What a partition's answers say of the last hour."""

import pytest

from brimline.model import BrokerId, Bytes, Offset, TopicPartition
from brimline.model.topic_use import ReplicaUse
from brimline.observe.cluster.topic_use import _Offsets, _partition

PARTITION = TopicPartition("orders", 0)
FOUND = (Offset(7), 1_700_000_000_000)


@pytest.mark.parametrize(
    ("start", "oldest", "hour_ago", "since"),
    [
        pytest.param(0, FOUND, FOUND, 7, id="written"),
        pytest.param(0, FOUND, None, 90, id="nothing since"),
        pytest.param(90, None, None, 90, id="empty"),
        pytest.param(60, None, None, None, id="being trimmed: no record is found, though there are some"),
    ],
)
def test_what_was_written_in_the_last_hour(
    start: int, oldest: tuple[Offset, int] | None, hour_ago: tuple[Offset, int] | None, since: int | None
) -> None:
    offsets = _Offsets(
        starts={PARTITION: Offset(start)},
        watermarks={PARTITION: Offset(90)},
        ends={PARTITION: Offset(90)},
        oldest={PARTITION: oldest},
        hour_ago={PARTITION: hour_ago},
        newest={PARTITION: oldest},
    )
    replica = ReplicaUse(broker=BrokerId(1), log_dir="/data", size=Bytes(9000))

    assert _partition(PARTITION, [replica], {}, offsets).written_since == since
