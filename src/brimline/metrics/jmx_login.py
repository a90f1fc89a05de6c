"""The login that the JMX agent asks for when the operator chose none: made once, kept with the guard's state.

A loopback port is open to every user of the machine, and whoever may write to a JVM's beans can make it load code and
write files as the guard's user. So the one user that there is may only read.
"""

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from brimline.durable_files import NotRecorded, open_state, put_on_record, why_untrusted

USER = "brimline"
_ACCESS = f"{USER} readonly\n".encode()
_PASSWORD_BYTES = 24
_LONGEST_FILE = 4096
_FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class JmxLogin:
    folder: Path
    node_id: int

    @property
    def passwords(self) -> Path:
        return self.folder / f"jmx-{self.node_id}.password"

    @property
    def access(self) -> Path:
        return self.folder / f"jmx-{self.node_id}.access"

    def make(self) -> None:
        """What is there and usable stays: a monitoring system knows its password. Raises ``NotRecorded``."""
        if (why := why_untrusted(self.folder)) is not None:
            raise NotRecorded.since(why)
        if not _own_content(self.passwords).startswith(f"{USER} ".encode()):
            put_on_record(self.passwords, f"{USER} {secrets.token_urlsafe(_PASSWORD_BYTES)}\n".encode())
        if _own_content(self.access) != _ACCESS:
            put_on_record(self.access, _ACCESS)


def _own_content(path: Path) -> bytes:
    """Empty unless it is a plain file of this user that nobody else may open."""
    try:
        fd = open_state(path, os.O_RDONLY)
    except OSError:
        return b""
    with os.fdopen(fd, "rb") as file:
        facts = os.fstat(fd)
        is_own = facts.st_uid == os.geteuid() and not facts.st_mode & _FOR_OTHERS
        return file.read(_LONGEST_FILE) if is_own else b""
