"""Processes and ports of the machine, which may end or be taken between two looks.

A process may be gone before a file of it in ``/proc`` is opened (``FileNotFoundError``), and while that is read
(``ProcessLookupError``). Both mean the same.
"""

import socket
from contextlib import suppress
from pathlib import Path

_GONE = (FileNotFoundError, ProcessLookupError)
_held: list[socket.socket] = []


def free_port() -> int:
    """Of loopback, and nobody else's until this process ends; a Java server may bind it (``Supervisor.reserve``)."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _held.append(holder)
    return int(holder.getsockname()[1])


def is_alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except _GONE:
        return False


def command_line(pid: int) -> str:
    """Empty: it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except _GONE:
        return ""


def children(pid: int) -> list[int]:
    """Of all its threads; one that ends meanwhile has none."""
    found: list[int] = []
    with suppress(*_GONE):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(*_GONE):
                found += map(int, (task / "children").read_text().split())
    return found
