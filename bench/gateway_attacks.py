"""Hostile clients while something is fenced: what the gateway holds in memory for them, and how long others wait.

Every attack meets a gateway process of its own, started by the command that an operator uses. Behind it stands what
answers as slowly as it is asked to, as a broker does; it needs no memory to speak of. Attackers and backend are
processes of their own. Beside the attackers one client asks for the versions again and again, and another one produces
300 KB to a topic that is not fenced.

``python -m bench.gateway_attacks`` prints the table, also of an older version (``PYTHONPATH=…/src``).
"""

import json
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from bench.gateway_paths import GATEWAY, Proxy
from bench.gateway_requests import PRODUCE, PRODUCE_VERSION, answer, api_versions, frame, produce, uvarint
from bench.gateway_rows import HEADER, ThreeWays

FENCED, HEALTHY, UNKNOWN = "fenced", "healthy", "unknown"
PARTITIONS = 19_900
"""In one request of 120 KB."""
INNOCENT_BYTES = 300_000
SECONDS = 15.0
FETCH = 1
MEGABYTE = 1 << 20
REASON = "/var/lib/kafka/data-1 is 99.2 % used, limit disk.max.used.percent=95; free space or lower retention " * 2

Send = Callable[[socket.socket], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    name: str
    connections: int
    send: Send
    fences_log_dir: bool = False
    """Not only a topic: then partitions must be known before a request for them is judged."""


def rows(seconds: float = SECONDS) -> Iterator[ThreeWays]:
    for attack in ATTACKS:
        yield from _under(attack, seconds)


def _under(attack: Attack, seconds: float) -> Iterator[ThreeWays]:
    with tempfile.TemporaryDirectory() as directory, _backend() as upstream, ExitStack() as stack:
        gateway, port = stack.enter_context(_gateway(Path(directory), upstream))
        _fence(gateway, {"topic": FENCED})
        if attack.fences_log_dir:
            _fence(gateway, {"logDir": f"{directory}/{FENCED}"})
        before = most = gateway.resident_kilobytes()
        asks = stack.enter_context(_Innocent(port, api_versions()))
        produces = stack.enter_context(_Innocent(port, produce(HEALTHY, 1, INNOCENT_BYTES)))
        stack.enter_context(_child(_attack, attack, port))
        give_up_at = time.monotonic() + seconds
        while time.monotonic() < give_up_at:
            time.sleep(0.02)
            most = max(most, gateway.resident_kilobytes())
    for what, unit, figure in (
        ("memory added", "MB", (most - before) / 1024),
        ("innocent ApiVersions, worst", "ms", asks.worst * 1000),
        ("innocent 300 KB Produce, worst", "ms", produces.worst * 1000),
    ):
        yield ThreeWays(what=f"{attack.name}: {what}", unit=unit, figures={GATEWAY: figure})


class _Innocent:
    """Sends the same request again and again, each on the answer to the one before."""

    def __init__(self, port: int, request: bytes) -> None:
        self.worst = 0.0
        self._request = request
        self._connection = socket.create_connection(("127.0.0.1", port), timeout=120)
        answer(self._connection, request)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> "_Innocent":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._connection.close()

    def _ask(self) -> None:
        is_served = True
        while is_served and not self._is_over.wait(0.01):
            began = time.monotonic()
            try:
                answer(self._connection, self._request)
            except (OSError, struct.error):
                is_served = False  # not within its patience, which is the figure then
            self.worst = max(self.worst, time.monotonic() - began)


# The gateway, and what is behind it ------------------------------------------------------------------------------


@contextmanager
def _gateway(directory: Path, upstream: int) -> Iterator[tuple[Proxy, int]]:
    """Of a broker with two log dirs: the one has the fenced topic, the other one the healthy topic."""
    log_dirs = [directory / FENCED, directory / HEALTHY]
    for log_dir in log_dirs:
        (log_dir / f"{log_dir.name}-0").mkdir(parents=True)
    (port,) = _free_ports(1)
    config = directory / "server.properties"
    config.write_text(
        "node.id=1\nprocess.roles=broker\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=CLIENT://127.0.0.1:{upstream},BROKER://127.0.0.1:1\n"
        f"advertised.listeners=CLIENT://127.0.0.1:{port},BROKER://127.0.0.1:1\n"
        "listener.security.protocol.map=CLIENT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        f"inter.broker.listener.name=BROKER\nlog.dirs={','.join(map(str, log_dirs))}\n"
        "disk.max.used.percent=100\ndisk.min.free.bytes=0\nbrimline.enforcement=gateway\n"
        f"brimline.state.dir={directory}\nbrimline.log.format=json\n"
    )
    command = [sys.executable, "-m", "brimline.cli", "gateway", "--config", str(config)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        while '"event": "started"' not in (line := process.stderr.readline()):
            if not line:
                raise RuntimeError("the gateway did not start")
        gateway = Proxy(name=GATEWAY, pid=process.pid, control_socket=directory / "gateway-1.sock")
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield gateway, port
    finally:
        process.kill()
        process.wait()


def _fence(gateway: Proxy, what: Mapping[str, str]) -> None:
    """By hand, through the control socket."""
    request = {"op": "fence", **what, "reason": REASON, "by": "bench"}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(gateway.control_socket))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as lines:
            said = json.loads(lines.readline())
    if not said["ok"]:
        raise RuntimeError(f"the gateway did not fence {what}: {said}")


@contextmanager
def _backend() -> Iterator[int]:
    """Its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening, _child(_serve_all, listening):
        yield listening.getsockname()[1]


def _serve_all(listening: socket.socket) -> None:
    while True:
        accepted, _ = listening.accept()
        threading.Thread(target=_serve, args=(accepted,), daemon=True).start()


def _serve(connection: socket.socket) -> None:
    """One request after the other: an answer of as many bytes as a fetch asks for, after as long as it says."""
    with suppress(OSError, struct.error), connection, connection.makefile("rb") as requests:
        while True:
            (size,) = struct.unpack(">i", requests.read(4))
            request = requests.read(size)
            api_key, _, correlation_id, client = struct.unpack_from(">hhih", request)
            answered = 8
            if api_key == FETCH:
                _, wait_ms, _, answered = struct.unpack_from(">iiii", request, 10 + client)
                time.sleep(wait_ms / 1000)
            connection.sendall(struct.pack(">ii", 4 + answered, correlation_id) + bytes(answered))


@contextmanager
def _child(work: Callable[..., None], *arguments: object) -> Iterator[None]:
    process = get_context("fork").Process(target=_work, args=(work, *arguments), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _work(work: Callable[..., None], *arguments: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    work(*arguments)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


# The attacks -----------------------------------------------------------------------------------------------------


def _attack(attack: Attack, port: int) -> None:
    """Nobody reads an answer, ever."""
    threads = []
    with ExitStack() as stack:
        for _ in range(attack.connections):
            sock = stack.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", port))
            threads.append(threading.Thread(target=_quietly, args=(attack.send, sock), daemon=True))
        for thread in threads:
            thread.start()
        time.sleep(3600)


def _quietly(send: Send, sock: socket.socket) -> None:
    with suppress(OSError):
        send(sock)


def _fetch(wait_ms: int, size: int) -> bytes:
    return frame(FETCH, 4, struct.pack(">iiiibi", -1, wait_ms, size, size, 0, 0), flexible=False)


def _produce_nothing(topic: str) -> bytes:
    """Null records for about as many partitions as a request may name."""
    name = topic.encode()
    parts = b"".join(struct.pack(">i", number) + b"\0\0" for number in range(PARTITIONS))
    topics = b"\x02" + uvarint(len(name) + 1) + name + uvarint(PARTITIONS + 1) + parts + b"\0"
    return frame(PRODUCE, PRODUCE_VERSION, b"\0" + struct.pack(">hi", -1, 30_000) + topics + b"\0")


SLOW = _fetch(wait_ms=300_000, size=1)
REFUSED = _produce_nothing(FENCED)
NOWHERE = _produce_nothing(UNKNOWN)
SMALL = produce(FENCED, 1, 10)
ANNOUNCED = struct.pack(">i", 100 * MEGABYTE - 4) + REFUSED[4:]


def _half_closed(sock: socket.socket) -> None:
    sock.sendall(SLOW + REFUSED * 8)
    sock.shutdown(socket.SHUT_WR)


ATTACKS: Sequence[Attack] = (
    Attack(
        name="24 MB of refused requests behind a slow one, unread",
        connections=1,
        send=lambda sock: sock.sendall(SLOW + REFUSED * 200),
    ),
    Attack(name="30 such connections", connections=30, send=lambda sock: sock.sendall(SLOW + REFUSED * 75)),
    Attack(name="30 such connections, half-closed", connections=30, send=_half_closed),
    Attack(
        name="300 that fetch 4 MB and do not read",
        connections=300,
        send=lambda sock: sock.sendall(_fetch(wait_ms=1, size=4 * MEGABYTE) * 50),
    ),
    Attack(
        name="100 with 5,000 small requests under way",
        connections=100,
        send=lambda sock: sock.sendall(SLOW + SMALL * 5000),
    ),
    Attack(
        name="60 requests of 100 MB, half sent",
        connections=60,
        send=lambda sock: sock.sendall(ANNOUNCED + bytes(50 * MEGABYTE)),
    ),
    Attack(
        name="60 that name 19,900 unknown partitions",
        connections=60,
        send=lambda sock: sock.sendall(NOWHERE * 50),
        fences_log_dir=True,
    ),
)


if __name__ == "__main__":
    print(HEADER)
    wanted = sys.argv[1:]
    for each in ATTACKS:
        if not wanted or any(word in each.name for word in wanted):
            for figure in _under(each, SECONDS):
                print(figure.row(), flush=True)
