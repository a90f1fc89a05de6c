"""A sandbox's processes: start, stop, kill, what a Kafka last said, and whether a broker answers.

A broker is asked by one Metadata request, by hand. Seven short fields each way: not worth a client library whose import
takes longer than the answer.
"""

import signal
import socket
import struct
import time
from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import Path

from brimline.sandbox import broker as probe
from brimline.sandbox.errors import BrokerFailed
from brimline.sandbox.namespace import Namespace
from brimline.sandbox.properties import Node, listener_address, render

_METADATA = 3
_VERSION = 4
"""Understood by every Kafka from 0.11 to 4.x, and the newest without tagged fields in a header we would parse."""


class NotAnswering(Exception):
    """Nobody there yet, or not ready to speak."""


def known_brokers(host: str, port: int, timeout: float) -> set[int]:
    """The ids of the brokers that this one would tell a client about: the registered and unfenced."""
    # header: key, version, correlation id, client id; body: no topics, no auto-creation
    request = struct.pack(">hhih8sib", _METADATA, _VERSION, 0, 8, b"brimline", 0, 0)
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", _read(connection, 4))
            return brokers_in(_read(connection, size))
    except OSError as error:
        raise NotAnswering(str(error)) from error


def brokers_in(answer: bytes) -> set[int]:
    """Metadata v4: correlation id, throttle time, then an array of (id, host, port, rack)."""
    (count,) = struct.unpack_from(">i", answer, 8)
    at = 12
    brokers = set()
    for _ in range(count):
        broker_id, host_length = struct.unpack_from(">ih", answer, at)
        at += 6 + host_length + 4
        (rack_length,) = struct.unpack_from(">h", answer, at)
        at += 2 + max(rack_length, 0)
        brokers.add(broker_id)
    return brokers


def _read(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise NotAnswering("the connection was closed")
        received += piece
    return received


START_TIMEOUT = 240.0
"""A broker takes 3 s; on a crowded two-core machine it has taken more than 90."""
STOP_TIMEOUT = 240.0
_POLL = 0.02


class SupervisedProcess:
    """A process by name, which ends with the sandbox. Names stay; processes come and go under them."""

    def __init__(self, name: str, argv: list[str], namespace: Namespace, directory: Path, output: Path) -> None:
        """``output`` takes what it writes to its standard output and error, of all its lives."""
        self.name = name
        self._argv = argv
        self._namespace = namespace
        self._directory = directory
        self.output = output
        self._pid: int | None = None

    @property
    def pid(self) -> int:
        """The process id as this machine sees it, of the running or else the last process."""
        if self._pid is None:
            raise BrokerFailed(f"{self.name} was never started")
        return self._pid

    @property
    def exit_code(self) -> int | None:
        """``None`` while it runs; negative if a signal ended it."""
        return self._namespace.exit_code(self.name)

    @property
    def is_running(self) -> bool:
        return self._pid is not None and self.exit_code is None

    def launch(self) -> None:
        """Start the process and return at once; does nothing if it runs."""
        if not self.is_running:
            self._pid = self._namespace.spawn(self.name, self._argv, directory=self._directory, output=self.output)

    def stop(self) -> None:
        """A clean shutdown, waited for."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """The process is gone at once, as after ``kill -9``."""
        self._end(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Does nothing if it has ended."""
        self._namespace.signal(self.name, number)

    def complaint(self) -> str:
        """What it last wrote."""
        path = self._namespace.outside(self.output)
        return "\n".join(path.read_text(errors="replace").splitlines()[-30:]) if path.is_file() else ""

    def _end(self, number: int) -> None:
        if not self.is_running:
            return
        self.signal(number)
        deadline = time.monotonic() + STOP_TIMEOUT
        while self.is_running:
            if time.monotonic() > deadline:
                message = f"{self.name} did not stop within {STOP_TIMEOUT:.0f} s: kill it instead"
                raise BrokerFailed(message, self.complaint())
            time.sleep(_POLL)


class KafkaProcess(SupervisedProcess):
    """A node's JVM."""

    def __init__(self, node: Node, argv: list[str], namespace: Namespace) -> None:
        super().__init__(node.name, argv, namespace, node.home, node.home / "stdio.log")
        self.node = node

    def log_tail(self, lines: int = 30) -> str:
        """The last lines of its log and of what it wrote to its standard output and error."""
        return "\n".join(line for log in self._logs() for line in log[-lines:])

    def complaint(self) -> str:
        """The first error in its log, with the lines that explain it: a dying broker talks on for pages."""
        for log in self._logs():
            for number, line in enumerate(log):
                if " ERROR " in line or " FATAL " in line:
                    return "\n".join([line, *_explanation(log[number + 1 :])])
        return self.log_tail()

    def _logs(self) -> list[list[str]]:
        paths = [self._namespace.outside(self.node.home / name) for name in ("server.log", "stdio.log")]
        return [path.read_text(errors="replace").splitlines() for path in paths if path.is_file()]

    def wait_until(self, ready: Callable[[], bool], doing: str) -> None:
        """Poll ``ready``; raises with the log's tail if the process dies or the time is over."""
        deadline = time.monotonic() + START_TIMEOUT
        while not ready():
            if not self.is_running:
                message = f"{self.node.name} ended with exit code {self.exit_code} while {doing}"
                raise BrokerFailed(message, self.complaint())
            if time.monotonic() > deadline:
                message = f"{self.node.name} took more than {START_TIMEOUT:.0f} s while {doing}"
                raise BrokerFailed(message, self.complaint())
            time.sleep(_POLL)


def _explanation(log: list[str]) -> list[str]:
    """The exception and its causes, without the stack frames, up to the next log line."""
    trace = takewhile(lambda line: not line.startswith("["), log)
    return [line for line in trace if not line.startswith("\t")]


class Broker(KafkaProcess):
    """A broker of the sandbox. Its properties file always holds ``properties``, and nobody else writes it."""

    def __init__(self, node: Node, argv: list[str], namespace: Namespace, properties: Mapping[str, str]) -> None:
        super().__init__(node, argv, namespace)
        self._properties: dict[str, str] = {}
        self.alter_properties(properties)

    @property
    def properties(self) -> Mapping[str, str]:
        return self._properties

    def alter_properties(self, changes: Mapping[str, str | None]) -> None:
        """Set these keys in the properties file (``None``: take one out); the broker reads it when it starts."""
        altered = {**self._properties, **changes}
        self._properties = {key: value for key, value in altered.items() if value is not None}
        self._namespace.outside(self.node.server_properties).write_text(render(self._properties))

    @property
    def broker_id(self) -> int:
        return self.node.node_id

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        """As the broker names them; ``Sandbox.outside`` tells where this process finds them."""
        return self.node.log_dirs

    @property
    def address(self) -> str:
        """Host and port at which clients are told to find it: a gateway's, if one is to stand in front."""
        return listener_address(self._properties["advertised.listeners"], "CLIENT")

    @property
    def direct_address(self) -> str:
        """Host and port at which its client listener really listens."""
        return listener_address(self._properties["listeners"], "CLIENT")

    @property
    def admin_address(self) -> str:
        return f"{self.node.host}:{self.node.admin_port}"

    def start(self) -> None:
        """Start it and wait until it answers and is a member of the cluster; does nothing if it runs."""
        self.launch()
        self.wait_for({self.broker_id})

    def restart(self) -> None:
        """A clean stop and a start."""
        self.stop()
        self.start()

    def wait_for(self, brokers: set[int]) -> None:
        """Until this broker tells its clients about all of ``brokers``."""
        self.wait_until(lambda: self.knows(brokers), "starting")

    def knows(self, brokers: set[int]) -> bool:
        try:
            return brokers <= probe.known_brokers(self.node.host, self.node.admin_port, timeout=2.0)
        except probe.NotAnswering:
            return False
