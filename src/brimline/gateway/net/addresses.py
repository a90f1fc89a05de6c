"""Limits by address: how many connections one may have, and how many new ones in a second.

A broker behind a gateway sees one address for all clients, so that what it decides by the address is decided here: the
broker's ``max.connections.per.ip`` and its overrides, and its quotas ``connection_creation_rate`` of addresses. What
counts all connections together, or those of a listener, stays with the broker: behind a gateway they are as many.
"""

import socket
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from brimline.observe.properties.connection_limits import LARGEST_INT, ConnectionLimits, per_ip_overrides

_BURST_SECONDS = 10.0
"""A broker measures a rate over the last seconds: so long somebody may come more often, having come less often."""
_MOST_REMEMBERED = 10_000
_MAPPED = "::ffff:"
"""How a socket for both families writes an address of the old one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressLimits:
    """``None``: no limit. Addresses are written as the kernel writes them."""

    connections: int | None = None
    connections_of: Mapping[str, int] = field(default_factory=dict)
    per_second: float | None = None
    per_second_of: Mapping[str, float] = field(default_factory=dict)


class AddressRefusal(Enum):
    """By the names under which ended connections are counted."""

    TOO_MANY = "address-limit"
    TOO_FAST = "address-rate"


class Addresses:
    """``limits`` may be replaced at any time, from any thread."""

    def __init__(self, limits: AddressLimits) -> None:
        self.limits = limits
        self._open: Counter[str] = Counter()
        self._paid_until: dict[str, float] = {}

    def refusal(self, address: str) -> AddressRefusal | None:
        """Of one more connection; ``None``: it may come in."""
        limits = self.limits
        most = limits.connections_of.get(address, limits.connections)
        if most is not None and self._open[address] >= most:
            return AddressRefusal.TOO_MANY
        rate = limits.per_second_of.get(address, limits.per_second)
        if rate is not None and not self._is_in_time(address, rate):
            return AddressRefusal.TOO_FAST
        return None

    def came(self, address: str) -> None:
        self._open[address] += 1

    def went(self, address: str) -> None:
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]

    def _is_in_time(self, address: str, rate: float) -> bool:
        now = time.monotonic()
        long_ago = now - _BURST_SECONDS
        paid_until = max(self._paid_until.get(address, long_ago), long_ago) + (1 / rate if rate else _BURST_SECONDS)
        if paid_until > now or not rate:
            return False
        if len(self._paid_until) >= _MOST_REMEMBERED:
            self._paid_until = {each: until for each, until in self._paid_until.items() if until > long_ago}
        self._paid_until[address] = paid_until
        return True


def address_of(peer: object) -> str:
    """From what ``accept`` tells of a client."""
    host = peer[0] if isinstance(peer, tuple) else ""
    return str(host).partition("%")[0].removeprefix(_MAPPED)


def limits_in_file(limits: ConnectionLimits) -> AddressLimits:
    connections, of_address = connections_by_address(limits.per_ip, limits.per_ip_overrides)
    return AddressLimits(connections=connections, connections_of=of_address)


def connections_by_address(per_ip: int, overrides: str) -> tuple[int | None, dict[str, int]]:
    """A host is looked up as the broker does; one that has no address has no connection either."""
    of_address: dict[str, int] = {}
    for host, most in per_ip_overrides(overrides).items():
        with suppress(OSError):
            for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
                of_address[address_of(found[4])] = most
    return per_ip if per_ip < LARGEST_INT else None, of_address
