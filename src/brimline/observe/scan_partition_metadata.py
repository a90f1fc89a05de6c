"""``partition.metadata``: the topic id of a replica's folder, the one thing in it that no name can mislead about."""

import os
import re
from collections.abc import Iterable

from brimline.model.scan import PARTITION_FOLDERS, FolderState
from brimline.observe.scan_batch import Folder

_LONGEST = 256
_TOPIC_ID = re.compile(rb"^topic_id: ([A-Za-z0-9_-]{22})$", re.MULTILINE)
_NO_ID = "A" * 22


def read_topic_ids(root_fd: int, folders: Iterable[Folder]) -> None:
    """Fills in what is not known yet: the file is written once, and a folder that changed is a new ``Folder``."""
    for folder in folders:
        if folder.topic_id is None and folder.what.kind in PARTITION_FOLDERS and folder.state is FolderState.READ:
            folder.topic_id = read_topic_id(root_fd, f"{folder.name}/partition.metadata")


def read_topic_id(root_fd: int, path: str) -> str | None:
    """In Kafka's base64, as the file has it; ``None`` when there is none yet, or it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=root_fd)
    except OSError:
        return None
    try:
        found = _TOPIC_ID.search(os.read(fd, _LONGEST))
    except OSError:
        return None
    finally:
        os.close(fd)
    topic_id = found[1].decode() if found else _NO_ID
    return None if topic_id == _NO_ID else topic_id
