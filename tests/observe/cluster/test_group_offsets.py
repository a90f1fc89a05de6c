"""Consumer groups' offsets, asked of coordinators that answer, refuse, are silent, or know nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest
from kafka.protocol.admin import ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer import OffsetFetchRequest, OffsetFetchResponse

from brimline.model import BrokerId, Failure, FailureKind, Offset, TopicPartition
from brimline.model.blast_radius import ConsumerGroup, GroupActivity, GroupsSeen
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.group_offsets import GROUPS_AT_ONCE, NAMED_PARTITIONS, committed_offsets

ORDERS = TopicPartition("orders", 0)
GROUP_AUTHORIZATION_FAILED, COORDINATOR_LOADING, GROUP_ID_NOT_FOUND = 30, 14, 69


@dataclass
class Group:
    committed: Mapping[TopicPartition, int] = field(default_factory=lambda: {ORDERS: 7})
    state: str = "Stable"
    kind: str = "classic"
    error: int = 0


@dataclass
class Coordinators:
    """Stands where a ``Connection`` does; every broker has groups of its own."""

    groups: Mapping[int, Mapping[str, Group]]
    list_errors: Mapping[int, int] = field(default_factory=dict)
    silent: Mapping[int, Failure] = field(default_factory=dict)
    asked: list[OffsetFetchRequest] = field(default_factory=list)

    @property
    def brokers(self) -> Mapping[BrokerId, object]:
        return {BrokerId(broker): object() for broker in self.groups}

    def ask_each(self, questions: Mapping[int, tuple[int, object]], deadline: Deadline) -> dict[int, Any]:
        return {key: self._answer(broker, request) for key, (broker, request) in questions.items()}

    def _answer(self, broker: int, request: object) -> object:
        if broker in self.silent:
            return self.silent[broker]
        if isinstance(request, ListGroupsRequest):
            return self._list(broker)
        assert isinstance(request, OffsetFetchRequest)
        self.asked.append(request)
        return self._offsets(broker, request)

    def _list(self, broker: int) -> ListGroupsResponse:
        fields = ListGroupsResponse.ListedGroup
        listed = [
            fields(group_id=name, protocol_type="consumer", group_state=group.state, group_type=group.kind)
            for name, group in self.groups[broker].items()
        ]
        return ListGroupsResponse(error_code=self.list_errors.get(broker, 0), groups=listed)

    def _offsets(self, broker: int, request: OffsetFetchRequest) -> OffsetFetchResponse:
        group_fields = OffsetFetchResponse.OffsetFetchResponseGroup
        topic_fields = group_fields.OffsetFetchResponseTopics
        partition_fields = topic_fields.OffsetFetchResponsePartitions
        answers = []
        for asked in request.groups:
            group = self.groups[broker][asked.group_id]
            wanted = {ORDERS} | set(group.committed) if asked.topics is None else named(asked.topics)
            topics = [
                topic_fields(
                    name=partition.topic,
                    partitions=[
                        partition_fields(
                            partition_index=partition.partition,
                            committed_offset=group.committed.get(partition, -1),
                            error_code=0,
                        )
                    ],
                )
                for partition in sorted(wanted)
            ]
            answers.append(
                group_fields(group_id=asked.group_id, topics=[] if group.error else topics, error_code=group.error)
            )
        return OffsetFetchResponse(groups=answers)


def named(topics: list[Any]) -> set[TopicPartition]:
    return {TopicPartition(topic.name, partition) for topic in topics for partition in topic.partition_indexes}


def seen(
    coordinators: Coordinators,
    *partitions: TopicPartition,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    patience: timedelta = timedelta(seconds=60),
) -> GroupsSeen:
    connection = cast("Connection", coordinators)
    return committed_offsets(connection, partitions or (ORDERS,), progress, patience)


@pytest.mark.parametrize(
    ("state", "kind", "activity"),
    [
        ("Stable", "classic", GroupActivity.ACTIVE),
        ("PreparingRebalance", "classic", GroupActivity.ACTIVE),
        ("Reconciling", "consumer", GroupActivity.ACTIVE),
        ("NotReady", "streams", GroupActivity.ACTIVE),
        ("Empty", "consumer", GroupActivity.EMPTY),
        ("Dead", "classic", GroupActivity.EMPTY),
        ("", "", GroupActivity.UNKNOWN),
    ],
)
def test_every_kind_of_group_is_seen_with_its_state(state: str, kind: str, activity: GroupActivity) -> None:
    found = seen(Coordinators({1: {"billing": Group(state=state, kind=kind)}}))

    billing = ConsumerGroup(name="billing", activity=activity, committed={ORDERS: Offset(7)})
    assert found == GroupsSeen(groups=(billing,), asked=1)


def test_groups_of_all_coordinators_are_asked_where_they_are() -> None:
    found = seen(Coordinators({1: {"b": Group()}, 2: {"a": Group(), "elsewhere": Group(committed={})}}))

    assert [group.name for group in found.groups] == ["a", "b"]
    assert found.asked == 3


def test_a_group_that_may_not_be_seen_is_named_unknown() -> None:
    groups = {"open": Group(), **{f"secret-{n}": Group(error=GROUP_AUTHORIZATION_FAILED) for n in range(2)}}

    found = seen(Coordinators({1: groups}))

    assert [group.name for group in found.groups] == ["open"]
    (unknown,) = found.unknown
    assert (unknown.what, unknown.count, unknown.failure.kind) == (
        "2 groups (secret-0, …)",
        2,
        FailureKind.NOT_AUTHORIZED,
    )
    assert "needs DESCRIBE on the groups" in unknown.failure.message


def test_a_silent_broker_and_a_loading_one_hide_only_their_own_groups() -> None:
    timed_out = Failure(kind=FailureKind.TIMED_OUT, message="broker 2 did not answer in time")
    coordinators = Coordinators(
        {1: {"a": Group()}, 2: {"b": Group()}, 3: {"c": Group()}},
        list_errors={3: COORDINATOR_LOADING},
        silent={2: timed_out},
    )

    found = seen(coordinators)

    assert [group.name for group in found.groups] == ["a"]
    assert [(unknown.what, unknown.count) for unknown in found.unknown] == [
        ("the groups that broker 2 coordinates", None),
        ("the groups that broker 3 coordinates", None),
    ]


def test_a_group_that_has_gone_since_it_was_listed_is_nothing() -> None:
    assert seen(Coordinators({1: {"gone": Group(error=GROUP_ID_NOT_FOUND)}})) == GroupsSeen(groups=(), asked=1)


def test_share_groups_are_counted_and_not_asked() -> None:
    coordinators = Coordinators({1: {"shared": Group(kind="share")}})

    found = seen(coordinators)

    assert coordinators.asked == []
    assert [(unknown.what, unknown.failure.kind) for unknown in found.unknown] == [
        ("1 share group", FailureKind.UNSUPPORTED)
    ]


def test_many_groups_are_asked_in_batches_with_progress() -> None:
    number = 2 * GROUPS_AT_ONCE + 1
    coordinators = Coordinators({1: {f"g{n:04}": Group() for n in range(number)}, 2: {"other": Group()}})
    heard: list[tuple[int, int]] = []

    found = seen(coordinators, progress=lambda done, total: heard.append((done, total)))

    assert len(found.groups) == number + 1
    assert [len(request.groups) for request in coordinators.asked] == [GROUPS_AT_ONCE, 1, GROUPS_AT_ONCE, 1]
    assert heard == [(0, number + 1), (51, number + 1), (101, number + 1), (number + 1, number + 1)]


def test_many_partitions_are_not_named_one_by_one() -> None:
    other = TopicPartition("clicks", 3)
    coordinators = Coordinators({1: {"billing": Group(committed={ORDERS: 7, other: 9})}})
    many = [TopicPartition("orders", number) for number in range(NAMED_PARTITIONS + 1)]

    few, all_of_them = seen(coordinators), seen(coordinators, *many)

    assert [request.groups[0].topics is None for request in coordinators.asked] == [False, True]
    assert few.groups[0].committed == all_of_them.groups[0].committed == {ORDERS: 7}


def test_without_time_the_rest_is_unknown() -> None:
    found = seen(Coordinators({1: {"billing": Group()}}), patience=timedelta(0))

    assert found.groups == ()
    assert [(unknown.what, unknown.failure.kind) for unknown in found.unknown] == [
        ("the group billing", FailureKind.TIMED_OUT)
    ]


def test_without_partitions_nobody_is_asked() -> None:
    connection = cast("Connection", Coordinators({}))

    assert committed_offsets(connection, []) == GroupsSeen(groups=(), asked=0)
