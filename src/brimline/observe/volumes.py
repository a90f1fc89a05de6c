"""The volumes under a broker's log dirs, asked of the file system itself.

A log dir is looked at with one ``stat`` (on which device is it?) and one ``statvfs`` (how much room is there?). Log
dirs on one device are one volume. Both calls may hang for ever on a dead network file system, so whoever calls
``look_at`` must be able to spare the thread; see ``disks.task``.

A volume that is unmounted often does not look like an error: the empty mount point is still there, on the root file
system, with plenty of room. So a log dir that has changed its device counts as gone, unless Kafka's own
``meta.properties`` is there to say that this is the log dir after all (a volume replaced by another).
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from brimline.model import Bytes, Failure, FailureKind

META_PROPERTIES = "meta.properties"
LARGEST = 2**63 - 1
"""Kafka replaces what does not fit a long by its largest value."""
_MOUNT_TABLE = Path("/proc/self/mountinfo")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirReading:
    """One look at one log dir. Times are on the monotonic clock; ``device`` is ``major:minor``.

    ``seconds`` is when the look began, ``answered`` when the file system last answered, ``took`` how long that took.
    ``reserved_bytes`` are free but kept back for root. ``total_files`` and ``usable_files`` are its inodes, ``None``
    where the file system does not count them (btrfs says 0). After a failure ``device`` is the last known one, if any.
    """

    path: str
    observed_at: datetime
    seconds: float
    device: str | None = None
    total_bytes: Bytes | None = None
    usable_bytes: Bytes | None = None
    reserved_bytes: Bytes | None = None
    total_files: int | None = None
    usable_files: int | None = None
    failure: Failure | None = None
    answered: float | None = None
    took: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeReading:
    """One volume, with the log dirs on it; the bytes are ``None`` exactly when ``failure`` says why."""

    device: str
    log_dirs: tuple[str, ...]
    total_bytes: Bytes | None
    usable_bytes: Bytes | None
    reserved_bytes: Bytes | None
    observed_at: datetime
    seconds: float
    total_files: int | None = None
    usable_files: int | None = None
    failure: Failure | None = None
    answered: float | None = None
    took: float | None = None


def look_at(path: str, known_device: str | None, observed_at: datetime, seconds: float) -> LogDirReading:
    """Ask the file system. What it refuses to answer becomes the reading's failure."""
    try:
        device = _device(os.stat(path).st_dev)  # noqa: PTH116 (the caller's own string, never normalised)
        if known_device not in (None, device) and not Path(path, META_PROPERTIES).exists():
            return _failed(path, known_device, observed_at, seconds, _moved(path, known_device, device))
        facts = os.statvfs(path)
    except OSError as error:
        return _failed(path, known_device, observed_at, seconds, _failure_of(path, error))
    return LogDirReading(
        path=path,
        observed_at=observed_at,
        seconds=seconds,
        device=device,
        total_bytes=Bytes(min(facts.f_blocks * facts.f_frsize, LARGEST)),
        usable_bytes=Bytes(min(facts.f_bavail * facts.f_frsize, LARGEST)),
        reserved_bytes=Bytes(max(facts.f_bfree - facts.f_bavail, 0) * facts.f_frsize),
        total_files=facts.f_files or None,
        usable_files=facts.f_favail if facts.f_files else None,
    )


def stalled(path: str, device: str | None, observed_at: datetime, seconds: float, waited: float) -> LogDirReading:
    """The reading of a log dir whose file system does not answer."""
    message = f"the file system under {path} has not answered for {waited:.0f} s: is it a dead network mount?"
    return _failed(path, device, observed_at, seconds, Failure(kind=FailureKind.STALLED, message=message))


def by_volume(readings: Iterable[LogDirReading]) -> tuple[VolumeReading, ...]:
    """Log dirs on one device are one volume, with its newest reading.

    A log dir that could not be read stands alone, so that it cannot hide behind a neighbour that could.
    """
    volumes: dict[tuple[str, str], list[LogDirReading]] = {}
    for reading in readings:
        alone = reading.path if reading.failure is not None or reading.device is None else ""
        volumes.setdefault((reading.device or "unknown", alone), []).append(reading)
    return tuple(_volume(device, members) for (device, _), members in volumes.items())


def mount_points() -> Mapping[str, str]:
    """Device → where it is mounted, for people; empty where the system does not tell."""
    try:
        table = _MOUNT_TABLE.read_text(errors="replace")
    except OSError:
        return {}
    points: dict[str, str] = {}
    for line in table.splitlines():
        fields = line.split(" ")
        points.setdefault(fields[2], fields[4].replace("\\040", " "))
    return points


def _volume(device: str, members: list[LogDirReading]) -> VolumeReading:
    newest = max(members, key=lambda reading: reading.seconds)
    return VolumeReading(
        device=device,
        log_dirs=tuple(reading.path for reading in members),
        total_bytes=newest.total_bytes,
        usable_bytes=newest.usable_bytes,
        reserved_bytes=newest.reserved_bytes,
        total_files=newest.total_files,
        usable_files=newest.usable_files,
        observed_at=newest.observed_at,
        seconds=newest.seconds,
        failure=newest.failure,
        answered=newest.answered,
        took=newest.took,
    )


def device_of(path: str) -> str | None:
    """``None`` where it cannot be told."""
    try:
        return _device(os.stat(path).st_dev)  # noqa: PTH116
    except OSError:
        return None


def _device(number: int) -> str:
    return f"{os.major(number)}:{os.minor(number)}"


def _failed(path: str, device: str | None, observed_at: datetime, seconds: float, failure: Failure) -> LogDirReading:
    return LogDirReading(path=path, observed_at=observed_at, seconds=seconds, device=device, failure=failure)


def _moved(path: str, was: str | None, now: str) -> Failure:
    return Failure(
        kind=FailureKind.GONE,
        message=f"{path} was on device {was} and is now on {now}, without {META_PROPERTIES}: its volume is not mounted",
    )


def _failure_of(path: str, error: OSError) -> Failure:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Failure(kind=FailureKind.GONE, message=f"{path} does not exist: is its volume mounted?")
    if isinstance(error, PermissionError):
        return Failure(
            kind=FailureKind.UNREADABLE,
            message=f"no permission to read {path}: this user needs search permission (x) on every folder above it",
        )
    return Failure(kind=FailureKind.UNREADABLE, message=f"{path} cannot be read: {error.strerror}")
