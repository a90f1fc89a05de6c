"""Kafka's throttle of what a leader sends to followers that are not in sync: a rate of the broker, lists of topics.

A follower in sync is exempt from it, whatever the list says. The rate is one for all partitions on all lists of that
broker; without a rate a list does nothing, and without a list neither does a rate.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka.protocol.admin import IncrementalAlterConfigsRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, ObservationFailed
from brimline.model.failures import TOPIC_AUTHORIZATION_FAILED
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.alter_broker_config import set_values
from brimline.observe.cluster.configs import describe_topic_configs
from brimline.observe.cluster.topics import describe_topics, some_at_a_time

RATE = "leader.replication.throttled.rate"
LIST = "leader.replication.throttled.replicas"
_TOPIC = 2
_NO_SUCH_TOPIC = 3
_SET, _DELETE = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenThrottle:
    """What is set now, by whomever."""

    own_rate: str | None = None
    """Of this broker alone."""
    other_rates: tuple[str, ...] = ()
    """Of the cluster's default, or of the broker's file."""
    lists: Mapping[str, str]
    """Topic → its list, of topics that this broker leads something of and that have one."""


def look_at_throttle(connection: Connection, broker: BrokerId, deadline: Deadline) -> SeenThrottle:
    """Raises ``ObservationFailed``: what cannot be seen may be somebody else's."""
    own, others = set_values(connection, broker, RATE, deadline)
    topics = describe_topics(connection, None, deadline.renewed())
    led = sorted(name for name, topic in topics.items() if broker in topic.leaders.values())
    lists: dict[str, str] = {}
    for some in some_at_a_time(led):
        for name, config in describe_topic_configs(connection, some, [LIST], deadline.renewed(), broker).items():
            if isinstance(config, Failure):
                raise ObservationFailed(config)
            if config.get(LIST):
                lists[name] = config[LIST] or ""
    return SeenThrottle(own_rate=own, other_rates=others, lists=lists)


def alter_lists(connection: Connection, broker: BrokerId, lists: Mapping[str, str | None], deadline: Deadline) -> None:
    """``None`` takes a topic's list away. Raises ``ObservationFailed``; a topic that is gone is no failure."""
    if not lists:
        return
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=_TOPIC,
                resource_name=topic,
                configs=[
                    resource.AlterableConfig(
                        name=LIST, config_operation=_DELETE if value is None else _SET, value=value
                    )
                ],
            )
            for topic, value in lists.items()
        ],
        validate_only=False,
    )
    for result in connection.ask(broker, request, deadline).responses:
        if result.error_code not in (0, _NO_SUCH_TOPIC):
            error = KafkaError(result.error_code)
            refused = result.error_code == TOPIC_AUTHORIZATION_FAILED
            needs = ": this principal needs ALTER_CONFIGS on it" if refused else f": the broker answers {error}"
            raise ObservationFailed(
                Failure(
                    kind=FailureKind.NOT_AUTHORIZED if refused else FailureKind.KAFKA_ERROR,
                    message=f"{LIST} of topic {result.resource_name} cannot be changed{needs}",
                )
            )
