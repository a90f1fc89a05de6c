"""Only-local sizes of replicas, and which offsets of a log its finished uploads cover.

An upload covers offsets of a log only if it is of that log's lineage: after an unclean election other records stand at
the same offsets. A log keeps its leader epochs in ``leader-epoch-checkpoint`` beside its segments; an upload is of the
lineage if the epoch of its last batch ends behind it there.

How much of a replica only its local disk holds: from the files themselves, else from the outside.

**From the files** the figure is exact, on leaders and followers alike: a closed segment counts as uploaded when
finished uploads of this log's lineage cover all its offsets; every other segment is only local. It is the union of the
uploads that counts, since a follower rolls its segments where it likes, and a new leader uploads from its own. Names
and lengths of files are enough, and the log's own list of leader epochs. Files come and go while the broker lives, that
is no error: a segment that vanishes between listing and looking was just deleted, so it was uploaded.

**From the outside**, where the log dir may not be read, ``info`` works it out for led partitions; there the figure is
sometimes unknowable, and says so, and all remote log metadata is read anew for it.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np

from brimline.model import BrokerId, Bytes, Reason, TopicPartition
from brimline.model.scan import BoolColumn, Int64Column
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.log_dirs import Clock
from brimline.observe.remote.info import describe_with_remote_info
from brimline.wire.remote_log_metadata import RemoteSegment, SegmentState

# Epoch → the first offset after it in the log.
EpochEnds = Mapping[int, int]

_CHECKPOINT = "leader-epoch-checkpoint"
_HEADER_LINES = 2
_NO_END = np.iinfo(np.int64).max


def read_epoch_ends(folder: Path) -> EpochEnds:
    """The epochs of the log in ``folder``; raises ``OSError`` where the file cannot be read."""
    lines = (folder / _CHECKPOINT).read_text("ascii").splitlines()[_HEADER_LINES:]
    starts = [tuple(map(int, line.split())) for line in lines]
    ends = {epoch: end for (epoch, _), (_, end) in pairwise(starts)}
    return {**ends, starts[-1][0]: int(_NO_END)} if starts else {}


def covered_ranges(uploads: Iterable[RemoteSegment], epoch_ends: EpochEnds) -> tuple[Int64Column, Int64Column]:
    """The union of the finished uploads of this lineage: ranges that do not touch, from begin up to, without, end."""
    begins: list[int] = []
    ends: list[int] = []
    covering = (
        upload
        for upload in uploads
        if upload.state is SegmentState.COPY_FINISHED
        and epoch_ends.get(upload.last_leader_epoch, -1) > upload.end_offset
    )
    for upload in sorted(covering, key=lambda upload: upload.start_offset):
        if ends and upload.start_offset <= ends[-1]:
            ends[-1] = max(ends[-1], upload.end_offset + 1)
        else:
            begins.append(upload.start_offset)
            ends.append(upload.end_offset + 1)
    return np.array(begins, dtype=np.int64), np.array(ends, dtype=np.int64)


def coverage(base_offsets: Int64Column, begins: Int64Column, ends: Int64Column) -> tuple[BoolColumn, BoolColumn]:
    """Which segments of one log the ranges cover wholly, and which they touch. The last segment's end is not known."""
    segments = len(base_offsets)
    if not segments or not len(begins):
        return np.zeros(segments, dtype=np.bool_), np.zeros(segments, dtype=np.bool_)
    next_base = np.append(base_offsets[1:], _NO_END)
    at = np.searchsorted(begins, base_offsets, side="right") - 1
    is_safe = (at >= 0) & (ends[at] >= next_base)
    first_ending_after = np.searchsorted(ends, base_offsets, side="right")
    is_touched = np.zeros(segments, dtype=np.bool_)
    inside = first_ending_after < len(begins)
    is_touched[inside] = begins[first_ending_after[inside]] < next_base[inside]
    return np.asarray(is_safe, dtype=np.bool_), is_touched


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
    # The files are looked at after the broker told its size: what has grown since is of the next look.
    return Bytes(min(int(closed[~is_safe[:-1]].sum()) + written, size))


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
