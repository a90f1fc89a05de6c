"""The cluster that trims are sent to: one look at the partitions of a batch, and one request to each of their leaders.

After any failure it connects anew.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

from brimline.act.trims.rules import PartitionNow, Problem, refusal
from brimline.model import BrokerId, Failure, FailureKind, KafkaError, Offset, TopicPartition
from brimline.observe.client.connection import Deadline, Reconnecting
from brimline.observe.cluster.configs import Config, describe_topic_configs
from brimline.observe.cluster.delete_records import delete_records
from brimline.observe.cluster.offsets import OffsetSpec, list_last_stable, list_offsets
from brimline.observe.cluster.topics import Topic, describe_topics

_PATIENCE = timedelta(seconds=10)
_FOLLOWERS_MAY_TAKE = timedelta(seconds=5)
"""How long a leader waits for the followers before it answers. They follow without that, too."""
_CLEANUP_POLICY = "cleanup.policy"
_TIERED, _COPY_DISABLED = "remote.storage.enable", "remote.log.copy.disable"
_KEYS = (_CLEANUP_POLICY, _TIERED, _COPY_DISABLED)

Offsets: TypeAlias = Mapping[TopicPartition, Offset | Failure | None]


class TrimCluster(Reconnecting):
    """Methods raise ``ObservationFailed`` when nobody answers at all.

    ``spares_transactions``: whether last stable offsets are asked for, and so kept to.
    """

    spares_transactions: Callable[[], bool] = staticmethod(lambda: False)

    def look(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionNow | Problem]:
        names = sorted({partition.topic for partition in partitions})
        with self.connected() as connection:
            deadline = Deadline(_PATIENCE)
            topics = describe_topics(connection, names, deadline)
            configs = describe_topic_configs(connection, names, _KEYS, deadline.renewed())
            leaders = {p: leader for p in partitions if (leader := _leader(p, topics)) is not None}
            starts = list_offsets(connection, leaders, OffsetSpec.EARLIEST, deadline.renewed())
            ends = list_offsets(connection, leaders, OffsetSpec.LATEST, deadline.renewed())
            stable = list_last_stable(connection, leaders, deadline.renewed()) if self.spares_transactions() else None
            found = {p: _now(p, topics.get(p.topic), configs.get(p.topic), starts, ends, stable) for p in partitions}
        self._connect_anew_after(found)
        return found

    def trim(
        self, targets: Mapping[TopicPartition, Offset], leaders: Mapping[TopicPartition, BrokerId]
    ) -> Mapping[TopicPartition, Offset | Problem]:
        """The low watermarks. After a problem that may pass, only a look tells whether it was done."""
        with self.connected() as connection:
            deadline = Deadline(_PATIENCE + _FOLLOWERS_MAY_TAKE)
            answers = delete_records(connection, leaders, targets, _FOLLOWERS_MAY_TAKE, deadline)
        outcomes = {partition: _outcome(answer, partition) for partition, answer in answers.items()}
        self._connect_anew_after(outcomes)
        return outcomes

    def _connect_anew_after(self, answers: Mapping[TopicPartition, object]) -> None:
        if any(isinstance(answer, Problem) and answer.may_pass for answer in answers.values()):
            self.close()


def _leader(partition: TopicPartition, topics: Mapping[str, Topic]) -> BrokerId | None:
    topic = topics.get(partition.topic)
    return None if topic is None else topic.leaders.get(partition.partition)


def _now(
    partition: TopicPartition,
    topic: Topic | None,
    config: Config | Failure | None,
    starts: Offsets,
    ends: Offsets,
    stable: Offsets | None,
) -> PartitionNow | Problem:
    if topic is None:
        return _passing(f"the cluster did not describe the topic {partition.topic}")
    if topic.error is not None:
        return refusal(topic.error, partition)
    if partition.partition not in topic.leaders:
        return Problem(why=f"the topic {partition.topic} has no partition {partition.partition}", may_pass=False)
    leader = topic.leaders[partition.partition]
    if leader is None:
        return _passing("it has no leader")
    if config is None or isinstance(config, Failure):
        return _of_failure(config or Failure(kind=FailureKind.KAFKA_ERROR, message="its configuration is unknown"))
    log_start, high_watermark = starts.get(partition), ends.get(partition)
    last_stable = None if stable is None else stable.get(partition)
    for offset in (log_start, high_watermark, last_stable):
        if isinstance(offset, Failure):
            return _of_failure(offset)
    if log_start is None or high_watermark is None or (stable is not None and last_stable is None):
        return _passing("its leader does not tell its log start, high watermark and last stable offset")
    assert not isinstance(log_start, Failure)
    assert not isinstance(high_watermark, Failure)
    assert not isinstance(last_stable, Failure)
    return PartitionNow(
        topic_id=topic.topic_id,
        leader=leader,
        log_start=log_start,
        high_watermark=high_watermark,
        cleanup_policy=config.get(_CLEANUP_POLICY) or "",
        is_tiered=config.get(_TIERED) == "true" and config.get(_COPY_DISABLED) != "true",  # that was planned as empty
        last_stable=last_stable,
    )


def _outcome(answer: Offset | KafkaError | Failure, partition: TopicPartition) -> Offset | Problem:
    if isinstance(answer, KafkaError):
        return refusal(answer, partition)
    return _passing(answer.message) if isinstance(answer, Failure) else answer


def _of_failure(failure: Failure) -> Problem:
    return Problem(why=failure.message, may_pass=failure.kind is not FailureKind.NOT_AUTHORIZED)


def _passing(why: str) -> Problem:
    return Problem(why=why, may_pass=True)
