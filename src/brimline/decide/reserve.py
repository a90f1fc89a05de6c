"""How deep a full follower's disk is in what its limit leaves free, and what is refused to producers for it.

**Invariant.** A full follower costs its leader no write before it has to. An in-sync follower cannot be kept from
growing where replication does not pass a gateway (Kafka exempts it from every throttle), so its leader's producers are
refused in the end; but only from the last reserve on, and first where the cluster itself would refuse them soon:

==========  =====================================  =========================================================
depth       usable bytes of the follower's volume  refused at the leader
==========  =====================================  =========================================================
``LIMIT``   less than its limit leaves free        nothing; it is told (alert)
``RESERVE`` less than the reserve                  partitions that without this follower would have fewer
                                                   in-sync replicas than ``min.insync.replicas``
``LAST``    less than half of the reserve          every partition there
==========  =====================================  =========================================================

**The reserve** is the operator's number, or half of what the limit leaves free. It is never less than what comes in
until the next looks at the rate of the last ones, and never more than what the limit leaves free: then it is a fence
from the limit on. The rate is the median of the last three steps: one file that appears between two looks is no rate.
"""

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from statistics import median

from brimline.decide.disk_state import DiskLimits, Space, bytes_to_limit
from brimline.decide.fill_rate import UsableAt, fill_rate
from brimline.model import Bytes

LOOKS_AHEAD = 3
"""A look may come late, and an order takes its way to the gateway."""
_STEPS = 3


class Depth(IntEnum):
    LIMIT = 0
    RESERVE = 1
    LAST = 2


def depth_of(space: Space, reserve: Bytes) -> Depth:
    """Of a disk that is full."""
    if space.usable * 2 < reserve:
        return Depth.LAST
    return Depth.RESERVE if space.usable < reserve else Depth.LIMIT


def reserve_of(
    space: Space, limits: DiskLimits, wish: Bytes | None, readings: Sequence[UsableAt], wait: float
) -> Bytes:
    """``wish``: what the operator says; ``wait``: seconds until the next look."""
    distance = bytes_to_limit(space, limits)
    if distance is None:
        return Bytes(0)
    left_free = max(space.usable - distance, 0)
    wanted = left_free // 2 if wish is None else wish
    # Twice, because everything is refused only below half of it.
    needed = int(2 * _rate(readings) * wait * LOOKS_AHEAD)
    return Bytes(min(max(wanted, needed), left_free))


def _rate(readings: Sequence[UsableAt]) -> float:
    steps = [fill_rate(pair) for pair in pairwise(readings[-_STEPS - 1 :])]
    known = [step for step in steps if step is not None]
    return max(median(known), 0.0) if known else 0.0
