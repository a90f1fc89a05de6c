"""What a cluster decides by the address that a client comes from: host-based ACLs, quotas of addresses, limits.

Behind a gateway every client comes from the gateway's address. Each question may be refused to us; then the answer is
the refusal, not silence.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import DescribeAclsRequest, DescribeClientQuotasRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, ObservationFailed
from brimline.model.failures import CLUSTER_AUTHORIZATION_FAILED
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.configs import Config, describe_broker_config
from brimline.observe.properties.connection_limits import CREATION_RATE, PER_IP, PER_IP_OVERRIDES

_ANY = 1
_ANY_NAME = 2
_EVERY_HOST = "*"
_SECURITY_DISABLED = 54
"""The broker has no authorizer, hence no ACLs."""
DEFAULT_ENTITY = "(default)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRules:
    """``quotas_by_address``: connections per second by address.

    ``limits``: the broker's own settings as they count now, which may have been changed since it read its file.
    """

    quotas_by_address: Mapping[str, float] | Failure
    limits: Config | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRules(ConnectionRules):
    """``acls_by_host``: how many ACLs name a host."""

    acls_by_host: Mapping[str, int] | Failure


def ask_address_rules(connection: Connection, broker: BrokerId, deadline: Deadline) -> AddressRules:
    acls = _acls_by_host(connection, broker, deadline)
    rules = ask_connection_rules(connection, broker, deadline.renewed())
    return AddressRules(acls_by_host=acls, quotas_by_address=rules.quotas_by_address, limits=rules.limits)


def ask_connection_rules(connection: Connection, broker: BrokerId, deadline: Deadline) -> ConnectionRules:
    return ConnectionRules(
        quotas_by_address=_quotas_by_address(connection, broker, deadline),
        limits=describe_broker_config(
            connection, broker, [PER_IP, PER_IP_OVERRIDES, CREATION_RATE], deadline.renewed()
        ),
    )


def _acls_by_host(connection: Connection, broker: BrokerId, deadline: Deadline) -> Mapping[str, int] | Failure:
    everything = DescribeAclsRequest(
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )
    answer = _ask(connection, broker, everything, deadline, "the ACLs")
    if isinstance(answer, Failure):
        return answer
    hosts = (acl.host for resource in answer.resources for acl in resource.acls)
    return Counter(host for host in hosts if host != _EVERY_HOST)


def _quotas_by_address(connection: Connection, broker: BrokerId, deadline: Deadline) -> Mapping[str, float] | Failure:
    component = DescribeClientQuotasRequest.ComponentData
    by_address = DescribeClientQuotasRequest(
        components=[component(entity_type="ip", match_type=_ANY_NAME, match=None)], strict=False
    )
    answer = _ask(connection, broker, by_address, deadline, "the quotas of addresses")
    if isinstance(answer, Failure):
        return answer
    return {
        entry.entity[0].entity_name or DEFAULT_ENTITY: value.value
        for entry in answer.entries or ()
        for value in entry.values
    }


def _ask(connection: Connection, broker: BrokerId, request: object, deadline: Deadline, what: str) -> Any:
    """The answer or a ``Failure``."""
    try:
        answer = connection.ask(broker, request, deadline)
    except ObservationFailed as error:
        return error.failure
    if answer.error_code in (0, _SECURITY_DISABLED):
        return answer
    refused = answer.error_code == CLUSTER_AUTHORIZATION_FAILED
    kind = FailureKind.NOT_AUTHORIZED if refused else FailureKind.KAFKA_ERROR
    return Failure(kind=kind, message=f"{what} are unknown: {KafkaError(answer.error_code)}")
