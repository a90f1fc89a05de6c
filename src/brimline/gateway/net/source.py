"""The address that the gateway connects to the broker from, which is the address that all its clients have there.

A broker that trusts what comes from its own machine (an ACL for 127.0.0.1) would trust everybody behind a gateway that
connects from there. So the gateway has a loopback address of its own, wherever the broker is reached at one.
"""

import ipaddress
import socket
from dataclasses import dataclass

from brimline.gateway.net.listening import resolved
from brimline.model import BadInput
from brimline.settings.gateway import ANY, OWN
from brimline.settings.keys import GATEWAY_SOURCE
from brimline.settings.layout import Address

OWN_ADDRESS = "127.0.92.1"
"""Linux answers for all of 127.0.0.0/8; nobody has a reason to write an ACL for this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAddress:
    """``address``: ``None`` leaves it to the system. ``complaint``: why it is not the one that was wanted."""

    address: str | None = None
    complaint: str | None = None


def source_for(wish: str, family: socket.AddressFamily, upstream: str) -> SourceAddress:
    """For connections to ``upstream``, an address. ``BadInput``: this machine has not got the address that is named."""
    address = OWN_ADDRESS if wish == OWN else wish
    is_other_family = wish != ANY and (":" in address) is not (family is socket.AF_INET6)
    if wish == ANY or is_other_family or (wish == OWN and not ipaddress.ip_address(upstream).is_loopback):
        return SourceAddress()
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.bind((address, 0))
    except OSError as problem:
        why = f"the gateway cannot connect from {address} ({problem.strerror})"
        if wish != OWN:
            raise BadInput(f"{GATEWAY_SOURCE.name}={wish}: {why}") from problem
        return SourceAddress(
            complaint=f"{why}, so the broker sees clients as local users: make sure no ACL allows 127.0.0.1 "
            f"anything, or set another address with {GATEWAY_SOURCE.name}"
        )
    return SourceAddress(address=address)


def seen_address(wish: str, upstream: Address) -> str | None:
    """Which address the broker sees; ``None``: it cannot be told. Nothing is sent: a datagram socket just asks."""
    try:
        family, address = resolved(upstream.host, upstream.port)
        source = source_for(wish, family, address[0]).address
        with socket.socket(family, socket.SOCK_DGRAM) as asked:
            if source is not None:
                asked.bind((source, 0))
            asked.connect(address)
            seen: str = asked.getsockname()[0]
    except (OSError, BadInput):
        return None
    return seen
