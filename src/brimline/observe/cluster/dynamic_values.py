"""Dynamic values of one broker and of topics, several in one request: what is set there, and setting or removing it.

A value of its own wins over everything below it (cluster's default, file, Kafka's default), so only that is looked at
and changed; when it is removed, whatever is below counts again. A broker must be asked about itself.

What was set is read among the synonyms. The value beside them is what is in force, in Kafka's spelling: ``1`` comes
back as ``1.0``, and for a moment after a change it is still the one before.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, ObservationFailed
from brimline.model.failures import CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED
from brimline.observe.client.connection import Connection, Deadline

TOPIC, BROKER = "topic", "broker"
_TYPES = {TOPIC: 2, BROKER: 4}
_OWN_SOURCE = {TOPIC: 1, BROKER: 2}
"""DYNAMIC_TOPIC_CONFIG and DYNAMIC_BROKER_CONFIG."""
_SET, _DELETE = 0, 1
_UNKNOWN_TOPIC = 3
_NEVER = (40, 44)
"""INVALID_CONFIG and POLICY_VIOLATION: asking again changes nothing."""


class Place(NamedTuple):
    """Where a value stands: a key of a broker or of a topic."""

    resource: str
    name: str
    key: str


Values = Mapping[Place, str | None]
"""``None``: no value of its own there."""


def own_values(connection: Connection, broker: BrokerId, places: Iterable[Place], deadline: Deadline) -> Values:
    """Of each place; one of a topic that does not exist is missing. Raises ``ObservationFailed``."""
    keys = _by_resource(dict.fromkeys(places))
    if not keys:
        return {}
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[
            resource(resource_type=_TYPES[kind], resource_name=name, configuration_keys=list(values))
            for (kind, name), values in keys.items()
        ],
        include_synonyms=True,
        include_documentation=False,
    )
    found: dict[Place, str | None] = {}
    for result in connection.ask(broker, request, deadline).results:
        kind = next(name for name, number in _TYPES.items() if number == result.resource_type)
        if result.error_code == _UNKNOWN_TOPIC:
            continue
        _refuse(result.error_code, f"settings of {kind} {result.resource_name} cannot be read", "DESCRIBE_CONFIGS")
        own = {
            synonym.name: synonym.value
            for each in result.configs
            for synonym in each.synonyms
            if synonym.source == _OWN_SOURCE[kind]
        }
        for key in keys[(kind, result.resource_name)]:
            found[Place(kind, result.resource_name, key)] = own.get(key)
    return found


def alter_values(
    connection: Connection, broker: BrokerId, values: Values, deadline: Deadline, *, only_check: bool = False
) -> None:
    """All of them in one request, each resource whole or not at all. Raises ``ObservationFailed``.

    ``only_check``: the broker says whether it would, and changes nothing.
    """
    if not values:
        return
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=_TYPES[kind],
                resource_name=name,
                configs=[
                    resource.AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
                    for key, value in wanted.items()
                ],
            )
            for (kind, name), wanted in _by_resource(values).items()
        ],
        validate_only=only_check,
    )
    for result in connection.ask(broker, request, deadline).responses:
        kind = next(name for name, number in _TYPES.items() if number == result.resource_type)
        what = f"settings of {kind} {result.resource_name} cannot be changed"
        if result.error_code in _NEVER:
            message = f"{what}: {result.error_message or KafkaError(result.error_code)}"
            raise ObservationFailed(Failure(kind=FailureKind.UNSUPPORTED, message=message))
        _refuse(result.error_code, what, "ALTER_CONFIGS")


def _by_resource(values: Values) -> dict[tuple[str, str], dict[str, str | None]]:
    found: dict[tuple[str, str], dict[str, str | None]] = {}
    for place, value in values.items():
        found.setdefault((place.resource, place.name), {})[place.key] = value
    return found


def _refuse(error_code: int, what: str, permission: str) -> None:
    if error_code in (CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED):
        where = "cluster" if error_code == CLUSTER_AUTHORIZATION_FAILED else "topic"
        message = f"{what}: this principal needs {permission} on the {where}"
        raise ObservationFailed(Failure(kind=FailureKind.NOT_AUTHORIZED, message=message))
    if error_code:
        message = f"{what}: the broker answers {KafkaError(error_code)}"
        raise ObservationFailed(Failure(kind=FailureKind.KAFKA_ERROR, message=message))
