"""TCP connections of this network namespace: listed and ended by the kernel (sock_diag, as ``ss -K`` does).

A connection that passes through a gateway bears a mark of ours on the gateway's socket towards the client and on the
broker's towards the gateway. What is at a broker's port without one is a direct one.
"""

import errno
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from brimline.act.interception.nftables import InterceptionFailed

_SOCK_DIAG = 4
"""Netlink's protocol number."""
_BY_FAMILY, _DESTROY = 20, 21
_REQUEST, _ACK, _DUMP = 0x1, 0x4, 0x300
_ERROR, _DONE = 2, 3
_ESTABLISHED_AND_AT_THEIR_ENDS = (1 << 1) | (1 << 2) | (1 << 3) | (1 << 8)
"""Established, both states before it, and closed by the peer alone."""
_MARK = 15
"""An attribute that the kernel tells to whoever has CAP_NET_ADMIN, asked or not."""
_OPTIONS = 22
"""An attribute whose first byte has a bit for a socket under an address that is not its machine's (IP_TRANSPARENT)."""
_TRANSPARENT = 1 << 5 if sys.byteorder == "little" else 1 << 2
_HEADER = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBBBI")
_PLACE = struct.Struct("!HH16s16s")
_AFTER_PLACE = struct.Struct("=III")
_ATTRIBUTE = struct.Struct("=HH")
_STATE = struct.Struct("=BBBB")
_LISTENING = 1 << 10
_UID_AT = 64
_BEFORE_ATTRIBUTES = 72
"""Bytes of one connection's message before its attributes: state, place, and figures."""
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Connected:
    """One side of a connection, as the kernel names it."""

    family: int
    own_port: int
    user: int
    mark: int
    place: bytes
    """Both ends and the kernel's cookie, as it wants them back."""
    is_transparent: bool
    """Also where the kernel does not tell (before 5.13)."""

    # Not read before they are asked for: of thousands that are listed again and again, few are.
    @property
    def own(self) -> tuple[str, int]:
        return _address(self.family, _PLACE.unpack_from(self.place)[2]), self.own_port

    @property
    def peer(self) -> tuple[str, int]:
        _, port, _, address = _PLACE.unpack_from(self.place)
        return _address(self.family, address), port


class SocketDiagnosis:
    def __init__(self) -> None:
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
        self._netlink.bind((0, 0))
        self._netlink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

    def at(self, ports: Collection[int]) -> list[Connected]:
        """All that have one of these ports at this end."""
        return [each for port in sorted(ports) for each in self._listed(port, 0)]

    def towards(self, ports: Collection[int]) -> list[Connected]:
        """All that have one of these ports at the other end."""
        return [each for port in sorted(ports) for each in self._listed(0, port)]

    def listens_as(self, ports: Collection[int]) -> int | None:
        """The user who listens at one of these ports."""
        found = [each for port in sorted(ports) for each in self._listed(port, 0, _LISTENING) if each.mark == 0]
        return found[0].user if found else None

    def end(self, connection: Connected) -> bool:
        """Both of its ends hear of it; ``False``: it has ended by itself."""
        asked = _ASKED.pack(connection.family, socket.IPPROTO_TCP, 0, 0, _ESTABLISHED_AND_AT_THEIR_ENDS)
        self._send(_DESTROY, _REQUEST | _ACK, asked + connection.place)
        for kind, body in self._messages():
            if kind == _ERROR:
                code = -struct.unpack_from("=i", body)[0]
                if code and code != errno.ENOENT:
                    raise InterceptionFailed(f"the kernel cannot close connections (sock_diag): {os.strerror(code)}")
                return not code
        return False

    def _listed(self, own: int, peers: int, states: int = _ESTABLISHED_AND_AT_THEIR_ENDS) -> list[Connected]:
        """The kernel leaves out all other ports: a busy machine has tens of thousands of sockets."""
        place = _PLACE.pack(own, peers, bytes(16), bytes(16)) + _AFTER_PLACE.pack(0, 0xFFFFFFFF, 0xFFFFFFFF)
        found = []
        for family in (socket.AF_INET, socket.AF_INET6):
            self._send(_BY_FAMILY, _REQUEST | _DUMP, _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, states) + place)
            # All of it is read, or the next answer would be the rest of this one.
            found += [_connected(body) for kind, body in self._messages() if kind == _BY_FAMILY]
        return found

    def _send(self, kind: int, flags: int, body: bytes) -> None:
        self._netlink.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body)

    def _messages(self) -> Iterator[tuple[int, bytes]]:
        """Up to the end of the answer."""
        while True:
            data = self._netlink.recv(_CHUNK)
            while len(data) >= _HEADER.size:
                size, kind, _, _, _ = _HEADER.unpack_from(data)
                body, data = data[_HEADER.size : size], data[(size + 3) & ~3 :]
                if kind == _DONE:
                    return
                yield kind, body
                if kind == _ERROR:
                    return


def _connected(body: bytes) -> Connected:
    family, _, _, _ = _STATE.unpack_from(body)
    place = body[_STATE.size : _STATE.size + _PLACE.size + _AFTER_PLACE.size]
    (port,) = struct.unpack_from("!H", place)
    (user,) = struct.unpack_from("=I", body, _UID_AT)
    mark, is_transparent, at = 0, True, _BEFORE_ATTRIBUTES
    while at + _ATTRIBUTE.size <= len(body):
        size, kind = _ATTRIBUTE.unpack_from(body, at)
        if kind == _MARK and size >= _ATTRIBUTE.size + 4:
            mark = struct.unpack_from("=I", body, at + _ATTRIBUTE.size)[0]
        elif kind == _OPTIONS and size > _ATTRIBUTE.size:
            is_transparent = bool(body[at + _ATTRIBUTE.size] & _TRANSPARENT)
        at += max((size + 3) & ~3, _ATTRIBUTE.size)
    return Connected(family, port, user, mark, place, is_transparent)


def _address(family: int, raw: bytes) -> str:
    if family == socket.AF_INET:
        return str(ipaddress.IPv4Address(raw[:4]))
    address = ipaddress.IPv6Address(raw)
    return str(address.ipv4_mapped or address)
