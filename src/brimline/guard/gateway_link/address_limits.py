"""What the broker decides by the address of a client, told to the gateway, which alone sees the addresses.

The gateway knows ``max.connections.per.ip`` from the broker's file. What was changed since (``kafka-configs.sh``), and
the quotas ``connection_creation_rate`` of addresses, only the broker tells: it is asked every minute. What it does not
tell (no permission, no answer) stays as it was. A gateway that was started again goes by the file until it is told.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

from brimline.documents.orders import NO_LIMIT, AddressLimitsOrder
from brimline.gateway.client import GatewayClient, control_socket
from brimline.gateway.net.addresses import address_of, connections_by_address
from brimline.model import BadInput, Failure, ObservationFailed
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.address_rules import (
    DEFAULT_ENTITY,
    AddressRules,
    ConnectionRules,
    ask_address_rules,
    ask_connection_rules,
)
from brimline.observe.properties.connection_limits import LARGEST_INT, PER_IP, PER_IP_OVERRIDES
from brimline.settings.config import GuardConfig

_INTERVAL = 60.0
_SOONER = 5.0
"""While the broker or the gateway does not answer."""
_PATIENCE = timedelta(seconds=30)
_PATIENCE_OF_DOCTOR = timedelta(seconds=10)


class AddressTask:
    """``ask`` asks the broker, ``tell`` tells the gateway; either may fail."""

    def __init__(self, ask: Callable[[], ConnectionRules], tell: Callable[[AddressLimitsOrder], None]) -> None:
        self._ask = ask
        self._tell = tell

    def step(self) -> float:
        """Returns the seconds until the next."""
        try:
            said = _in_words_of_the_gateway(self._ask())
            if said != AddressLimitsOrder():
                self._tell(said)
        except (ObservationFailed, BadInput):
            return _SOONER  # whoever speaks to them otherwise says so
        return _INTERVAL


def address_task(config: GuardConfig) -> AddressTask:
    broker = config.node_id
    gateway = GatewayClient(control_socket(config))

    def ask() -> ConnectionRules:
        with closing(Connection(config.admin)) as connection:
            return ask_connection_rules(connection, broker, Deadline(_PATIENCE))

    return AddressTask(ask, gateway.limit_addresses)


def _in_words_of_the_gateway(rules: ConnectionRules) -> AddressLimitsOrder:
    said = AddressLimitsOrder()
    if not isinstance(rules.limits, Failure):
        connections, of_address = connections_by_address(
            int(rules.limits.get(PER_IP) or LARGEST_INT), rules.limits.get(PER_IP_OVERRIDES) or ""
        )
        most = NO_LIMIT if connections is None else connections
        said = AddressLimitsOrder(connections=most, connections_of=of_address)
    if not isinstance(rules.quotas_by_address, Failure):
        rates = {address_of((host,)): rate for host, rate in rules.quotas_by_address.items()}
        said = replace(said, per_second=rates.pop(DEFAULT_ENTITY, NO_LIMIT), per_second_of=rates)
    return said


def ask_rules(config: GuardConfig) -> AddressRules | None:
    """``None``: the broker has fallen silent since it was asked for its replicas."""
    try:
        connection = Connection(config.admin)
    except ObservationFailed:
        return None
    try:
        return ask_address_rules(connection, config.node_id, Deadline(_PATIENCE_OF_DOCTOR))
    finally:
        connection.close()
