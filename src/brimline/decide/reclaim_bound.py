"""How far beyond its ceiling a device may get, and whether that is still below where producing is refused.

**Invariant.** With the ceiling reached and producers at full rate, a device is never used more than the ceiling plus
the bound: what is written goes into active segments, which cannot be taken, and what is taken comes back only after a
cycle has decided it, the broker's next retention pass has marked it, and the delay of its deletion is over. A ceiling
whose bound reaches the limits of KIP-1201 lets the device be fenced although reclaim does all it can.
"""

import math
from dataclasses import dataclass

from brimline.decide.disk_state import DiskLimits, Space, bytes_to_limit
from brimline.model import Bytes
from brimline.model.reclaim import DeviceFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimDelays:
    """Seconds between a byte too many and its return."""

    cycle: float
    retention_check: float
    """``log.retention.check.interval.ms`` of the broker."""
    delete_delay: float
    """``log.segment.delete.delay.ms`` or ``file.delete.delay.ms``."""

    @property
    def total(self) -> float:
        return self.cycle + self.retention_check + self.delete_delay


def most_above_ceiling(active_bytes: Bytes, bytes_per_second: float, delays: ReclaimDelays) -> Bytes:
    return Bytes(active_bytes + math.ceil(max(bytes_per_second, 0) * delays.total))


def room_below_fence(device: DeviceFacts, above_ceiling: Bytes, limits: DiskLimits) -> Bytes | None:
    """What may still be written before the fence when the device is that far above its ceiling; negative: too late.

    ``None`` without a ceiling, without a fence, and when the device's size is not known.
    """
    if device.total_bytes is None or device.limit_bytes is None:
        return None
    usable = Bytes(device.total_bytes - device.limit_bytes - above_ceiling)
    return bytes_to_limit(Space(total=device.total_bytes, usable=usable), limits)
