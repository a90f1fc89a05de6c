"""An answer to DescribeLogDirs written again, in the layout that the client asked for.

A broker answers in the newest layout that it knows. What that lacks is unknown (-1, not cordoned) until somebody adds
it: ``with_volume`` and ``with_remote_sizes``. Tagged fields that the broker sent and we do not know stay where they
are, in every struct that has a place for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat
from struct import Struct

import numpy as np

from brimline.model.failures import CLUSTER_AUTHORIZATION_FAILED
from brimline.model.log_dirs import UNKNOWN, Int64Column
from brimline.wire.describe_log_dirs import NO_TAGS, Answer, AnsweredLogDir, AnsweredTopics, Rows, read_answer, row_type
from brimline.wire.describe_log_dirs_request import KIP_1187, Layout
from brimline.wire.primitives import Malformed, Reader, Writer, encoded_count

LARGEST = 2**63 - 1
"""The largest number of bytes that an answer can tell (KIP-827)."""

_CORRELATION_ID = Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseHeader:
    correlation_id: int
    tags: bytes


def read_payload(payload: bytes | bytearray | memoryview, layout: Layout) -> tuple[ResponseHeader, Answer]:
    """A whole response; raises ``WireError`` if it is anything else, or more."""
    body = bytes(payload)
    reader = Reader(body, flexible=layout.is_flexible)
    correlation_id = reader.int32()
    tags_at = reader.position
    reader.skip_tags()
    header = ResponseHeader(correlation_id=correlation_id, tags=body[tags_at : reader.position] or NO_TAGS)
    answer = read_answer(reader, layout, body)
    if reader.remaining:
        raise Malformed(f"{reader.remaining} bytes behind the end of the answer")
    if not layout.has_error_code and not answer.log_dirs:
        # A refusal, which those versions have no word for: every broker has at least one log dir.
        answer = replace(answer, error_code=CLUSTER_AUTHORIZATION_FAILED)
    return header, answer


def write_payload(header: ResponseHeader, answer: Answer, layout: Layout) -> bytes:
    """In a flexible layout: nobody needs a translation into an older one, every broker speaks those itself."""
    assert layout.is_flexible
    return b"".join((_CORRELATION_ID.pack(header.correlation_id), header.tags, _written(answer, layout)))


def without_additions(payload: bytes | bytearray | memoryview, version: int, layout: Layout) -> bytes:
    """A broker's answer of ``version`` in the layout that was asked for; what it does not tell is unknown."""
    header, answer = read_payload(payload, Layout(version))
    return write_payload(header, answer, layout)


def with_volume(log_dir: AnsweredLogDir, total_bytes: int, usable_bytes: int) -> AnsweredLogDir:
    return replace(log_dir, total_bytes=min(total_bytes, LARGEST), usable_bytes=min(usable_bytes, LARGEST))


def with_remote_sizes(
    log_dir: AnsweredLogDir, size: Int64Column, remote_size: Int64Column, only_local_size: Int64Column
) -> AnsweredLogDir:
    """``size`` takes the place of the broker's, so that the three are of one moment."""
    rows = _rows_for(KIP_1187, log_dir.topics.rows).copy()
    rows["size"] = size
    rows["remote_size"] = remote_size
    rows["only_local_size"] = only_local_size
    return replace(log_dir, topics=replace(log_dir.topics, rows=rows))


def _rows_for(layout: Layout, rows: Rows) -> Rows:
    """The rows with the fields of this layout; what they did not tell is unknown, and nobody has tagged fields."""
    wanted = row_type(layout)
    if rows.dtype == wanted:
        return rows
    found: Rows = np.zeros(len(rows), dtype=wanted)
    for name in wanted.names or ():
        if name in (rows.dtype.names or ()):
            found[name] = rows[name]
        elif name != "tag_count":
            found[name] = UNKNOWN
    return found


def _written(answer: Answer, layout: Layout) -> bytes:
    writer = Writer(flexible=True)
    writer.int32(answer.throttle_time_ms)
    if layout.has_error_code:
        writer.int16(answer.error_code)
    writer.count(len(answer.log_dirs))
    for log_dir in answer.log_dirs:
        _write_log_dir(writer, log_dir, layout)
    writer.raw(answer.tags)
    return writer.finish()


def _write_log_dir(writer: Writer, log_dir: AnsweredLogDir, layout: Layout) -> None:
    writer.int16(log_dir.error_code)
    writer.string(log_dir.path)
    writer.raw(_written_topics(log_dir.topics, layout))
    if layout.has_volume_bytes:
        writer.int64(log_dir.total_bytes)
        writer.int64(log_dir.usable_bytes)
    if layout.has_cordoned:
        writer.int8(bool(log_dir.is_cordoned))
    writer.raw(log_dir.tags)


def _written_topics(topics: AnsweredTopics, layout: Layout) -> bytes:
    """Fifty thousand topics pass through this loop, so their few bytes are put together by hand."""
    row_size = row_type(layout).itemsize
    rows = memoryview(_rows_for(layout, topics.rows).tobytes())
    topic_tags = repeat(NO_TAGS) if topics.topic_tags is None else topics.topic_tags
    parts: list[bytes | memoryview] = [_length(len(topics.names))]
    end = 0
    for name, count, tags in zip(topics.names, topics.counts, topic_tags, strict=False):
        encoded = name.encode()
        start, end = end, end + count * row_size
        if topics.partition_tags is None:
            parts += (_length(len(encoded)), encoded, _length(count), rows[start:end], tags)
        else:
            parts += (_length(len(encoded)), encoded, _length(count))
            first = start // row_size
            parts += _tagged_rows(rows[start:end], row_size, topics.partition_tags[first : first + count])
            parts.append(tags)
    return b"".join(parts)


def _tagged_rows(rows: memoryview, row_size: int, tags: Sequence[bytes]) -> list[bytes | memoryview]:
    """Each row ends in its own tagged fields instead of the count of none."""
    parts: list[bytes | memoryview] = []
    for row, section in enumerate(tags):
        parts += (rows[row * row_size : (row + 1) * row_size - len(NO_TAGS)], section)
    return parts


@lru_cache(maxsize=4096)
def _length(length: int) -> bytes:
    """What stands before a string or an array of this length."""
    return encoded_count(length, flexible=True)
