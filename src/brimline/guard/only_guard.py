"""One guard for each broker: two would both see to its ledger, ballast and gateway, and undo each other's work.

The lock is the kernel's, on a file in the state dir: it ends with the process, however that ends.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from brimline.model import BadInput
from brimline.service.durable_files import open_state
from brimline.settings.keys import STATE_DIR

_LONGEST_PID = 20


class OnlyGuard:
    """Holds the lock as long as it lives. ``BadInput``: another guard has it. ``warning``: there can be no lock."""

    def __init__(self, state_dir: Path, node_id: int) -> None:
        self.warning: str | None = None
        path = state_dir / f"guard-{node_id}.lock"
        try:
            state_dir.mkdir(mode=0o750, parents=True, exist_ok=True)
            self._fd = open_state(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            self.warning = f"{path} cannot be used ({error.strerror}): another guard may be running"
            return
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(self._fd, _LONGEST_PID).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise BadInput(
                f"another guard of broker {node_id} is running (process {pid}): it holds {path}; stop it first, or "
                f"give each broker of this machine its own {STATE_DIR.name}"
            ) from None
        with suppress(OSError):  # a full disk has no room for the number, and the lock holds without it
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
