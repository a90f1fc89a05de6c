"""What the clock said when a guard looked last: so that one that has jumped since is noticed at the next start.

::

    clock-1.json   {"version": 1, "bootId": "…", "bootSeconds": 86400.5, "timeMs": 1767225600000}

Within one boot the time of day must have gone on as ``CLOCK_BOOTTIME`` has. After another boot it has gone on by the
time since then at least. ``decide.reclaim.bounds.begins_at`` says what follows, and who else is asked. A person who
knows that the clock is right removes the file.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from brimline.documents.state_files import read_state_file, write_state_file

VERSION = 1
_MOST_A_SECOND = 1001
"""Milliseconds: twice what a clock may be slewed by."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    id: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filed:
    version: int = VERSION
    boot_id: str
    boot_seconds: float
    time_ms: int


def boot_of_host() -> Boot:
    return Boot(id=_BOOT_ID.read_text().strip(), seconds=time.clock_gettime(time.CLOCK_BOOTTIME))


class ClockMemory:
    """``writes``: else nothing is filed, as for a dry run. What cannot be read counts as never seen."""

    def __init__(self, folder: Path, node_id: int, *, writes: bool, boot: Callable[[], Boot] = boot_of_host) -> None:
        self.path = folder / f"clock-{node_id}.json"
        self._writes = writes
        self._boot = boot
        self.is_filed = False

    def expected_ms(self) -> int | None:
        """What the clock should say now, at least."""
        try:
            filed = read_state_file(_Filed, self.path, VERSION)
        except (OSError, ValueError):
            return None
        boot = self._boot()
        passed = boot.seconds - (filed.boot_seconds if boot.id == filed.boot_id else 0.0)
        return filed.time_ms + int(passed * _MOST_A_SECOND)

    def write(self, time_ms: int) -> None:
        """Raises ``NotRecorded``."""
        if self._writes:
            boot = self._boot()
            write_state_file(self.path, _Filed(boot_id=boot.id, boot_seconds=boot.seconds, time_ms=time_ms))
            self.is_filed = True
