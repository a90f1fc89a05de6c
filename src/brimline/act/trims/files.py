"""What of a trim's segments is still on the disk, by looking at their files: the only proof that space is back.

A segment's files bear its base offset in front: the log, its indexes, the producer snapshot, each perhaps renamed to
``.deleted`` while it waits for its delay. All of them count as long as they are there. A replica whose topic was
deleted, or that was moved to another log dir, is a folder ``…-delete`` for a while: that counts, too. The folder of a
topic of the same name with another id does not. An empty mount point is not a log dir in which all files are gone.

A producer snapshot by itself is no segment: a broker that is restarted may write one, or leave one, at an offset among
segments that are gone, and keeps it until the log's start passes it. It is a few bytes, and holds no space of the trim.
"""

import os
from collections.abc import Iterator, Sequence
from uuid import UUID

from brimline.act.ledger.entries import PlannedTrim
from brimline.act.ledger.writing import topic_id_text
from brimline.act.trims.rules import Left
from brimline.model import Bytes, Failure, FailureKind, ObservationFailed
from brimline.model.scan import FolderKind
from brimline.observe.scan.batch import read_topic_id
from brimline.observe.scan.names import BASE_OFFSET_DIGITS, read_folder_name
from brimline.observe.volumes import META_PROPERTIES

_BLOCK = 512
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_SUFFIX = "-delete"
_SNAPSHOT = ".snapshot"


def files_left(trims: Sequence[PlannedTrim]) -> list[Left]:
    """In the order of ``trims``. Raises ``ObservationFailed`` for a log dir or folder that cannot be read."""
    left: dict[int, Left] = {}
    for log_dir in {trim.log_dir for trim in trims}:
        here = [(number, trim) for number, trim in enumerate(trims) if trim.log_dir == log_dir]
        try:
            root = os.open(log_dir, _FOLDER_FLAGS)
            try:
                os.stat(META_PROPERTIES, dir_fd=root)
                waiting = [name for name in os.listdir(root) if name.endswith(_SUFFIX)]  # noqa: PTH208 (of an open folder)
                left.update((number, _left(root, trim, waiting)) for number, trim in here)
            finally:
                os.close(root)
        except OSError as error:
            message = f"{log_dir} cannot be read ({error.strerror}): remaining segments unknown"
            raise ObservationFailed(Failure(kind=FailureKind.UNREADABLE, message=message)) from error
    return [left[number] for number in range(len(trims))]


def _left(root: int, trim: PlannedTrim, waiting: Sequence[str]) -> Left:
    sizes = [size for folder in _folders(root, trim, waiting) for size in _allocated(root, folder, trim)]
    return Left(files=len(sizes), allocated_bytes=Bytes(sum(sizes)))


def _folders(root: int, trim: PlannedTrim, waiting: Sequence[str]) -> Iterator[str]:
    yield from (name for name in (str(trim.partition),) if _is_of_topic(root, name, trim.topic_id))
    for name in waiting:
        found = read_folder_name(name)
        is_it = found.kind is FolderKind.DELETE and (found.topic, found.partition) == (
            trim.partition.topic,
            trim.partition.partition,
        )
        if is_it and _is_of_topic(root, name, trim.topic_id):
            yield name


def _is_of_topic(root: int, folder: str, topic_id: UUID | None) -> bool:
    """A folder that does not tell its id (any more, or yet) may be it."""
    found = read_topic_id(root, f"{folder}/partition.metadata")
    return topic_id is None or found is None or found == topic_id_text(topic_id)


def _allocated(root: int, folder: str, trim: PlannedTrim) -> Iterator[int]:
    try:
        fd = os.open(folder, _FOLDER_FLAGS, dir_fd=root)
    except FileNotFoundError:
        return
    try:
        names = os.listdir(fd)  # noqa: PTH208 (of an open folder)
        of_segments = {name[:BASE_OFFSET_DIGITS] for name in names if not name.endswith(_SNAPSHOT)}
        for name in names:
            base = name[:BASE_OFFSET_DIGITS]
            if base.isdigit() and base in of_segments and trim.segments.first <= int(base) <= trim.segments.last:
                try:
                    yield os.stat(name, dir_fd=fd, follow_symlinks=False).st_blocks * _BLOCK
                except FileNotFoundError:
                    continue  # it has just gone
    finally:
        os.close(fd)
