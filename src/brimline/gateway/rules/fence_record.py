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
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from brimline.decide.admission import Fence, FenceCause
from brimline.model.times import read_time, time_text
from brimline.service.durable_files import (
    LaterVersion,
    NotRecorded,
    check_version,
    open_state,
    read_state,
    replace_durably,
)

_VERSION = 1


class FenceRecord:
    def __init__(self, state_dir: Path, node_id: int) -> None:
        self.path = state_dir / f"fences-{node_id}.json"
        self.log_path = state_dir / f"fences-{node_id}.log"

    def read(self) -> tuple[list[Fence], list[str]]:
        """The fences, and warnings for the log."""
        try:
            return _understood(read_state(self.path)), []
        except FileNotFoundError:
            return [], []
        except OSError as error:
            return [], [f"{self.path} cannot be read ({error.strerror}): what was fenced by hand is not fenced now"]
        except LaterVersion as later:
            return [], [f"{self.path} is {later}: what was fenced by hand is not fenced now"]
        except (ValueError, KeyError, TypeError, AttributeError):
            return [], [f"{self.path} is damaged{self._put_aside()}: what was fenced by hand is not fenced now"]

    def write(self, fences: Iterable[Fence]) -> None:
        rows = [_row(fence) for fence in fences]
        text = json.dumps({"version": _VERSION, "fences": rows}, ensure_ascii=False, indent=1) + "\n"
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
            _understood(self.path.read_bytes())
        except LaterVersion as later:
            raise NotRecorded.since(f"{self.path} is {later}: use that one, or move the file away") from later
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return  # nothing that anybody could read

    def _put_aside(self) -> str:
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            self.path.replace(aside)
        except OSError as error:
            return f" and cannot be put aside ({error.strerror})"
        return f" and was put aside as {aside.name}"


def target_of(fence: Fence) -> dict[str, object]:
    return {"topic": fence.topic} if fence.log_dir is None else {"logDir": fence.log_dir}


def _understood(content: bytes) -> list[Fence]:
    document = json.loads(content)
    check_version(document["version"], _VERSION)
    return [_fence(row) for row in document["fences"]]


def _fence(row: Mapping[str, object]) -> Fence:
    log_dir, topic = row.get("logDir"), row.get("topic")
    if (log_dir is None) is (topic is None):
        raise ValueError("a fence is of a log dir or of a topic")
    return Fence(
        cause=FenceCause.MANUAL,
        reason=str(row["reason"]),
        since=read_time(str(row["since"])),
        log_dir=None if log_dir is None else str(log_dir),
        topic=None if topic is None else str(topic),
        by=str(row["by"]),
    )


def _row(fence: Fence) -> dict[str, object]:
    return {**target_of(fence), "reason": fence.reason, "by": fence.by, "since": time_text(fence.since)}


def _append(path: Path, line: bytes) -> None:
    fd = open_state(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    with os.fdopen(fd, "ab+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        is_cut_short = file.read(1) not in (b"", b"\n")
        file.write(b"\n" + line if is_cut_short else line)
        file.flush()
        os.fsync(file.fileno())
