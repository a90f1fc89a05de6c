"""Whether a ballast can be made, and whether its size makes sense. Pure but for the question who may write."""

import os
from collections.abc import Iterator
from pathlib import Path

from brimline.decide.ballast import BallastDecision, BallastRule, decide_ballast
from brimline.decide.disk_state import Space
from brimline.disks.sentences import named_log_dirs
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.documents.notices import Weight
from brimline.guard.feature import Finding
from brimline.model import Bytes, human_bytes, human_percent
from brimline.observe.scan.names import BALLAST
from brimline.observe.volumes import META_PROPERTIES
from brimline.settings import keys
from brimline.settings.config import GuardConfig

TOPIC = "ballast"
_LARGE_PERCENT = 10


def explain_ballast(config: GuardConfig, report: DiskReport) -> Iterator[Finding]:
    rule = BallastRule(size=Bytes(config.number(keys.BALLAST_BYTES)), limits=config.limits)
    if not rule.size:
        return
    yield _finding(
        Weight.FINE,
        f"every volume has a ballast of {human_bytes(rule.size)} ({config.settings[keys.BALLAST_BYTES.name].where}), "
        f"released below {human_bytes(rule.release_below)} usable",
    )
    if not config.pace.fast:
        yield _finding(
            Weight.WARNING,
            f"{keys.FAST_SAMPLING.name} is false: volumes are checked every {config.pace.interval:g} s, which may "
            "be too late for the ballast",
        )
    for volume in report.volumes:
        if volume.reading.failure is None:
            yield from _explain_volume(volume, rule)


def explain_ledger(config: GuardConfig, report: DiskReport) -> Iterator[Finding]:
    """Nothing is deleted that is not on record before: so the record must be possible when a disk is full."""
    deletes = config.has_ceiling and config.text(keys.RECLAIM_MODE) == keys.APPLY
    if not deletes and not config.number(keys.BALLAST_BYTES):
        return
    named = f"{keys.STATE_DIR.name}={config.state_dir}"
    place = next((path for path in (config.state_dir, *config.state_dir.parents) if path.exists()), Path("/"))
    if not os.access(place, os.W_OK | os.X_OK) or not place.is_dir():
        yield Finding(
            topic="permissions",
            weight=Weight.PROBLEM,
            sentence=f"{named} cannot be written to by this user (uid {os.geteuid()}): without a ledger nothing is "
            "deleted; create the folder for the guard's user, with mode 0700",
        )
        return
    number = place.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    for volume in report.volumes:
        if volume.reading.failure is None and volume.reading.device == device:
            yield Finding(
                topic="reclaim",
                weight=Weight.WARNING,
                sentence=f"{named} is on the same volume as {named_log_dirs(volume)}: when that is full, the ledger "
                "cannot be written and nothing is deleted; put it on another volume",
            )


def _explain_volume(volume: VolumeStatus, rule: BallastRule) -> Iterator[Finding]:
    reading, log_dir = volume.reading, volume.log_dirs[0]
    if reading.total_bytes is None or reading.usable_bytes is None:
        return
    if os.access(log_dir, os.R_OK | os.X_OK) and not Path(log_dir, META_PROPERTIES).exists():
        yield _finding(
            Weight.PROBLEM,
            f"no ballast is made in {log_dir}: it has no {META_PROPERTIES}, so it is not a broker's; is its volume "
            "mounted?",
        )
    if not os.access(log_dir, os.W_OK | os.X_OK):
        yield _finding(
            Weight.PROBLEM,
            f"no ballast can be made in {log_dir}: it cannot be written to by this user (uid {os.geteuid()}); give its "
            f"user write permission on that one folder (setfacl -m u:brimline:rwx {log_dir}), and under systemd name "
            "it in ReadWritePaths=",
        )
    empty = Space(total=reading.total_bytes, usable=Bytes(reading.total_bytes - (reading.reserved_bytes or 0)))
    now = Space(total=reading.total_bytes, usable=reading.usable_bytes)
    share = rule.size * 100 / reading.total_bytes
    if decide_ballast(Bytes(0), empty, rule) is not BallastDecision.ALLOCATE:
        yield _finding(
            Weight.PROBLEM,
            f"{named_log_dirs(volume)}: a ballast of {human_bytes(rule.size)} never fits: the volume of "
            f"{human_bytes(reading.total_bytes)} is too small for it and the limits",
        )
    elif share > _LARGE_PERCENT:
        yield _finding(
            Weight.WARNING,
            f"{named_log_dirs(volume)}: the ballast takes {human_percent(share)} of the volume; what the disk "
            "writes in a few seconds is enough",
        )
    elif not _has_one(volume) and decide_ballast(Bytes(0), now, rule) is not BallastDecision.ALLOCATE:
        yield _finding(Weight.NOTE, f"{named_log_dirs(volume)}: no room for a ballast now")


def _has_one(volume: VolumeStatus) -> bool:
    return any(Path(log_dir, BALLAST).exists() for log_dir in volume.log_dirs)


def _finding(weight: Weight, sentence: str) -> Finding:
    return Finding(topic=TOPIC, weight=weight, sentence=sentence)
