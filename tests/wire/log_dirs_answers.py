"""Answers to DescribeLogDirs as tests think of them, and kafka-python's encoding of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack

from hypothesis import strategies as st
from kafka.protocol.admin import DescribeLogDirsResponse

INT64_MAX = 2**63 - 1

Result = DescribeLogDirsResponse.DescribeLogDirsResult
ResultTopic = Result.DescribeLogDirsTopic
ResultPartition = ResultTopic.DescribeLogDirsPartition


@dataclass(frozen=True)
class Row:
    topic: str
    partition: int
    size: int
    offset_lag: int
    is_future: bool
    remote_size: int = -1
    only_local_size: int = -1


topic_names = st.text("abcXYZ019._-", min_size=1, max_size=249)
rows = st.builds(
    Row,
    topic=topic_names,
    partition=st.integers(0, 2**31 - 1),
    size=st.integers(0, INT64_MAX),
    offset_lag=st.integers(-1, INT64_MAX),
    is_future=st.booleans(),
)
volume_bytes = st.one_of(st.just(-1), st.integers(0, INT64_MAX))


@dataclass(frozen=True)
class Dir:
    path: str
    error_code: int
    rows: Sequence[Row]
    total: int
    usable: int
    cordoned: bool


dirs = st.builds(
    Dir,
    path=st.text(min_size=1, max_size=40),
    error_code=st.sampled_from([0, 56, -1, 999]),
    rows=st.lists(rows, max_size=200, unique_by=lambda row: (row.topic, row.partition)),
    total=volume_bytes,
    usable=volume_bytes,
    cordoned=st.booleans(),
)


def encoded(log_dirs: Sequence[Dir], version: int, error_code: int = 0) -> bytes:
    results = []
    for log_dir in log_dirs:
        topics: dict[str, list[object]] = {}
        for row in log_dir.rows:
            topics.setdefault(row.topic, []).append(
                ResultPartition(
                    partition_index=row.partition,
                    partition_size=row.size,
                    offset_lag=row.offset_lag,
                    is_future_key=row.is_future,
                )
            )
        results.append(
            Result(
                error_code=log_dir.error_code,
                log_dir=log_dir.path,
                topics=[ResultTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
                total_bytes=log_dir.total,
                usable_bytes=log_dir.usable,
                is_cordoned=log_dir.cordoned,
            )
        )
    answer = DescribeLogDirsResponse(throttle_time_ms=7, error_code=error_code, results=results)
    return bytes(answer.encode(version=version))


class LayoutWriter:
    """An encoder of its own for flexible layouts: KIP-1187's, which kafka-python does not know, and tagged fields.

    ``tags`` is the section that ends every struct, so that each place for one is used.
    """

    def __init__(self, version: int, *, remote: bool = False, tags: bytes = b"\0") -> None:
        self._version = version
        self._remote = remote
        self._tags = tags

    def payload(self, log_dirs: Sequence[Dir], *, correlation_id: int = 7, error_code: int = 0) -> bytes:
        error = pack(">h", error_code) if self._version >= 3 else b""
        body = pack(">i", 7) + error + self._array([self._log_dir(log_dir) for log_dir in log_dirs])
        return pack(">i", correlation_id) + self._tags + body + self._tags

    def _log_dir(self, log_dir: Dir) -> bytes:
        by_topic: dict[str, list[Row]] = {}
        for row in log_dir.rows:
            by_topic.setdefault(row.topic, []).append(row)
        topics = [
            self._string(name) + self._array([self._partition(row) for row in rows]) + self._tags
            for name, rows in by_topic.items()
        ]
        volume = pack(">qq", log_dir.total, log_dir.usable) if self._version >= 4 else b""
        cordoned = pack(">?", log_dir.cordoned) if self._version >= 5 and not self._remote else b""
        fields = pack(">h", log_dir.error_code) + self._string(log_dir.path) + self._array(topics)
        return fields + volume + cordoned + self._tags

    def _partition(self, row: Row) -> bytes:
        fixed = pack(">iqq?", row.partition, row.size, row.offset_lag, row.is_future)
        remote = pack(">qq", row.remote_size, row.only_local_size) if self._remote else b""
        return fixed + remote + self._tags

    def _string(self, value: str) -> bytes:
        encoded_value = value.encode()
        return uvarint(len(encoded_value) + 1) + encoded_value

    def _array(self, elements: Sequence[bytes]) -> bytes:
        return uvarint(len(elements) + 1) + b"".join(elements)


def uvarint(value: int) -> bytes:
    groups = []
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def tag_section(*fields: tuple[int, bytes]) -> bytes:
    return uvarint(len(fields)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in fields)
