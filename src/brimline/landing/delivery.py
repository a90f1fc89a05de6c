"""A snapshot's way out: what waits goes first, then the new one; what cannot go waits, in a folder of bounded size.

**Invariant** of the folder. The folder never holds more than its bound. When it is full the oldest snapshots go first:
the newest says most about the fleet as it is. What waits is sent in the order in which it was taken, so that nobody
sees time run backwards. Files are whole or not there, as in a landing place.

**Invariant** of the delivery. Every snapshot ends in exactly one place: the landing place, the spool, or the count of
those dropped. One that reached the landing place and was not yet removed from the spool when the process died is sent
again: same name, same bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from brimline.landing.header import NAME
from brimline.landing.place import PlaceFailed
from brimline.service.durable_files import put_whole, read_state

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
        unfinished.unlink(missing_ok=True)
        put_whole(path, unfinished, data)
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


Put = Callable[[str, bytes], None]
"""Raises ``PlaceFailed``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    sent: int
    """Snapshots that reached the landing place now, old and new."""
    dropped: int
    waiting: int
    waiting_bytes: int
    failure: str | None
    """Why not everything was sent."""


def deliver(put: Put, spool: Spool, name: str, data: bytes) -> Delivery:
    """A spool that cannot be used keeps nobody from the landing place."""
    sent, failure, problem = _send_waiting(put, spool)
    if failure is None:
        failure = _try(put, name, data)
        sent += failure is None
    dropped = 0
    if failure is not None:
        dropped, kept_not = _keep(spool, name, data)
        problem = kept_not or problem
    waiting, unseen = _left(spool)
    reasons = [reason for reason in (failure, problem or unseen) if reason is not None]
    return Delivery(
        sent=sent,
        dropped=dropped,
        waiting=len(waiting),
        waiting_bytes=sum(waiting),
        failure="; ".join(reasons) or None,
    )


def _send_waiting(put: Put, spool: Spool) -> tuple[int, str | None, str | None]:
    """How many were sent, why the landing place took no more, and why the spool gave no more."""
    sent = 0
    try:
        for each in spool.waiting():
            failure = _try(put, each.name, read_state(each.path))
            if failure is not None:
                return sent, failure, None
            sent += 1
            spool.remove(each)
    except OSError as error:
        return sent, None, _unusable(error)
    return sent, None, None


def _try(put: Put, name: str, data: bytes) -> str | None:
    try:
        put(name, data)
    except PlaceFailed as failed:
        return str(failed)
    return None


def _keep(spool: Spool, name: str, data: bytes) -> tuple[int, str | None]:
    try:
        return spool.add(name, data), None
    except OSError as error:
        return 1, _unusable(error)


def _left(spool: Spool) -> tuple[list[int], str | None]:
    try:
        return [each.size for each in spool.waiting()], None
    except OSError as error:
        return [], _unusable(error)


def _unusable(error: OSError) -> str:
    return f"the spool cannot be used: {error}"
