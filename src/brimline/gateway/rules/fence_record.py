"""Fences by hand on disk: those in force in one file, and every act in a log that only grows.

::

    fences-1.json   {"version": 1, "fences": [{"logDir": "/data/a", "reason": "…", "by": "root", "since": "…Z"}]}
    fences-1.log    {"v": 1, "at": "…Z", "op": "fence" | "unfence", "logDir": "/data/a", "reason": "…", "by": "root"}

**Invariant.** The first is replaced whole, after its bytes are on the disk, so it is always the fences of before or
those of after. A file that cannot be understood is put aside, named in a warning, and stops nobody: a fence that is
missing lets writes through, a gateway that does not start lets none. A file of a later version stays where it is, for
the gateway that wrote it, and meanwhile nothing is fenced or unfenced by hand.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from brimline.decide.admission import Fence, FenceCause
from brimline.documents.codec import to_json
from brimline.documents.state_files import LaterVersion, read_state_file
from brimline.model.times import time_text
from brimline.service.durable_files import NotRecorded, open_state, replace_durably

_VERSION = 1
_OMITTED = {"omitted": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class _FiledFence:
    topic: str | None = field(default=None, metadata=_OMITTED)
    log_dir: str | None = field(default=None, metadata=_OMITTED)
    reason: str
    by: str | None
    since: datetime

    def __post_init__(self) -> None:
        if (self.log_dir is None) is (self.topic is None):
            raise ValueError("a fence is for a log dir or a topic")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filed:
    version: int = _VERSION
    fences: tuple[_FiledFence, ...]


class FenceRecord:
    def __init__(self, state_dir: Path, node_id: int) -> None:
        self.path = state_dir / f"fences-{node_id}.json"
        self.log_path = state_dir / f"fences-{node_id}.log"

    def read(self) -> tuple[list[Fence], list[str]]:
        """The fences, and warnings for the log."""
        try:
            return self._fences(), []
        except FileNotFoundError:
            return [], []
        except OSError as error:
            return [], [f"{self.path} cannot be read ({error.strerror}): fences by hand are not in force"]
        except LaterVersion as later:
            return [], [f"{self.path} is {later}: fences by hand are not in force"]
        except ValueError:
            return [], [f"{self.path} is damaged{self._put_aside()}: fences by hand are not in force"]

    def write(self, fences: Iterable[Fence]) -> None:
        text = json.dumps(to_json(_Filed(fences=tuple(map(_filed, fences)))), ensure_ascii=False, indent=1) + "\n"
        try:
            replace_durably(self.path, text.encode())
        except OSError as error:
            raise NotRecorded.because(self.path, error) from error

    def note(self, act: str, fence: Fence, at: datetime) -> None:
        """One line for the log, which says who did what, and why. First of all, so nothing is done without it."""
        self._spare_later_ones()
        line = {
            "v": _VERSION,
            "at": time_text(at),
            "op": act,
            **target_of(fence),
            "reason": fence.reason,
            "by": fence.by,
        }
        try:
            _append(self.log_path, json.dumps(line, ensure_ascii=False).encode() + b"\n")
        except OSError as error:
            raise NotRecorded.because(self.log_path, error) from error

    def _spare_later_ones(self) -> None:
        try:
            self._fences()
        except LaterVersion as later:
            raise NotRecorded.since(f"{self.path} is {later}: use that version, or move the file away") from later
        except (OSError, ValueError):
            return  # nothing that anybody could read

    def _fences(self) -> list[Fence]:
        return [
            Fence(
                cause=FenceCause.MANUAL,
                reason=each.reason,
                since=each.since,
                log_dir=each.log_dir,
                topic=each.topic,
                by=each.by,
            )
            for each in read_state_file(_Filed, self.path, _VERSION).fences
        ]

    def _put_aside(self) -> str:
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            self.path.replace(aside)
        except OSError as error:
            return f" and cannot be renamed ({error.strerror})"
        return f" and was renamed to {aside.name}"


def target_of(fence: Fence) -> dict[str, object]:
    return {"topic": fence.topic} if fence.log_dir is None else {"logDir": fence.log_dir}


def _filed(fence: Fence) -> _FiledFence:
    topic = fence.topic if fence.log_dir is None else None
    return _FiledFence(topic=topic, log_dir=fence.log_dir, reason=fence.reason, by=fence.by, since=fence.since)


def _append(path: Path, line: bytes) -> None:
    fd = open_state(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    with os.fdopen(fd, "ab+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        is_cut_short = file.read(1) not in (b"", b"\n")
        file.write(b"\n" + line if is_cut_short else line)
        file.flush()
        os.fsync(file.fileno())
