"""A foreign file that takes a volume's space, as a forgotten heap dump would."""

import os
import uuid
from pathlib import Path

from brimline.model import Bytes
from brimline.sandbox.errors import BadSpec, NamespaceRefused
from brimline.sandbox.namespace import Namespace


def fill(namespace: Namespace, log_dir: Path, leave_free: Bytes) -> Path:
    """Leave ``leave_free`` usable bytes, to the block, on the volume under ``log_dir``.

    The file stands at the volume's root, beside the log dirs: Kafka knows nothing of it. Its blocks are allocated,
    not just its length, so the space is really gone.
    """
    if namespace.refusal is not None:
        raise NamespaceRefused(
            f"nothing is filled here: without private mounts ({namespace.refusal}) the volume is a plain folder, and "
            "this machine's own disk would fill"
        )
    volume = log_dir.parent
    path = volume / f"foreign-{uuid.uuid4().hex[:8]}"
    usable = usable_bytes(namespace.outside(volume))
    if usable <= leave_free:
        raise BadSpec(f"{volume} has {usable} usable bytes: it cannot be filled until {leave_free} are left")
    with namespace.outside(path).open("wb") as file:
        size = usable - leave_free
        os.posix_fallocate(file.fileno(), 0, size)
        # An ext4 needs blocks of its own to map a large file: give back what it took too much.
        missing = leave_free - usable_bytes(namespace.outside(volume))
        if missing > 0:
            os.ftruncate(file.fileno(), max(size - missing, 0))
    return path


def usable_bytes(path: Path) -> Bytes:
    """What an ordinary user may still write, as a broker reports it."""
    status = os.statvfs(path)
    return Bytes(status.f_bavail * status.f_frsize)
