"""By which names the guard's pages may be asked for.

A page of somebody else, in a browser that can reach this machine, may have its own name lead here, and would then read
what is served here as its own (DNS rebinding). The browser says in ``Host`` which name it asks for. An address, or a
name that this machine is known by, belongs to nobody else.
"""

import socket
import threading
from collections.abc import Callable
from ipaddress import ip_address

from brimline.settings import keys
from brimline.settings.config import GuardConfig


def named(host: str) -> str:
    """What a ``Host`` names, without its port."""
    name, colon, port = host.rpartition(":")
    without_port = name if colon and (port.isdecimal() or not port) else host
    return without_port.strip("[]").rstrip(".").lower()


def is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class HostNames:
    """``config``: as it is now."""

    def __init__(self, config: Callable[[], GuardConfig]) -> None:
        self._config = config
        self._looked_up: frozenset[str] = frozenset()
        # A name server may be slow, and nobody waits for it
        threading.Thread(target=self._look_up, name="own-names", daemon=True).start()

    def takes(self, host: str) -> bool:
        name = named(host)
        return is_address(name) or name == "localhost" or name in self._own()

    def _own(self) -> set[str]:
        config = self._config()
        broker = config.broker
        listeners = (*broker.listeners.values(), *broker.bound_listeners.values())
        given = config.text(keys.HTTP_HOSTS).split(",")
        names = (socket.gethostname(), config.text(keys.METRICS_HOST), *(each.host for each in listeners), *given)
        return {*self._looked_up, *(each.strip().rstrip(".").lower() for each in names)} - {""}

    def _look_up(self) -> None:
        self._looked_up = frozenset((socket.getfqdn().rstrip(".").lower(),))
