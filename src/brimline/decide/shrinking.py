"""Why a log does not shrink, in the words of Kafka's own retention.

**Invariant.** Retention takes whole segments from a log's head, and stops at the first that it does not take. So what
keeps that one keeps the log, and a log has one reason. In this order:

1. nothing is ever taken: no limit, compaction without ``delete``, an empty ``cleanup.policy``, a move to another log
   dir, an unknown configuration;
2. the limits would let the segment go, and something holds it: it is not uploaded, or not all replicas in sync have it;
3. a record in it is dated later than now: ``retention.ms`` counts from there;
4. it is the active segment, which goes as a whole, and the log is beyond a limit all the same;
5. else the log is within its limits.

``heads`` finds that segment in the files. Without files (``head=None``) the same is told from sizes, settings and the
times of the first and the newest record as far as that goes: a log that is larger than its limit by less than a segment
is as small as whole segments let it be, and one that is beyond its limits otherwise is ``UNKNOWN`` from outside.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np

from brimline.decide.reclaim.device import DeviceColumns, each_device
from brimline.decide.reclaim.rules import TopicColumns, effective_retention, going_runs
from brimline.model import Bytes, counted, human_bytes
from brimline.model.quantities import human_span
from brimline.model.reclaim import AN_HOUR_MS, NO_TOPIC, CleanupRules, ReclaimTables
from brimline.model.scan import FolderKind
from brimline.model.topic_use import Head, PartitionUse, Stays, TopicUse

_NS_PER_MS = 1_000_000
_FUTURE_MS = AN_HOUR_MS
"""Clocks of producers differ; Kafka 4 accepts an hour by default."""
_LATEST_MS = 253_402_300_799_000
"""The last moment that has a date."""


def heads(tables: ReclaimTables) -> Iterator[tuple[int, Head]]:
    """Of every current replica that has segments: its row in the logs, and its head."""
    topics = TopicColumns(tables.topics)
    for columns in each_device(tables):
        yield from _heads(columns, topics)


def _heads(columns: DeviceColumns, topics: TopicColumns) -> Iterator[tuple[int, Head]]:
    logs, segments, sums = columns.logs, columns.segments, columns.log_bytes_before
    until = going_runs(columns, topics).until
    would = going_runs(columns, topics, reaches_all=True).until
    is_copying, is_tiered = topics.is_copying[logs.topic], topics.is_tiered[logs.topic]
    wanted = (logs.kind == FolderKind.CURRENT) & (logs.topic != NO_TOPIC) & (columns.count > 0)
    for log in np.flatnonzero(wanted).tolist():
        number = min(int(until[log]), int(columns.count[log]) - 1)
        row = int(columns.begin[log]) + number
        is_active = number == int(columns.closed[log])
        held = None
        if would[log] > until[log] and not (is_active and (is_tiered[log] or logs.log_end_offset[log] < 0)):
            held = Stays.NOT_UPLOADED if is_copying[log] and columns.uploaded[log] <= number else Stays.NOT_IN_SYNC
        newest = int(segments.newest_timestamp_ms[row])
        yield (
            int(columns.log_row(np.array([log]))[0]),
            Head(
                going_bytes=Bytes(int(sums[columns.begin[log] + until[log]] - sums[columns.begin[log]])),
                is_active=is_active,
                size=Bytes(int(segments.log_bytes[row])),
                newest_ms=newest if newest >= 0 else int(segments.modified_ns[row]) // _NS_PER_MS,
                held=held,
            ),
        )


def stays(topic: TopicUse, partition: PartitionUse, size: Bytes, head: Head | None, now_ms: int) -> Stays:
    """Of one replica, which has this ``size``."""
    if topic.rules is None:
        return Stays.UNKNOWN
    if any(replica.is_future for replica in partition.replicas):
        return Stays.MOVING
    limit_ms, limit_bytes = effective_retention(topic.rules)
    if limit_ms < 0 and limit_bytes < 0:
        return _without_limit(topic.rules)
    if head is not None and head.going_bytes * 2 > size:
        return Stays.GOING
    if head is not None and head.held is not None:
        return head.held
    newest = partition.newest_ms if head is None else head.newest_ms
    if limit_ms >= 0 and newest is not None and newest > now_ms + _FUTURE_MS:
        return Stays.FUTURE_TIMESTAMP
    is_large = 0 <= limit_bytes < size
    is_old = limit_ms >= 0 and partition.oldest_ms is not None and partition.oldest_ms < now_ms - limit_ms
    if not (is_large or is_old):
        return Stays.WITHIN_LIMITS
    if head is not None:
        return Stays.ACTIVE_SEGMENT if head.is_active else Stays.WITHIN_LIMITS
    return _from_outside(topic, partition, size, limit_bytes, is_old=is_old)


def _without_limit(rules: CleanupRules) -> Stays:
    if rules.compacts and not rules.deletes:
        return Stays.COMPACTION
    return Stays.NO_LIMIT if rules.deletes else Stays.NO_CLEANUP_POLICY


def _from_outside(topic: TopicUse, partition: PartitionUse, size: Bytes, limit_bytes: int, *, is_old: bool) -> Stays:
    """Of a log beyond a limit."""
    if _lacks_replicas(topic, partition):
        return Stays.NOT_IN_SYNC
    if topic.segment_bytes is None:
        return Stays.UNKNOWN
    if size <= topic.segment_bytes:
        return Stays.ACTIVE_SEGMENT
    if not is_old and size <= limit_bytes + topic.segment_bytes:
        return Stays.WITHIN_LIMITS
    return Stays.NOT_UPLOADED if topic.rules is not None and topic.rules.is_tiered else Stays.UNKNOWN


def _lacks_replicas(topic: TopicUse, partition: PartitionUse) -> bool:
    """The high watermark stands still while fewer replicas are in sync than ``min.insync.replicas`` asks for."""
    ends = (partition.high_watermark, partition.log_end)
    if None in ends or partition.in_sync is None or topic.min_in_sync is None:
        return False
    return partition.in_sync < topic.min_in_sync and partition.high_watermark != partition.log_end


def why(topic: TopicUse, reasons: "Counter[Stays]", worst: "dict[Stays, tuple[PartitionUse, Head | None]]") -> str:
    """One sentence for the reason that keeps most bytes; ``worst`` has its largest partition."""
    if not reasons:
        return "it has no records"
    reason = leading(reasons)
    partition, head = worst[reason]
    return _SENTENCES[reason](topic, partition, head)


def leading(reasons: "Counter[Stays]") -> Stays:
    """What keeps most bytes. Of equals the first in the order of ``Stays``."""
    return min(reasons, key=lambda reason: (-reasons[reason], reason)) if reasons else Stays.WITHIN_LIMITS


def _going(topic: TopicUse, partition: PartitionUse, head: Head | None) -> str:
    size = human_bytes(None if head is None else head.going_bytes)
    return f"{size} of {topic.name}-{partition.partition} are deleted at the next retention check"


def _within(topic: TopicUse, _: PartitionUse, head: Head | None) -> str:
    """What is not tiered has its limits beside it, in the column Retention."""
    rules = topic.rules or CleanupRules()
    if not rules.is_tiered or rules.is_copy_disabled:
        return "within its limits"
    limit_ms, limit_bytes = effective_retention(rules)
    limits = [f"local.retention.ms is {human_span(limit_ms / 1000)}"] * (limit_ms >= 0)
    limits += [f"local.retention.bytes is {human_bytes(limit_bytes)} a partition"] * (limit_bytes >= 0)
    return f"tiered, and within its local limits: {', '.join(limits)}"


def _no_limit(topic: TopicUse, _partition: PartitionUse, _head: Head | None) -> str:
    if topic.is_internal:
        return "Kafka's own topic, without a limit: leave it as it is"
    return "no limit: retention.ms and retention.bytes are -1; set one"


def _compaction(_topic: TopicUse, _partition: PartitionUse, _head: Head | None) -> str:
    return "compacted: the newest record of every key stays (cleanup.policy=compact)"


def _no_policy(_topic: TopicUse, _partition: PartitionUse, _head: Head | None) -> str:
    return "cleanup.policy is empty: nothing is deleted"


def _active(topic: TopicUse, partition: PartitionUse, head: Head | None) -> str:
    size = human_bytes(partition.size if head is None else head.size)
    closes = f"segment.bytes {human_bytes(topic.segment_bytes)}"
    if topic.segment_ms is not None:
        closes += f", segment.ms {human_span(topic.segment_ms / 1000)}"
    return (
        f"active segment too large: {topic.name}-{partition.partition} has {size} in it; it closes at {closes}, and "
        "only closed segments are deleted"
    )


def _future(topic: TopicUse, partition: PartitionUse, head: Head | None) -> str:
    newest = partition.newest_ms if head is None else head.newest_ms
    day = datetime.fromtimestamp(min(newest or 0, _LATEST_MS) / 1000, UTC).date()
    return (
        f"future timestamp: {topic.name}-{partition.partition} has a record of {day}, from which retention.ms "
        "counts; set retention.bytes, or trim it by hand"
    )


def _not_in_sync(topic: TopicUse, partition: PartitionUse, _head: Head | None) -> str:
    name = f"{topic.name}-{partition.partition}"
    if partition.in_sync is not None and topic.min_in_sync is not None and partition.in_sync < topic.min_in_sync:
        return (
            f"min.insync.replicas is {topic.min_in_sync}, and {name} has {counted(partition.in_sync, 'replica')} in "
            "sync: data above the high watermark stays until the others are back"
        )
    return f"not all replicas in sync have what {name} holds: data above the high watermark stays until they do"


def _not_uploaded(topic: TopicUse, partition: PartitionUse, _head: Head | None) -> str:
    return f"tiered: {topic.name}-{partition.partition} has segments that are not uploaded yet; they stay"


def _moving(topic: TopicUse, partition: PartitionUse, _head: Head | None) -> str:
    return f"{topic.name}-{partition.partition} is being moved to another log dir: nothing is deleted until that ends"


def _unknown(topic: TopicUse, _partition: PartitionUse, _head: Head | None) -> str:
    if topic.rules is None:
        return "configuration unknown: needs DESCRIBE_CONFIGS on the topic"
    return "over a limit; run it with --config on the broker's host to see which segment stays"


_SENTENCES = {
    Stays.GOING: _going,
    Stays.WITHIN_LIMITS: _within,
    Stays.NO_LIMIT: _no_limit,
    Stays.COMPACTION: _compaction,
    Stays.NO_CLEANUP_POLICY: _no_policy,
    Stays.ACTIVE_SEGMENT: _active,
    Stays.FUTURE_TIMESTAMP: _future,
    Stays.NOT_IN_SYNC: _not_in_sync,
    Stays.NOT_UPLOADED: _not_uploaded,
    Stays.MOVING: _moving,
    Stays.UNKNOWN: _unknown,
}
