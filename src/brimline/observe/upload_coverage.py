"""Which offsets of a log its finished uploads cover.

An upload covers offsets of a log only if it is of that log's lineage: after an unclean election other records stand at
the same offsets. A log keeps its leader epochs in ``leader-epoch-checkpoint`` beside its segments; an upload is of the
lineage if the epoch of its last batch ends behind it there.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from brimline.model.scan import BoolColumn, Int64Column
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
