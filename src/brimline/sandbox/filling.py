"""A foreign file that takes a volume's space, as a forgotten heap dump would."""

import errno
import os
import uuid
from pathlib import Path

from brimline.model import Bytes
from brimline.sandbox.errors import BadSpec, NamespaceRefused
from brimline.sandbox.namespace import Namespace

_ROUNDS = 8


def fill(namespace: Namespace, log_dir: Path, leave_free: Bytes) -> Path:
    """Leave ``leave_free`` usable bytes, to the block, on the volume under ``log_dir``.

    The file stands at the volume's root, mostly beside the log dirs: Kafka knows nothing of it. Its blocks are
    allocated, not just its length, so the space is really gone.
    """
    if namespace.refusal is not None:
        raise NamespaceRefused(
            f"cannot fill a plain folder: it would fill this machine's own disk (no private mounts: "
            f"{namespace.refusal})"
        )
    volume = log_dir if namespace.outside(log_dir).is_mount() else log_dir.parent
    path = volume / f"foreign-{uuid.uuid4().hex[:8]}"
    spare = usable_bytes(namespace.outside(volume)) - leave_free
    if spare <= 0:
        usable = leave_free + spare
        raise BadSpec(f"{volume} has {usable} usable bytes: it cannot be filled until {leave_free} are left")
    with namespace.outside(path).open("wb") as file:
        # Once is not enough: an ext4 needs blocks of its own to map a large file, and a broker writes meanwhile.
        for _ in range(_ROUNDS):
            size = max(os.fstat(file.fileno()).st_size + spare, 0)
            try:
                if spare > 0:
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    os.ftruncate(file.fileno(), size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise  # else the broker was quicker: less is left than there was
            spare = usable_bytes(namespace.outside(volume)) - leave_free
            if spare == 0:
                break
    return path


def usable_bytes(path: Path) -> Bytes:
    """What an ordinary user may still write, as a broker reports it."""
    status = os.statvfs(path)
    return Bytes(status.f_bavail * status.f_frsize)
