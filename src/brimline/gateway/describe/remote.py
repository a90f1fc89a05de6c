"""KIP-1187's figures for what a broker answered to somebody else, worked out by a client of our own.

The client's own request went to the broker over the client's own connection, so the broker has decided what it may
see; here only numbers are added to that. They are worked out as ``observe.remote.info`` does it for everybody, and what
cannot be known from outside (followers, moved log starts) by the files, beside which the gateway stands.

**The sizes are looked at again.** Uploads must be known before local sizes are taken, and the answer was given before
anybody asked about uploads: a segment that grew, closed and was uploaded since would be subtracted with more bytes than
the answer counts for it. So the tiered partitions of the answer are described once more in between, and the newer size
takes the place of the older, so that the three figures of a partition are of one moment.

**A job that runs out of time is not in vain.** The first look at a large ``__remote_log_metadata`` may take longer than
a client waits. It then gets no remote figures, but what was read stays read, and a later job goes on from there.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from brimline.gateway.describe.job import BrokerAccess
from brimline.model import (
    BrokerId,
    BrokerLogDirs,
    Bytes,
    Failure,
    FailureKind,
    LogDirDescription,
    ObservationFailed,
    Reason,
    ReplicaColumns,
    TopicPartition,
)
from brimline.model.log_dirs import UNKNOWN, BoolColumn
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.log_dirs import describe_log_dirs
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry
from brimline.observe.remote.info import begin_look, finish_look
from brimline.observe.remote.only_local import only_local_in_files
from brimline.observe.remote.remote_log import RemoteLogFollower
from brimline.wire.remote_log_metadata import RemoteSegment

_ROUNDS = 3
"""A broker that hangs costs one round's time, and two more are left for the others."""
_IDLE_SECONDS = 60.0
"""Brokers close connections that nobody uses; one that was not used for so long is not relied on."""

_Row = tuple[str, int, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAnswer:
    """The log dirs of the answer, in its order, with their remote columns filled and newer sizes where needed."""

    log_dirs: Sequence[LogDirDescription]
    skipped_records: int
    notes: tuple[str, ...]


class RemoteSizes:
    """One broker's, with a connection that is kept from job to job. Used by one thread."""

    def __init__(self, broker: BrokerAccess, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises ``BadInput`` if the client properties cannot be used."""
        properties = JavaProperties(
            PropertyEntry(key, value, "the gateway's own client") for key, value in broker.client_properties.items()
        )
        self._config = ClientConfig.from_properties(broker.bootstrap_servers, properties)
        self._broker = BrokerId(broker.node_id)
        self._clock = clock
        self._follower = RemoteLogFollower()
        self._connection: Connection | None = None
        self._used_at = 0.0

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def of(self, log_dirs: Sequence[LogDirDescription], topics: Sequence[str] | None, answer_by: float) -> RemoteAnswer:
        """``topics`` limits whose figures are wanted. Raises ``ObservationFailed`` if none can be had in time."""
        held = {name for log_dir in log_dirs for name in log_dir.replicas.topic_names}
        wanted = frozenset(held if topics is None else held.intersection(topics))
        if self._clock() - self._used_at > _IDLE_SECONDS:
            self.close()
        was_connected = self._connection is not None
        try:
            return self._worked_out(log_dirs, wanted, answer_by)
        except ObservationFailed:
            self.close()
            if not was_connected or self._clock() >= answer_by:
                raise
        # The broker may have been restarted since the last job.
        return self._worked_out(log_dirs, wanted, answer_by)

    def _worked_out(
        self, log_dirs: Sequence[LogDirDescription], topics: frozenset[str], answer_by: float
    ) -> RemoteAnswer:
        self._expect_time_left(answer_by)
        round_time = timedelta(seconds=(answer_by - self._clock()) / _ROUNDS)
        if self._connection is None:
            self._connection = Connection(replace(self._config, api_timeout=round_time))
        self._used_at = self._clock()
        connection, deadline = self._connection, Deadline(round_time)
        look = begin_look(
            connection, topics, [self._broker], deadline, self._follower, lambda *_: self._expect_time_left(answer_by)
        )
        tiered = frozenset(look.tiered_topics)
        newer = self._newer_sizes(log_dirs, tiered, connection, deadline) if tiered else {}
        brought_up_to_date = [_with_newer_sizes(log_dir, newer.get(log_dir.path, {})) for log_dir in log_dirs]
        described = BrokerLogDirs(
            broker=self._broker,
            address="",
            observed_at=_now(),
            # Not by path: nothing forbids a broker to name one twice.
            log_dirs={str(index): log_dir for index, log_dir in enumerate(brought_up_to_date)},
        )

        def on_disk(
            path: str, partition: TopicPartition, size: Bytes, uploads: Iterable[RemoteSegment]
        ) -> Bytes | Reason:
            # Thousands of folders may take longer than the client waits: the rest keep their reasons.
            is_late = self._clock() >= answer_by
            return Reason.CHANGING if is_late else only_local_in_files(f"{path}/{partition}", size, uploads)

        info = finish_look(connection, topics, look, {self._broker: described}, deadline, on_disk)
        return RemoteAnswer(
            log_dirs=[
                _without_stale_figures(log_dir, _is_stale(log_dir.replicas, tiered, newer.get(log_dir.path, {})))
                for log_dir in info.brokers[self._broker].log_dirs.values()
            ],
            skipped_records=info.skipped_records,
            notes=info.notes,
        )

    def _expect_time_left(self, answer_by: float) -> None:
        if self._clock() >= answer_by:
            message = "it takes longer than the client waits; ask again, what was read is kept"
            raise ObservationFailed(Failure(kind=FailureKind.TIMED_OUT, message=message))

    def _newer_sizes(
        self,
        log_dirs: Sequence[LogDirDescription],
        tiered: frozenset[str],
        connection: Connection,
        deadline: Deadline,
    ) -> dict[str, dict[_Row, int]]:
        """By log dir, the present sizes of the partitions in the answer that belong to these topics."""
        partitions: dict[str, set[int]] = defaultdict(set)
        for log_dir in log_dirs:
            for row in np.flatnonzero(_is_of(log_dir.replicas, tiered)).tolist():
                partition = log_dir.replicas.topic_partition(row)
                partitions[partition.topic].add(partition.partition)
        asked = {topic: sorted(numbers) for topic, numbers in partitions.items()}
        described = describe_log_dirs(connection, [self._broker], deadline.renewed(), _now, asked)[self._broker]
        return {path: _sizes(log_dir.replicas) for path, log_dir in described.answer().items()}


def _now() -> datetime:
    return datetime.now(UTC)


def _rows(replicas: ReplicaColumns) -> list[_Row]:
    """A log dir may hold a partition twice: as it is, and as a future replica."""
    names = replicas.topic_names
    return [
        (names[topic], partition, is_future)
        for topic, partition, is_future in zip(
            replicas.topic.tolist(), replicas.partition.tolist(), replicas.is_future.tolist(), strict=True
        )
    ]


def _sizes(replicas: ReplicaColumns) -> dict[_Row, int]:
    return dict(zip(_rows(replicas), replicas.size.tolist(), strict=True))


def _is_of(replicas: ReplicaColumns, topics: frozenset[str]) -> BoolColumn:
    is_wanted: BoolColumn = np.array([name in topics for name in replicas.topic_names], dtype=np.bool_)
    return is_wanted[replicas.topic]


def _with_newer_sizes(log_dir: LogDirDescription, newer: dict[_Row, int]) -> LogDirDescription:
    if not newer:
        return log_dir
    replicas = log_dir.replicas
    size = np.array(
        [newer.get(row, known) for row, known in zip(_rows(replicas), replicas.size.tolist(), strict=True)],
        dtype=np.int64,
    )
    return replace(log_dir, replicas=replace(replicas, size=size))


def _is_stale(replicas: ReplicaColumns, tiered: frozenset[str], newer: dict[_Row, int]) -> BoolColumn:
    """Which rows have no newer size, and should: their partition has just left this log dir."""
    is_old: BoolColumn = np.array([row not in newer for row in _rows(replicas)], dtype=np.bool_)
    stale: BoolColumn = is_old & _is_of(replicas, tiered)
    return stale


def _without_stale_figures(log_dir: LogDirDescription, is_stale: BoolColumn) -> LogDirDescription:
    replicas = log_dir.replicas
    is_wrong = is_stale & (replicas.only_local_size_reason == Reason.KNOWN)
    return replace(
        log_dir,
        replicas=replace(
            replicas,
            only_local_size=np.where(is_wrong, UNKNOWN, replicas.only_local_size),
            only_local_size_reason=np.where(is_wrong, Reason.CHANGING, replicas.only_local_size_reason).astype(
                np.uint8
            ),
        ),
    )
