"""What fills the disks by topic, and why a log does not shrink: from files, and from outside."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from brimline.decide.shrinking import heads, stays, why
from brimline.decide.topic_use import summaries
from brimline.model import BrokerId, Bytes, Offset, TopicPartition
from brimline.model.blast_radius import GroupActivity
from brimline.model.reclaim import AN_HOUR_MS, CleanupRules
from brimline.model.topic_use import Head, PartitionUse, ReplicaUse, Stays, TopicUse
from tests.decide.reclaim.scenarios import tables_of

NOW_MS = 1_000_000_000
HOUR_LIMIT = CleanupRules(retention_ms=AN_HOUR_MS)
ONE, TWO = BrokerId(1), BrokerId(2)


def head_of(topic: dict[str, Any], **log: Any) -> Head:
    """Of a log with three segments of 100 bytes, that begin at 0, 10 and 20, an hour between them."""
    segments = [
        {"baseOffset": 10 * row, "bytes": 100, "timestampMs": NOW_MS - (2 - row) * AN_HOUR_MS} for row in range(3)
    ]
    tables = tables_of(
        {
            "devices": [
                {"name": "/data", "totalBytes": 1000, "usableBytes": 1, "nowMs": NOW_MS, "ceilingPercent": 100}
            ],
            "topics": [{"name": "orders", **topic}],
            "logs": [{"device": "/data", "topic": "orders", "partition": 0, "segments": segments, **log}],
        }
    )
    ((_, head),) = heads(tables)
    return head


def replica(size: int, broker: BrokerId = ONE, **more: Any) -> ReplicaUse:
    return ReplicaUse(broker=broker, log_dir="/data", size=Bytes(size), **more)


def judged(rules: CleanupRules | None, head: Head | None = None, size: int = 300, **partition: Any) -> Stays:
    topic = TopicUse(name="orders", rules=rules, segment_bytes=1000, min_in_sync=2)
    use = PartitionUse(partition=0, **{"replicas": (replica(size),), **partition})
    return stays(topic, use, Bytes(size), head, NOW_MS)


def test_the_head_is_the_first_segment_that_retention_leaves() -> None:
    head = head_of({"retentionMs": AN_HOUR_MS + 1})

    assert (head.going_bytes, head.is_active, head.newest_ms, head.held) == (100, False, NOW_MS - AN_HOUR_MS, None)


@pytest.mark.parametrize(
    ("topic", "log", "held"),
    [
        ({"retentionMs": 1}, {"highWatermark": 10}, Stays.NOT_IN_SYNC),
        ({"retentionBytes": 0}, {"highWatermark": 25, "logEndOffset": 30}, Stays.NOT_IN_SYNC),
        ({"retentionMs": 1, "isTiered": True}, {"highestRemoteOffset": 9}, Stays.NOT_UPLOADED),
        ({"retentionMs": 1, "isTiered": True}, {"highestRemoteOffset": 19}, None),
        ({"retentionMs": 3 * AN_HOUR_MS}, {"highWatermark": 10}, None),
        ({"retentionBytes": 0}, {}, None),
    ],
)
def test_what_holds_a_segment_that_its_limits_would_let_go(
    topic: dict[str, Any], log: dict[str, Any], held: Stays | None
) -> None:
    assert head_of(topic, **log).held is held


def test_a_log_without_a_limit_says_which_kind_of_none_it_has() -> None:
    for_ever = CleanupRules(retention_ms=-1)

    assert judged(for_ever) is Stays.NO_LIMIT
    assert judged(replace(for_ever, compacts=True, deletes=False)) is Stays.COMPACTION
    assert judged(replace(for_ever, deletes=False)) is Stays.NO_CLEANUP_POLICY
    assert judged(None) is Stays.UNKNOWN


@pytest.mark.parametrize(("name", "advice"), [("orders", "set one"), ("__remote_log_metadata", "leave it as it is")])
def test_nobody_is_told_to_limit_what_is_kafkas_own(name: str, advice: str) -> None:
    topic = TopicUse(name=name, rules=CleanupRules(retention_ms=-1))
    use = PartitionUse(partition=0, replicas=(replica(300),))

    sentence = why(topic, Counter({Stays.NO_LIMIT: 300}), {Stays.NO_LIMIT: (use, None)})

    assert sentence.endswith(advice)


def test_compaction_keeps_a_log_whatever_its_limits_say() -> None:
    assert judged(CleanupRules(retention_ms=1, compacts=True, deletes=False)) is Stays.COMPACTION


def test_an_active_segment_beyond_a_limit_is_too_large() -> None:
    active = Head(going_bytes=Bytes(0), is_active=True, size=Bytes(300), newest_ms=NOW_MS)
    by_bytes = CleanupRules(retention_ms=-1, retention_bytes=200)

    assert judged(by_bytes, active) is Stays.ACTIVE_SEGMENT
    assert judged(by_bytes, active, size=200) is Stays.WITHIN_LIMITS
    assert judged(by_bytes, replace(active, is_active=False)) is Stays.WITHIN_LIMITS
    assert judged(HOUR_LIMIT, active, oldest_ms=NOW_MS - AN_HOUR_MS - 1) is Stays.ACTIVE_SEGMENT
    assert judged(HOUR_LIMIT, active, oldest_ms=NOW_MS - AN_HOUR_MS) is Stays.WITHIN_LIMITS


def test_a_timestamp_ahead_of_the_clock_counts_only_beyond_what_clocks_differ_by() -> None:
    head = Head(going_bytes=Bytes(0), is_active=False, size=Bytes(1), newest_ms=NOW_MS + AN_HOUR_MS)

    assert judged(HOUR_LIMIT, head) is Stays.WITHIN_LIMITS
    assert judged(HOUR_LIMIT, replace(head, newest_ms=head.newest_ms + 1)) is Stays.FUTURE_TIMESTAMP
    assert judged(HOUR_LIMIT, newest_ms=NOW_MS + AN_HOUR_MS + 1) is Stays.FUTURE_TIMESTAMP
    without_ms = CleanupRules(retention_ms=-1, retention_bytes=1000)
    assert judged(without_ms, replace(head, newest_ms=head.newest_ms + 1)) is Stays.WITHIN_LIMITS


def test_a_copy_in_the_making_and_most_of_it_going_come_before_all_else() -> None:
    going = Head(going_bytes=Bytes(200), is_active=True, size=Bytes(100), newest_ms=NOW_MS)

    assert judged(HOUR_LIMIT, going) is Stays.GOING
    assert judged(HOUR_LIMIT, going, replicas=(replica(300), replica(10, is_future=True))) is Stays.MOVING


def test_from_outside_one_segment_more_than_the_limit_is_as_small_as_it_gets() -> None:
    by_bytes = CleanupRules(retention_ms=-1, retention_bytes=2000)

    assert judged(by_bytes, size=3000) is Stays.WITHIN_LIMITS
    assert judged(by_bytes, size=3001) is Stays.UNKNOWN
    assert judged(replace(by_bytes, is_tiered=True), size=3001) is Stays.NOT_UPLOADED
    assert judged(replace(by_bytes, retention_bytes=500), size=1000) is Stays.ACTIVE_SEGMENT


def test_from_outside_too_few_in_sync_count_while_the_watermark_stands_below_the_end() -> None:
    by_bytes = CleanupRules(retention_ms=-1, retention_bytes=100)
    behind: dict[str, Any] = {"in_sync": 1, "high_watermark": Offset(5), "log_end": Offset(9)}

    assert judged(by_bytes, **behind) is Stays.NOT_IN_SYNC
    assert judged(by_bytes, **{**behind, "in_sync": 2}) is Stays.ACTIVE_SEGMENT
    assert judged(by_bytes, **{**behind, "log_end": Offset(5)}) is Stays.ACTIVE_SEGMENT


def test_a_topic_adds_up_its_replicas_and_counts_one_copy_of_each_partition() -> None:
    partitions = (
        PartitionUse(partition=0, leader=TWO, replicas=(replica(100), replica(80, TWO))),
        PartitionUse(partition=1, leader=None, replicas=(replica(10), replica(30, TWO))),
    )
    (found,) = summaries([TopicUse(name="orders", rules=HOUR_LIMIT, partitions=partitions)], {}, NOW_MS)

    assert (found.bytes, found.one_copy_bytes, found.replicas) == (220, 80 + 30, 4)
    assert [(place.broker, place.bytes, place.replicas) for place in found.places] == [(1, 110, 2), (2, 110, 2)]


def test_what_was_written_is_the_share_of_the_offsets_since() -> None:
    def written(**offsets: int) -> int | None:
        use = PartitionUse(partition=0, replicas=(replica(1000),), leader=ONE, **offsets)  # type: ignore[arg-type]
        (found,) = summaries([TopicUse(name="orders", rules=HOUR_LIMIT, partitions=(use,))], {}, NOW_MS)
        return found.written_bytes

    assert written(log_start=100, high_watermark=200, written_since=175) == 250
    assert written(log_start=100, high_watermark=200, written_since=200) == 0
    assert written(log_start=100, high_watermark=200) is None
    assert written(log_start=100, high_watermark=100, written_since=100) == 0
    assert written(high_watermark=200) is None


def test_readers_are_those_that_committed_and_the_last_of_them_comes_first() -> None:
    use = PartitionUse(partition=0, replicas=(replica(1),), high_watermark=Offset(100))
    topic = TopicUse(
        name="orders",
        rules=HOUR_LIMIT,
        partitions=(use,),
        committed={"near": {0: Offset(99)}, "far": {0: Offset(10)}, "ahead": {0: Offset(101)}},
        activity={"far": GroupActivity.ACTIVE},
    )
    read, unread, internal = summaries(
        [topic, TopicUse(name="b", rules=HOUR_LIMIT), TopicUse(name="__consumer_offsets", rules=None)], {}, NOW_MS
    )[:3]

    by_name = {each.name: each for each in (read, unread, internal)}
    assert [(each.group, each.records) for each in by_name["orders"].groups] == [("far", 90), ("near", 1), ("ahead", 0)]
    assert {name: each.is_unread for name, each in by_name.items()} == {
        "orders": False,
        "b": True,
        "__consumer_offsets": False,
    }


def test_a_topic_has_the_reason_that_keeps_most_of_its_bytes_and_its_files_outweigh_a_guess() -> None:
    small = PartitionUse(partition=0, replicas=(replica(300),))
    large = PartitionUse(partition=1, replicas=(replica(5000, TWO),), newest_ms=NOW_MS + 2 * AN_HOUR_MS)
    topic = TopicUse(name="orders", rules=HOUR_LIMIT, segment_bytes=1000, partitions=(small, large))
    mine = {
        (ONE, "/data", TopicPartition("orders", 0)): Head(
            going_bytes=Bytes(7), is_active=False, size=Bytes(1), newest_ms=NOW_MS, held=Stays.NOT_IN_SYNC
        )
    }

    (outside,) = summaries([topic], {}, NOW_MS)
    (inside,) = summaries([topic], mine, NOW_MS)

    assert outside.stays is Stays.FUTURE_TIMESTAMP
    assert "orders-1 has a record of 1970-01-12" in outside.why
    assert (inside.stays, inside.going_bytes) == (Stays.NOT_IN_SYNC, 7)
    assert "orders-0" in inside.why


def test_a_topic_without_records_says_so() -> None:
    (found,) = summaries([TopicUse(name="orders", rules=HOUR_LIMIT)], {}, NOW_MS)

    assert (found.bytes, found.why) == (0, "it has no records")
