"""A pause of reclaim in a file of its own, beside the ledger: it holds although the ledger was damaged or is gone.

::

    reclaim-pause-1.json   {"version": 1, "by": "…", "reason": "…", "since": "…Z"}

**Invariant.** While the file is there nothing is deleted, whatever is in it.
"""

import json
from datetime import UTC, datetime
from pathlib import Path

from brimline.act.ledger_lines import read_time, time_text
from brimline.act.ledger_state import Pause
from brimline.durable_files import NotRecorded, put_on_record, read_state

_VERSION = 1
_NO_ENTRY = 0
"""Sequence numbers of the ledger begin with 1."""


class PauseFile:
    def __init__(self, folder: Path, node_id: int) -> None:
        self.path = folder / f"reclaim-pause-{node_id}.json"

    def read(self) -> Pause | None:
        try:
            document = json.loads(read_state(self.path))
            return Pause(
                by=str(document["by"]),
                reason=str(document["reason"]),
                since=read_time(document["since"]),
                sequence=_NO_ENTRY,
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"{self.path} is there and cannot be read ({error})"
            return Pause(by="somebody", reason=reason, since=datetime.fromtimestamp(0, UTC), sequence=_NO_ENTRY)

    def write(self, *, by: str, reason: str, since: datetime) -> None:
        document = {"version": _VERSION, "by": by, "reason": reason, "since": time_text(since)}
        put_on_record(self.path, (json.dumps(document) + "\n").encode())

    def remove(self) -> None:
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise NotRecorded(f"reclaim stays paused: {self.path} cannot be removed: {error.strerror}") from error
