"""Where snapshots wait while the landing place cannot take them: a folder of bounded size.

**Invariant.** The folder never holds more than its bound. When it is full the oldest snapshots go first: the newest
says most about the fleet as it is. What waits is sent in the order in which it was taken, so that nobody sees time run
backwards. Files are whole or not there, as in a landing place.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from brimline.landing.header import NAME

_SLASH = "%2F"
_UNFINISHED = ".unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A snapshot in the spool: its name in the landing place, and where it is now."""

    name: str
    path: Path
    size: int


class Spool:
    """Used by one process at a time. ``OSError`` from its methods means that the folder cannot be used."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit

    def waiting(self) -> list[Waiting]:
        """Oldest first. What a writer that was killed left half-written is removed."""
        if not self._folder.exists():
            return []
        found = []
        for path in self._folder.iterdir():
            name = path.name.replace(_SLASH, "/")
            if path.name.endswith(_UNFINISHED):
                path.unlink(missing_ok=True)
            elif NAME.fullmatch(name):
                found.append(Waiting(name=name, path=path, size=path.stat().st_size))
        return sorted(found, key=lambda each: (each.name.rpartition("/")[2], each.name))

    def add(self, name: str, data: bytes) -> int:
        """Keeps a snapshot, and drops as many old ones as it takes; returns how many, itself included if it is one."""
        if len(data) > self._limit:
            return 1
        dropped = self._make_room(self._limit - len(data))
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / name.replace("/", _SLASH)
        unfinished = path.with_name(path.name + _UNFINISHED)
        try:
            unfinished.unlink(missing_ok=True)
            with unfinished.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            with suppress(OSError):  # the first failure is the one to tell
                unfinished.unlink(missing_ok=True)
            raise
        return dropped

    def remove(self, waiting: Waiting) -> None:
        waiting.path.unlink(missing_ok=True)

    def _make_room(self, left: int) -> int:
        waiting = self.waiting()
        size, dropped = sum(each.size for each in waiting), 0
        for each in waiting:
            if size <= left:
                break
            self.remove(each)
            size -= each.size
            dropped += 1
        return dropped
