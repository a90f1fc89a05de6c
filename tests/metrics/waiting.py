"""Real processes need a moment."""

import socket
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_SECONDS = 60.0


def eventually(condition: Callable[[], bool], within: float = PATIENCE_SECONDS) -> None:
    give_up_at = time.monotonic() + within
    while not condition():
        assert time.monotonic() < give_up_at, f"did not come true within {within} s"
        time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def is_alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
