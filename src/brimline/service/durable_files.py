"""Files that say what was done, or must be undone: on the disk before anything else happens.

It belongs to no room, because two of them (``act``, ``gateway``) keep such files and neither may import the other.

**Invariant.** No link is followed: whoever could put one into the state dir would have us read or write what it leads
to, as our user.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from brimline.model import BrimlineError


class NotRecorded(BrimlineError):
    """An act that could not be put on record, and was therefore not done. ``why`` is for whoever did others before."""

    def __init__(self, message: str, why: str | None = None) -> None:
        super().__init__(message)
        self.why = why or message

    @classmethod
    def because(cls, path: Path, error: OSError) -> "NotRecorded":
        return cls.since(f"{path} cannot be written: {error.strerror}")

    @classmethod
    def since(cls, why: str) -> "NotRecorded":
        return cls(f"nothing was changed: {why}", why)


def open_state(path: Path, flags: int) -> int:
    """A plain file in the state dir, and nothing that a link leads to. Made for this user alone, if it is made."""
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, "it is a symbolic link", str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return fd


def read_state(path: Path) -> bytes:
    with os.fdopen(open_state(path, os.O_RDONLY), "rb") as file:
        return file.read()


def why_untrusted(folder: Path) -> str | None:
    """Why what is found in a state dir may be of somebody else; ``None``: it is ours, or is not there yet."""
    try:
        facts = folder.stat()
    except OSError:
        return None
    if facts.st_mode & stat.S_IWOTH:
        return f"{folder} is writable by everyone: chmod 0700 {folder}, or name a folder below it"
    if os.geteuid() not in (0, facts.st_uid) and facts.st_uid != 0:
        return f"{folder} belongs to another user (uid {facts.st_uid}): chown {os.geteuid()} {folder}"
    return None


def put_on_record(path: Path, content: bytes) -> None:
    """As ``replace_durably``, in a folder that may not be there yet; raises ``NotRecorded``."""
    try:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        replace_durably(path, content)
    except OSError as error:
        raise NotRecorded.because(path, error) from error


def replace_durably(path: Path, content: bytes) -> None:
    """Whoever reads it, after a power cut too, finds what was there before or this, and nothing in between."""
    temporary = path.with_name(f"{path.name}.tmp")
    # A new file: what lies there, of a writer that was killed or of somebody else, is not written into.
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    # The name is on the disk when its folder is.
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def put_whole(path: Path, unfinished: Path, data: bytes) -> None:
    """Under its name when all of it is on the disk; a failure leaves nothing, if it can be helped."""
    try:
        with unfinished.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):  # the disk is full or gone: the first failure is the one to tell
            unfinished.unlink(missing_ok=True)
        raise
