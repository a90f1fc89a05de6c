"""What must be put back when moves go on, on disk before anything is changed.

::

    move-pause-1.json   {"version": 1, "key": "replica.alter.log.dirs.…", "before": "20000000" | null, "since": "…Z"}

**Invariant.** While the setting is ours, the file is there and says what was there before us. It is replaced whole
after its bytes are on the disk, and removed only after the setting is put back. A file that cannot be understood still
tells that the setting is ours: then nothing was there before, which leaves no broker paused for ever.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from brimline.durable_files import LaterVersion, NotRecorded, check_version, put_on_record, read_state

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    before: str | None
    """The broker's own value, which is put back; ``None``: it had none."""
    since: datetime


class PauseRecord:
    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self._key = key
        self.warnings: list[str] = []
        """Of the last reading."""

    def read(self, now: datetime) -> Pause | None:
        """``None``: nothing is paused. ``now`` stands in for the time that a damaged file does not tell."""
        self.warnings = []
        try:
            return self._understood(read_state(self.path))
        except FileNotFoundError:
            return None
        except OSError as error:
            self.warnings = [f"{self.path} cannot be read ({error.strerror}): a pause by an earlier guard is not known"]
            return None
        except (ValueError, KeyError, TypeError) as error:
            what = error if isinstance(error, LaterVersion) else "damaged"
            self.warnings = [f"{self.path} is {what}: when moves go on, {self._key} is taken back altogether"]
            return Pause(before=None, since=now)

    def write(self, pause: Pause) -> None:
        since = pause.since.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        document = {"version": _VERSION, "key": self._key, "before": pause.before, "since": since}
        put_on_record(self.path, (json.dumps(document) + "\n").encode())

    def remove(self) -> None:
        """A file that stays behind is harmless: it is found again, and once more put back and removed."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise NotRecorded(f"{self.path} cannot be removed: {error.strerror}") from error

    def _understood(self, content: bytes) -> Pause:
        document = json.loads(content)
        check_version(document["version"], _VERSION)
        if document["key"] != self._key:
            raise ValueError("of another setting")
        before = document["before"]
        if not (before is None or isinstance(before, str)):
            raise ValueError("a setting is a text")
        since = datetime.fromisoformat(document["since"])
        return Pause(before=before, since=since if since.tzinfo else since.replace(tzinfo=UTC))
