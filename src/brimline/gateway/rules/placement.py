"""In which log dir is a partition now? Asked for every batch while something is fenced, so it is known beforehand.

**Invariant.** A ``Placement`` never changes; the watch replaces it whole, so a reader sees one moment of the log dirs
and takes no lock. It holds the current log of each partition: a folder without suffix. Folders on their way in
(``-future``) or out (``-delete``, ``-stray``) take no writes from clients. A log dir that cannot be listed keeps what
was last known of it, and is named among the problems.

**When a log dir is listed.** Whatever is created, renamed or removed in a log dir changes its modification time, so a
look is one ``stat`` while that stays the same. Two changes within one tick of the file system's clock leave one time,
and a listing may fall between them. So after a time is first seen, the log dir is listed once more when that tick is
over for certain: what changes then gets another time.

**What is remembered of a folder** is its topic id, which stands in a file that appears moments after the folder.
A folder is the one of before if its name, inode and change time are. The name and the inode alone would not do: a topic
that was deleted and created again has the old name, may well have the old inode, and has another id.

A move ends with two renames, in two log dirs, and for a moment both have the partition without suffix. The broker
writes to the one that was renamed last, which its change time tells.
"""

import os
import stat
import threading
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from brimline.decide.admission import EXEMPT_TOPICS
from brimline.model.scan import FolderKind
from brimline.observe.scan.batch import read_topic_id
from brimline.observe.scan.names import FolderName, read_folder_name

TICK_SECONDS = 0.05
"""Longer than a tick of any kernel's clock, which is 10 ms at most."""
COARSE_TICK_SECONDS = 2.0
"""The same for file systems that keep whole seconds, or every other one."""
ID_PATIENCE_SECONDS = 60.0
"""How long to try for a topic id at every look. Brokers before 2.8 never write one; should it come later after all,
the folder's change time gives it away at the next listing."""

_SECOND_NS = 1_000_000_000
_KEPT = (FolderKind.CURRENT, FolderKind.FUTURE)
_NO_TOPICS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placement:
    """Where everything is, at one moment. Log dirs are named as they were given."""

    log_dirs: Mapping[tuple[str, int], str] = field(default_factory=dict)
    names: Mapping[UUID, str] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """For each log dir, how many partitions of which topic."""
    with_unknown_ids: frozenset[str] = frozenset()
    """Log dirs with a partition whose topic id is not known, or not yet."""

    def log_dir_of(self, topic: str, partition: int) -> str | None:
        return self.log_dirs.get((topic, partition))

    def name_of(self, topic_id: UUID) -> str | None:
        return self.names.get(topic_id)

    def topics_in(self, log_dir: str) -> Mapping[str, int]:
        return self.topics.get(log_dir, _NO_TOPICS)

    def partitions_in(self, log_dir: str) -> int:
        """Those for which a fence refuses Produce."""
        return sum(count for topic, count in self.topics_in(log_dir).items() if topic not in EXEMPT_TOPICS)

    def partitions_of(self, topic: str) -> int:
        return sum(topics.get(topic, 0) for topics in self.topics.values())


class PlacementWatch:
    """Keeps ``placement`` up to date, by being asked to look.

    A file system that hangs holds up its own look only, if every log dir is refreshed by a thread of its own.
    """

    def __init__(self, log_dirs: Iterable[str], seconds: Callable[[], float] = time.monotonic) -> None:
        self.placement = Placement()
        self._seconds = seconds
        self._log_dirs = {path: _LogDir(path) for path in log_dirs}
        self._replacing = threading.Lock()

    @property
    def problems(self) -> dict[str, str]:
        """A sentence for each log dir of which something could not be read."""
        return {path: log_dir.problem for path, log_dir in self._log_dirs.items() if log_dir.problem is not None}

    def refresh(self, *log_dirs: str) -> bool:
        """Look at these log dirs, or at all of them; whether the placement is another one now."""
        now = self._seconds()
        looked_at = [self._log_dirs[path] for path in log_dirs or self._log_dirs]
        has_changed = [log_dir.refresh(now) for log_dir in looked_at]
        if not any(has_changed):
            return False
        with self._replacing:
            self.placement = _together(self._log_dirs.values())
        return True


class _Identity(NamedTuple):
    inode: int
    changed_ns: int


@dataclass(slots=True, kw_only=True, eq=False)
class _Folder:
    what: FolderName
    identity: _Identity
    found: float
    topic_id: UUID | None = None
    may_not_be_read: bool = False


class _LogDir:
    """What is remembered of one log dir. Used by one thread at a time; ``folders`` is replaced and never changed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.folders: Mapping[str, _Folder] = {}
        self.problem: str | None = None
        self._modified_ns: int | None = None
        self._modified_seen = 0.0
        self._is_settled = False
        self._without_id: dict[str, _Folder] = {}

    def refresh(self, now: float) -> bool:
        """Whether anything has changed that a ``Placement`` tells."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            return self._cannot_be_listed(error)
        try:
            return self._look(fd, now)
        except OSError as error:
            return self._cannot_be_listed(error)
        finally:
            os.close(fd)

    def _cannot_be_listed(self, error: OSError) -> bool:
        self.problem = f"{self.path} cannot be listed ({error.strerror}): its partitions are assumed unchanged"
        self._modified_ns = None
        return False

    def _look(self, fd: int, now: float) -> bool:
        modified_ns = os.fstat(fd).st_mtime_ns
        if modified_ns != self._modified_ns:
            self._modified_seen, self._is_settled = now, False
        elif not self._is_settled and now - self._modified_seen >= _tick(modified_ns):
            self._is_settled = True
        else:
            return self._try_for_ids(fd, now)
        # Known only after the listing, so that one that fails is made again.
        self._modified_ns = None
        changed = self._list(fd, now)
        self._modified_ns = modified_ns
        return changed

    def _list(self, fd: int, now: float) -> bool:
        before, folders = self.folders, _folders_in(fd, self.folders, now)
        ids_before = {name: folder.topic_id for name, folder in before.items()}
        self._without_id = {
            name: folder
            for name, folder in folders.items()
            if folder.what.kind is FolderKind.CURRENT
            and (folder is not before.get(name) or folder.may_not_be_read or name in self._without_id)
        }
        self.folders = folders
        self._try_for_ids(fd, now)
        self.problem = self._ids_that_may_not_be_read()
        # Not the folders themselves: a segment that is rolled changes a folder's time, and nothing that matters here.
        return ids_before != {name: folder.topic_id for name, folder in folders.items()}

    def _try_for_ids(self, fd: int, now: float) -> bool:
        """Whether one was found."""
        found = False
        for name, folder in list(self._without_id.items()):
            path = f"{name}/partition.metadata"
            text = read_topic_id(fd, path)
            folder.topic_id = None if text is None else UUID(bytes=urlsafe_b64decode(text + "=="))
            folder.may_not_be_read = text is None and _may_not_be_read(fd, path)
            found = found or text is not None
            if text is not None or now - folder.found >= ID_PATIENCE_SECONDS:
                del self._without_id[name]
        return found

    def _ids_that_may_not_be_read(self) -> str | None:
        closed = [name for name, folder in self.folders.items() if folder.may_not_be_read]
        if not closed:
            return None
        return (
            f"{self.path}: no permission to read the topic id in {len(closed)} folders (such as {min(closed)}): "
            "clients of Kafka 4, which produce by topic id, are not refused there"
        )


def _folders_in(fd: int, before: Mapping[str, _Folder], now: float) -> dict[str, _Folder]:
    """What is as it was before keeps its ``_Folder``."""
    folders = {}
    with os.scandir(fd) as entries:
        for entry in entries:
            known = before.get(entry.name)
            what = known.what if known is not None else read_folder_name(entry.name)
            identity = _identity(entry) if what.kind in _KEPT else None
            if identity is None:
                continue
            if known is None or known.identity != identity:
                known = _Folder(what=what, identity=identity, found=now)
            folders[entry.name] = known
    return folders


def _identity(entry: "os.DirEntry[str]") -> _Identity | None:
    """``None`` for what is no folder, or gone. Links are followed, as Kafka does."""
    try:
        status = entry.stat()
    except OSError:
        return None
    return _Identity(status.st_ino, status.st_ctime_ns) if stat.S_ISDIR(status.st_mode) else None


def _may_not_be_read(fd: int, path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=fd))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _tick(modified_ns: int) -> float:
    """A time with a fraction of a second is from a file system that goes by the kernel's clock."""
    return TICK_SECONDS if modified_ns % _SECOND_NS else COARSE_TICK_SECONDS


def _together(log_dirs: Iterable[_LogDir]) -> Placement:
    places: dict[tuple[str, int], tuple[int, str]] = {}
    names: dict[UUID, str] = {}
    topics: dict[str, dict[str, int]] = {}
    unknown_ids: set[str] = set()
    for log_dir in log_dirs:
        topics[log_dir.path] = {}
        for folder in log_dir.folders.values():
            topic, partition = folder.what.topic, folder.what.partition
            if topic is None or folder.what.kind is FolderKind.FUTURE:
                continue
            place = folder.identity.changed_ns, log_dir.path
            other = places.setdefault((topic, partition), place)
            if other[0] < place[0]:
                places[topic, partition] = place
            if folder.topic_id is None:
                unknown_ids.add(log_dir.path)
            else:
                names[folder.topic_id] = topic
    for (topic, _), (_, path) in places.items():
        topics[path][topic] = topics[path].get(topic, 0) + 1
    return Placement(
        log_dirs={partition: path for partition, (_, path) in places.items()},
        names=names,
        topics=topics,
        with_unknown_ids=frozenset(unknown_ids),
    )
