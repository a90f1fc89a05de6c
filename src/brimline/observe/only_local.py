"""How much of a led partition only its local disk holds: from the files themselves, else from the outside.

**From the files** the figure is exact: a closed segment counts as uploaded when finished uploads of this log's lineage
cover all its offsets; every other segment is only local. Names and lengths of files are enough, and the log's own list
of leader epochs. Files come and go while the broker lives, which is no error: a segment that vanishes between listing
and looking was just deleted, so it was uploaded.

**From the outside**, where the log dir may not be read, ``remote_info`` works it out; there the figure is sometimes
unknowable, and says so, and all remote log metadata is read anew for it.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np

from brimline.model import BrokerId, Bytes, Reason, TopicPartition
from brimline.observe.connection import Connection, Deadline
from brimline.observe.log_dirs import Clock
from brimline.observe.remote_info import describe_with_remote_info
from brimline.observe.upload_coverage import coverage, covered_ranges, read_epoch_ends
from brimline.wire.remote_log_metadata import RemoteSegment, SegmentState

_SEGMENT_NAME = 20  # digits of a base offset, before `.log`


def only_local_in_files(folder: str, size: Bytes, segments: Iterable[RemoteSegment]) -> Bytes | Reason:
    """``size`` is what the broker says the log holds: it knows how much of a preallocated active segment is written."""
    finished = [segment for segment in segments if segment.state is SegmentState.COPY_FINISHED]
    if not finished:
        return size
    try:
        local = _segment_files(folder)
        epoch_ends = read_epoch_ends(Path(folder))
    except FileNotFoundError:
        return Reason.CHANGING  # the replica has just left this log dir
    except OSError:
        return Reason.NO_PERMISSION
    if not local:
        return Reason.CHANGING
    bases, sizes = np.array(local, dtype=np.int64).T
    is_safe, _ = coverage(bases, *covered_ranges(finished, epoch_ends))
    closed, active = sizes[:-1], int(sizes[-1])
    written = max(min(active, size - int(closed.sum())), 0)
    return Bytes(int(closed[~is_safe[:-1]].sum()) + written)


def only_local_from_outside(
    connection: Connection, broker: BrokerId, partitions: Sequence[TopicPartition], timeout: timedelta, now: Clock
) -> Mapping[TopicPartition, Bytes | Reason]:
    """For partitions that ``broker`` leads."""
    topics = frozenset(partition.topic for partition in partitions)
    info = describe_with_remote_info(connection, topics, [broker], Deadline(timeout), now)
    wanted = set(partitions)
    found: dict[TopicPartition, Bytes | Reason] = dict.fromkeys(partitions, Reason.CHANGING)
    for log_dir in info.brokers[broker].answer().values():
        for partition, replica in log_dir.replicas.each():
            if partition in wanted and not replica.is_future:
                known = replica.only_local_size
                found[partition] = replica.only_local_size_reason if known is None else known
    return found


def _segment_files(folder: str) -> list[tuple[int, int]]:
    """Base offset and length of every live segment, in order."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            digits = entry.name.removesuffix(".log")
            if len(digits) == _SEGMENT_NAME == len(entry.name) - 4 and digits.isdecimal():
                try:
                    found.append((int(digits), entry.stat().st_size))
                except FileNotFoundError:
                    continue
    return sorted(found)
