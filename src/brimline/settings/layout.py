"""Which listeners of a broker the gateway stands in front of, from the broker's own properties. Pure.

**Invariant.** Fronted is only what clients are sent to the gateway for: the broker listens on one address and
advertises another, and the gateway is what listens there. Whatever the cure of a full disk needs goes past it: the
controllers' listeners, the one of the remote log metadata, and the one of the guard's own client. So does a listener
that asks its clients for certificates: behind a gateway the broker would see the gateway's instead of theirs.

The listener that the brokers use among themselves goes past it too, unless ``brimline.gateway.listeners`` names it.
Then replication passes through the gateway, which can skip partitions for a follower whose disk is full, and depends on
it: nothing that is merely derived should do that.

With interception nothing is sent to the gateway by an address: every listener that clients use is fronted where it is.
Where the brokers have no listener of their own, theirs is fronted too, and their addresses are left alone.

What cannot work (two listeners on one port, a gateway on the broker's own) is in ``problems``, so that it can be shown
beside everything else; a mistake in one of our own keys is told by ``wrong_listeners`` and ``wrong_protocols``.
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from brimline.observe.client.config import SecurityProtocol
from brimline.observe.properties.broker_properties import BrokerProperties, ClientAuth, Listener

_LISTENER = re.compile(r"([A-Za-z0-9_.\-]+)://(\[[^\]]*\]|[^:/\[\]]*):(\d+)")
_LARGEST_PORT = 65535
EVERY_ADDRESS = ""
_EVERYWHERE = frozenset({EVERY_ADDRESS, "0.0.0.0", "::", "::0"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An IPv6 address has no brackets. To listen on the empty host is to listen on every address, IPv4 and IPv6."""

    host: str
    port: int

    def __str__(self) -> str:
        host = self.host or "*"
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def is_everywhere(self) -> bool:
        return self.host in _EVERYWHERE

    @property
    def is_loopback(self) -> bool:
        address = self.ip
        return self.host == "localhost" or (address is not None and address.is_loopback)

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """``None`` for a host name: nobody is asked what it stands for."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    def overlaps(self, other: "Address") -> bool:
        """Whether two processes cannot listen on both."""
        everywhere = self.is_everywhere or other.is_everywhere
        return self.port == other.port and (everywhere or _reached_from_here(self) == _reached_from_here(other))


_ANY_OWN_PORT = Address(host="127.0.0.1", port=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontedListener:
    """``upstream`` is where the gateway reaches the broker; ``broker_bind`` tells who else can."""

    name: str
    bind: Address
    upstream: Address
    advertised: Address
    broker_bind: Address
    client_protocol: SecurityProtocol
    broker_protocol: SecurityProtocol
    carries_replication: bool = False
    """Whether followers fetch over it: used by the brokers for replication."""
    is_intercepted: bool = False
    """Clients are turned aside by the kernel: the gateway listens for them on a port that nobody else knows."""

    @property
    def dialled(self) -> Address:
        """Where clients connect."""
        return self.broker_bind if self.is_intercepted else self.bind

    @property
    def has_client_tls(self) -> bool:
        return self.client_protocol.uses_tls

    @property
    def has_broker_tls(self) -> bool:
        return self.broker_protocol.uses_tls

    @property
    def sends_clients_past(self) -> bool:
        """Clients are told the address at which the broker itself answers them."""
        is_dialled = self.advertised.port == self.broker_bind.port and not self.is_intercepted
        return is_dialled and (not self.broker_bind.is_loopback or self.advertised.is_loopback)


class Bypass(Enum):
    """Why the gateway does not stand in front of a listener; the value completes "it goes past the gateway: …"."""

    CONTROLLER = "used by the controllers"
    CONTROL_PLANE = "used by the controller (control.plane.listener.name)"
    INTER_BROKER = "used by the brokers for replication"
    REMOTE_LOG_METADATA = "used for remote log metadata, which a full disk must not stop"
    ADMIN = "used by the guard's own client"
    UNKNOWN_PORT = "its port is chosen when the broker starts"
    UNKNOWN_PROTOCOL = "no security protocol in listener.security.protocol.map"
    NOT_NAMED = "brimline.gateway.listeners does not name it"
    ADVERTISES_ITSELF = "it advertises the port it is bound to, so clients reach the broker directly"
    CLIENT_CERTIFICATES = "it asks clients for certificates (ssl.client.auth)"

    @property
    def is_for_clients(self) -> bool:
        """Whether it is, or may be, a listener that producers use."""
        return self not in (
            Bypass.CONTROLLER,
            Bypass.CONTROL_PLANE,
            Bypass.INTER_BROKER,
            Bypass.REMOTE_LOG_METADATA,
            Bypass.ADMIN,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BypassedListener:
    name: str
    why: Bypass


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayLayout:
    fronted: tuple[FrontedListener, ...] = ()
    bypassed: tuple[BypassedListener, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayWishes:
    """What our own keys say. ``listeners`` empty: they are derived."""

    listeners: Mapping[str, Address]
    protocols: Mapping[str, SecurityProtocol]
    admin_listener: str
    intercepts: bool = False


def parse_listeners(text: str) -> dict[str, Address]:
    """``NAME://host:port,…``; ``ValueError`` says what is wrong."""
    listeners: dict[str, Address] = {}
    for part in _parts(text):
        match = _LISTENER.fullmatch(part)
        if match is None or not 1 <= int(match[3]) <= _LARGEST_PORT:
            raise ValueError(f"{part!r} is not NAME://host:port with a port from 1 to {_LARGEST_PORT}")
        name = match[1].upper()
        if name in listeners:
            raise ValueError(f"it names {name} twice")
        listeners[name] = Address(host=_bare(match[2]), port=int(match[3]))
    return listeners


def parse_protocols(text: str) -> dict[str, SecurityProtocol]:
    """``NAME:PROTOCOL,…``; ``ValueError`` says what is wrong."""
    protocols = {}
    for part in _parts(text):
        name, _, protocol = (word.strip().upper() for word in part.partition(":"))
        if not name or protocol not in SecurityProtocol.__members__:
            raise ValueError(f"{part!r} is not NAME:PROTOCOL with one of {', '.join(SecurityProtocol.__members__)}")
        protocols[name] = SecurityProtocol[protocol]
    return protocols


def wrong_listeners(broker: BrokerProperties, wishes: GatewayWishes) -> str | None:
    """What is wrong with the listeners that are wished for, if anything."""
    for name in wishes.listeners:
        if name not in broker.bound_listeners:
            return _no_such_listener(name, broker)
        why = _why_past(broker.bound_listeners[name], broker, wishes)
        if why is not None:
            other = "; set another one with brimline.admin.listener" * (why is Bypass.ADMIN)
            return f"{name} cannot go through the gateway: {why.value}{other}"
    return None


def wrong_protocols(broker: BrokerProperties, wishes: GatewayWishes) -> str | None:
    """What is wrong with the protocols that are wished for, if anything."""
    for name, protocol in wishes.protocols.items():
        if name not in broker.bound_listeners:
            return _no_such_listener(name, broker)
        of_broker = broker.bound_listeners[name].security_protocol
        if of_broker.startswith("SASL_") != protocol.uses_sasl:
            return (
                f"clients cannot speak {protocol.value} at {name}, where the broker speaks {of_broker}: the gateway "
                "can add or remove TLS, but not SASL"
            )
    return None


def gateway_layout(broker: BrokerProperties, wishes: GatewayWishes) -> GatewayLayout:
    """For wishes with which nothing is wrong."""
    fronted, bypassed = [], []
    for name, bound in broker.bound_listeners.items():
        why = _why_past(bound, broker, wishes)
        if why is None:
            is_inter_broker = name == broker.inter_broker_listener
            fronted.append(_fronted(bound, broker.listeners[name], wishes, carries_replication=is_inter_broker))
        else:
            bypassed.append(BypassedListener(name=name, why=why))
    return GatewayLayout(
        fronted=tuple(fronted),
        bypassed=tuple(bypassed),
        problems=tuple(_conflicts(fronted, broker)),
    )


def _why_past(bound: Listener, broker: BrokerProperties, wishes: GatewayWishes) -> Bypass | None:
    name = bound.name
    if name in broker.controller_listeners:
        return Bypass.CONTROLLER
    if name == broker.control_plane_listener:
        return Bypass.CONTROL_PLANE
    is_only_one = wishes.intercepts and not _others(name, broker)
    if name == broker.inter_broker_listener and name not in wishes.listeners and not is_only_one:
        return Bypass.INTER_BROKER
    if name == broker.remote_log_metadata_listener and broker.is_remote_storage_enabled:
        return Bypass.REMOTE_LOG_METADATA
    if name == wishes.admin_listener and not is_only_one:
        return Bypass.ADMIN
    if bound.port < 1:
        return Bypass.UNKNOWN_PORT
    if bound.security_protocol not in SecurityProtocol.__members__:
        return Bypass.UNKNOWN_PROTOCOL
    if wishes.listeners and name not in wishes.listeners:
        return Bypass.NOT_NAMED
    if not wishes.listeners and not wishes.intercepts and broker.listeners[name].port == bound.port:
        return Bypass.ADVERTISES_ITSELF
    if _client_protocol(bound, wishes).uses_tls and broker.client_auth[name] is not ClientAuth.NONE:
        return Bypass.CLIENT_CERTIFICATES
    return None


def _others(name: str, broker: BrokerProperties) -> list[str]:
    """Listeners besides this one that may be for clients."""
    of_the_brokers = {*broker.controller_listeners, broker.control_plane_listener, name}
    return [other for other in broker.bound_listeners if other not in of_the_brokers]


def _fronted(
    bound: Listener, advertised: Listener, wishes: GatewayWishes, *, carries_replication: bool
) -> FrontedListener:
    sent_to = Address(host=_bare(advertised.host), port=advertised.port)
    broker_bind = Address(host=_bare(bound.host), port=bound.port)
    return FrontedListener(
        name=bound.name,
        bind=_ANY_OWN_PORT if wishes.intercepts else wishes.listeners.get(bound.name) or _derived_bind(sent_to),
        upstream=_reached_from_here(broker_bind),
        advertised=sent_to,
        broker_bind=broker_bind,
        client_protocol=_client_protocol(bound, wishes),
        broker_protocol=SecurityProtocol[bound.security_protocol],
        carries_replication=carries_replication and not wishes.intercepts,
        is_intercepted=wishes.intercepts,
    )


def _derived_bind(advertised: Address) -> Address:
    """The advertised name may be that of a load balancer or of another network: only its port is ours for sure."""
    if not advertised.is_loopback:
        return Address(host=EVERY_ADDRESS, port=advertised.port)
    return _reached_from_here(advertised)


def _reached_from_here(address: Address) -> Address:
    """Java takes ``localhost`` for the IPv4 address where there are both; we take it for the same."""
    if address.host in (EVERY_ADDRESS, "0.0.0.0", "localhost"):
        return Address(host="127.0.0.1", port=address.port)
    if address.is_everywhere:
        return Address(host="::1", port=address.port)
    return address


def _client_protocol(bound: Listener, wishes: GatewayWishes) -> SecurityProtocol:
    return wishes.protocols.get(bound.name) or SecurityProtocol[bound.security_protocol]


def _conflicts(fronted: Sequence[FrontedListener], broker: BrokerProperties) -> Iterator[str]:
    taken = {
        f"the broker's own listener {name}": Address(host=_bare(bound.host), port=bound.port)
        for name, bound in broker.bound_listeners.items()
    }
    for listener in fronted:
        if listener.is_intercepted:
            continue
        for who, address in taken.items():
            if listener.bind.overlaps(address):
                yield (
                    f"the gateway cannot listen on {listener.bind} for {listener.name}: {who} uses {address}; "
                    "choose another port"
                )
        taken[f"the gateway's listener {listener.name}"] = listener.bind


def _no_such_listener(name: str, broker: BrokerProperties) -> str:
    return f"the broker has no listener {name}; it has {', '.join(broker.bound_listeners)}"


def _bare(host: str) -> str:
    return host.removeprefix("[").removesuffix("]")


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
