"""Since when a partition's first open transaction is open, by its coordinator's word.

Leaders tell which producer has it (DescribeProducers), brokers whose transactions they coordinate (ListTransactions),
and the coordinator when it began (DescribeTransactions). Times of records say nothing: replays carry old ones. What no
coordinator knows, or not with this partition, is a transaction that nobody will end.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from kafka.protocol.admin.transactions import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)

from brimline.model import BrokerId, Failure, TopicPartition
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.offsets import ask_leaders

Started: TypeAlias = Mapping[TopicPartition, int | None]
"""Milliseconds; ``None``: no coordinator tells. What has no open transaction is missing."""


def open_transactions(
    connection: Connection, leaders: Mapping[TopicPartition, BrokerId], deadline: Deadline
) -> Started:
    """Raises ``ObservationFailed`` when nobody answers."""
    fields = DescribeProducersRequest.TopicRequest
    producers = ask_leaders(
        connection,
        leaders,
        lambda topics: DescribeProducersRequest(
            topics=[fields(name=name, partition_indexes=numbers) for name, numbers in topics.items()]
        ),
        _first_open,
        deadline,
    )
    open_by = {partition: each for partition, each in producers.items() if isinstance(each, int)}
    begun = _begun(connection, set(open_by.values()), deadline.renewed()) if open_by else {}
    started: dict[TopicPartition, int | None] = {
        partition: None for partition, each in producers.items() if isinstance(each, Failure)
    }
    return started | {partition: begun.get((producer, partition)) for partition, producer in open_by.items()}


def _first_open(answer: Any) -> Iterator[tuple[TopicPartition, int | None]]:
    """The id of the producer whose transaction begins first."""
    for topic in answer.topics:
        for each in topic.partitions:
            opened = [
                (producer.current_txn_start_offset, producer.producer_id)
                for producer in each.active_producers
                if producer.current_txn_start_offset >= 0
            ]
            if opened:
                yield TopicPartition(topic.name, each.partition_index), min(opened)[1]


def _begun(connection: Connection, producers: set[int], deadline: Deadline) -> Mapping[tuple[int, TopicPartition], int]:
    """When the transactions of these producers began, for each partition that their coordinator counts to them."""
    question = ListTransactionsRequest(state_filters=[], producer_id_filters=sorted(producers), max_version=0)
    answers = connection.ask_each({broker: (broker, question) for broker in connection.brokers}, deadline)
    names: dict[BrokerId, list[str]] = defaultdict(list)
    for broker, answer in answers.items():
        listed = [] if isinstance(answer, Failure) else answer.transaction_states
        names[broker] += [each.transactional_id for each in listed]
    questions = {
        broker: (broker, DescribeTransactionsRequest(transactional_ids=some)) for broker, some in names.items() if some
    }
    described = connection.ask_each(questions, deadline.renewed()) if questions else {}
    return {
        (each.producer_id, TopicPartition(topic.topic, partition)): each.transaction_start_time_ms
        for answer in described.values()
        if not isinstance(answer, Failure)
        for each in answer.transaction_states
        if each.error_code == 0 and each.transaction_start_time_ms >= 0
        for topic in each.topics
        for partition in topic.partitions
    }
