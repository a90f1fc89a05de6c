"""What a name in a log dir means, by the rules that the broker itself goes by when it loads its logs.

A replica's folder is ``<topic>-<partition>``. A replica that moves, goes or has strayed is
``<topic>-<partition>.<unique id>-future|-delete|-stray``, where the last two cut the topic so that the name fits
into 255 characters. The partition is what follows the last ``-``, so topics with dashes, dots and even with one
of the suffixes are safe: the folder of topic ``a.b-1.x-delete`` is ``a.b-1.x-delete-0``, which ends in a number.
"""

import re
from typing import NamedTuple

from brimline.model.scan import FileKind, FolderKind

LONGEST_NAME = 255
BASE_OFFSET_DIGITS = 20
METADATA_LOG = "__cluster_metadata-0"
REMOTE_INDEX_CACHE = "remote-log-index-cache"
BALLAST = ".brimline-ballast"
"""At the root of a log dir, where a broker ignores plain files."""

_SUFFIXES = {"-future": FolderKind.FUTURE, "-delete": FolderKind.DELETE, "-stray": FolderKind.STRAY}
_RENAMED = re.compile(r"\S+-\S+\.\S+-(?:future|delete|stray)")
_PARTITION = re.compile(r"\+?[0-9]{1,10}")
_LARGEST_PARTITION = 2**31 - 1
_SURE_DIGITS = 9

# What follows the base offset in the files that come and go with a segment.
SEGMENT_FILES = {
    ".log": FileKind.LOG,
    ".index": FileKind.OFFSET_INDEX,
    ".timeindex": FileKind.TIME_INDEX,
    ".txnindex": FileKind.TXN_INDEX,
    ".snapshot": FileKind.PRODUCER_SNAPSHOT,
}
_PASSING = {
    ".deleted": FileKind.DELETED,
    ".cleaned": FileKind.CLEANED,
    ".swap": FileKind.SWAP,
    ".tmp": FileKind.TEMPORARY,
    ".checkpoint.part": FileKind.TEMPORARY,
}
_PARTITION_FILES = {
    "leader-epoch-checkpoint": FileKind.LEADER_EPOCH_CHECKPOINT,
    "partition.metadata": FileKind.PARTITION_METADATA,
}
_LOG_DIR_FILES = {
    "meta.properties": FileKind.META_PROPERTIES,
    ".lock": FileKind.LOCK,
    ".kafka_cleanshutdown": FileKind.CLEAN_SHUTDOWN,
    "recovery-point-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "log-start-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "replication-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "cleaner-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "bootstrap.checkpoint": FileKind.BOOTSTRAP_CHECKPOINT,
    BALLAST: FileKind.BALLAST,
}
_METADATA_SNAPSHOT = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint")
_REMOTE_INDEX = re.compile(r"[0-9]+_[A-Za-z0-9_-]{22}\.(?:index|timeindex|txnindex)")


class FolderName(NamedTuple):
    kind: FolderKind
    topic: str | None = None
    partition: int = -1
    topic_may_be_cut: bool = False


_FOREIGN = FolderName(kind=FolderKind.FOREIGN)


def read_folder_name(name: str) -> FolderName:
    """A folder at the root of a log dir. Where the broker would refuse the name, it is foreign."""
    topic, _, partition = name.rpartition("-")
    if (
        topic
        and len(partition) <= _SURE_DIGITS
        and partition.isascii()
        and partition.isdigit()
        and name != METADATA_LOG
    ):
        return FolderName(FolderKind.CURRENT, topic, int(partition))  # nearly all
    if name == REMOTE_INDEX_CACHE:
        return FolderName(kind=FolderKind.REMOTE_INDEX_CACHE)
    kind = _SUFFIXES.get(name[name.rfind("-") :], FolderKind.CURRENT)
    if kind is not FolderKind.CURRENT and not _RENAMED.fullmatch(name):
        return _FOREIGN
    replica = name if kind is FolderKind.CURRENT else name[: name.rindex(".")]
    topic, _, partition = replica.rpartition("-")
    if not topic or not _PARTITION.fullmatch(partition) or int(partition) > _LARGEST_PARTITION:
        return _FOREIGN
    if name == METADATA_LOG:
        kind = FolderKind.METADATA_LOG
    may_be_cut = kind in (FolderKind.DELETE, FolderKind.STRAY) and len(name) == LONGEST_NAME
    return FolderName(kind=kind, topic=topic, partition=int(partition), topic_may_be_cut=may_be_cut)


def file_kind(folder: FolderKind, name: str) -> FileKind:
    """A file in a folder of this kind. ``SEGMENT_FILES`` of a partition are read with their base offset elsewhere."""
    passing = next((kind for suffix, kind in _PASSING.items() if name.endswith(suffix)), None)
    if folder is FolderKind.LOG_DIR:
        # The broker writes its root files by way of a .tmp; nothing else of a temporary look is its own there.
        own = _LOG_DIR_FILES.get(name.removesuffix(".tmp"), FileKind.FOREIGN)
        return FileKind.TEMPORARY if name.endswith(".tmp") and own is not FileKind.FOREIGN else own
    if folder is FolderKind.FOREIGN:
        return FileKind.FOREIGN
    if passing is not None:
        return passing
    if folder is FolderKind.REMOTE_INDEX_CACHE:
        return FileKind.REMOTE_INDEX if _REMOTE_INDEX.fullmatch(name) else FileKind.FOREIGN
    if folder is FolderKind.METADATA_LOG:
        if _METADATA_SNAPSHOT.fullmatch(name):
            return FileKind.METADATA_SNAPSHOT
        if name == "quorum-state":
            return FileKind.QUORUM_STATE
    return _PARTITION_FILES.get(name, FileKind.FOREIGN)
