"""One run at a time on a warehouse: two would take the same files in, and one of them would fail over it.

**A folder** is locked by the kernel, on a file. The lock goes with the last process that has the file open: this one,
or the JVM that was given it (``jvm.py``).

**An object store** is locked across machines by a Delta table without rows, ``_run``: its last commit names the holder.
Two commits of one number cannot both happen (a conditional put, or a rename that replaces nothing), so of two runs one
gets it. The holder also writes a counter, every few seconds. No clock is compared: a run that finds the warehouse taken
watches the counter, and takes over where it has stood still for a minute.

A holder that was stopped for longer, and goes on, may meet the next one. Then Delta decides: a batch that is in a table
is not taken again, and a commit that would undo another's fails.
"""

import fcntl
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType
from deltalake.transaction import create_table_with_add_actions

from brimline.fleet.session.errors import FleetError, WarehouseBusy, said_by_store
from brimline.fleet.tables.landing_paths import for_delta
from brimline.landing.place import LandingPlace, PlaceFailed
from brimline.model.secrets import is_uri

PATIENCE_SECONDS = 15.0
"""A run that was killed takes some seconds to be gone with its JVM."""
LOCK = "_run"
_HOLDER = "brimline.holder"
_COUNTER = "alive"
_SCHEMA = Schema([Field("nothing", PrimitiveType("string"))])
_KEPT = {"delta.logRetentionDuration": "interval 1 days"}


@contextmanager
def only_run(warehouse: str, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[tuple[int, ...]]:
    """File descriptors, for whoever must keep the lock too. Raises ``WarehouseBusy``, ``FleetError``."""
    if is_uri(warehouse):
        with Lease(warehouse).held(patience_seconds):
            yield ()
        return
    path = Path(warehouse).absolute() / ".brimline-run.lock"
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
                raise _busy(f"pid {file.read().strip() or 'unknown'}", warehouse)
            time.sleep(0.1)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield (file.fileno(),)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _busy(who: str, warehouse: str) -> WarehouseBusy:
    return WarehouseBusy(f"another run ({who}) is in progress on the warehouse {warehouse}")


class Lease:
    """A warehouse in an object store, held by one run at a time."""

    def __init__(self, warehouse: str, every_seconds: float = 5.0, gone_after_seconds: float = 60.0) -> None:
        self._warehouse = warehouse
        self._table = f"{for_delta(warehouse)}/{LOCK}"
        self._every, self._gone_after = every_seconds, gone_after_seconds
        self._name = f"pid {os.getpid()} on {socket.gethostname()}, {uuid4().hex[:8]}"
        self._ended = threading.Event()

    @contextmanager
    def held(self, patience_seconds: float) -> Iterator[None]:
        with self._failing():
            self._take(patience_seconds)
        beat = threading.Thread(target=self._beat, name="lease", daemon=True)
        beat.start()
        try:
            yield
        finally:
            self._ended.set()
            beat.join()
            with suppress(DeltaError, OSError):  # the next run waits a minute then
                found = DeltaTable(self._table)
                if _holder(found) == self._name:
                    _commit(found, "")

    def _take(self, patience_seconds: float) -> None:
        began = stood_since = time.monotonic()
        seen, has_moved = None, False
        while True:
            found = self._opened()
            holder, state, now = _holder(found), (found.version(), self._counter()), time.monotonic()
            if state != seen:
                seen, stood_since, has_moved = state, now, seen is not None
            if holder == self._name:  # a commit that was said to have failed has happened
                return
            is_free = not holder or now - stood_since > self._gone_after
            if is_free and _commit(found, self._name):
                return
            if has_moved and now - began >= patience_seconds:
                raise _busy(holder or "unknown", self._warehouse)
            time.sleep(self._every / 5)

    def _opened(self) -> DeltaTable:
        try:
            return DeltaTable(self._table)
        except TableNotFoundError:
            with suppress(DeltaError):  # another run has made it meanwhile
                create_table_with_add_actions(self._table, _SCHEMA, [], mode="error", configuration=_KEPT)
            return DeltaTable(self._table)

    def _beat(self) -> None:
        number = 0
        while not self._ended.is_set():
            number += 1
            with suppress(PlaceFailed):  # tried again; a minute without one, and another run may take over
                LandingPlace(self._warehouse).put(f"{LOCK}/{_COUNTER}", f"{self._name} {number}".encode())
            self._ended.wait(self._every)

    def _counter(self) -> bytes:
        try:
            with LandingPlace(self._warehouse).open(f"{LOCK}/{_COUNTER}") as file:
                return bytes(file.read())
        except (PlaceFailed, OSError, pa.ArrowException):
            return b""

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError) as error:
            why = said_by_store(self._warehouse, error)
            raise FleetError(f"the warehouse {self._warehouse} cannot be used: {why}") from error


def _holder(found: DeltaTable) -> str:
    return str(found.history(1)[0].get(_HOLDER, ""))


def _commit(found: DeltaTable, holder: str) -> bool:
    """As the version after the one that was read, or not at all."""
    properties = CommitProperties(custom_metadata={_HOLDER: holder}, max_commit_retries=0)
    try:
        found.create_write_transaction([], "append", _SCHEMA, commit_properties=properties)
    except DeltaError:
        return False
    return True
