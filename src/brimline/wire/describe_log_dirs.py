"""DescribeLogDirs (key 35), versions 1 to 5 as shipped by Kafka.

Version 5 is the one of Kafka 4.3 (IsCordoned), not the one that KIP-1187 sketches under the same number.

A broker may report a hundred thousand partitions, so the answer is decoded into columns. A partition is 21 fixed
bytes, in flexible versions followed by the count of its tagged fields, which every released broker sends as 0.
The quick way relies on that: it steps over whole runs of partitions, joins them, and lets numpy read all rows at
once; then it checks every tag count. If one is not 0, or the steps led astray, the careful way reads the log dir
again field by field. It also reads the old encoding, and it alone reports errors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from brimline.model import Bytes, KafkaError, LogDirDescription, ReplicaColumns
from brimline.wire.primitives import Reader, Writer

API_KEY = 35
MIN_VERSION = 1
MAX_VERSION = 5
FIRST_FLEXIBLE_VERSION = 2
_FIRST_VERSION_WITH_ERROR_CODE = 3
_FIRST_VERSION_WITH_VOLUME_BYTES = 4
_FIRST_VERSION_WITH_CORDONED = 5

_FIXED_FIELDS = [("partition", ">i4"), ("size", ">i8"), ("offset_lag", ">i8"), ("is_future", "u1")]
_ROW = np.dtype(_FIXED_FIELDS)
_FLEXIBLE_ROW = np.dtype([*_FIXED_FIELDS, ("tag_count", "u1")])
# Smallest possible encodings, to check a count before it is believed.
_SMALLEST_TOPIC = 3
_SMALLEST_LOG_DIR = 5
_LARGEST_COUNT_SHIFT = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponse:
    throttle_time_ms: int
    error: KafkaError | None
    log_dirs: tuple[LogDirDescription, ...]


def is_flexible(version: int) -> bool:
    return version >= FIRST_FLEXIBLE_VERSION


def encode_request(version: int, topics: Mapping[str, Sequence[int]] | None) -> bytes:
    """``None`` asks for every partition; an empty mapping for the volumes' bytes alone."""
    writer = Writer(flexible=is_flexible(version))
    writer.count(None if topics is None else len(topics))
    for topic, partitions in (topics or {}).items():
        writer.string(topic)
        writer.count(len(partitions))
        for partition in partitions:
            writer.int32(partition)
        writer.no_tags()
    writer.no_tags()
    return writer.finish()


def decode_response(body: bytes | bytearray | memoryview, version: int) -> DescribeLogDirsResponse:
    body = bytes(body)
    reader = Reader(body, flexible=is_flexible(version))
    # Legal topic names are ASCII, so that one decoding of everything serves them all; the quick way checks it.
    text = body.decode("latin-1")
    throttle_time_ms = reader.int32()
    error_code = reader.int16() if version >= _FIRST_VERSION_WITH_ERROR_CODE else 0
    log_dirs = tuple(
        _decode_log_dir(reader, version, body, text)
        for _ in range(reader.count(smallest_element=_SMALLEST_LOG_DIR) or 0)
    )
    reader.skip_tags()
    return DescribeLogDirsResponse(throttle_time_ms=throttle_time_ms, error=_error(error_code), log_dirs=log_dirs)


def _decode_log_dir(reader: Reader, version: int, body: bytes, text: str) -> LogDirDescription:
    error_code = reader.int16()
    path = reader.string()
    replicas = _decode_replicas(reader, body, text)
    has_volume_bytes = version >= _FIRST_VERSION_WITH_VOLUME_BYTES
    total = reader.int64() if has_volume_bytes else -1
    usable = reader.int64() if has_volume_bytes else -1
    cordoned = reader.boolean() if version >= _FIRST_VERSION_WITH_CORDONED else None
    reader.skip_tags()
    return LogDirDescription(
        path=path,
        error=_error(error_code),
        total_bytes=Bytes(total) if total >= 0 else None,
        usable_bytes=Bytes(usable) if usable >= 0 else None,
        is_cordoned=cordoned,
        replicas=replicas,
    )


def _error(code: int) -> KafkaError | None:
    return None if code == 0 else KafkaError(code)


def _decode_replicas(reader: Reader, body: bytes, text: str) -> ReplicaColumns:
    if reader.flexible:
        start = reader.position
        try:
            return _decode_replicas_quickly(reader, body, text)
        except _NotPlain:
            reader.position = start
    return _decode_replicas_carefully(reader)


class _NotPlain(Exception):
    """The quick way met something it does not understand. Whether it is legal, the careful way finds out."""


def _decode_replicas_quickly(reader: Reader, body: bytes, text: str) -> ReplicaColumns:
    """Fifty thousand topics pass through this loop, so it reads its few bytes by hand."""
    row_size = _FLEXIBLE_ROW.itemsize
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
    rows = np.frombuffer(b"".join(runs), dtype=_FLEXIBLE_ROW)
    if rows["tag_count"].any() or not "".join(names).isascii():
        raise _NotPlain("a partition carries tagged fields, or the steps led astray")
    reader.position = at
    return _columns(names, counts, rows)


def _decode_replicas_carefully(reader: Reader) -> ReplicaColumns:
    names, counts, values = [], [], []
    for _ in range(reader.count(smallest_element=_SMALLEST_TOPIC) or 0):
        names.append(reader.string())
        count = reader.count(smallest_element=_ROW.itemsize) or 0
        counts.append(count)
        for _ in range(count):
            values.append((reader.int32(), reader.int64(), reader.int64(), reader.boolean()))
            reader.skip_tags()
        reader.skip_tags()
    return _columns(names, counts, np.array(values, dtype=_ROW))


def _columns(names: list[str], counts: list[int], rows: npt.NDArray[np.void]) -> ReplicaColumns:
    return ReplicaColumns.of(
        topic_names=names,
        topic=np.repeat(np.arange(len(names), dtype=np.int32), counts),
        partition=rows["partition"].astype(np.int32),
        size=rows["size"].astype(np.int64),
        offset_lag=rows["offset_lag"].astype(np.int64),
        is_future=rows["is_future"] != 0,
    )
