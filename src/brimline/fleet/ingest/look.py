"""Which landed files may be new: a look that costs as much as what has landed lately, not as much as all that is there.

Guards put snapshots down in the order of time, and a snapshot's name begins with its moment. So of a broker's folder
only names matter that are not much older than its **mark**, the newest moment that was taken in; and of the folders of
its days only those from the mark's day on are opened. What comes in another order (a second writer for one broker, a
copy of an old folder) is found when everything is looked through, once an hour.

Names are a hint. Whether a file is known is for the tables to say.
"""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pyarrow as pa
from pyarrow import fs

from brimline.fleet.session.errors import LandingFailed, said_by_store
from brimline.fleet.tables.landing_paths import below
from brimline.landing.file_systems import file_system
from brimline.landing.header import DAY, ROOT, SUFFIX
from brimline.model.reclaim import AN_HOUR_MS

LOOK_THROUGH_MS = AN_HOUR_MS
_BEFORE_MARK_MS = AN_HOUR_MS
"""Clocks are believed up to an hour: a mark may be that much too late."""
_LISTED_AT_ONCE = 8
"""As many connections as pyarrow has to a store."""
_NAME = re.compile(rf"(\d{{13}})-[0-9a-f]+\{SUFFIX}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedFile:
    path: str
    """As ``pyarrow.fs`` opens it, and as the tables keep it."""
    folder: str
    """Of its broker, below the landing place; whatever it is for files that lie elsewhere."""
    moment_ms: int | None
    """By its name."""

    @property
    def day(self) -> date | None:
        return None if self.moment_ms is None else datetime.fromtimestamp(self.moment_ms / 1000, UTC).date()


def has_landed(landing: str) -> bool:
    """Whether there is anything to list; a place that does not exist at all is a mistake."""
    try:
        files, root = file_system(landing)
        found = files.get_file_info([root, f"{root.rstrip('/')}/{ROOT}"])
    except (OSError, pa.ArrowException, ValueError) as error:
        raise _failed(landing, error) from error
    place, snapshots = (bool(info.type != fs.FileType.NotFound) for info in found)
    if not place and not snapshots:
        raise LandingFailed(f"no landing place {landing}: give the one that the guards write to")
    return snapshots


def look_through(landing: str) -> list[LandedFile]:
    """Every file, by day and name."""
    return _sorted(_Place(landing).all())


def look_for_new(landing: str, marks_ms: Mapping[str, int]) -> list[LandedFile]:
    """Files that came after the marks, and some before."""
    return _sorted(_Place(landing).after(marks_ms))


def _sorted(files: Iterator[LandedFile]) -> list[LandedFile]:
    """Day by day: whoever writes rows has one day's files open at a time."""
    return sorted(files, key=lambda each: (each.day or date.min, each.path))


class _Place:
    """Raises ``LandingFailed``."""

    def __init__(self, landing: str) -> None:
        self._landing = landing
        self._files, root = file_system(landing)
        self._root = root.rstrip("/")

    def all(self) -> Iterator[LandedFile]:
        return map(self._landed, (each for each in self._listed(ROOT, recursive=True) if self._is_snapshot(each)))

    def after(self, marks_ms: Mapping[str, int]) -> Iterator[LandedFile]:
        clusters = self._listed(ROOT)
        brokers = [broker for cluster in clusters for broker in self._folder(cluster)]
        yield from map(self._landed, filter(self._is_snapshot, (*clusters, *brokers)))
        # An object store takes some 20 ms for an answer, whatever it is asked
        with ThreadPoolExecutor(_LISTED_AT_ONCE) as pool:
            for found in pool.map(lambda broker: list(self._of_broker(broker, marks_ms)), brokers):
                yield from found

    def _of_broker(self, broker: fs.FileInfo, marks_ms: Mapping[str, int]) -> Iterator[LandedFile]:
        since_ms = marks_ms.get(self._name(broker), 0) - _BEFORE_MARK_MS
        since = datetime.fromtimestamp(max(since_ms, 0) / 1000, UTC).date().isoformat()
        for entry in self._folder(broker):
            is_earlier = DAY.fullmatch(entry.base_name) is not None and entry.base_name < since
            within = [] if is_earlier else self._folder(entry, recursive=True)
            for each in (entry, *within):
                landed = self._landed(each) if self._is_snapshot(each) else None
                if landed is not None and (landed.moment_ms is None or landed.moment_ms > since_ms):
                    yield landed

    def _folder(self, info: fs.FileInfo, *, recursive: bool = False) -> list[fs.FileInfo]:
        name = self._name(info)
        is_listed = info.type == fs.FileType.Directory and not _is_unfinished(name)
        return self._listed(name, recursive=recursive) if is_listed else []

    def _listed(self, name: str, *, recursive: bool = False) -> list[fs.FileInfo]:
        selector = fs.FileSelector(f"{self._root}/{name}", allow_not_found=True, recursive=recursive)
        try:
            found: list[fs.FileInfo] = self._files.get_file_info(selector)
        except (OSError, pa.ArrowException) as error:
            raise _failed(self._landing, error) from error
        return found

    def _is_snapshot(self, info: fs.FileInfo) -> bool:
        name = self._name(info)
        is_named = name.endswith(SUFFIX) and not info.base_name.startswith("_")
        return bool(info.is_file) and is_named and not _is_unfinished(name)

    def _name(self, info: fs.FileInfo) -> str:
        return str(info.path).removeprefix(self._root).lstrip("/")

    def _landed(self, info: fs.FileInfo) -> LandedFile:
        named = _NAME.fullmatch(info.base_name)
        return LandedFile(
            path=below(self._landing, self._root, info.path),
            folder="/".join(self._name(info).split("/")[:3]),
            moment_ms=None if named is None else int(named[1]),
        )


def _is_unfinished(name: str) -> bool:
    """What begins with a dot or a line is somebody's who has not finished.

    But for the folder of a cluster: the ids of one cluster in 64 begin with a line.
    """
    parts = name.split("/")
    return any(part.startswith(".") for part in parts) or any(part.startswith("_") for part in parts[2:])


def _failed(landing: str, error: Exception) -> LandingFailed:
    return LandingFailed(f"the landing place {landing} cannot be listed: {said_by_store(landing, error)}")
