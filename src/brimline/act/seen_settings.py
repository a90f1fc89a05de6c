"""What a device was reclaimed by last, in a file: a change is told from what was there before a restart, too.

::

    reclaim-seen-1-5f3a9c01.json   {"version": 1, "logDir": "/data/a", "settings": "…", "foreignBytes": 1}

**Invariant.** Whatever cannot be read counts as never seen: then a large change is held.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from brimline.decide.reclaim.holding import Seen
from brimline.documents.state_files import read_state_file, write_state_file

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filed:
    version: int = _VERSION
    log_dir: str
    settings: str | None
    foreign_bytes: int | None


class SeenFile:
    """Of one device, named by its first log dir."""

    def __init__(self, folder: Path, node_id: int, log_dir: str) -> None:
        self._log_dir = log_dir
        self.path = folder / f"reclaim-seen-{node_id}-{hashlib.sha256(log_dir.encode()).hexdigest()[:8]}.json"

    def read(self) -> Seen:
        try:
            filed = read_state_file(_Filed, self.path, _VERSION)
        except (OSError, ValueError):
            return Seen()
        return Seen(settings=filed.settings, foreign_bytes=filed.foreign_bytes)

    def write(self, seen: Seen) -> None:
        """Raises ``NotRecorded``. What is there already is not written again."""
        if seen != self.read():
            filed = _Filed(log_dir=self._log_dir, settings=seen.settings, foreign_bytes=seen.foreign_bytes)
            write_state_file(self.path, filed)
