"""The reserve of each volume, on disk: the guard works it out, and guard and gateway judge their volumes by it.

::

    reserve-1.json   {"version": 1, "volumes": [{"logDirs": ["/data/a"], "bytes": 1610612736, "fewestFiles": 10000,
                      "isInForce": true, "areFilesInForce": true, "parts": [{"what": "cleaner", …}]}],
                      "offsets": {"partitions": 50, "led": [0, 3]}}

**Invariant.** Guard and gateway each read the file themselves, so each has the same limits when the other is down, and
after a restart. What cannot be read leaves what was read before; with nothing read the operator's two limits count.

**Careful.** A volume that had less than its reserve when it was first seen is not fenced for it until it has had room,
or a person says so (``brimline.disk.reserve=on``): whoever installs this must not find writes refused that were not.
While a volume is full its reserve only rises: a fence must not open because its own limit fell. It does not fall
either until a guard that has just been started has measured how fast the coordinators write.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from brimline.decide.commits import OffsetsTopic
from brimline.decide.disk_state import DiskLimits, DiskState
from brimline.decide.unfenced_writes import (
    ReservePart,
    UnfencedWriters,
    fewest_files,
    reserve_bytes,
    reserve_parts,
)
from brimline.disks.task import VolumeStatus
from brimline.documents.state_files import read_state_file, write_state_file
from brimline.model import Bytes
from brimline.observe.volumes import VolumeReading
from brimline.settings import keys

_VERSION = 1
_MOST_OF_VOLUME = 2
"""A reserve is never more than one part in so many of a volume: it could never be let go again."""
_FALLS_BELOW = 0.8
"""A reserve follows what it is worked out from upwards at once, and downwards when it is this part of what it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeReserve:
    log_dirs: tuple[str, ...]
    bytes: Bytes = Bytes(0)  # noqa: RUF009 (a number)
    fewest_files: int = 0
    is_in_force: bool = False
    are_files_in_force: bool = False
    parts: tuple[ReservePart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filed:
    version: int = _VERSION
    volumes: tuple[VolumeReserve, ...] = ()
    offsets: OffsetsTopic | None = None


class Reserves:
    """``choice`` is what ``brimline.disk.reserve`` says now. ``offsets`` is for the line below which commits are
    refused. Replaced whole, so any thread may read ``volumes`` and ``offsets``."""

    def __init__(self, state_dir: Path, node_id: int, choice: Callable[[], str]) -> None:
        self.path = state_dir / f"reserve-{node_id}.json"
        self.volumes: tuple[VolumeReserve, ...] = ()
        self.offsets: OffsetsTopic | None = None
        self.problem: str | None = None
        self._choice = choice
        self._seen: tuple[int, int] | None = None

    def refresh(self) -> bool:
        """Read the file if it has changed; whether the reserves are others now. It may wait for the state dir."""
        try:
            facts = os.stat(self.path)  # noqa: PTH116 (asked twice a second)
            seen = (facts.st_ino, facts.st_mtime_ns)
            if seen == self._seen:
                return False
            filed = read_state_file(_Filed, self.path, _VERSION)
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:
            self.problem = f"{self.path} cannot be read: {error}"
            return False
        is_news = filed.volumes != self.volumes
        self.volumes, self.offsets, self.problem, self._seen = filed.volumes, filed.offsets, None, seen
        return is_news

    def write(self, volumes: Sequence[VolumeReserve], offsets: OffsetsTopic | None = None) -> None:
        """They count from now on, on record or not. Raises ``NotRecorded``; what is there already is not written."""
        wanted = tuple(volumes), offsets
        if wanted == (self.volumes, self.offsets) and self.problem is None and self.path.exists():
            return
        self.volumes, self.offsets = wanted
        self.problem = f"{self.path} could not be written"
        write_state_file(self.path, _Filed(volumes=self.volumes, offsets=offsets))
        self.problem = None

    def limits_of(self, reading: VolumeReading, limits: DiskLimits) -> DiskLimits:
        """The operator's limits with what is in force of this volume's reserve."""
        found, choice = self.of(reading.log_dirs), self._choice()
        if found is None or choice == keys.OFF:
            return limits
        is_wanted = choice == keys.ON
        return replace(
            limits,
            reserve=found.bytes if (found.is_in_force or is_wanted) and not limits.are_off else Bytes(0),
            min_free_files=found.fewest_files if found.are_files_in_force or is_wanted else 0,
        )

    def of(self, log_dirs: Iterable[str]) -> VolumeReserve | None:
        wanted = set(log_dirs)
        return next((each for each in self.volumes if wanted.intersection(each.log_dirs)), None)


def next_reserve(
    volume: VolumeStatus, writers: UnfencedWriters, before: VolumeReserve | None, most_usable: Bytes | None = None
) -> VolumeReserve:
    """What the guard makes of a volume whose reading did not fail.

    ``most_usable``: what a volume that was not known before has had since. It is given for as long as what is written
    there is still being measured: only then it shows whether that was less than the reserve.
    """
    reading = volume.reading
    parts = reserve_parts(writers)
    wanted = Bytes(min(reserve_bytes(parts), (reading.total_bytes or 0) // _MOST_OF_VOLUME))
    files = 0 if reading.total_files is None else fewest_files(reading.total_files, writers.partitions)
    is_full = volume.fullness is DiskState.FULL
    if before is not None:
        stays = is_full or not writers.is_measured or wanted >= before.bytes * _FALLS_BELOW
        if wanted <= before.bytes and stays:
            parts, wanted = before.parts, before.bytes
        files = max(files, before.fewest_files) if is_full else files
    was_in_force = most_usable is None and before is not None and before.is_in_force
    has_room = max(reading.usable_bytes or 0, most_usable or 0) >= wanted
    has_files = reading.usable_files is None or reading.usable_files >= files
    return VolumeReserve(
        log_dirs=volume.log_dirs,
        bytes=wanted,
        fewest_files=files,
        is_in_force=has_room or was_in_force,
        are_files_in_force=has_files or (before is not None and before.are_files_in_force),
        parts=parts,
    )
