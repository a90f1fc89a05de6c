"""One dynamic setting of one broker: what it was set to for that broker alone, and setting it or taking it back.

A setting that is a list can also be added to and taken from, at the controller and in one step: what somebody else has
put into it at the same moment is not lost.

A broker's own dynamic value wins over the cluster's default, and that over what stands in its file. So only the first
is ever changed here; when it is taken back, whatever is below it counts again. The broker that is asked is the one that
is changed: its answer means that its controller has the change on record, and the broker itself has it a moment later.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, ObservationFailed
from brimline.model.failures import CLUSTER_AUTHORIZATION_FAILED
from brimline.observe.client.connection import Connection, Deadline

_BROKER = 4
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
_OF_THIS_BROKER = 2
"""Where a value comes from: DYNAMIC_BROKER_CONFIG."""
_DEFAULT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LayeredList:
    """A list as this broker has it. ``own``: set for it alone while it runs, ``None`` if nothing is."""

    own: tuple[str, ...] | None
    below: tuple[str, ...] = ()
    """What counts where ``own`` is not: of the cluster's default, or of the broker's file."""

    @property
    def effective(self) -> tuple[str, ...]:
        return self.below if self.own is None else self.own


def own_dynamic_list(connection: Connection, broker: BrokerId, key: str, deadline: Deadline) -> LayeredList:
    """Raises ``ObservationFailed``."""
    synonyms = [
        (synonym.source, synonym.value)
        for config in _described(connection, broker, key, deadline, with_synonyms=True)
        for synonym in config.synonyms
        if synonym.name == key
    ]
    own = next((value for source, value in synonyms if source == _OF_THIS_BROKER), None)
    below = next((value for source, value in synonyms if source != _OF_THIS_BROKER), None)
    return LayeredList(own=None if own is None else _parts(own), below=_parts(below or ""))


def alter_own_dynamic_list(
    connection: Connection,
    broker: BrokerId,
    key: str,
    deadline: Deadline,
    *,
    add: Collection[str] = (),
    remove: Collection[str] = (),
) -> None:
    """Raises ``ObservationFailed``. What is below counts no longer once there is a list of its own: it goes into it."""
    now = own_dynamic_list(connection, broker, key, deadline)
    left = [each for each in now.own or () if each not in remove]
    if add and now.own is None:
        _alter(connection, broker, key, _SET, _joined((*now.below, *add)), deadline)
    elif add:
        _alter(connection, broker, key, _APPEND, _joined(add), deadline)
    elif remove and now.own is not None:
        is_needed = bool(left) and set(left) != set(now.below)
        operation, value = (_SUBTRACT, _joined(remove)) if is_needed else (_DELETE, None)
        _alter(connection, broker, key, operation, value, deadline)


def set_values(
    connection: Connection, broker: BrokerId, key: str, deadline: Deadline
) -> tuple[str | None, tuple[str, ...]]:
    """This broker's own value, and whatever else is set below it; defaults do not count."""
    found = [
        (synonym.source, str(synonym.value))
        for config in _described(connection, broker, key, deadline, with_synonyms=True)
        for synonym in config.synonyms
        if synonym.name == key and synonym.source != _DEFAULT
    ]
    own = next((value for source, value in found if source == _OF_THIS_BROKER), None)
    return own, tuple(value for source, value in found if source != _OF_THIS_BROKER)


def own_dynamic_value(connection: Connection, broker: BrokerId, key: str, deadline: Deadline) -> str | None:
    """``None``: this broker has none of its own. Raises ``ObservationFailed``."""
    configs = _described(connection, broker, key, deadline, with_synonyms=False)
    own = (config.value for config in configs if (config.name, config.config_source) == (key, _OF_THIS_BROKER))
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
    _alter(connection, broker, key, _DELETE if value is None else _SET, value, deadline, only_check=only_check)


def _described(
    connection: Connection, broker: BrokerId, key: str, deadline: Deadline, *, with_synonyms: bool
) -> list[Any]:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[resource(resource_type=_BROKER, resource_name=str(broker), configuration_keys=[key])],
        include_synonyms=with_synonyms,
        include_documentation=False,
    )
    (result,) = connection.ask(broker, request, deadline).results
    _refuse(result.error_code, f"{key} of broker {broker} cannot be read", "DESCRIBE_CONFIGS")
    return list(result.configs)


def _alter(
    connection: Connection,
    broker: BrokerId,
    key: str,
    operation: int,
    value: str | None,
    deadline: Deadline,
    *,
    only_check: bool = False,
) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
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


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _joined(parts: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(parts))


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
