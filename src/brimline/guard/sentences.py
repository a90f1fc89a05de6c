"""The guard's findings in plain words, for its log, ``--check`` and ``status``. One wording for all of them."""

from brimline.decide.disk_state import Breach, DiskLimits, DiskState
from brimline.guard.disk_task import VolumeStatus
from brimline.model import Bytes, human_bytes, human_percent, used_percent


def named_log_dirs(volume: VolumeStatus) -> str:
    return ", ".join(volume.log_dirs)


def how_full(volume: VolumeStatus) -> str:
    total, usable = volume.reading.total_bytes, volume.reading.usable_bytes
    if total is None or usable is None:
        return str(volume.reading.failure)
    return f"{human_percent(used_percent(total, usable))} used, {human_bytes(usable)} usable of {human_bytes(total)}"


def why_full(volume: VolumeStatus, limits: DiskLimits) -> str:
    if not volume.breaches:
        return f"not yet below the limits by {limits.release_margin_percent} % of the volume"
    words = {
        Breach.MAX_USED_PERCENT: f"more than {limits.max_used_percent} % is used ({Breach.MAX_USED_PERCENT.value})",
        Breach.MIN_FREE_BYTES: (
            f"less than {human_bytes(limits.min_free_bytes)} is usable ({Breach.MIN_FREE_BYTES.value})"
        ),
    }
    return " and ".join(words[breach] for breach in volume.breaches)


def state_sentence(volume: VolumeStatus, limits: DiskLimits) -> str:
    several = len(volume.log_dirs) > 1
    if volume.state is DiskState.FULL:
        be = "are" if several else "is"
        return f"{named_log_dirs(volume)} {be} full: {why_full(volume, limits)}; {how_full(volume)}"
    if volume.state is DiskState.UNKNOWN:
        return f"{named_log_dirs(volume)} cannot be watched, and nothing is refused for it: {volume.reading.failure}"
    return f"{named_log_dirs(volume)} {'have' if several else 'has'} room: {how_full(volume)}"


def would_do(volume: VolumeStatus, retention_percent: int) -> list[str]:
    """What enforcement would do about this volume now."""
    acts = []
    if volume.state is DiskState.FULL:
        acts.append(f"would refuse Produce for every partition in {named_log_dirs(volume)}")
    excess = bytes_over_ceiling(volume, retention_percent)
    if excess:
        acts.append(
            f"would delete the oldest segments in {named_log_dirs(volume)} until {human_bytes(excess)} are free again "
            f"(log.retention.disk.usage.percent={retention_percent})"
        )
    return acts


def bytes_over_ceiling(volume: VolumeStatus, retention_percent: int) -> Bytes:
    """KIP-61's excess bytes: what is used beyond its ceiling; 0 while it is switched off."""
    total, usable = volume.reading.total_bytes, volume.reading.usable_bytes
    if total is None or usable is None or retention_percent >= 100:
        return Bytes(0)
    return Bytes(max(total - usable - retention_percent * total // 100, 0))
