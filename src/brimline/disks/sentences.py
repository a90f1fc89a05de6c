"""The guard's findings in plain words, for its log, ``--check``, ``status`` and the gateway. One wording for all."""

import shlex

from brimline.decide import admission
from brimline.decide.disk_state import Breach, DiskState
from brimline.disks.task import DiskReport, VolumeStatus, space_of
from brimline.documents.gateway_state import StandingFence
from brimline.model import human_bytes, human_count, human_percent, used_percent


def named_log_dirs(volume: VolumeStatus) -> str:
    return ", ".join(volume.log_dirs)


def log_dirs_online(volume: VolumeStatus) -> list[str]:
    """Room on a volume is none for a log dir that the broker holds offline."""
    return [path for path in volume.log_dirs if path not in volume.offline]


def how_full(volume: VolumeStatus) -> str:
    total, usable = volume.reading.total_bytes, volume.reading.usable_bytes
    if total is None or usable is None:
        return str(volume.reading.failure)
    return f"{human_percent(used_percent(total, usable))} used, {human_bytes(usable)} usable of {human_bytes(total)}"


def why_full(volume: VolumeStatus) -> str:
    limits = volume.limits
    if volume.reading.failure is not None:
        return "full when it last answered, and treated as full until it answers again"
    if not volume.breaches:
        return f"not yet below its limits by the release margin of {limits.release_margin_percent} %"
    words = {
        Breach.MAX_USED_PERCENT: f"more than {limits.max_used_percent} % is used ({Breach.MAX_USED_PERCENT.value})",
        Breach.MIN_FREE_BYTES: (
            f"less than {human_bytes(limits.min_free_bytes)} is usable ({Breach.MIN_FREE_BYTES.value})"
        ),
        Breach.RESERVE: (
            f"less than {human_bytes(limits.reserve)} is usable, the reserve for what Kafka may still write there"
        ),
        Breach.INODES: (
            f"{human_count(volume.reading.usable_files or 0)} inodes are left, fewer than "
            f"{human_count(limits.min_free_files)}"
        ),
    }
    return " and ".join(words[breach] for breach in volume.breaches)


def state_sentence(volume: VolumeStatus) -> str:
    several = len(volume.log_dirs) > 1
    if volume.state is DiskState.FULL:
        be = "are" if several else "is"
        return f"{named_log_dirs(volume)} {be} full: {why_full(volume)}; {how_full(volume)}"
    if volume.state is DiskState.UNKNOWN:
        return f"{named_log_dirs(volume)} cannot be read, so writes to it are not refused: {volume.reading.failure}"
    places = log_dirs_online(volume)
    return f"{', '.join(places)} {'have' if len(places) > 1 else 'has'} room: {how_full(volume)}"


def reasons_of_full_log_dirs(report: DiskReport) -> dict[str, str]:
    """Every full log dir, and what refused clients are told of it: the same, whether guard or gateway decided it."""
    reasons: dict[str, str] = {}
    for volume in report.volumes:
        if volume.fullness is DiskState.FULL:
            space = space_of(volume.reading)
            reasons |= {path: admission.why_full(path, space, volume.limits) for path in volume.log_dirs}
    return reasons


def would_do(volume: VolumeStatus, *, enforced: bool) -> list[str]:
    """What KIP-1201 does about this volume now, or would do."""
    act = refusal(volume, enforced=enforced)
    return [] if act is None else [act]


def enforcement_sentence(*, enforced: bool) -> str:
    if enforced:
        return "enforcing: the gateway refuses writes to full log dirs"
    return "observe mode: reports, refuses nothing"


def refusal(volume: VolumeStatus, *, enforced: bool) -> str | None:
    """``enforced``: there is a gateway to do it, and ``brimline.enforcement`` tells it to."""
    if volume.state is not DiskState.FULL:
        return None
    if enforced:
        return f"writes to {named_log_dirs(volume)} are refused"
    return f"would refuse writes to {named_log_dirs(volume)} (observe mode)"


OFFLINE_CURE = "make room on it, then restart the broker: until then nothing is written or read there"


def how_to_lift(fence: StandingFence, config_path: str) -> str:
    """What the person who meets a fence should do."""
    if fence.cause is admission.FenceCause.MANUAL:
        target = (
            f"--topic {shlex.quote(fence.topic or '')}"
            if fence.log_dir is None
            else f"--log-dir {shlex.quote(fence.log_dir)}"
        )
        return f"lift it with: brimline unfence --config {shlex.quote(config_path)} {target}"
    return (
        f"make room: brimline topics --config {shlex.quote(config_path)} shows what fills it; lower the retention "
        "of a topic, delete a topic or move replicas; the fence lifts automatically when the disk has room"
    )
