"""What happened, kept in the state dir: the events of guard and gateway that no ledger has.

::

    journal-1-guard.jsonl      {"v": 1, "at": "…Z", "event": "disk-full", "level": "warning", "sentence": "…"}
    journal-1-guard.jsonl.1    the file before; what is older is gone

**Invariant.** Whoever says something never waits for a disk: a thread of its own writes. It may be the full disk itself
that it writes to, so a line that does not fit waits, and the oldest of many that wait is lost. Nothing is decided by
what is written here.
"""

import json
import logging
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from brimline.documents.codec import read_json, to_json
from brimline.documents.notices import EVENT_PREFIX
from brimline.model import BrimlineError
from brimline.service.durable_files import open_state, read_state
from brimline.service.worker import Worker

VERSION = 1
GUARD, GATEWAY = "guard", "gateway"
MAX_FILE_BYTES = 256 << 10
"""There are two of each process."""
_MAX_SENTENCE = 1000
_MAX_WAITING = 200
_TRY_AGAIN = 10.0
_NOTHING_DUE = 3600.0

EVENTS = {
    GUARD: frozenset(
        (
            "started",
            "stopping",
            "reloaded",
            "needs-restart",
            "disk-full",
            "disk-ok",
            "disk-unknown",
            "not-cordoned",
            "cordon-failed",
            "follower-full",
            "follower-released",
            "follower-throttle",
            "shed-failed",
            "moves-paused",
            "moves-paused-again",
            "moves-resumed",
            "moves-failed",
            "broker-answers",
            "broker-silent",
            "gateway-answers",
            "gateway-silent",
            "interception",
            "peers-silent",
            "peers-answer",
            "reclaim-held",
            "reclaim-stuck",
        )
    ),
    GATEWAY: frozenset(
        (
            "started",
            "stopping",
            "fenced",
            "released",
            "clients-refused",
            "refusals-over",
            "skipping",
            "skipped-no-more",
            "skips-expired",
            "broker-gone",
            "broker-back",
        )
    ),
}
"""What is kept of the log. Cycles, ballast, cordons, sheddings and pauses are in the ledger, fences by hand in their
own log.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLine:
    v: int = VERSION
    at: datetime
    event: str
    level: str
    sentence: str


class Journal:
    """``tell`` is for ``log_lines.listeners``; its owner starts and ends ``worker``."""

    def __init__(self, folder: Path, node_id: int, process: str, now: Callable[[], datetime]) -> None:
        self.path = journal_path(folder, node_id, process)
        self._events = EVENTS[process]
        self._now = now
        self._waiting: deque[bytes] = deque(maxlen=_MAX_WAITING)
        self.worker = Worker("journal", self.write, at_end=self._write_the_last)

    def tell(self, level: int, event: str, sentence: str) -> None:
        if event not in self._events and (level < logging.INFO or not event.startswith(EVENT_PREFIX)):
            return  # what is fine is for the present alone
        line = JournalLine(
            at=self._now(), event=event, level=logging.getLevelName(level).lower(), sentence=sentence[:_MAX_SENTENCE]
        )
        self._waiting.append(json.dumps(to_json(line), ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        self.worker.wake()

    def write(self) -> float:
        """What waits. A line is taken off when it is written; what cannot be written is tried again."""
        try:
            while self._waiting:
                line = self._waiting[0]
                self._append(line)
                if self._waiting and self._waiting[0] is line:
                    self._waiting.popleft()
        except OSError:
            return _TRY_AGAIN
        return _NOTHING_DUE

    def _write_the_last(self) -> None:
        self.write()

    def _append(self, line: bytes) -> None:
        self.path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        with os.fdopen(open_state(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "ab", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size + len(line) > MAX_FILE_BYTES:
                self.path.replace(_before(self.path))
                self._append(line)
                return
            if file.write(line) < len(line):
                os.ftruncate(file.fileno(), size)
                raise OSError("the disk is full")


def read_journal(folder: Path, node_id: int, process: str) -> tuple[list[JournalLine], int]:
    """The lines, oldest first, and how many others there are: cut short, or of a later version."""
    path = journal_path(folder, node_id, process)
    lines: list[JournalLine] = []
    others = 0
    for each in (_before(path), path):
        try:
            content = read_state(each)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise BrimlineError(f"{each} cannot be read: {error.strerror}") from error
        for text in content.splitlines():
            try:
                line = read_json(JournalLine, text)
            except ValueError:
                others += 1
                continue
            if line.v == VERSION:
                lines.append(line)
            else:
                others += 1
    return lines, others


def journal_path(folder: Path, node_id: int, process: str) -> Path:
    return folder / f"journal-{node_id}-{process}.jsonl"


def _before(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")
