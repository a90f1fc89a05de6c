"""One question about many partitions, asked of the broker that leads each."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from brimline.model import BrokerId, Failure, TopicPartition
from brimline.observe.connection import Connection, Deadline

Fact = TypeVar("Fact")


def ask_leaders(
    connection: Connection,
    leaders: Mapping[TopicPartition, BrokerId],
    make_request: Callable[[Mapping[str, list[int]]], object],
    read_answer: Callable[[Any], Iterable[tuple[TopicPartition, Fact]]],
    deadline: Deadline,
) -> dict[TopicPartition, Fact | Failure]:
    """What each leader says; the failure of a leader is that of all its partitions."""
    by_leader: dict[BrokerId, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for partition, leader in leaders.items():
        by_leader[leader][partition.topic].append(partition.partition)
    answers = connection.ask_each(
        {leader: (leader, make_request(topics)) for leader, topics in by_leader.items()}, deadline
    )
    facts: dict[TopicPartition, Fact | Failure] = {}
    for leader, answer in answers.items():
        if isinstance(answer, Failure):
            for topic, partitions in by_leader[leader].items():
                facts.update((TopicPartition(topic, partition), answer) for partition in partitions)
        else:
            facts.update(read_answer(answer))
    return facts
