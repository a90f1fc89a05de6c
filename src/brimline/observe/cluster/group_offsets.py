"""What consumer groups have committed for some partitions: ListGroups to every broker, OffsetFetch to each coordinator.

A broker lists the groups that it coordinates, so the list itself says whom to ask for each group's offsets. Classic
groups, those of the newer protocol (KIP-848) and those of Kafka Streams are asked alike. Share groups keep their place
elsewhere and are counted as unknown.

**Whole or named.** To a principal without DESCRIBE on the cluster a broker lists only the groups that it may describe,
and does not say that there are more. DescribeLogDirs needs the same permission; who asks here has asked that before.
Everything else that is not known is in ``GroupsSeen.unknown``, with its reason: never an error, since not to know who
reads is no reason to let a disk fill up.

**Bounded.** So many groups are asked about in one request, one request at a time for each coordinator, and all of it
within one span of time; the rest is unknown. A coordinator that did not answer once is not asked again.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, Offset, TopicPartition
from brimline.model.blast_radius import ConsumerGroup, GroupActivity, GroupsSeen, UnknownGroups
from brimline.observe.client.connection import Connection, Deadline

Progress: TypeAlias = Callable[[int, int], None]
"""Hears of groups: asked about, in all."""

GROUPS_AT_ONCE = 50
NAMED_PARTITIONS = 100
"""Up to so many partitions are named in a request, and answered one by one, committed or not. When there are more it is
cheaper to be told of everything that a group has committed, and to drop the rest."""
_PATIENCE = timedelta(seconds=60)
_A_ROUND = timedelta(seconds=15)
_SHARE = "share"
_SEVERAL_GROUPS, _LAST_WITH_NAMES = 8, 9
"""OffsetFetch takes several groups since version 8 (Kafka 3.0), and knows topics by their ids alone from 10 on."""
_GROUP_AUTHORIZATION_FAILED, _TOPIC_AUTHORIZATION_FAILED, _GROUP_ID_NOT_FOUND = 30, 29, 69
_ACTIVE = frozenset({"stable", "assigning", "reconciling", "notready", "preparingrebalance", "completingrebalance"})
_EMPTY = frozenset({"empty", "dead"})
_NO_OFFSETS: Mapping[TopicPartition, Offset] = {}
LEFT_OUT = Failure(kind=FailureKind.KAFKA_ERROR, message="the coordinator left it out of its answer")
_TOO_LATE = Failure(kind=FailureKind.TIMED_OUT, message="there was no time left to ask for them")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    name: str
    activity: GroupActivity
    is_share: bool


def committed_offsets(
    connection: Connection,
    partitions: Collection[TopicPartition],
    progress: Progress = lambda _done, _total: None,
    patience: timedelta = _PATIENCE,
) -> GroupsSeen:
    """Every group of the cluster that has committed an offset for one of ``partitions``."""
    if not partitions:
        return GroupsSeen(groups=(), asked=0)
    until, rounds = Deadline(patience), Deadline(min(patience, _A_ROUND))
    listed, unknown = _list_groups(connection, rounds)
    shares = sum(group.is_share for groups in listed.values() for group in groups)
    if shares:
        unknown.append(_share_groups(shares))
    queues = {broker: [group for group in groups if not group.is_share] for broker, groups in listed.items()}
    fetching = _Fetching(connection, frozenset(partitions), until, rounds, progress)
    groups = fetching.all_of({broker: queue for broker, queue in queues.items() if queue})
    return GroupsSeen(
        groups=tuple(sorted(groups, key=lambda group: group.name)),
        asked=sum(len(groups) for groups in listed.values()),
        unknown=(*unknown, *fetching.unknown()),
    )


def _list_groups(
    connection: Connection, deadline: Deadline
) -> tuple[dict[BrokerId, list[_Listed]], list[UnknownGroups]]:
    answers = connection.ask_each({broker: (broker, ListGroupsRequest()) for broker in connection.brokers}, deadline)
    listed: dict[BrokerId, list[_Listed]] = {}
    unknown: list[UnknownGroups] = []
    for broker, answer in answers.items():
        failure = answer if isinstance(answer, Failure) else _failure_of(answer.error_code)
        if failure is None:
            listed[broker] = [_listed(group) for group in answer.groups]
        else:
            what = f"the groups that broker {broker} coordinates"
            unknown.append(UnknownGroups(what=what, count=None, failure=failure))
    return listed, unknown


class _Fetching:
    """The offsets of many groups, batch by batch; what fails is collected by its reason."""

    def __init__(
        self,
        connection: Connection,
        partitions: frozenset[TopicPartition],
        until: Deadline,
        rounds: Deadline,
        progress: Progress,
    ) -> None:
        self._connection = connection
        self._partitions = partitions
        self._until = until
        self._rounds = rounds
        self._progress = progress
        self._failed: dict[Failure, list[str]] = defaultdict(list)

    def all_of(self, queues: Mapping[BrokerId, Sequence[_Listed]]) -> Iterator[ConsumerGroup]:
        """Those that have committed something for the partitions."""
        total, done = sum(map(len, queues.values())), 0
        longest = max(map(len, queues.values()), default=0)
        for begin in range(0, longest, GROUPS_AT_ONCE):
            batches = {
                broker: batch for broker, queue in queues.items() if (batch := queue[begin : begin + GROUPS_AT_ONCE])
            }
            self._progress(done, total)
            if self._until.remaining_ms:
                yield from self._batches(batches)
            else:
                self._failed[_TOO_LATE] += [group.name for batch in batches.values() for group in batch]
            done += sum(map(len, batches.values()))
        self._progress(done, total)

    def unknown(self) -> Iterator[UnknownGroups]:
        for failure, names in self._failed.items():
            what = f"the group {names[0]}" if len(names) == 1 else f"{len(names):,} groups ({names[0]}, …)"
            yield UnknownGroups(what=what, count=len(names), failure=failure)

    def _batches(self, batches: Mapping[BrokerId, Sequence[_Listed]]) -> Iterator[ConsumerGroup]:
        topics = self._topics()
        names = {broker: [group.name for group in batch] for broker, batch in batches.items()}
        questions = {broker: (broker, offset_fetch(some, topics)) for broker, some in names.items()}
        answers = self._connection.ask_each(questions, self._rounds.renewed())
        for broker, batch in batches.items():
            answer = answers[broker]
            if isinstance(answer, Failure):
                self._failed[answer] += [group.name for group in batch]
                continue
            found = {each.group_id: each for each in answer.groups}
            for group in batch:
                committed = self._committed(group.name, found.get(group.name))
                if committed:
                    yield ConsumerGroup(name=group.name, activity=group.activity, committed=committed)

    def _topics(self) -> list[Any] | None:
        if len(self._partitions) > NAMED_PARTITIONS:
            return None
        indexes: dict[str, list[int]] = defaultdict(list)
        for partition in sorted(self._partitions):
            indexes[partition.topic].append(partition.partition)
        topic_fields = OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics
        return [topic_fields(name=name, partition_indexes=numbers) for name, numbers in indexes.items()]

    def _committed(self, name: str, answer: Any) -> Mapping[TopicPartition, Offset]:
        if answer is None:
            self._failed[LEFT_OUT].append(name)
            return _NO_OFFSETS
        if answer.error_code == _GROUP_ID_NOT_FOUND:
            return _NO_OFFSETS  # it has gone since it was listed
        failures = {
            failure
            for code in (answer.error_code, *(each.error_code for topic in answer.topics for each in topic.partitions))
            if (failure := _failure_of(code)) is not None
        }
        for failure in failures:
            self._failed[failure].append(name)
        return {
            partition: Offset(each.committed_offset)
            for topic in answer.topics
            for each in topic.partitions
            if each.error_code == 0
            and each.committed_offset >= 0
            and (partition := TopicPartition(topic.name, each.partition_index)) in self._partitions
        }


def offset_fetch(groups: Iterable[str], topics: list[Any] | None) -> OffsetFetchRequest:
    """``topics``: ``None`` for all."""
    fields = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(
        groups=[fields(group_id=group, member_id=None, member_epoch=-1, topics=topics) for group in groups],
        require_stable=False,
        min_version=_SEVERAL_GROUPS,
        max_version=_LAST_WITH_NAMES,
    )


def _listed(group: Any) -> _Listed:
    """State and type are told since Kafka 2.6 and 3.7; before, they are empty."""
    state = (getattr(group, "group_state", "") or "").replace("_", "").lower()
    kind = (getattr(group, "group_type", "") or "").lower()
    activity = GroupActivity.UNKNOWN
    if state in _ACTIVE:
        activity = GroupActivity.ACTIVE
    elif state in _EMPTY:
        activity = GroupActivity.EMPTY
    return _Listed(name=group.group_id, activity=activity, is_share=kind == _SHARE)


def _share_groups(number: int) -> UnknownGroups:
    failure = Failure(
        kind=FailureKind.UNSUPPORTED,
        message="offsets of share groups are kept elsewhere; a lagging one continues at the new log start",
    )
    what = "1 share group" if number == 1 else f"{number:,} share groups"
    return UnknownGroups(what=what, count=number, failure=failure)


def _failure_of(code: int) -> Failure | None:
    if not code:
        return None
    if code == _GROUP_AUTHORIZATION_FAILED:
        message = "no permission: this principal needs DESCRIBE on the groups (GROUP_AUTHORIZATION_FAILED)"
        return Failure(kind=FailureKind.NOT_AUTHORIZED, message=message)
    if code == _TOPIC_AUTHORIZATION_FAILED:
        message = "no permission: this principal needs DESCRIBE on the topics (TOPIC_AUTHORIZATION_FAILED)"
        return Failure(kind=FailureKind.NOT_AUTHORIZED, message=message)
    return Failure(kind=FailureKind.KAFKA_ERROR, message=f"the coordinator answers {KafkaError(code)}")
