"""Ports and processes, as the tests of the metrics need them."""

import socket
from pathlib import Path

from tests.waiting import PATIENCE_SECONDS as PATIENCE_SECONDS
from tests.waiting import eventually as eventually


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
