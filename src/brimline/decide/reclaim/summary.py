"""A plan for people: in few numbers, and who would miss what.

A plan in few numbers, for people: how old what goes is, and why the rest stays.

**Invariant.** Nothing is counted twice and nothing left out: the spans of age add up to what is taken, and what is
taken, what is going and the reasons why the rest stays add up to all segments of the device.

What would be lost to whom, if a plan were carried out.

**Invariant.** A group is named exactly if it has committed an offset below the new log start of a partition that is
trimmed: its next fetch from there would ask for a record that is gone. That includes a group that stands below the
present log start, which has lost its place already; the plan takes more from it all the same. A committed offset that
*is* the new log start loses nothing.

What becomes of such a group is its own ``auto.offset.reset``, which no broker knows: ``RESET_SENTENCE``.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from brimline.decide.reclaim import kernel
from brimline.decide.reclaim.device import columns_of_device
from brimline.model import Bytes
from brimline.model.blast_radius import (
    BlastRadius,
    ConsumerGroup,
    DoomedRange,
    GroupLoss,
    GroupsSeen,
    PartitionLoss,
    TopicLoss,
)
from brimline.model.partitions import TopicPartition
from brimline.model.reclaim import AN_HOUR_MS, ReclaimTables
from brimline.model.reclaim_plan import ReclaimPlan, ReclaimReason
from brimline.model.scan import Int64Column

_MINUTE_MS, _DAY_MS = 60_000, 24 * AN_HOUR_MS
_YOUNG_MS = 2 * AN_HOUR_MS
_WIDTHS_MS = (_MINUTE_MS, 10 * _MINUTE_MS, AN_HOUR_MS, 6 * AN_HOUR_MS, _DAY_MS, 7 * _DAY_MS, 30 * _DAY_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonSum:
    reason: ReclaimReason
    segments: int
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeSpan:
    """Segments whose newest record is at least ``from_ms`` and less than ``to_ms`` old."""

    from_ms: int
    to_ms: int
    segments: int
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ages:
    """A row per segment. A time in the future is no age: it counts as 0."""

    age_ms: Int64Column
    allocated_bytes: Int64Column

    def spans(self, width_ms: int) -> tuple[AgeSpan, ...]:
        """The oldest first, without empty ones."""
        numbers, place = np.unique(self.age_ms // width_ms, return_inverse=True)
        segments = np.bincount(place, minlength=len(numbers))
        sizes = np.zeros(len(numbers), dtype=np.int64)
        np.add.at(sizes, place, self.allocated_bytes)
        return tuple(
            AgeSpan(
                from_ms=int(numbers[row]) * width_ms,
                to_ms=(int(numbers[row]) + 1) * width_ms,
                segments=int(segments[row]),
                bytes=Bytes(int(sizes[row])),
            )
            for row in reversed(range(len(numbers)))
        )

    def fitting_spans(self, most: int) -> tuple[AgeSpan, ...]:
        """By the hour, or by the day and so on where that would be more than ``most`` spans; the young by minutes."""
        is_young = self.age_ms.max(initial=0) < _YOUNG_MS
        for width in _WIDTHS_MS if is_young else _WIDTHS_MS[_WIDTHS_MS.index(AN_HOUR_MS) :]:
            if len(np.unique(self.age_ms // width)) <= most:
                break
        return self.spans(width)


def together(several: Sequence[Ages]) -> Ages:
    """Of several devices."""
    nothing = np.zeros(0, dtype=np.int64)
    return Ages(
        age_ms=np.concatenate([nothing, *(each.age_ms for each in several)]),
        allocated_bytes=np.concatenate([nothing, *(each.allocated_bytes for each in several)]),
    )


def ages_of(tables: ReclaimTables, device: int, segments: Int64Column) -> Ages:
    """Of these rows of the segments, all on one device, as the plan counts age."""
    newest = newest_ms(tables, device, segments)
    return Ages(
        age_ms=np.maximum(tables.devices[device].now_ms - newest, 0),
        allocated_bytes=tables.segments.allocated_bytes[segments],
    )


def newest_ms(tables: ReclaimTables, device: int, segments: Int64Column) -> Int64Column:
    """When each of these was written to last, made monotone along its log."""
    columns = columns_of_device(tables, device)
    newest = kernel.age_of(columns.age_keys())
    rows = columns.segment_rows
    # Rows of one device ascend, whether they stand together or not.
    places = segments - rows.start if isinstance(rows, slice) else np.searchsorted(rows, segments)
    return np.asarray(newest[places], dtype=np.int64)


def reason_sums(tables: ReclaimTables, plan: ReclaimPlan, device: int) -> tuple[ReasonSum, ...]:
    """Of all segments of the device, the largest sum first."""
    rows = columns_of_device(tables, device).segment_rows
    reasons, sizes = plan.reason[rows], tables.segments.allocated_bytes[rows]
    counts = np.bincount(reasons, minlength=len(ReclaimReason))
    summed = np.zeros(len(ReclaimReason), dtype=np.int64)
    np.add.at(summed, reasons, sizes)
    sums = [
        ReasonSum(reason=reason, segments=int(counts[reason]), bytes=Bytes(int(summed[reason])))
        for reason in ReclaimReason
        if counts[reason]
    ]
    return tuple(sorted(sums, key=lambda each: (-each.bytes, each.reason)))


def rows_of_heads(heads: Sequence[tuple[int, int]]) -> Int64Column:
    """Segment rows of several runs, each given by its first row and its length."""
    first = np.array([head[0] for head in heads], dtype=np.int64)
    length = np.array([head[1] for head in heads], dtype=np.int64)
    return kernel.rows_of_ranges(first, length)


RESET_SENTENCE = (
    "A group whose offset was deleted follows its auto.offset.reset: latest (the default) skips what is left in the "
    "partition, earliest continues at the new log start, none stops with an error."
)
UNSEEN_SENTENCE = "Readers that do not commit offsets to Kafka are not listed."


def blast_radius(doomed: Sequence[DoomedRange], seen: GroupsSeen) -> BlastRadius:
    by_partition = {each.partition: each for each in doomed}
    losses = [loss for group in seen.groups if (loss := _group_loss(group, by_partition)) is not None]
    losing = Counter(topic for loss in losses for topic in loss.topics)
    return BlastRadius(
        topics=tuple(_topic_losses(doomed, losing)),
        groups=tuple(sorted(losses, key=lambda loss: (-loss.records, loss.group))),
        asked_groups=seen.asked,
        unknown=seen.unknown,
    )


def _group_loss(group: ConsumerGroup, doomed: Mapping[TopicPartition, DoomedRange]) -> GroupLoss | None:
    partitions = tuple(_partition_losses(group, doomed))
    return GroupLoss(group=group.name, activity=group.activity, partitions=partitions) if partitions else None


def _partition_losses(group: ConsumerGroup, doomed: Mapping[TopicPartition, DoomedRange]) -> Iterator[PartitionLoss]:
    for partition, committed in sorted(group.committed.items()):
        taken = doomed.get(partition)
        if taken is not None and committed < taken.end:
            yield PartitionLoss(
                partition=partition,
                committed=committed,
                new_log_start=taken.end,
                records=taken.end - max(committed, taken.begin),
                was_below=committed < taken.begin,
            )


def _topic_losses(doomed: Iterable[DoomedRange], losing: Mapping[str, int]) -> list[TopicLoss]:
    topics: dict[str, list[DoomedRange]] = defaultdict(list)
    for each in doomed:
        topics[each.partition.topic].append(each)
    losses = [_topic_loss(topic, ranges, losing.get(topic, 0)) for topic, ranges in topics.items()]
    return sorted(losses, key=lambda loss: (-loss.bytes, loss.topic))


def _topic_loss(topic: str, ranges: Sequence[DoomedRange], groups: int) -> TopicLoss:
    return TopicLoss(
        topic=topic,
        partitions=len(ranges),
        segments=sum(each.segments for each in ranges),
        bytes=Bytes(sum(each.bytes for each in ranges)),
        records=sum(each.records for each in ranges),
        oldest_ms=min((each.oldest_ms for each in ranges if each.oldest_ms >= 0), default=-1),
        newest_ms=max(each.newest_ms for each in ranges),
        groups=groups,
    )
