"""Where clients come in: sockets of our own, or those that systemd holds open for us across restarts."""

import errno
import os
import socket
from collections.abc import MutableMapping
from typing import Any

_FIRST_PASSED_FD = 3
BACKLOG = 1024
BIND_ADDRESS_NO_PORT = 24
"""Linux' IP_BIND_ADDRESS_NO_PORT, for which not every Python has a name; it counts for IPv6, too. The port is chosen
when the socket connects: one that is taken by a connection to somewhere else will do."""
BEGUN = (0, errno.EINPROGRESS)
Address = tuple[str, int] | tuple[str, int, int, int]

_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""A name may have addresses that this machine has not: often localhost's of the other family."""

_WILDCARDS = ("", "0.0.0.0", "::", "[::]", "*")


def passed_sockets(environment: MutableMapping[str, str]) -> dict[str, list[socket.socket]]:
    """Listening sockets from systemd, by upper-case name (``FileDescriptorName=``).

    The variables are taken out of ``environment``, so that no child believes they are meant for it.
    """
    pid = environment.pop("LISTEN_PID", "")
    count = environment.pop("LISTEN_FDS", "")
    names = environment.pop("LISTEN_FDNAMES", "").split(":")
    if pid != str(os.getpid()) or not count.isdecimal():
        return {}
    passed: dict[str, list[socket.socket]] = {}
    for number in range(int(count)):
        fd = _FIRST_PASSED_FD + number
        os.set_inheritable(fd, False)  # noqa: FBT003  the standard library's signature
        name = names[number].upper() if number < len(names) else ""
        passed.setdefault(name, []).append(socket.socket(fileno=fd))
    return passed


def listening_sockets(host: str, port: int) -> tuple[socket.socket, ...]:
    """New ones; an empty host means every address of this machine, of both families."""
    if host in _WILDCARDS:
        if socket.has_dualstack_ipv6():
            return (socket.create_server(("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True),)
        return (socket.create_server(("0.0.0.0", port), backlog=BACKLOG),)
    found = _addresses(host.strip("[]"), port, socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    foreign: OSError | None = None
    try:
        for family, address in dict.fromkeys(found):
            try:
                sockets.append(socket.create_server(address, family=family, backlog=BACKLOG))
            except OSError as failure:
                if failure.errno not in _NOT_HERE:
                    raise
                foreign = failure
        if foreign is not None and not sockets:
            raise foreign
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return tuple(sockets)


def resolved(host: str, port: int) -> tuple[socket.AddressFamily, Address]:
    """Where a host is. Asked once, at the start: no frame waits for a name server."""
    for family, address in _addresses(host, port):
        if family in (socket.AF_INET, socket.AF_INET6) and isinstance(address[0], str):
            return family, address
    raise OSError(errno.EADDRNOTAVAIL, f"{host} has no address")


def _addresses(host: str, port: int, flags: int = 0) -> list[tuple[socket.AddressFamily, Any]]:
    try:
        return [(info[0], info[4]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)]
    except UnicodeError as error:  # two dots in a row, or a part of more than 63 characters
        raise OSError(errno.EINVAL, "not a host name") from error
