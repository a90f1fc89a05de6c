"""Connections that nobody should have: silent, slow, deaf, half closed, huge, and very many. Bounded counts of each.

After every attack somebody new must be served, and meanwhile the innocent client beside is.
"""

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from brimline.torture.hostile.frames import FENCED
from brimline.torture.hostile.produce import Partition, PlainRequest, PlainTopic, batch, encoded_request
from brimline.torture.hostile.sides import NO_LINGERING
from brimline.torture.hostile.world import World

_SECONDS = 3.0
"""How long an attack goes on once its connections are there."""
_PATIENCE_SECONDS = 60.0
_LARGEST_REQUEST = 104_857_600
_API_VERSIONS = bytes.fromhex("0000000a0012000000000001ffff")
_METADATA = bytes.fromhex("0000000e0003000100000001ffffffffffff")


class Attack(NamedTuple):
    name: str
    connections: int
    begin: Callable[[socket.socket], None]
    """What each connection does first."""
    go_on: Callable[[socket.socket], None] | None = None
    """…and then again and again."""


def _produce(*partitions: Partition) -> bytes:
    payload = encoded_request(PlainRequest(topics=[PlainTopic(FENCED.word, None, partitions)]), 9)
    return struct.pack(">i", len(payload)) + payload


def _nothing(_connection: socket.socket) -> None:
    pass


def _send(data: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(data)


def _send_and_half_close(connection: socket.socket) -> None:
    connection.sendall(_REFUSED * 20)
    connection.shutdown(socket.SHUT_WR)


def _reset(connection: socket.socket) -> None:
    connection.sendall(_REFUSED[:50])
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGERING)
    connection.close()


_REFUSED = _produce(Partition(0, batch()))
ATTACKS = (
    Attack("silent", 300, _nothing),
    Attack("slow, byte by byte", 100, _send(_REFUSED[:20]), _send(_REFUSED[20:21])),
    Attack("deaf", 50, _send(_METADATA * 500), _send(_METADATA * 20)),
    Attack("deaf and refused", 50, _send(_REFUSED * 500), _send(_REFUSED * 20)),
    Attack("half closed and refused", 200, _send_and_half_close),
    Attack("huge announcements", 50, _send(struct.pack(">i", _LARGEST_REQUEST) + _REFUSED[4:]), _send(bytes(10_000))),
    Attack("impossible lengths", 200, _send(b"\x7f\xff\xff\xff" + _REFUSED[4:])),
    Attack("huge and refused", 8, _send(_produce(Partition(0, bytes(8 << 20))))),
    Attack("40,000 partitions", 8, _send(_produce(*[Partition(0, None)] * 40_000))),
    Attack("opened and reset", 1000, _reset),
)


def attack_by_connections(here: World) -> Mapping[str, str]:
    """Name of the attack → what it did. Raises nothing: what it does to others shows there."""
    return {attack.name: _attack(here, attack) for attack in ATTACKS}


def _attack(here: World, attack: Attack) -> str:
    with contextlib.ExitStack() as stack:
        open_now = list(_opened(here, attack, stack))
        until = time.monotonic() + _SECONDS
        while attack.go_on is not None and time.monotonic() < until:
            for connection in open_now:
                with contextlib.suppress(OSError):
                    attack.go_on(connection)
            time.sleep(0.05)
        served = _seconds_to_be_served(here)
        resident = here.resident_kib()[0] // 1024
    return f"{len(open_now)} connections, a new client is served after {served * 1000:.0f} ms, memory {resident} MiB"


def _opened(here: World, attack: Attack, stack: contextlib.ExitStack) -> Iterator[socket.socket]:
    for _ in range(attack.connections):
        with contextlib.suppress(OSError):
            connection = socket.create_connection((here.through.host, here.through.port), _PATIENCE_SECONDS)
            stack.enter_context(connection)
            connection.settimeout(0.2)
            attack.begin(connection)
            yield connection


def _seconds_to_be_served(here: World) -> float:
    began = time.monotonic()
    with socket.create_connection((here.through.host, here.through.port), _PATIENCE_SECONDS) as connection:
        connection.sendall(_API_VERSIONS)
        if not connection.recv(1):
            raise ConnectionResetError("the gateway serves no new client")
    return time.monotonic() - began
