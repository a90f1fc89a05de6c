"""Sizes of single partitions' logs, and how fast they are appended to: a quick look at a few folders.

What was appended is told from the segments: the active one that was there grew to its end, and newer ones are new. So
neither deletion nor compaction looks like less.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_LOG, _INTERVALS = ".log", 30
_SHORTEST = 5.0
"""Seconds: a rate over less would be one burst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSize:
    """Of the ``.log`` files of a partition. ``active`` is the newest one's name."""

    bytes: int = 0
    largest: int = 0
    active: str = ""
    segments: tuple[tuple[str, int], ...] = ()


NO_LOG = LogSize()


def log_size(folder: str) -> LogSize:
    """A folder that is gone has none. Of a file that is allocated ahead (``preallocate``) what is in it counts."""
    segments = _sizes(folder, lambda name: name.endswith(_LOG))
    if not segments:
        return NO_LOG
    sizes = [size for _, size in segments]
    return LogSize(bytes=sum(sizes), largest=max(sizes), active=segments[-1][0], segments=tuple(segments))


def folder_bytes(folder: str) -> int:
    return sum(size for _, size in _sizes(folder, lambda _: True))


def largest_file(folder: str, ending: str) -> int:
    return max((size for _, size in _sizes(folder, lambda name: name.endswith(ending))), default=0)


def folder_names(log_dir: str) -> list[str]:
    """Empty where it cannot be listed."""
    try:
        return os.listdir(log_dir)  # noqa: PTH208  names are enough
    except OSError:
        return []


class AppendRates:
    """The fastest of each log's lately, in bytes a second. For one thread."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[float, LogSize]] = {}
        self._rates: dict[str, deque[float]] = {}

    def look(self, folder: str, size: LogSize, seconds: float) -> float:
        then = self._before.get(folder)
        rates = self._rates.setdefault(folder, deque(maxlen=_INTERVALS))
        if then is None:
            self._before[folder] = (seconds, size)
        elif seconds - then[0] >= _SHORTEST:
            rates.append(_appended(then[1], size) / (seconds - then[0]))
            self._before[folder] = (seconds, size)
        return max(rates, default=0.0)

    def forget_others(self, folders: Iterable[str]) -> None:
        kept = set(folders)
        self._before = {folder: found for folder, found in self._before.items() if folder in kept}
        self._rates = {folder: found for folder, found in self._rates.items() if folder in kept}


def _appended(before: LogSize, now: LogSize) -> int:
    was = dict(before.segments).get(before.active, 0)
    return max(sum(size for name, size in now.segments if name >= before.active) - was, 0)


def _sizes(folder: str, is_wanted: Callable[[str], bool]) -> list[tuple[str, int]]:
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if is_wanted(entry.name):
                    try:
                        facts = entry.stat()
                        found.append((entry.name, min(facts.st_size, facts.st_blocks * 512) or facts.st_size))
                    except FileNotFoundError:
                        continue  # gone since it was listed
    except OSError:
        return []
    return sorted(found)
