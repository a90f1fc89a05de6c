"""One dynamic setting of one broker: what it was set to for that broker alone, and setting it or taking it back.

A broker's own dynamic value wins over the cluster's default, and that over what stands in its file. So only the first
is ever changed here; when it is taken back, whatever is below it counts again. The broker that is asked is the one that
is changed: its answer means that its controller has the change on record, and the broker itself has it a moment later.
"""

from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, ObservationFailed
from brimline.model.kafka_errors import CLUSTER_AUTHORIZATION_FAILED
from brimline.observe.connection import Connection, Deadline

_BROKER = 4
_SET, _DELETE = 0, 1
_OF_THIS_BROKER = 2
"""Where a value comes from: DYNAMIC_BROKER_CONFIG."""


def own_dynamic_value(connection: Connection, broker: BrokerId, key: str, deadline: Deadline) -> str | None:
    """``None``: this broker has none of its own. Raises ``ObservationFailed``."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[resource(resource_type=_BROKER, resource_name=str(broker), configuration_keys=[key])],
        include_synonyms=False,
        include_documentation=False,
    )
    (result,) = connection.ask(broker, request, deadline).results
    _refuse(result.error_code, f"{key} of broker {broker} cannot be read", "DESCRIBE_CONFIGS")
    own = (config.value for config in result.configs if (config.name, config.config_source) == (key, _OF_THIS_BROKER))
    value: str | None = next(own, None)
    return value


def alter_own_dynamic_value(
    connection: Connection,
    broker: BrokerId,
    key: str,
    value: str | None,
    deadline: Deadline,
    *,
    only_check: bool = False,
) -> None:
    """Set it, or with ``None`` take it back; either is fine when it is so already. Raises ``ObservationFailed``.

    ``only_check``: the broker says whether it would, and changes nothing.
    """
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    operation = _DELETE if value is None else _SET
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=_BROKER,
                resource_name=str(broker),
                configs=[resource.AlterableConfig(name=key, config_operation=operation, value=value)],
            )
        ],
        validate_only=only_check,
    )
    (result,) = connection.ask(broker, request, deadline).responses
    _refuse(result.error_code, f"{key} of broker {broker} cannot be changed", "ALTER_CONFIGS")


def _refuse(error_code: int, what: str, permission: str) -> None:
    if error_code == CLUSTER_AUTHORIZATION_FAILED:
        raise ObservationFailed(
            Failure(
                kind=FailureKind.NOT_AUTHORIZED, message=f"{what}: this principal needs {permission} on the cluster"
            )
        )
    if error_code:
        raise ObservationFailed(
            Failure(kind=FailureKind.KAFKA_ERROR, message=f"{what}: the broker answers {KafkaError(error_code)}")
        )
