"""How the guard's own client reaches its broker.

It asks the broker that it stands beside, over the replication listener, or over the one that
``brimline.admin.listener`` names. Never over a listener that a gateway stands in front of: what guards a broker must
not depend on what it guards. The security protocol is the listener's; everything else that a client needs (credentials,
trust) stands under ``brimline.admin.`` with the names of Kafka's Java clients.
"""

import difflib
from dataclasses import dataclass, field, replace

from brimline.model import BadInput
from brimline.observe.client.config import KNOWN, ClientConfig, SecurityProtocol
from brimline.observe.properties.broker_properties import BrokerProperties
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry
from brimline.settings.keys import ADMIN_LISTENER, ADMIN_PREFIX, ADMIN_SERVERS, Value

_CLIENT_ID = "brimline-guard"
_PROTOCOL = "security.protocol"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminAccess:
    """The same as a ``ClientConfig``, but as text: it can be handed to another process."""

    servers: str
    properties: JavaProperties = field(repr=False)

    def client_config(self) -> ClientConfig:
        return ClientConfig.from_properties(self.servers, self.properties)


def admin_access(properties: JavaProperties, broker: BrokerProperties, listener_name: Value, path: str) -> AdminAccess:
    own = [
        replace(properties.entry(key), key=key.removeprefix(ADMIN_PREFIX.name))
        for key in properties
        if key.startswith(ADMIN_PREFIX.name) and key not in (ADMIN_LISTENER.name, ADMIN_SERVERS.name)
    ]
    for entry in own:
        if entry.key not in KNOWN:
            raise _unknown(entry)
    servers, protocol = _where_to(properties, broker, str(listener_name).upper(), path)
    derived = [
        PropertyEntry("client.id", _CLIENT_ID, path),
        *([PropertyEntry(_PROTOCOL, protocol, path)] if protocol else []),
    ]
    return AdminAccess(servers=servers, properties=JavaProperties([*derived, *own]))


def _where_to(
    properties: JavaProperties, broker: BrokerProperties, listener_name: str, path: str
) -> tuple[str, str | None]:
    """The servers, and the security protocol that their listener implies."""
    name = listener_name or broker.inter_broker_listener
    listener = broker.listeners.get(name)
    servers = properties.get(ADMIN_SERVERS.name, "").strip()
    if listener is None:
        if servers and not listener_name:
            return servers, None
        where = properties.entry(ADMIN_LISTENER.name).where if ADMIN_LISTENER.name in properties else path
        there_are = ", ".join(broker.listeners) or "none"
        raise BadInput(f"{where}: {ADMIN_LISTENER.name}: the broker has no listener {name}; it has {there_are}")
    if listener.security_protocol not in {protocol.value for protocol in SecurityProtocol}:
        raise BadInput(f"{path}: listener.security.protocol.map: no security protocol for the listener {listener.name}")
    return servers or listener.address, listener.security_protocol


def _unknown(entry: PropertyEntry) -> BadInput:
    near = difflib.get_close_matches(entry.key, KNOWN, n=1)
    hint = f"; did you mean {ADMIN_PREFIX.name}{near[0]}?" if near else ""
    return BadInput(f"{entry.where}: {ADMIN_PREFIX.name}{entry.key}: no Kafka client knows {entry.key}{hint}")
