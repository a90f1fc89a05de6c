"""Configurations, as a broker computes them: defaults included, sensitive values absent.

Which release a broker is of, as far as the versions of its APIs give it away: a broker never says it outright.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, ObservationFailed
from brimline.model.failures import CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED
from brimline.observe.client.connection import Connection, Deadline

_TOPIC, _BROKER = 2, 4

Config = Mapping[str, str | None]
_SET_ON_THE_TOPIC = 1
"""``ConfigSource.DYNAMIC_TOPIC_CONFIG``; everything else is a default of somebody."""


class TopicConfig(dict[str, str | None]):
    """Values by key. ``own``: the keys that the topic itself sets."""

    def __init__(self, values: Mapping[str, str | None], own: Iterable[str] = ()) -> None:
        super().__init__(values)
        self.own = frozenset(own)


def describe_topic_configs(
    connection: Connection,
    topics: Iterable[str],
    keys: Sequence[str],
    deadline: Deadline,
    broker: BrokerId | None = None,
) -> Mapping[str, TopicConfig | Failure]:
    """Each topic's values of ``keys``, or why they are not known.

    What a topic does not set itself is computed with the defaults of the broker that answers: ``broker``, or any.
    """
    names = list(topics)
    if not names:
        return {}
    if broker is None:
        answer = connection.ask_any(lambda: _request(_TOPIC, names, keys), deadline)
    else:
        answer = connection.ask(broker, _request(_TOPIC, names, keys), deadline)
    return _by_resource(answer)


def describe_topic_configs_of_each(
    connection: Connection, topics: Mapping[BrokerId, Sequence[str]], keys: Sequence[str], deadline: Deadline
) -> Mapping[BrokerId, Mapping[str, TopicConfig | Failure] | Failure]:
    """The same of several brokers at once, each asked about its own topics; a broker's failure is its own."""
    questions = {broker: (broker, _request(_TOPIC, names, keys)) for broker, names in topics.items() if names}
    answers = connection.ask_each(questions, deadline)
    found: dict[BrokerId, Mapping[str, TopicConfig | Failure] | Failure] = {broker: {} for broker in topics}
    for broker, answer in answers.items():
        found[broker] = answer if isinstance(answer, Failure) else _by_resource(answer)
    return found


def describe_broker_config(
    connection: Connection, broker: BrokerId, keys: Sequence[str], deadline: Deadline
) -> Config | Failure:
    """A broker's values of ``keys``; only that broker knows them."""
    try:
        answer = connection.ask(broker, _request(_BROKER, [str(broker)], keys), deadline)
    except ObservationFailed as error:
        return error.failure
    return _by_resource(answer)[str(broker)]


def _request(resource_type: int, names: Sequence[str], keys: Sequence[str]) -> DescribeConfigsRequest:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=resource_type, resource_name=name, configuration_keys=list(keys)) for name in names
        ],
        include_synonyms=False,
        include_documentation=False,
    )


def _by_resource(answer: Any) -> dict[str, TopicConfig | Failure]:
    return {result.resource_name: _config(result) for result in answer.results}


def _config(result: Any) -> TopicConfig | Failure:
    if result.error_code:
        error = KafkaError(result.error_code)
        refused = result.error_code in (TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED)
        kind = FailureKind.NOT_AUTHORIZED if refused else FailureKind.KAFKA_ERROR
        return Failure(kind=kind, message=f"configuration of {result.resource_name} unknown: {error}")
    own = (each.name for each in result.configs if getattr(each, "config_source", None) == _SET_ON_THE_TOPIC)
    return TopicConfig({each.name: each.value for each in result.configs}, own)


def broker_release(connection: Connection, broker: BrokerId, deadline: Deadline) -> str:
    """``"4.3"`` for 4.3 and for whatever is newer than the client library knows; raises ``ObservationFailed``."""
    request = ApiVersionsRequest(client_software_name="brimline", client_software_version="0")
    answer = connection.ask(broker, request, deadline)
    spoken = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    return ".".join(str(part) for part in BrokerVersionData(api_versions=spoken).broker_version)
