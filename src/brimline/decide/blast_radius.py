"""What would be lost to whom, if a plan were carried out.

**Invariant.** A group is named exactly if it has committed an offset below the new log start of a partition that is
trimmed: its next fetch from there would ask for a record that is gone. That includes a group that stands below the
present log start, which has lost its place already; the plan takes more from it all the same. A committed offset that
*is* the new log start loses nothing.

What becomes of such a group is its own ``auto.offset.reset``, which no broker knows: ``RESET_SENTENCE``.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
from brimline.model.quantities import Bytes

RESET_SENTENCE = (
    "A group that finds its offset gone goes by its auto.offset.reset: latest (the default) skips everything that is "
    "left in the partition, earliest goes on at the new log start, none stops with an error."
)
UNSEEN_SENTENCE = "Readers that keep their offsets outside of Kafka, or none at all, cannot be seen from here."


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
