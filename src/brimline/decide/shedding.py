"""Shedding: a replica in sync on a full disk is taken out of its partition, so that its leader need not refuse writes.

**Rule** (only where the operator has switched it on). Once a follower's disk is down to its reserve (the operator's
number, or half of what the limit leaves free, whatever comes in), its leaders take as few of its replicas out of their
assignments as bring back the bytes that it lacks, the largest first. What has been taken out lately counts as on its
way back: a broker deletes a replica's files a minute later.

**Invariant.** No partition is left with fewer replicas in sync, on disks that are known to have room, than
``min.insync.replicas``, and with none but its leader never: at least two remain, whatever that key says. So the last
copy, and the last but one, are never shed. Kafka's own topics are not shed, nor a partition that is being reassigned,
nor one that has lost a replica so a short while ago: what is known of it may be older than that. Where nothing may be
shed, the fence of ``decide.reserve`` stands as it would without this.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from brimline.decide.disk_state import DiskLimits, Space, bytes_to_limit
from brimline.model import BrokerId, Bytes, TopicPartition

FEWEST_IN_SYNC = 2
"""The leader and another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheddable:
    """A partition with a replica on the full disk, as it was seen right now."""

    partition: TopicPartition
    size: Bytes
    """Of the replica there."""
    replicas: tuple[BrokerId, ...]
    """In the order of the assignment."""
    in_sync: frozenset[BrokerId]
    leader: BrokerId | None
    fewest: int | None
    """``min.insync.replicas``; ``None``: not known."""
    is_internal: bool = False
    is_moving: bool = False


def bytes_lacking(space: Space, limits: DiskLimits) -> Bytes:
    """What must come back until the volume is no longer full; 0 without limits."""
    distance = bytes_to_limit(space, limits)
    margin = -(-limits.release_margin_percent * space.total // 100)
    return Bytes(0 if distance is None else max(margin - distance, 0))


def may_shed(each: Sheddable, own: BrokerId, follower: BrokerId, with_room: Collection[BrokerId]) -> bool:
    """``with_room``: the brokers that are known to have room for this partition."""
    left = (each.in_sync & frozenset(with_room)) - {follower}
    enough = each.fewest is not None and len(left) >= max(each.fewest, FEWEST_IN_SYNC)
    is_ours = each.leader == own and own in left and follower in each.in_sync and follower in each.replicas
    return enough and is_ours and each.size > 0 and not each.is_internal and not each.is_moving


def to_shed(allowed: Iterable[Sheddable], lacking: int) -> list[Sheddable]:
    """The fewest that bring back what is lacking; all, if together they do not."""
    taken: list[Sheddable] = []
    for each in sorted(allowed, key=lambda each: (-each.size, each.partition)):
        if lacking <= 0:
            break
        taken.append(each)
        lacking -= each.size
    return taken
