"""One run at a time on a warehouse: two would take the same files in, and one of them would fail over it.

The lock is the kernel's, on a file, and goes with the last process that has the file open: this one, or the JVM that
was given it (``jvm.py``). A warehouse in an object store is locked by a file in this user's cache: that keeps the
runs of one machine apart; across machines Spark's checkpoint and Delta's log refuse the second one, with a worse
sentence.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brimline.fleet.errors import FleetError, WarehouseBusy
from brimline.fleet.landing_paths import is_uri
from brimline.sandbox.caches import cache_dir

PATIENCE_SECONDS = 15.0
"""A run that was killed takes some seconds to be gone with its JVM."""


@contextmanager
def only_run(warehouse: str, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[int]:
    """The lock's file descriptor, for whoever must keep it too."""
    path = lock_file(warehouse)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    except OSError as error:
        raise FleetError(f"the warehouse {warehouse} cannot be written to: {error.strerror}") from error
    with file:
        deadline = time.monotonic() + patience_seconds
        while not _locked(file.fileno()):
            if time.monotonic() > deadline:
                file.seek(0)
                raise WarehouseBusy(
                    f"another run (pid {file.read().strip() or 'unknown'}) is at work on the warehouse {warehouse}"
                )
            time.sleep(0.1)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield file.fileno()


def lock_file(warehouse: str) -> Path:
    if is_uri(warehouse):
        return cache_dir() / "fleet" / f"{hashlib.sha256(warehouse.encode()).hexdigest()[:16]}.lock"
    return Path(warehouse).absolute() / ".brimline-run.lock"


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
