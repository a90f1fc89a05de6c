"""KIP-1257: how much of its retention does a partition use, in percent?

**Invariant.** A percentage is ``size x 100 // limit`` in integers: cut, not rounded, and not capped, because more than
100 is how delayed clean-up shows. It is 0 when its own limit is unlimited (0 or less), and it is 0 for no other reason
except the one the table names. A size that is not known gives no percentage: unknown is not zero.

The KIP's table, row by row:

==========================================  ======================  =================  =====================
topic                                       plain bean              tiered, total      tiered, local
==========================================  ======================  =================  =====================
not tiered, limited                         size / retention.bytes  no bean            no bean
not tiered, unlimited                       0                       no bean            no bean
tiered, copying                             0                       total / retention  local / local retention
tiered, copy disabled                       size / retention.bytes  total / retention  local / local retention
tiered, total unlimited, local limited      0                       0                  local / local retention
tiered, both unlimited                      0                       0                  0
==========================================  ======================  =================  =====================

The plain bean exists for every replica, future ones too. The tiered beans exist on the leader only. Total is what only
the local disk holds plus what the remote store holds. ``local.retention.bytes`` of -2 is ``retention.bytes``.

**Where stock Kafka (4.3) differs**, and this module does not follow:

- With ``retention.bytes=-1`` and something uploaded it leaves both tiered gauges as they are, for good. The KIP wants 0
  for the unlimited total; the local figure has a limit of its own, so it is computed (``stock_is_right`` is false).
- It counts a fully uploaded last segment of one record as only local.
- It casts to a 32-bit integer, so beyond 2147483647 % it wraps.
- While a replica moves to another log dir its retention passes leave the partition out: the future log reads 0, and the
  current one what it read before the move.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brimline.model.log_dirs import Int32Column, Int64Column
from brimline.model.partitions import TopicRetention


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredPercents:
    total: int
    local: int


def percent_of(size: int, limit: int) -> int:
    return 0 if limit <= 0 else size * 100 // limit


def plain_percent(size: int, topic: TopicRetention) -> int:
    """``kafka.log:type=Log,name=RetentionSizeInPercent`` of any replica."""
    return percent_of(size, _plain_limit(topic))


def plain_percents(size: Int64Column, topic: Int32Column, topics: Sequence[TopicRetention]) -> Int64Column:
    """The same for all replicas of a log dir at once; ``topic`` holds positions in ``topics``."""
    if not len(size):
        return np.zeros(0, dtype=np.int64)
    limit = np.array([_plain_limit(each) for each in topics], dtype=np.int64)[topic]
    limited = limit > 0
    percents = np.zeros(len(size), dtype=np.int64)
    # The quotient first and the remainder after it: size x 100 alone could pass 2**63.
    whole, rest = np.divmod(size[limited], limit[limited])
    percents[limited] = whole * 100 + _hundred_times(rest, limit[limited])
    return percents


def tiered_percents(
    *, local_size: int, only_local_size: int, remote_size: int, topic: TopicRetention
) -> TieredPercents:
    """``kafka.log.remote:type=RemoteLogManager`` of a partition that this broker leads."""
    return TieredPercents(
        total=percent_of(only_local_size + remote_size, topic.retention_bytes),
        local=percent_of(local_size, topic.effective_local_bytes),
    )


def stock_is_right(topic: TopicRetention) -> bool:
    """Whether a broker of 4.3 or later keeps its own gauges of this topic up to date."""
    return not topic.is_tiered or topic.retention_bytes >= 0


def _plain_limit(topic: TopicRetention) -> int:
    is_copying = topic.is_tiered and not topic.is_copy_disabled
    return 0 if is_copying else topic.retention_bytes


def _hundred_times(rest: Int64Column, limit: Int64Column) -> Int64Column:
    """``rest x 100 // limit`` where ``rest < limit``; beyond 2**56 with Python's own unbounded integers."""
    small = limit < 1 << 56
    hundredths = np.zeros(len(rest), dtype=np.int64)
    hundredths[small] = rest[small] * 100 // limit[small]
    for row in np.flatnonzero(~small).tolist():
        hundredths[row] = int(rest[row]) * 100 // int(limit[row])
    return hundredths
