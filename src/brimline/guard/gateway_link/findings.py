"""What goes through the gateway, what goes past it, and what changes for the broker. Pure: facts in, sentences out.

With ``brimline.enforcement=gateway`` a hole in the fence is a problem; while it only observes, it is what the operator
should know before switching.
"""

import ipaddress
import sys
from collections.abc import Collection, Iterator, Mapping

from brimline.documents.notices import Weight
from brimline.guard.feature import Finding
from brimline.model import Failure, FailureKind
from brimline.observe.cluster.address_rules import AddressRules
from brimline.observe.properties.connection_limits import (
    CREATION_RATE,
    LARGEST_INT,
    PER_IP,
    PER_IP_OVERRIDES,
    per_ip_overrides,
)
from brimline.settings import keys
from brimline.settings.config import GuardConfig
from brimline.settings.layout import Address, Bypass, BypassedListener, FrontedListener, GatewayWishes, gateway_layout

TOPIC = "gateway"
_SHOWN = 3


def gateway_finding(weight: Weight, sentence: str) -> Finding:
    return Finding(topic=TOPIC, weight=weight, sentence=sentence)


def concerns_gateway(config: GuardConfig) -> bool:
    """Whether there is, or should be, a gateway."""
    return config.is_enforcing or bool(config.layout.fronted)


def hole_weight(config: GuardConfig) -> Weight:
    return Weight.PROBLEM if config.is_enforcing else Weight.WARNING


def explain_layout(config: GuardConfig) -> Iterator[Finding]:
    if not config.layout.fronted:
        yield _nothing_fronted(config)
    if not concerns_gateway(config):
        return
    for problem in config.layout.problems:
        yield gateway_finding(Weight.PROBLEM, problem)
    for fronted in config.layout.fronted:
        yield from _explain_fronted(fronted, config)
    for bypassed in config.layout.bypassed:
        yield from _explain_bypassed(bypassed, config)
    if config.is_enforcing and config.limits.are_off:
        yield gateway_finding(
            Weight.WARNING,
            "enforcing, but both limits are off: only brimline fence refuses anything",
        )


def explain_addresses(config: GuardConfig, asked: AddressRules | None, seen: Collection[str] = ()) -> Iterator[Finding]:
    """What the broker decides by the address of a client. ``asked``: what it says itself; ``None``: no answer.

    ``seen``: the addresses that it sees instead.
    """
    if not config.layout.fronted:
        return
    yield gateway_finding(
        Weight.NOTE,
        f"the broker sees the gateway's address{_named(seen)} instead of its clients', in its request log and in "
        "lists of group members too",
    )
    now: Mapping[str, str | None] = asked.limits if asked and not isinstance(asked.limits, Failure) else {}
    yield from _per_ip(config, now, seen)
    yield from _creation_rates(config, now)
    for key, builder in config.broker.connection_limits.principal_builders.items():
        yield gateway_finding(
            Weight.WARNING,
            f"{key}={builder}: if this class reads a client's address or TLS session, it gets the gateway's",
        )
    if asked is not None:
        yield from _acls(asked.acls_by_host, seen)
        yield from _quotas(asked.quotas_by_address)


def _nothing_fronted(config: GuardConfig) -> Finding:
    if config.intercepts:
        return gateway_finding(hole_weight(config), "no listener can be intercepted, so nothing can be refused")
    by_kernel = (
        f"set {keys.INTERCEPTION.name}={keys.TPROXY}, which changes no listener and needs no restart of the broker; or "
    )
    how = by_kernel * _may_be_intercepted(config) + (
        "bind a listener for clients to a private address and advertise the gateway's, such as "
        "listeners=CLIENT://127.0.0.1:19092,… and advertised.listeners=CLIENT://HOST:9092,…; the brokers need "
        "another listener for replication (inter.broker.listener.name)"
    )
    if config.is_enforcing:
        return gateway_finding(
            Weight.PROBLEM, f"enforcing, but no listener goes through the gateway, so nothing can be refused: {how}"
        )
    return gateway_finding(Weight.NOTE, f"no listener goes through a gateway; to have one: {how}")


def _may_be_intercepted(config: GuardConfig) -> bool:
    """On Linux, unless every listener of clients asks them for certificates."""
    own = config.text(keys.ADMIN_LISTENER).upper() or config.broker.inter_broker_listener
    wishes = GatewayWishes(listeners={}, protocols={}, admin_listener=own, intercepts=True)
    return sys.platform == "linux" and bool(gateway_layout(config.broker, wishes).fronted)


def _explain_fronted(fronted: FrontedListener, config: GuardConfig) -> Iterator[Finding]:
    name = fronted.name
    if fronted.is_intercepted:
        yield gateway_finding(
            Weight.FINE,
            f"{name}: clients connect to the broker on port {fronted.upstream.port} ({fronted.client_protocol.value}), "
            "and go through the gateway while a disk is near its limit",
        )
        return
    yield gateway_finding(
        Weight.FINE,
        f"{name}: the gateway listens on {fronted.bind} ({fronted.client_protocol.value}) for the broker at "
        f"{fronted.upstream} ({fronted.broker_protocol.value})",
    )
    if fronted.carries_replication:
        yield gateway_finding(
            Weight.NOTE,
            f"{name}: the brokers fetch from this one through the gateway: while it is down the ISR shrinks; run it "
            "under systemd (deploy/systemd) and watch the alert KafkaReplicationCutOff",
        )
    if fronted.sends_clients_past:
        yield gateway_finding(
            hole_weight(config),
            f"{name}: clients are sent to {fronted.advertised}, where the broker answers, so they bypass the "
            "gateway: set advertised.listeners to the gateway's address",
        )
    elif fronted.advertised.port != fronted.bind.port:
        yield gateway_finding(
            Weight.NOTE,
            f"{name}: clients are sent to {fronted.advertised}: make sure that this leads to the gateway's "
            f"{fronted.bind}",
        )
    yield from _explain_exposure(name, fronted.broker_bind)


def _explain_exposure(name: str, broker: Address) -> Iterator[Finding]:
    """Who else reaches the broker's own port: on a loopback address nobody from another machine does."""
    if broker.is_loopback:
        return
    address = broker.ip
    is_open = broker.is_everywhere or (address is not None and address.is_global)
    where = "every address" if broker.is_everywhere else str(broker)
    yield gateway_finding(
        Weight.WARNING if is_open else Weight.NOTE,
        f"{name}: the broker's own port {broker.port} is bound to {where}: a client that connects there bypasses "
        "the gateway and is never refused; bind it to 127.0.0.1, or block it",
    )


def _explain_bypassed(bypassed: BypassedListener, config: GuardConfig) -> Iterator[Finding]:
    sentence = f"{bypassed.name} bypasses the gateway: {bypassed.why.value}"
    if not bypassed.why.is_for_clients:
        yield gateway_finding(Weight.FINE, sentence)
        return
    if bypassed.why is Bypass.CLIENT_CERTIFICATES:
        sentence += "; behind a gateway the broker would see the gateway's certificate for every client"
    weight = Weight.WARNING if config.is_enforcing else Weight.NOTE
    yield gateway_finding(weight, f"{sentence}; Produce over it is never refused and can fill a disk")
    bound, advertised = config.broker.bound_listeners[bypassed.name], config.broker.listeners[bypassed.name]
    if bound.port not in (0, advertised.port):
        yield gateway_finding(
            Weight.WARNING,
            f"{bypassed.name}: clients are sent to port {advertised.port}, where no gateway listens, and the broker is "
            f"bound to {bound.port}: advertise the port that it is bound to, unless something else forwards there",
        )


def _per_ip(config: GuardConfig, now: Mapping[str, str | None], seen: Collection[str]) -> Iterator[Finding]:
    wanted = config.number(keys.GATEWAY_MAX_CONNECTIONS)
    in_file = config.broker.connection_limits
    limit = int(now.get(PER_IP) or in_file.per_ip)
    overrides = per_ip_overrides(now.get(PER_IP_OVERRIDES) or in_file.per_ip_overrides)
    tightest = min((overrides.get(address, limit) for address in seen), default=limit)
    if tightest < wanted:
        yield gateway_finding(
            Weight.WARNING,
            f"{PER_IP}: the broker takes {tightest} connections from the gateway, which counts as one address, and the "
            f"gateway holds up to {wanted} ({keys.GATEWAY_MAX_CONNECTIONS.name}): raise it, or except the gateway with "
            f"{PER_IP_OVERRIDES}={min(seen, default='ADDRESS')}:{wanted}",
        )
    if limit < LARGEST_INT or set(overrides) - set(seen):
        yield gateway_finding(
            Weight.NOTE,
            f"{PER_IP} and its overrides are enforced by the gateway",
        )


def _creation_rates(config: GuardConfig, now: Mapping[str, str | None]) -> Iterator[Finding]:
    rates = dict(config.broker.connection_limits.creation_rates)
    if int(now.get(CREATION_RATE) or LARGEST_INT) < LARGEST_INT:
        rates[CREATION_RATE] = int(now[CREATION_RATE] or 0)
    for key, rate in rates.items():
        yield gateway_finding(
            Weight.NOTE,
            f"{key}={rate}: after a restart of the gateway clients reconnect at this rate",
        )


def _acls(by_host: Mapping[str, int] | Failure, seen: Collection[str]) -> Iterator[Finding]:
    if isinstance(by_host, Failure):
        yield _unknown("host-based ACLs", by_host)
        return
    ours = {_same_spelling(address) for address in seen}
    of_gateway = {host: count for host, count in by_host.items() if _same_spelling(host) in ours}
    if of_gateway:
        yield gateway_finding(
            Weight.PROBLEM,
            f"{_count(sum(of_gateway.values()), 'ACL')} for {_some(of_gateway)}, which the gateway connects from: "
            "they apply to every client of the gateway; remove them with kafka-acls.sh, or give the gateway its own "
            "address "
            f"({keys.GATEWAY_SOURCE.name})",
        )
    others = {host: count for host, count in by_host.items() if host not in of_gateway}
    if others:
        yield gateway_finding(
            Weight.WARNING,
            f"{_count(sum(others.values()), 'ACL')} for hosts ({_some(others)}): clients of the gateway have its "
            "address, so these ACLs no longer apply to them",
        )


def _same_spelling(host: str) -> str:
    """Java writes IPv6 addresses in full."""
    try:
        return ipaddress.ip_address(host).compressed
    except ValueError:
        return host


def _named(seen: Collection[str]) -> str:
    return f" ({', '.join(sorted(seen))})" if seen else ""


def _quotas(by_address: Mapping[str, float] | Failure) -> Iterator[Finding]:
    if isinstance(by_address, Failure):
        yield _unknown("quotas of addresses", by_address)
    elif by_address:
        yield gateway_finding(
            Weight.WARNING,
            f"{_count(len(by_address), 'quota')} of addresses ({_some(by_address)}): the gateway enforces them; for "
            "the broker all its clients share the quota of the gateway's address: set that high",
        )


def _unknown(what: str, failure: Failure) -> Finding:
    needs = ": this principal needs Describe and DescribeConfigs on the cluster" * (
        failure.kind is FailureKind.NOT_AUTHORIZED
    )
    return gateway_finding(Weight.NOTE, f"{what}, which a gateway affects, are unknown{needs} ({failure})")


def _some(names: Mapping[str, object]) -> str:
    shown = sorted(names)[:_SHOWN]
    return ", ".join(shown) + (", …" if len(names) > _SHOWN else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
