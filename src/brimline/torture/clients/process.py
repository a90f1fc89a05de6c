"""A client's process: its lines are read as they come, its complaint is kept, and it never outlives whoever made it."""

import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any

_PATIENCE_SECONDS = 240.0


class ClientProcess:
    """``heard`` is called with every line, in a thread of its own."""

    def __init__(self, command: Sequence[str], heard: Callable[[dict[str, Any]], None]) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        # Its input is held open by us: it ends when we do, in whatever way.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._reading = threading.Thread(target=self._read, args=(heard,))
        self._reading.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def complaint(self) -> str:
        """What it wrote to standard error."""
        self._errors.seek(0)
        return self._errors.read()

    def ask_to_stop(self) -> None:
        """By the end of its input: a signal would come too early for one that is only just starting."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        self._process.kill()

    def wait(self, seconds: float = _PATIENCE_SECONDS) -> None:
        """Until it ended by itself and every line is read; raises ``AssertionError`` if it does not end."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the client did not end within {seconds:.0f} s: {self.complaint()[-2000:]}") from None
        self._reading.join()

    def close(self) -> None:
        """Whatever it is doing, it is over."""
        self.kill()
        self._process.wait()
        self._reading.join()
        self.ask_to_stop()
        self._errors.close()

    def _read(self, heard: Callable[[dict[str, Any]], None]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                heard(json.loads(line))
