"""A last line behind the fence: may this group commit now? (``brimline.gateway.commits.refuse.below.percent``)

**Invariant.** A commit is refused exactly when it would make a log of ``__consumer_offsets`` grow that lies on a volume
past its line: one that this broker leads, or one that a follower past its line copies from it. Where it is not known
which log that is, nothing is refused (fail open): a commit that is refused at a broker that does not lead the log
would be sent there again and again, because the answer does not say where else to go.

**The line** is a share of what a volume must keep free by all its limits, its reserve among them. Up to 100 % it is
not passed by a volume that is not full.
"""

from dataclasses import dataclass

from brimline.decide.disk_state import DiskLimits, Space, bytes_to_limit

OFFSETS_TOPIC = "__consumer_offsets"
LOAD_IN_PROGRESS = 14
"""COORDINATOR_LOAD_IN_PROGRESS: clients try again later, at the same coordinator. After 15 or 16 they look for another
one, after 27 they join their group anew, which writes more than the commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsTopic:
    """How many partitions it has, and which of them this broker leads."""

    partitions: int
    led: tuple[int, ...] = ()

    def partition_of(self, group: str) -> int:
        """``Utils.abs(groupId.hashCode()) % partitions``, as Kafka's coordinators reckon."""
        return java_abs(java_hash(group)) % self.partitions


def is_past_line(space: Space, limits: DiskLimits, percent: int) -> bool:
    distance = bytes_to_limit(space, limits)
    if distance is None:
        return False
    kept_free = space.usable - distance
    return space.usable * 100 < kept_free * percent


def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, in 32 bits with a sign."""
    encoded, value = text.encode("utf-16-be"), 0
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def java_abs(value: int) -> int:
    """Kafka's ``Utils.abs``: the smallest number, which has no opposite in 32 bits, becomes 0."""
    return 0 if value == -(1 << 31) else abs(value)
