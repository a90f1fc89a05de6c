"""How a broker limits connections and names its clients, as its properties file says.

All of it goes by what the broker sees of a connection: the address it comes from, the listener it arrives at, and for a
class of one's own that names the clients perhaps more. A gateway in front of a listener changes what there is to see.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from brimline.observe.properties.java_properties import PropertyReader

PER_IP = "max.connections.per.ip"
PER_IP_OVERRIDES = "max.connections.per.ip.overrides"
CREATION_RATE = "max.connection.creation.rate"
PRINCIPAL_BUILDER = "principal.builder.class"
KEYS = (PER_IP, PER_IP_OVERRIDES, CREATION_RATE, PRINCIPAL_BUILDER)
_OWN_PRINCIPAL_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
LARGEST_INT = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    per_ip: int = LARGEST_INT
    """Java's largest ``int`` is how Kafka writes "no limit"."""
    per_ip_overrides: str = ""
    creation_rates: Mapping[str, int] = field(default_factory=dict)
    """By the key that sets one: the broker's own, or a listener's."""
    principal_builders: Mapping[str, str] = field(default_factory=dict)
    """By the key that names one, where it is not Kafka's."""


def per_ip_overrides(text: str) -> dict[str, int]:
    """``host:number,…``; what is not so is the broker's to refuse."""
    pairs = [part.strip().rpartition(":") for part in text.split(",") if part.strip()]
    return {host.strip(): int(number) for host, _, number in pairs if number.strip().isdecimal()}


def connection_limits(reader: PropertyReader, listeners: Iterable[str]) -> ConnectionLimits:
    """``BadInput`` for a number that is none."""
    names = list(listeners)
    rates = {key: whole_number(reader, key, 0, LARGEST_INT) for key in _spellings(CREATION_RATE, names)}
    builders = {key: reader.text(key) or _OWN_PRINCIPAL_BUILDER for key in _spellings(PRINCIPAL_BUILDER, names)}
    return ConnectionLimits(
        per_ip=whole_number(reader, PER_IP, 0, LARGEST_INT),
        per_ip_overrides=reader.text(PER_IP_OVERRIDES) or "",
        creation_rates={key: rate for key, rate in rates.items() if rate < LARGEST_INT},
        principal_builders={key: builder for key, builder in builders.items() if builder != _OWN_PRINCIPAL_BUILDER},
    )


def listener_key(listener: str, key: str) -> str:
    """How a key is written that counts for one listener only."""
    return f"listener.name.{listener.lower()}.{key}"


def whole_number(reader: PropertyReader, key: str, low: int, default: int) -> int:
    """Java's ``int``."""
    text = reader.text(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and low <= int(text) <= LARGEST_INT):
        raise reader.refusal(key, f"allowed: a whole number from {low} to {LARGEST_INT}")
    return int(text)


def _spellings(key: str, listeners: Iterable[str]) -> Iterator[str]:
    yield key
    for listener in listeners:
        yield listener_key(listener, key)
