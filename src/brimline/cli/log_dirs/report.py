"""The one result that every rendering shows: what the brokers said, and which part of it was asked for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from brimline.model import BrokerId, BrokerLogDirs, LogDirDescription, ReplicaColumns, ReplicaInfo, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReplica:
    """One line of a table."""

    broker: BrokerId
    log_dir: str
    partition: TopicPartition
    info: ReplicaInfo


@dataclass(frozen=True, kw_only=True, eq=False)
class LogDirsReport:
    """Answers by broker. Volumes and log dirs are always whole; ``topics`` limits which replicas are shown.

    ``notes`` are sentences about remote information that could not be read.
    """

    brokers: Mapping[BrokerId, BrokerLogDirs]
    topics: frozenset[str] | None = None
    include_remote_info: bool = False
    skipped_records: int = 0
    notes: tuple[str, ...] = ()

    @property
    def answers(self) -> list[BrokerLogDirs]:
        """By broker id."""
        return [self.brokers[broker] for broker in sorted(self.brokers)]

    @property
    def failed(self) -> list[BrokerLogDirs]:
        return [answer for answer in self.answers if answer.failure is not None]

    def replicas(self, log_dir: LogDirDescription) -> ReplicaColumns:
        """The replicas to show, as the broker ordered them."""
        return log_dir.replicas if self.topics is None else log_dir.replicas.only_topics(self.topics)

    def largest(self, count: int | None) -> Iterator[ShownReplica]:
        """The largest replicas of all brokers, or all of them; equal sizes by broker, log dir and name."""
        places = [
            (answer.broker, log_dir.path, self.replicas(log_dir))
            for answer in self.answers
            for log_dir in log_dirs_by_path(answer)
        ]
        if not places:
            return
        by_name = [rows_by_name(columns) for _, _, columns in places]
        place = np.concatenate([np.full(len(rows), index) for index, rows in enumerate(by_name)])
        row = np.concatenate(by_name)
        size = np.concatenate([columns.size[rows] for (_, _, columns), rows in zip(places, by_name, strict=True)])
        for position in np.argsort(-size, kind="stable")[:count].tolist():
            broker, path, columns = places[place[position]]
            chosen = int(row[position])
            yield ShownReplica(
                broker=broker,
                log_dir=path,
                partition=columns.topic_partition(chosen),
                info=columns.replica_info(chosen),
            )


def log_dirs_by_path(answer: BrokerLogDirs) -> list[LogDirDescription]:
    return [answer.log_dirs[path] for path in sorted(answer.log_dirs)]


def rows_by_name(columns: ReplicaColumns) -> npt.NDArray[np.intp]:
    """Row numbers in the order of topic name, then partition."""
    rank = np.empty(len(columns.topic_names), dtype=np.int64)
    rank[sorted(range(len(columns.topic_names)), key=columns.topic_names.__getitem__)] = np.arange(len(rank))
    return np.lexsort((columns.partition, rank[columns.topic]))
