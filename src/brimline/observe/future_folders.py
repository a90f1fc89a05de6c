"""Which partitions are being moved into a log dir: AlterReplicaLogDirs copies into a folder ``….<id>-future`` there."""

import os

from brimline.model import Failure, FailureKind, ObservationFailed
from brimline.model.partitions import TopicPartition
from brimline.model.scan import FolderKind
from brimline.observe.scan_names import read_folder_name

_SUFFIX = "-future"


def partitions_moving_into(log_dir: str) -> tuple[TopicPartition, ...]:
    """In the order of their names. Raises ``ObservationFailed`` for a log dir that cannot be listed."""
    try:
        names = [name for name in os.listdir(log_dir) if name.endswith(_SUFFIX)]  # noqa: PTH208  names are enough
    except OSError as error:
        message = f"{log_dir} cannot be listed ({error.strerror}): whether partitions are moved into it is not known"
        raise ObservationFailed(Failure(kind=FailureKind.UNREADABLE, message=message)) from error
    found = [read_folder_name(name) for name in names]
    return tuple(
        sorted(
            TopicPartition(folder.topic, folder.partition)
            for folder in found
            if folder.kind is FolderKind.FUTURE and folder.topic is not None
        )
    )
