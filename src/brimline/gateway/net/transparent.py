"""Sockets of connections that the kernel turns aside to the gateway: each side keeps the other's address.

The gateway's socket towards a client has the broker's address, and its own connection to the broker comes from the
client's. All of them bear a mark, by which rules, routes and whoever ends connections know them from direct ones. It
takes CAP_NET_RAW (or CAP_NET_ADMIN).
"""

import errno
import ipaddress
import random
import socket
from collections.abc import Container
from typing import TypeAlias

from brimline.decide.interception import CLIENT_MARK
from brimline.gateway.net.listening import BACKLOG, BEGUN, BIND_ADDRESS_NO_PORT, Address

Client: TypeAlias = tuple[str, int]

_IP_TRANSPARENT, _IPV6_TRANSPARENT, _SO_MARK = 19, 75, 36
"""Linux' numbers, for which Python has no names."""
_TRIES = 64
_PORTS = (10_000, 60_000)


def own_ports(mark: int) -> tuple[socket.socket, ...]:
    """One port on the loopback addresses of both families, that only turned-aside connections find."""
    first = _bound(socket.AF_INET, ("127.0.0.1", 0), mark)
    sockets = [first]
    try:
        sockets.append(_bound(socket.AF_INET6, ("::1", first.getsockname()[1]), mark))
    except OSError as problem:
        if problem.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            first.close()
            raise
    for sock in sockets:
        sock.listen(BACKLOG)
    return tuple(sockets)


def upstream_for(family: socket.AddressFamily, upstream: Address) -> Address:
    """Where the broker is reached for a client of this family; one that is bound everywhere, over the loopback device:
    at the address that the client has dialled the broker could take both connections for one."""
    is_v6 = family is socket.AF_INET6
    return ("::1", upstream[1]) if is_v6 and upstream[0] == "127.0.0.1" else upstream


def dial_as(sock: socket.socket, client: Client, upstream: Address, mark: int, others: Container[Client]) -> bool:
    """Begin to connect from the client's address. ``others``: all clients that are turned aside now, with their ports.

    A broker that is bound to one address sees that address on both connections: then the port must be nobody's.
    """
    _set_transparent(sock, mark)
    if ipaddress.ip_address(upstream[0]).is_loopback:
        sock.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
        sock.bind((client[0], 0))
        return sock.connect_ex(upstream) in BEGUN
    for _ in range(_TRIES):
        port = random.randrange(*_PORTS)
        if (client[0], port) in others:
            continue
        try:
            sock.bind((client[0], port))
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise
        else:
            return sock.connect_ex(upstream) in BEGUN
    return False


def dial_leader(sock: socket.socket, accepted: socket.socket) -> bool:
    """Begin to connect to whom the broker has dialled: that is the address of the socket that took it."""
    sock.setsockopt(socket.SOL_SOCKET, _SO_MARK, CLIENT_MARK)
    return sock.connect_ex(accepted.getsockname()) in BEGUN


def _bound(family: socket.AddressFamily, address: tuple[str, int], mark: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        _set_transparent(sock, mark)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


def _set_transparent(sock: socket.socket, mark: int) -> None:
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_TRANSPARENT, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_TRANSPARENT, 1)
    sock.setsockopt(socket.SOL_SOCKET, _SO_MARK, mark)
