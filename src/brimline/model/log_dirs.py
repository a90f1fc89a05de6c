"""What a broker says about its log dirs, in the shapes of KIP-827 and KIP-1187.

The replicas of a log dir are kept as columns: a broker may hold a hundred thousand of them, and most questions
(totals, the largest, those of one topic) are asked of all at once. ``LogDirDescription.replica_infos`` gives the
same facts one object at a time, under the KIPs' names.

In a column -1 stands for "unknown", as on the wire; everywhere else unknown is ``None`` with a reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from brimline.model.failures import Failure, KafkaError, ObservationFailed
from brimline.model.partitions import TopicPartition
from brimline.model.quantities import BrokerId, Bytes, Labelled

Int64Column: TypeAlias = npt.NDArray[np.int64]
Int32Column: TypeAlias = npt.NDArray[np.int32]
BoolColumn: TypeAlias = npt.NDArray[np.bool_]
ReasonColumn: TypeAlias = npt.NDArray[np.uint8]

UNKNOWN = -1


class Reason(Labelled):
    """Why a remote or only-local size is unknown. The order is free: the number never leaves the process."""

    KNOWN = 0
    NOT_ASKED = 1
    NOT_TIERED = 2
    FUTURE_REPLICA = 3
    FOLLOWER = 4
    NO_LEADER = 5
    NO_PERMISSION = 6
    METADATA_TOPIC_ABSENT = 7
    OTHER_METADATA_MANAGER = 8
    BROKER_TOO_OLD = 9
    LOG_START_MOVED = 10
    BOUNDARIES_DIFFER = 11
    CHANGING = 12
    NO_ANSWER = 13
    OTHER_LINEAGE = 14
    CODEC_MISSING = 15

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Reason.KNOWN: "known",
    Reason.NOT_ASKED: "remote information was not asked for",
    Reason.NOT_TIERED: "the topic is not tiered (remote.storage.enable is false)",
    Reason.FUTURE_REPLICA: "a future replica: nothing is uploaded from it",
    Reason.FOLLOWER: "unknown for followers: only the leader's local log start is known",
    Reason.NO_LEADER: "the partition has no leader to ask",
    Reason.NO_PERMISSION: (
        "no permission: needs DESCRIBE and DESCRIBE_CONFIGS on the topic, DESCRIBE and READ on __remote_log_metadata"
    ),
    Reason.METADATA_TOPIC_ABSENT: "the topic __remote_log_metadata does not exist",
    Reason.OTHER_METADATA_MANAGER: "the brokers keep remote log metadata in another RemoteLogMetadataManager",
    Reason.BROKER_TOO_OLD: "the broker is too old to tell its local log start (needs Kafka 3.6)",
    Reason.LOG_START_MOVED: (
        "log start equals local log start: segments below may await deletion, which only the disk shows"
    ),
    Reason.BOUNDARIES_DIFFER: "uploads and local log do not match",
    Reason.CHANGING: "the partition changed meanwhile; ask again",
    Reason.NO_ANSWER: "a broker that has it did not answer",
    Reason.OTHER_LINEAGE: "uploads of an earlier leader differ from this leader's log (unclean election)",
    Reason.CODEC_MISSING: "__remote_log_metadata is compressed with a codec that is not installed: brimline[codecs]",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaInfo:
    """One replica in one log dir (KIP-1187's ``ReplicaInfo``; ``None`` is its empty OptionalLong)."""

    size: Bytes
    offset_lag: int
    is_future: bool
    remote_size: Bytes | None = None
    only_local_size: Bytes | None = None
    remote_size_reason: Reason = Reason.NOT_ASKED
    only_local_size_reason: Reason = Reason.NOT_ASKED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplicaColumns:
    """The replicas of one log dir, a row each. ``topic`` holds positions in ``topic_names``."""

    topic_names: tuple[str, ...]
    topic: Int32Column
    partition: Int32Column
    size: Int64Column
    offset_lag: Int64Column
    is_future: BoolColumn
    remote_size: Int64Column
    remote_size_reason: ReasonColumn
    only_local_size: Int64Column
    only_local_size_reason: ReasonColumn

    def __len__(self) -> int:
        return len(self.size)

    def topic_partition(self, row: int) -> TopicPartition:
        return TopicPartition(self.topic_names[self.topic[row]], int(self.partition[row]))

    def replica_info(self, row: int) -> ReplicaInfo:
        return ReplicaInfo(
            size=Bytes(int(self.size[row])),
            offset_lag=int(self.offset_lag[row]),
            is_future=bool(self.is_future[row]),
            remote_size=_known(self.remote_size[row]),
            only_local_size=_known(self.only_local_size[row]),
            remote_size_reason=Reason(self.remote_size_reason[row]),
            only_local_size_reason=Reason(self.only_local_size_reason[row]),
        )

    def each(self) -> Iterator[tuple[TopicPartition, ReplicaInfo]]:
        for row in range(len(self)):
            yield self.topic_partition(row), self.replica_info(row)

    def only_topics(self, wanted: frozenset[str]) -> "ReplicaColumns":
        keep_topic = np.array([name in wanted for name in self.topic_names], dtype=np.bool_)
        keep = keep_topic[self.topic] if len(self) else np.zeros(0, dtype=np.bool_)
        return ReplicaColumns(
            topic_names=self.topic_names,
            topic=self.topic[keep],
            partition=self.partition[keep],
            size=self.size[keep],
            offset_lag=self.offset_lag[keep],
            is_future=self.is_future[keep],
            remote_size=self.remote_size[keep],
            remote_size_reason=self.remote_size_reason[keep],
            only_local_size=self.only_local_size[keep],
            only_local_size_reason=self.only_local_size_reason[keep],
        )

    @classmethod
    def of(
        cls,
        *,
        topic_names: Sequence[str],
        topic: Int32Column,
        partition: Int32Column,
        size: Int64Column,
        offset_lag: Int64Column,
        is_future: BoolColumn,
    ) -> "ReplicaColumns":
        """Columns as a stock broker gives them: nothing remote was asked for."""
        unknown = np.full(len(size), UNKNOWN, dtype=np.int64)
        reason = np.full(len(size), Reason.NOT_ASKED, dtype=np.uint8)
        return cls(
            topic_names=tuple(topic_names),
            topic=topic,
            partition=partition,
            size=size,
            offset_lag=offset_lag,
            is_future=is_future,
            remote_size=unknown,
            remote_size_reason=reason,
            only_local_size=unknown,
            only_local_size_reason=reason,
        )


def _known(value: np.int64 | int) -> Bytes | None:
    return None if value < 0 else Bytes(int(value))


@dataclass(frozen=True, kw_only=True, eq=False)
class LogDirDescription:
    """One log dir of one broker (KIP-827's ``LogDirDescription``).

    ``total_bytes`` and ``usable_bytes`` are those of the volume under the log dir; ``None`` when the broker is
    older than 3.3 or could not read the dir (then ``error`` says why).
    """

    path: str
    error: KafkaError | None
    total_bytes: Bytes | None
    usable_bytes: Bytes | None
    is_cordoned: bool | None
    replicas: ReplicaColumns

    @cached_property
    def replica_infos(self) -> Mapping[TopicPartition, ReplicaInfo]:
        return dict(self.replicas.each())

    @cached_property
    def replica_bytes(self) -> Bytes:
        # In Python's integers: a hostile broker could make numpy's wrap around.
        return Bytes(sum(self.replicas.size.tolist()))


@dataclass(frozen=True, kw_only=True, eq=False)
class BrokerLogDirs:
    """What one broker answered, and when; or why it did not (then ``log_dirs`` is empty)."""

    broker: BrokerId
    address: str
    observed_at: datetime
    log_dirs: Mapping[str, LogDirDescription]
    failure: Failure | None = None

    def answer(self) -> Mapping[str, LogDirDescription]:
        """The log dirs, or the failure raised."""
        if self.failure is not None:
            raise ObservationFailed(self.failure)
        return self.log_dirs
