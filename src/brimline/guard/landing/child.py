"""The guard's side of the snapshot writer: hands the columns over, waits for what became of them, never for ever.

The columns go through a file without a name in the state dir, so the guard never waits for the child to read, and a
death of either leaves nothing behind. A child that has not ended when its time is over is killed; one that the kernel
cannot end (it hangs in a dead mount) is left behind, and no other is started before it is gone.
"""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from brimline.documents.codec import read_json, to_json
from brimline.landing.child import Instructions
from brimline.landing.header import Header
from brimline.landing.sections import Sections, write_columns
from brimline.model import BrimlineError
from brimline.model.secrets import without_login

CHILD = (sys.executable, "-m", "brimline.landing.child")
_LIMIT_SECONDS = 120
_PATIENCE_AFTER_KILL = 2.0
_LONGEST_COMPLAINT = 500


class WriterFailed(BrimlineError):
    """No snapshot was written. The text is one line for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What became of a snapshot, and of those that waited before it."""

    name: str
    bytes: int
    sent: int
    dropped: int
    waiting: int
    waiting_bytes: int
    failure: str | None


class SnapshotWriter:
    """For one thread."""

    def __init__(
        self,
        uri: str,
        state_dir: Path,
        broker: int,
        command: Sequence[str] = CHILD,
        limit_seconds: int = _LIMIT_SECONDS,
    ) -> None:
        self._uri = uri
        self._shown = without_login(uri)
        self._state_dir = state_dir
        self._spool = state_dir / f"landing-spool-{broker}"
        self._command = command
        self._limit = limit_seconds
        self._left_behind: subprocess.Popen[bytes] | None = None

    def write(self, header: Header, sections: Sections, spool_bytes: int) -> Delivered:
        """Raises ``WriterFailed``."""
        if self._left_behind is not None and self._left_behind.poll() is None:
            raise WriterFailed(
                f"the writer of an earlier snapshot (process {self._left_behind.pid}) still hangs writing to "
                f"{self._shown}"
            )
        self._left_behind = None
        instructions = Instructions(
            header=header.to_json(),
            uri=self._uri,
            spool=str(self._spool),
            spool_bytes=spool_bytes,
            seconds=self._limit,
        )
        try:
            self._state_dir.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._state_dir) as columns:
                write_columns(columns, to_json(instructions), sections)
                columns.flush()
                columns.seek(0)
                process = subprocess.Popen(
                    self._command,
                    stdin=columns,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,  # a Ctrl-C for the guard is not for the snapshot under way
                )
        except OSError as error:
            raise WriterFailed(f"the snapshot cannot be handed over in {self._state_dir}: {error}") from None
        return self._outcome(process)

    def _outcome(self, process: "subprocess.Popen[bytes]") -> Delivered:
        try:
            answer, complaint = process.communicate(timeout=self._limit + _PATIENCE_AFTER_KILL)
        except subprocess.TimeoutExpired:
            self._kill(process)
            raise WriterFailed(self._too_slow()) from None
        if process.returncode == -signal.SIGALRM:
            raise WriterFailed(self._too_slow())
        if process.returncode != 0:
            raise WriterFailed(f"the writer ended with {process.returncode}: {_last_line(complaint)}")
        try:
            return read_json(Delivered, answer)
        except ValueError:
            raise WriterFailed(f"the writer's answer cannot be read: {answer[:_LONGEST_COMPLAINT]!r}") from None

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        process.kill()
        try:
            process.communicate(timeout=_PATIENCE_AFTER_KILL)
        except subprocess.TimeoutExpired:
            self._left_behind = process

    def _too_slow(self) -> str:
        return f"the writer was killed after {self._limit} s: does {self._shown} answer?"


def _last_line(complaint: bytes) -> str:
    lines = complaint.decode(errors="replace").strip().splitlines()
    return lines[-1][:_LONGEST_COMPLAINT] if lines else "no message"
