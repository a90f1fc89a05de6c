"""DescribeLogDirs from many brokers: everything, or just how full other brokers' disks are.

How full the other brokers' disks are, and which partitions that this broker leads have a replica there, is asked in two
steps, because every guard of a cluster asks every broker. The first is small: DescribeLogDirs for no topic
at all returns the bytes of the volumes and nothing else, a hundred bytes per broker. The second is asked only where a
log dir is full, and only of the partitions that this broker holds as well: of the thousands on a full broker those that
it shares with any other one are few.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from brimline.model import (
    BrokerId,
    BrokerLogDirs,
    Failure,
    FailureKind,
    LogDirDescription,
    ObservationFailed,
    TopicPartition,
)
from brimline.model.failures import CLUSTER_AUTHORIZATION_FAILED
from brimline.observe.client.connection import Connection, Deadline, ListedBroker
from brimline.observe.client.requests import WireRequest
from brimline.observe.cluster.configs import describe_topic_configs
from brimline.observe.cluster.topics import Topic, describe_topics, some_at_a_time
from brimline.wire.describe_log_dirs import DescribeLogDirsResponse, decode_response
from brimline.wire.describe_log_dirs_request import (
    API_KEY,
    FIRST_FLEXIBLE_VERSION,
    MAX_VERSION,
    MIN_VERSION,
    encode_request,
)

Clock = Callable[[], datetime]


def describe_log_dirs(
    connection: Connection,
    brokers: Iterable[BrokerId],
    deadline: Deadline,
    now: Clock,
    topics: Mapping[str, Sequence[int]] | None = None,
) -> dict[BrokerId, BrokerLogDirs]:
    """What every broker says about its log dirs; a broker that did not answer carries its failure.

    ``topics`` limits the partitions; an empty mapping asks for the volumes alone, a hundred bytes per broker.
    """
    asked = list(brokers)
    answers = connection.ask_each({broker: (broker, _request(topics)) for broker in asked}, deadline)
    observed_at = now()
    known = connection.brokers
    return {broker: answered_log_dirs(broker, known.get(broker), answers[broker], observed_at) for broker in asked}


def _request(topics: Mapping[str, Sequence[int]] | None) -> WireRequest:
    return WireRequest(
        name="DescribeLogDirs",
        API_KEY=API_KEY,
        min_version=MIN_VERSION,
        max_version=MAX_VERSION,
        first_flexible_version=FIRST_FLEXIBLE_VERSION,
        encode_body=lambda version: encode_request(version, topics),
        decode_body=decode_response,
    )


def answered_log_dirs(
    broker: BrokerId, known: ListedBroker | None, answer: DescribeLogDirsResponse | Failure, observed_at: datetime
) -> BrokerLogDirs:
    """``known`` is the broker as the cluster lists it, if it does."""
    address = "" if known is None else known.address
    failure = answer if isinstance(answer, Failure) else _refusal(broker, answer)
    log_dirs = {} if isinstance(answer, Failure) else {log_dir.path: log_dir for log_dir in answer.log_dirs}
    return BrokerLogDirs(broker=broker, address=address, observed_at=observed_at, log_dirs=log_dirs, failure=failure)


def _refusal(broker: BrokerId, answer: DescribeLogDirsResponse) -> Failure | None:
    """Before version 3 a refusal is an answer without log dirs: every broker has at least one."""
    refused = answer.error is not None and answer.error.code == CLUSTER_AUTHORIZATION_FAILED
    if refused or (answer.error is None and not answer.log_dirs):
        return Failure(
            kind=FailureKind.NOT_AUTHORIZED,
            message=f"broker {broker} refused to describe its log dirs: this principal needs DESCRIBE on the cluster",
        )
    if answer.error is not None:
        return Failure(kind=FailureKind.KAFKA_ERROR, message=f"broker {broker} answered with {answer.error}")
    return None


_NO_TOPICS: Mapping[str, list[int]] = {}
_MIN_IN_SYNC = "min.insync.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedTopic:
    """Partitions of one topic, in one log dir of a follower and led by this broker.

    ``topic_id`` is ``None`` before Kafka 2.8.
    """

    name: str
    topic_id: UUID | None
    partitions: tuple[int, ...]
    log_dir: str = ""
    critical: frozenset[int] = frozenset()
    """Without the full followers these would have fewer in-sync replicas than ``min.insync.replicas``."""
    lagging: frozenset[int] = frozenset()
    """Those that this follower is not in sync with (behind, or newly put there), and nobody else but full followers."""

    def only(self, partitions: Collection[int]) -> "LedTopic":
        return replace(self, partitions=tuple(each for each in self.partitions if each in partitions))


Followed = Mapping[BrokerId, tuple[LedTopic, ...] | Failure]
"""Broker → what of it is led here; or why that is not known."""


def ask_volumes(
    connection: Connection, brokers: Iterable[BrokerId], deadline: Deadline, now: Clock
) -> Mapping[BrokerId, BrokerLogDirs]:
    """The log dirs of these brokers with the bytes of their volumes, and no replicas."""
    return describe_log_dirs(connection, brokers, deadline, now, _NO_TOPICS)


def ask_followed(
    connection: Connection,
    own: BrokerId,
    full: Mapping[BrokerId, Collection[str]],
    deadline: Deadline,
    now: Clock,
    remembered: Mapping[BrokerId, Collection[LedTopic]] | None = None,
) -> Followed:
    """What ``own`` leads of the replicas in these log dirs. Raises ``ObservationFailed`` if ``own`` does not answer.

    ``remembered`` are brokers that cannot be asked now, with what was in their full log dirs.
    """
    held = describe_log_dirs(connection, [own], deadline, now)[own].answer()
    shared = numbers_by_topic(_present(held.values()))
    answers = describe_log_dirs(connection, full, deadline.renewed(), now, shared) if shared else {}
    found = {
        **{
            broker: {path: set(_present([answer.log_dirs[path]])) for path in full[broker] if path in answer.log_dirs}
            for broker, answer in answers.items()
            if answer.failure is None
        },
        **{broker: _by_log_dir(topics_there) for broker, topics_there in (remembered or {}).items()},
    }
    without_room = _followers_of(found)
    names = {each.topic for each in without_room}
    topics = _topics(connection, names, deadline)
    minimum = _fewest_in_sync(connection, own, names, deadline)
    return {
        **dict.fromkeys(full, ()),
        **{broker: answer.failure for broker, answer in answers.items() if answer.failure is not None},
        **{
            broker: tuple(
                led
                for path, partitions in log_dirs.items()
                for led in _led(own, broker, path, partitions, topics, minimum, without_room)
            )
            for broker, log_dirs in found.items()
        },
    }


def _by_log_dir(topics: Iterable[LedTopic]) -> dict[str, set[TopicPartition]]:
    by_log_dir: dict[str, set[TopicPartition]] = defaultdict(set)
    for each in topics:
        by_log_dir[each.log_dir] |= {TopicPartition(each.name, number) for number in each.partitions}
    return by_log_dir


def _followers_of(
    found: Mapping[BrokerId, Mapping[str, Collection[TopicPartition]]],
) -> dict[TopicPartition, set[BrokerId]]:
    """Partition → those of the brokers that have it in a full log dir."""
    followers: dict[TopicPartition, set[BrokerId]] = defaultdict(set)
    for broker, log_dirs in found.items():
        for partitions in log_dirs.values():
            for partition in partitions:
                followers[partition].add(broker)
    return followers


def _fewest_in_sync(
    connection: Connection, own: BrokerId, names: Collection[str], deadline: Deadline
) -> Mapping[str, int]:
    """``min.insync.replicas`` of these topics, as their leader has it; what it does not tell is missing."""
    told: dict[str, int] = {}
    for some in some_at_a_time(sorted(names)):
        try:
            answers = describe_topic_configs(connection, some, [_MIN_IN_SYNC], deadline.renewed(), own)
        except ObservationFailed:
            continue
        for name, config in answers.items():
            value = None if isinstance(config, Failure) else config.get(_MIN_IN_SYNC)
            if value is not None and value.isdecimal():
                told[name] = int(value)
    return told


def _present(log_dirs: Iterable[LogDirDescription]) -> Iterable[TopicPartition]:
    """Future replicas are copied from another disk of the same broker: no leader sends them anything."""
    for log_dir in log_dirs:
        for row, is_future in enumerate(log_dir.replicas.is_future.tolist()):
            if not is_future:
                yield log_dir.replicas.topic_partition(row)


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return by_topic


def _topics(connection: Connection, names: Collection[str], deadline: Deadline) -> dict[str, Topic]:
    topics: dict[str, Topic] = {}
    for some in some_at_a_time(sorted(names)):
        topics |= describe_topics(connection, some, deadline.renewed())
    return topics


def _led(
    own: BrokerId,
    follower: BrokerId,
    log_dir: str,
    partitions: Iterable[TopicPartition],
    topics: Mapping[str, Topic],
    minimum: Mapping[str, int],
    without_room: Mapping[TopicPartition, Set[BrokerId]],
) -> Iterable[LedTopic]:
    for name, numbers in sorted(numbers_by_topic(partitions).items()):
        topic = topics.get(name)
        if topic is None or topic.error is not None:
            continue
        led = tuple(sorted(number for number in numbers if topic.leaders.get(number) == own))
        if not led:
            continue
        fewest = minimum.get(name)
        there = {each: without_room[TopicPartition(name, each)] for each in led}
        left = {each: len(topic.in_sync[each] - there[each]) for each in led}
        behind = {each: topic.replicas[each] - topic.in_sync[each] for each in led}
        yield LedTopic(
            name=name,
            topic_id=topic.topic_id,
            partitions=led,
            log_dir=log_dir,
            critical=frozenset(each for each in led if fewest is None or left[each] < fewest),
            # It is there, so it counts as a replica before the metadata that was asked for knows of it.
            lagging=frozenset(
                each for each in led if follower not in topic.in_sync[each] and behind[each] <= there[each]
            ),
        )
