"""The time of day by another machine: the active controller's, which stands in its answer to DescribeQuorum."""

import socket
from contextlib import closing
from typing import Any

from kafka.protocol.admin.cluster import DescribeQuorumRequest

from brimline.model import ObservationFailed
from brimline.observe.client.connection import Connection, Deadline

_METADATA = "__cluster_metadata"
_FIRST_WITH_HOSTS = 2
"""Kafka 3.9. Before, nobody tells on which machine the controller is."""


def controllers_time_ms(connection: Connection, deadline: Deadline) -> int | None:
    """``None``: it is not told, or the controller is on this machine and has this clock."""
    topics = DescribeQuorumRequest.TopicData
    request = DescribeQuorumRequest(
        topics=[topics(topic_name=_METADATA, partitions=[topics.PartitionData(partition_index=0)])],
        min_version=_FIRST_WITH_HOSTS,
    )
    try:
        answer: Any = connection.ask_any(lambda: request, deadline)
    except ObservationFailed:
        return None
    for partition in (each for topic in answer.topics for each in topic.partitions):
        leader, voters = partition.leader_id, partition.current_voters
        hosts = [place.host for node in answer.nodes if node.node_id == leader for place in node.listeners]
        times = [each.last_caught_up_timestamp for each in voters if each.replica_id == leader]
        if hosts and times and times[0] > 0 and not any(map(_is_here, hosts)):
            return int(times[0])
    return None


def _is_here(host: str) -> bool:
    """Only an address of this machine can be listened on. What cannot be resolved is taken for this machine."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return True
    return any(map(_can_bind, found))


def _can_bind(found: tuple[Any, ...]) -> bool:
    with closing(socket.socket(found[0], socket.SOCK_STREAM)) as own:
        try:
            own.bind(found[4])
        except OSError:
            return False
    return True
