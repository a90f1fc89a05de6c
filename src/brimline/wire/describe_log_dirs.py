"""An answer to DescribeLogDirs (key 35), versions 1 to 5 as shipped by Kafka and KIP-1187's version 5, read.

A broker may report a hundred thousand partitions, so the answer is decoded into columns. A partition is 21 fixed
bytes (37 in KIP-1187's layout), in flexible versions followed by the count of its tagged fields, which every released
broker sends as 0. The quick way relies on that: it steps over whole runs of partitions, joins them, and lets numpy read
all rows at once; then it checks every tag count. If one is not 0, or the steps led astray, the careful way reads the
log dir again field by field. It also reads the old encoding, and it alone reports errors.

``read_answer`` keeps everything, unknown tagged fields too, so that ``describe_log_dirs_answer`` can write it again in
another layout; ``decode_response`` makes facts of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from brimline.model import Bytes, KafkaError, LogDirDescription, Reason, ReplicaColumns
from brimline.model.log_dirs import UNKNOWN
from brimline.wire.describe_log_dirs_explained import (
    Explanation,
    decode_explanation,
    decode_log_dir_explanation,
    find_tag,
)
from brimline.wire.describe_log_dirs_request import Layout
from brimline.wire.primitives import Reader

NO_TAGS = b"\0"

_FIXED_FIELDS = [("partition", ">i4"), ("size", ">i8"), ("offset_lag", ">i8"), ("is_future", "u1")]
_REMOTE_FIELDS = [("remote_size", ">i8"), ("only_local_size", ">i8")]
_TAG_COUNT = [("tag_count", "u1")]
# Smallest possible encodings, to check a count before it is believed.
_SMALLEST_TOPIC = 3
_SMALLEST_LOG_DIR = 5
_LARGEST_COUNT_SHIFT = 21

Rows = npt.NDArray[np.void]
"""Partitions as they are on the wire, with the fields of ``row_type``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnsweredTopics:
    """The partitions of one log dir. ``counts`` tells how many of the rows belong to each name.

    The tags are sections as they stood on the wire, in the order of names and rows; ``None`` where nobody has any.
    """

    names: Sequence[str]
    counts: Sequence[int]
    rows: Rows
    topic_tags: Sequence[bytes] | None = None
    partition_tags: Sequence[bytes] | None = None

    def columns(self) -> ReplicaColumns:
        rows = self.rows
        return ReplicaColumns.of(
            topic_names=self.names,
            topic=np.repeat(np.arange(len(self.names), dtype=np.int32), self.counts),
            partition=rows["partition"].astype(np.int32),
            size=rows["size"].astype(np.int64),
            offset_lag=rows["offset_lag"].astype(np.int64),
            is_future=rows["is_future"] != 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnsweredLogDir:
    """-1 stands for unknown, as on the wire; ``is_cordoned`` is ``None`` where the layout has no such field."""

    error_code: int
    path: str
    topics: AnsweredTopics
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool | None
    tags: bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    throttle_time_ms: int
    error_code: int
    log_dirs: tuple[AnsweredLogDir, ...]
    tags: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponse:
    """``explanation`` comes from Brimline's gateway only, and only when it was asked for and there is one."""

    throttle_time_ms: int
    error: KafkaError | None
    log_dirs: tuple[LogDirDescription, ...]
    explanation: Explanation | None = None


def row_type(layout: Layout) -> np.dtype[np.void]:
    """One partition of this layout without tagged fields."""
    remote = _REMOTE_FIELDS if layout.has_remote_sizes else []
    return np.dtype([*_FIXED_FIELDS, *remote, *(_TAG_COUNT if layout.is_flexible else [])])


def decode_response(body: bytes | bytearray | memoryview, version: int) -> DescribeLogDirsResponse:
    return decode_layout(body, Layout(version))


def decode_layout(body: bytes | bytearray | memoryview, layout: Layout) -> DescribeLogDirsResponse:
    body = bytes(body)
    answer = read_answer(Reader(body, flexible=layout.is_flexible), layout, body)
    explained = find_tag(answer.tags) if layout.has_remote_sizes else None
    return DescribeLogDirsResponse(
        throttle_time_ms=answer.throttle_time_ms,
        error=_error(answer.error_code),
        log_dirs=tuple(description_of(log_dir) for log_dir in answer.log_dirs),
        explanation=None if explained is None else decode_explanation(explained),
    )


def description_of(log_dir: AnsweredLogDir) -> LogDirDescription:
    total, usable = log_dir.total_bytes, log_dir.usable_bytes
    is_cordoned, replicas = log_dir.is_cordoned, log_dir.topics.columns()
    if "remote_size" in (log_dir.topics.rows.dtype.names or ()):
        is_cordoned, replicas = _with_remote_sizes(log_dir, replicas)
    return LogDirDescription(
        path=log_dir.path,
        error=_error(log_dir.error_code),
        total_bytes=Bytes(total) if total >= 0 else None,
        usable_bytes=Bytes(usable) if usable >= 0 else None,
        is_cordoned=is_cordoned,
        replicas=replicas,
    )


def _with_remote_sizes(log_dir: AnsweredLogDir, replicas: ReplicaColumns) -> tuple[bool | None, ReplicaColumns]:
    """Without an explanation nobody knows why a size is unknown: whoever should have told did not."""
    rows = log_dir.topics.rows
    remote, only_local = rows["remote_size"].astype(np.int64), rows["only_local_size"].astype(np.int64)
    explained = find_tag(log_dir.tags)
    if explained is None:
        is_cordoned = None
        remote_reason, only_local_reason = (
            np.where(sizes > UNKNOWN, Reason.KNOWN, Reason.NO_ANSWER).astype(np.uint8) for sizes in (remote, only_local)
        )
    else:
        explanation = decode_log_dir_explanation(explained, len(replicas))
        is_cordoned = explanation.is_cordoned
        remote_reason, only_local_reason = explanation.remote_size_reason, explanation.only_local_size_reason
    return is_cordoned, replace(
        replicas,
        remote_size=remote,
        remote_size_reason=remote_reason,
        only_local_size=only_local,
        only_local_size_reason=only_local_reason,
    )


def _error(code: int) -> KafkaError | None:
    return None if code == 0 else KafkaError(code)


def read_answer(reader: Reader, layout: Layout, body: bytes) -> Answer:
    """``reader`` stands in ``body`` where the answer begins, behind its header."""
    # Legal topic names are ASCII, so that one decoding of everything serves them all; the quick way checks it.
    text = body.decode("latin-1")
    throttle_time_ms = reader.int32()
    error_code = reader.int16() if layout.has_error_code else 0
    log_dirs = tuple(
        _read_log_dir(reader, layout, body, text) for _ in range(reader.count(smallest_element=_SMALLEST_LOG_DIR) or 0)
    )
    return Answer(
        throttle_time_ms=throttle_time_ms, error_code=error_code, log_dirs=log_dirs, tags=_read_tags(reader, body)
    )


def _read_log_dir(reader: Reader, layout: Layout, body: bytes, text: str) -> AnsweredLogDir:
    error_code = reader.int16()
    path = reader.string()
    topics = _read_topics(reader, layout, body, text)
    total = reader.int64() if layout.has_volume_bytes else UNKNOWN
    usable = reader.int64() if layout.has_volume_bytes else UNKNOWN
    cordoned = reader.boolean() if layout.has_cordoned else None
    return AnsweredLogDir(
        error_code=error_code,
        path=path,
        topics=topics,
        total_bytes=total,
        usable_bytes=usable,
        is_cordoned=cordoned,
        tags=_read_tags(reader, body),
    )


def _read_tags(reader: Reader, body: bytes) -> bytes:
    start = reader.position
    reader.skip_tags()
    return body[start : reader.position] or NO_TAGS


def _read_topics(reader: Reader, layout: Layout, body: bytes, text: str) -> AnsweredTopics:
    if layout.is_flexible:
        start = reader.position
        try:
            return _read_topics_quickly(reader, layout, body, text)
        except _NotPlain:
            reader.position = start
    return _read_topics_carefully(reader, layout, body)


class _NotPlain(Exception):
    """The quick way met something it does not understand. Whether it is legal, the careful way finds out."""


def _read_topics_quickly(reader: Reader, layout: Layout, body: bytes, text: str) -> AnsweredTopics:
    """Fifty thousand topics pass through this loop, so it reads its few bytes by hand."""
    row = row_type(layout)
    row_size = row.itemsize
    names, counts, runs = [], [], []
    topic_count = reader.count(smallest_element=_SMALLEST_TOPIC) or 0
    at = reader.position
    try:
        for _ in range(topic_count):
            length = body[at]
            at += 1
            if length > 0x7F:
                if body[at] > 0x7F:
                    raise _NotPlain("a topic name of more than 16 KB")
                length += (body[at] - 1) << 7
                at += 1
            count_at = at + length - 1
            count = body[count_at]
            if not length or not count:
                raise _NotPlain("a null name or a null array")
            names.append(text[at:count_at])
            at = count_at + 1
            shift = 7
            while count >> (shift - 7) > 0x7F:
                if shift > _LARGEST_COUNT_SHIFT:
                    raise _NotPlain("a count of more than 28 bits")
                count += (body[at] - 1) << shift
                at += 1
                shift += 7
            if count < 1:
                raise _NotPlain("a number written with more bytes than it needs")
            counts.append(count - 1)
            run_end = at + (count - 1) * row_size
            runs.append(body[at:run_end])
            if body[run_end]:
                raise _NotPlain("a topic carries tagged fields")
            at = run_end + 1
    except IndexError:
        raise _NotPlain("the steps led out of the message") from None
    rows = np.frombuffer(b"".join(runs), dtype=row)
    if rows["tag_count"].any() or not "".join(names).isascii():
        raise _NotPlain("a partition carries tagged fields, or the steps led astray")
    reader.position = at
    return AnsweredTopics(names=names, counts=counts, rows=rows)


def _read_topics_carefully(reader: Reader, layout: Layout, body: bytes) -> AnsweredTopics:
    fixed = row_type(Layout(1, has_remote_sizes=layout.has_remote_sizes))
    names, counts, rows = [], [], []
    topic_tags, partition_tags = [], []
    for _ in range(reader.count(smallest_element=_SMALLEST_TOPIC) or 0):
        names.append(reader.string())
        count = reader.count(smallest_element=fixed.itemsize) or 0
        counts.append(count)
        for _ in range(count):
            rows.append(reader.take(fixed.itemsize))
            partition_tags.append(_read_tags(reader, body))
        topic_tags.append(_read_tags(reader, body))
    return AnsweredTopics(
        names=names,
        counts=counts,
        rows=np.frombuffer(b"".join(rows), dtype=fixed),
        topic_tags=topic_tags,
        partition_tags=partition_tags,
    )
