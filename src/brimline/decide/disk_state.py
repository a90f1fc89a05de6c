"""KIP-1201: is a volume full?

**Invariant.** A volume is FULL exactly when its last reading breaches a limit, or when it was FULL and has not yet come
back by the release margin. Nothing else makes it full: a volume that cannot be read is UNKNOWN, and UNKNOWN is not
full. Whoever acts on the state refuses nothing for an unknown volume, and says so loudly (fail open).

One exception: a volume that was FULL and then gives no reading (it hangs, or it answers with an I/O error) stays FULL
until it gives one. A disk that fails so is often one that is full to its last byte, and its silence does not say that
there is room. A volume that is gone (its folder is not there, or on another device) is UNKNOWN.

**The limits.** Used more than ``disk.max.used.percent`` or usable less than ``disk.min.free.bytes``; either one is
enough, and both must hold again for release. All in integers: ``(total - usable) x 100 > limit x total`` has no
rounding, so the edge is where the operator put it. 100 switches the first off (no volume is used more than wholly),
0 the second (nothing is less than nothing).

**The reserve** is a third limit in bytes, worked out for each volume (``decide.unfenced_writes``): what may still be
written there once Produce is refused. It counts only where one of the operator's own limits does.

**Inodes** are space, too: a volume without free inodes is as full as one without free bytes. By count and not in
percent, because xfs and zfs derive the number from the free bytes. A volume that tells no count has no such limit.

**Offline** is what the broker says of a log dir (``DiskState.OFFLINE``): it is not written to, whatever room there is,
until the broker is restarted. It hides the fullness of the volume from people, and changes nothing about the fence.

**What "used" means.** ``total - usable``, where usable is what an ordinary user may still write. An ext4 keeps 5 % of
its blocks for root by default; those count as used from the first day, because no broker can write to them. So an
empty ext4 shows about 5 % used, and its brim is where Kafka would get ENOSPC, which is the brim that matters.

**Release margin** (Brimline's own, 0 by default, so that the KIP's rule is the rule): a share of the volume that must
be free beyond both limits before FULL ends. It is against flapping, which makes non-idempotent producers reorder.
A limit that is switched off asks for no margin. After UNKNOWN the past is forgotten: a volume inside the margin is OK.
"""

from dataclasses import dataclass
from enum import Enum

from brimline.model import Bytes

PERCENT_OFF = 100
BYTES_OFF = Bytes(0)
DEFAULT_MIN_FREE_BYTES = Bytes(1 << 30)
"""The KIP says "1GB"; Kafka's sizes are powers of two."""


class DiskState(Enum):
    """The value is the stable name in JSON and in logs."""

    OK = "ok"
    FULL = "full"
    UNKNOWN = "unknown"
    OFFLINE = "offline"


class Breach(Enum):
    """Which limit is breached; the value is the key that sets it."""

    MAX_USED_PERCENT = "disk.max.used.percent"
    MIN_FREE_BYTES = "disk.min.free.bytes"
    RESERVE = "brimline.disk.reserve"
    INODES = "inodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskLimits:
    max_used_percent: int = 99
    min_free_bytes: Bytes = DEFAULT_MIN_FREE_BYTES
    release_margin_percent: int = 0
    reserve: Bytes = BYTES_OFF
    min_free_files: int = 0

    @property
    def percent_is_off(self) -> bool:
        return self.max_used_percent >= PERCENT_OFF

    @property
    def bytes_is_off(self) -> bool:
        return self.min_free_bytes <= BYTES_OFF

    @property
    def are_off(self) -> bool:
        return self.percent_is_off and self.bytes_is_off


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A volume at one moment. ``usable`` may exceed ``total`` on odd file systems; then nothing is used.

    ``usable_files``: the inodes that are left, of ``total_files``; ``None`` where the file system does not count them.
    """

    total: Bytes
    usable: Bytes
    total_files: int | None = None
    usable_files: int | None = None

    @property
    def used(self) -> int:
        return max(self.total - self.usable, 0)


def breaches(space: Space, limits: DiskLimits) -> tuple[Breach, ...]:
    """The limits that this reading breaches; empty means that there is room."""
    found = []
    if space.used * 100 > limits.max_used_percent * space.total:
        found.append(Breach.MAX_USED_PERCENT)
    if space.usable < limits.min_free_bytes:
        found.append(Breach.MIN_FREE_BYTES)
    elif not limits.are_off and space.usable < limits.reserve:
        found.append(Breach.RESERVE)
    if space.usable_files is not None and space.usable_files < limits.min_free_files:
        found.append(Breach.INODES)
    return tuple(found)


def next_state(was: DiskState, space: Space | None, limits: DiskLimits, *, is_gone: bool = False) -> DiskState:
    """The state after a reading; ``None`` is one that failed or that does not come."""
    if space is None:
        stays = was is DiskState.FULL and not is_gone and not (limits.are_off and not limits.min_free_files)
        return DiskState.FULL if stays else DiskState.UNKNOWN
    if breaches(space, limits):
        return DiskState.FULL
    if was is DiskState.FULL and not _is_released(space, limits):
        return DiskState.FULL
    return DiskState.OK


def bytes_to_limit(space: Space, limits: DiskLimits) -> Bytes | None:
    """How much may still be written before the nearer limit is breached. Negative: that much must go first.

    ``None`` when both limits are off, because then there is no limit to reach.
    """
    distances = []
    if not limits.percent_is_off:
        distances.append(limits.max_used_percent * space.total // 100 - space.used)
    if not limits.bytes_is_off:
        distances.append(space.usable - limits.min_free_bytes)
    if distances:
        distances.append(space.usable - limits.reserve)
    return Bytes(min(distances)) if distances else None


def limits_never_met(total: Bytes, reserved: Bytes, limits: DiskLimits) -> tuple[Breach, ...]:
    """Limits that a volume breaches even with no file on it: it could never be anything but full.

    ``reserved`` is what the file system keeps back for root.
    """
    return breaches(Space(total=total, usable=Bytes(max(total - reserved, 0))), limits)


def _is_released(space: Space, limits: DiskLimits) -> bool:
    margin_of_total = limits.release_margin_percent * space.total
    percent_holds = limits.percent_is_off or space.used * 100 + margin_of_total <= limits.max_used_percent * space.total
    bytes_hold = limits.bytes_is_off or space.usable * 100 >= limits.min_free_bytes * 100 + margin_of_total
    reserve_holds = limits.are_off or not limits.reserve or space.usable * 100 >= limits.reserve * 100 + margin_of_total
    return percent_holds and bytes_hold and reserve_holds and _has_files_again(space, limits)


def _has_files_again(space: Space, limits: DiskLimits) -> bool:
    if space.usable_files is None or not limits.min_free_files:
        return True
    margin = limits.release_margin_percent * limits.min_free_files
    return space.usable_files * 100 >= limits.min_free_files * 100 + margin
