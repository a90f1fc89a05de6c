"""The broker's limits of connections by address, as its file writes them, in the words of the gateway."""

import socket
from contextlib import suppress

from brimline.gateway.addresses import AddressLimits, address_of
from brimline.observe.connection_limits import LARGEST_INT, ConnectionLimits, per_ip_overrides


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
