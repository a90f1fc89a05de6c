"""What fills the disks, by topic: sizes, growth, readers, and why a topic does not shrink. The largest first.

**Invariant.** ``bytes`` is the sum of what the brokers say of all replicas, copies in the making included, and the sum
of the topic's places; nothing is counted twice. A number that rests on partitions of which something is not known is
not known itself, but for what was written in the last hour and the oldest record: of the partitions that tell.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from brimline.decide.shrinking import leading, stays, why
from brimline.model import BrokerId, Bytes, TopicPartition
from brimline.model.blast_radius import GroupActivity
from brimline.model.topic_use import (
    GroupLag,
    Head,
    PartitionUse,
    ReplicaUse,
    Stays,
    TopicPlace,
    TopicSummary,
    TopicUse,
)

Place: TypeAlias = tuple[BrokerId, str, TopicPartition]
"""Broker, log dir, partition."""


def summaries(topics: Iterable[TopicUse], heads: Mapping[Place, Head], now_ms: int) -> list[TopicSummary]:
    """``heads`` are those of the replicas whose files were seen."""
    found = [_summary(topic, heads, now_ms) for topic in topics]
    return sorted(found, key=lambda each: (-each.bytes, each.name))


def _summary(topic: TopicUse, heads: Mapping[Place, Head], now_ms: int) -> TopicSummary:
    replicas = [replica for partition in topic.partitions for replica in partition.replicas]
    judged = _judged(topic, heads)
    kept: Counter[Stays] = Counter()
    worst: dict[Stays, tuple[PartitionUse, Head | None]] = {}
    for partition, replica, head in judged:
        reason = stays(topic, partition, replica.size, head, now_ms)
        kept[reason] += replica.size
        worst.setdefault(reason, (partition, head))
    going = [head.going_bytes for _, _, head in judged if head is not None]
    tiered = topic.partitions if topic.rules is not None and topic.rules.is_tiered else ()
    return TopicSummary(
        use=topic,
        bytes=Bytes(sum(replica.size for replica in replicas)),
        one_copy_bytes=Bytes(sum(partition.size for partition in topic.partitions)),
        replicas=len(replicas),
        written_bytes=_written(topic.partitions),
        oldest_ms=min((each.oldest_ms for each in topic.partitions if each.oldest_ms is not None), default=None),
        remote_bytes=_summed([_known(each, "remote_size") for each in tiered]),
        only_local_bytes=_summed([_known(each, "only_local_size") for each in tiered]),
        groups=_groups(topic),
        places=_places(replicas),
        stays=leading(kept),
        why=why(topic, kept, worst),
        going_bytes=Bytes(sum(going)) if going else None,
    )


def _judged(topic: TopicUse, heads: Mapping[Place, Head]) -> list[tuple[PartitionUse, ReplicaUse, Head | None]]:
    """The replicas with records, the largest first; of a topic that has files here only those."""
    found = [
        (each, replica, heads.get((replica.broker, replica.log_dir, TopicPartition(topic.name, each.partition))))
        for each in topic.partitions
        for replica in each.replicas
        if replica.size and not replica.is_future
    ]
    seen = [each for each in found if each[2] is not None]
    return sorted(seen or found, key=lambda each: -each[1].size)


def _written(partitions: Sequence[PartitionUse]) -> Bytes | None:
    """The share of its offsets that came in the last hour, of every partition that tells."""
    known = []
    for each in partitions:
        if each.log_start is None or each.high_watermark is None or each.written_since is None:
            continue
        records = each.high_watermark - each.log_start
        recent = each.high_watermark - max(each.written_since, each.log_start)
        known.append(each.size * max(recent, 0) // records if records > 0 else 0)
    return Bytes(sum(known)) if known else None


def _known(partition: PartitionUse, name: str) -> Bytes | None:
    """Of the leader's replica, or of any that tells: what is remote is there once."""
    by_leader_first = sorted(partition.replicas, key=lambda replica: replica.broker != partition.leader)
    sizes: list[Bytes] = [size for replica in by_leader_first if (size := getattr(replica, name)) is not None]
    return sizes[0] if sizes else None


def _summed(sizes: Sequence[Bytes | None]) -> Bytes | None:
    known = [size for size in sizes if size is not None]
    return Bytes(sum(known)) if sizes and len(known) == len(sizes) else None


def _groups(topic: TopicUse) -> tuple[GroupLag, ...]:
    ends = {each.partition: each.high_watermark for each in topic.partitions}
    found = []
    for group, committed in topic.committed.items():
        behind = [end - offset for number, offset in committed.items() if (end := ends.get(number)) is not None]
        activity = topic.activity.get(group, GroupActivity.UNKNOWN)
        found.append(GroupLag(group=group, activity=activity, records=sum(max(each, 0) for each in behind)))
    return tuple(sorted(found, key=lambda each: (-each.records, each.group)))


def _places(replicas: Iterable[ReplicaUse]) -> tuple[TopicPlace, ...]:
    sizes: dict[tuple[BrokerId, str], list[int]] = defaultdict(list)
    for replica in replicas:
        sizes[replica.broker, replica.log_dir].append(replica.size)
    places = [
        TopicPlace(broker=broker, log_dir=log_dir, bytes=Bytes(sum(found)), replicas=len(found))
        for (broker, log_dir), found in sizes.items()
    ]
    return tuple(sorted(places, key=lambda place: (-place.bytes, place.broker, place.log_dir)))
