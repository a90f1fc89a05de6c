"""What a device was reclaimed by last, in a file: a change is told from what was there before a restart, too.

::

    reclaim-seen-1-5f3a9c01.json   {"version": 1, "logDir": "/data/a", "settings": "…", "foreignBytes": 1}

**Invariant.** Whatever cannot be read counts as never seen: then a large change is held.
"""

import hashlib
import json
from pathlib import Path

from brimline.decide.reclaim.holding import Seen
from brimline.service.durable_files import check_version, put_on_record, read_state

_VERSION = 1


class SeenFile:
    """Of one device, named by its first log dir."""

    def __init__(self, folder: Path, node_id: int, log_dir: str) -> None:
        self._log_dir = log_dir
        self.path = folder / f"reclaim-seen-{node_id}-{hashlib.sha256(log_dir.encode()).hexdigest()[:8]}.json"

    def read(self) -> Seen:
        try:
            document = json.loads(read_state(self.path))
            check_version(document["version"], _VERSION)
            settings, foreign = document["settings"], document["foreignBytes"]
        except (OSError, ValueError, KeyError, TypeError):
            return Seen()
        return Seen(
            settings=settings if isinstance(settings, str) else None,
            foreign_bytes=foreign if isinstance(foreign, int) else None,
        )

    def write(self, seen: Seen) -> None:
        """Raises ``NotRecorded``. What is there already is not written again."""
        if seen == self.read():
            return
        document = {
            "version": _VERSION,
            "logDir": self._log_dir,
            "settings": seen.settings,
            "foreignBytes": seen.foreign_bytes,
        }
        put_on_record(self.path, (json.dumps(document) + "\n").encode())
