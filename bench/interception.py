"""Interception: what it costs while there is room and while clients are turned aside, and how soon it is in force.

Brokers on machines of their own, clients on another one (network namespaces): one broker has nothing beside it, the
other a guard and a gateway. Writers take turns: directly to the first, to the second while nobody is turned aside, and
to the second while all are. Then 5,000 idle connections are turned aside and let go. Then a small disk is filled at
full speed, once with interception and once with the gateway always in the path.

``python -m bench.interception`` prints it, ``--quick`` in fewer rounds. It needs root, for networks of its own.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from kafka.protocol.metadata import ApiVersionsRequest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic
from tests.integration.full_disks import BY_PERCENT, NO_LIMIT, delete_topics
from tests.integration.full_followers import Guarded, guarded
from tests.integration.networked import NetworkedSandbox, address
from tests.integration.raw_kafka import request
from tests.waiting import eventually

MIB = 1 << 20
ROUNDS = 7
WRITTEN = 96 * MIB
RECORD = bytes(10 * 1024)
PINGS = 200
CONNECTIONS = 5_000
VOLUME = Bytes(512 * MIB)
LIMIT_PERCENT = 80
DIRECT, IDLE, ARMED = "direct", "idle", "armed"
INTERCEPTION = {
    "brimline.gateway.interception": "tproxy",
    "brimline.gateway.interception.disarm.seconds": "1",
    "brimline.follower.action": "fence",
}
HEADER = "| what | direct or before | interception idle or always in the path | armed | ratios |\n|---|---|---|---|---|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    cells: tuple[str, ...]

    def row(self) -> str:
        return f"| {' | '.join(self.cells)} |"


def figures(rounds: int = ROUNDS) -> Iterator[Figures]:
    command = ["unshare", "--net", sys.executable, "-m", "bench.interception", "--inside", str(rounds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield Figures(cells=tuple(json.loads(line)))
    if process.returncode:
        raise RuntimeError(f"the benchmark of interception ended with {process.returncode}")


def _inside(rounds: int) -> None:
    for cells in (*_rates(rounds), *_overshoot(max(rounds // 2, 1))):
        print(json.dumps(cells), flush=True)


def _rates(rounds: int) -> Iterator[list[str]]:
    spec = SandboxSpec(
        brokers=2,
        volumes=(VolumeSpec(size=Bytes(2 << 30)),),
        heap=Bytes(384 * MIB),
        properties={"log.segment.delete.delay.ms": "100"},
    )
    with tempfile.TemporaryDirectory() as logs, NetworkedSandbox(spec) as sandbox, ExitStack() as stack:
        keys = {**NO_LIMIT, **INTERCEPTION, "brimline.metrics.host": address(2)}
        own = stack.enter_context(guarded(sandbox.at(2), Path(logs), 2, keys))
        found: dict[str, dict[str, list[float]]] = {"MB/s": {}, "ms": {}}
        for number in range(rounds + 1):
            ways = [DIRECT, IDLE, ARMED]
            for way in ways[number % 3 :] + ways[: number % 3]:
                if way == ARMED:
                    _arm(own, is_on=True)
                broker = 1 if way == DIRECT else 2
                create_topic(sandbox, "written", assignment={each: [broker] for each in range(4)})
                speed, latency = _write(sandbox.bootstrap_servers), _ping(sandbox.bootstrap_servers)
                delete_topics(sandbox, "written")
                if way == ARMED:
                    _arm(own, is_on=False)
                if number:  # the first warms the JVMs up
                    found["MB/s"].setdefault(way, []).append(speed)
                    found["ms"].setdefault(way, []).append(latency)
        for what, unit in (("written, acks=1", "MB/s"), ("one record at a time, p50", "ms")):
            medians = {way: statistics.median(values) for way, values in found[unit].items()}
            pairs = [
                [ours / theirs for ours, theirs in zip(found[unit][way], found[unit][DIRECT], strict=True)]
                for way in (IDLE, ARMED)
            ]
            ratios = "; ".join(f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})" for each in pairs)
            yield [f"{what} ({unit})", *(f"{medians[way]:.3g}" for way in ways_in_order()), ratios]
        yield _many(sandbox, own)


def ways_in_order() -> tuple[str, str, str]:
    return DIRECT, IDLE, ARMED


def _arm(own: Guarded, *, is_on: bool) -> None:
    own.gateway.ask("fence" if is_on else "unfence", topic="nobody", reason="a benchmark", by="bench")
    wanted = "armed" if is_on else "idle"
    eventually(lambda: own.guard.state()["interception"]["phase"] == wanted)


def _write(servers: str) -> float:
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": servers, "acks": 1, "linger.ms": 5, "batch.size": MIB})
    producer.list_topics("written", timeout=30)
    begin = time.perf_counter()
    for number in range(WRITTEN // len(RECORD)):
        while True:
            try:
                producer.produce(
                    "written",
                    RECORD,
                    partition=number % 4,
                    on_delivery=lambda error, _: failures.append(error) if error else None,
                )
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    if producer.flush(240) or failures:
        raise RuntimeError(f"not everything was written: {failures[:3]}")
    return WRITTEN / 1e6 / (time.perf_counter() - begin)


def _ping(servers: str) -> float:
    """Milliseconds until one record is acknowledged."""
    producer = Producer({"bootstrap.servers": servers, "acks": 1, "linger.ms": 0})
    times = []
    for _ in range(PINGS):
        begin = time.perf_counter()
        producer.produce("written", b"x" * 100, partition=0)
        producer.flush(60)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


class _Idle(asyncio.Protocol):
    """One connection that asks once, and comes again when it is ended."""

    def __init__(self, clients: "_Clients") -> None:
        self._clients = clients

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._clients.question)

    def data_received(self, data: bytes) -> None:
        self._clients.open.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._clients.open.discard(self)
        self._clients.again()


class _Clients:
    def __init__(self, host: str, port: int) -> None:
        self.open: set[_Idle] = set()
        self.question = request(ApiVersionsRequest(), 2)
        self._place = host, port
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        for number in range(CONNECTIONS):
            self._loop.call_soon_threadsafe(self._loop.call_later, number / 1000, self._begin)

    def again(self) -> None:
        self._loop.call_later(random.uniform(0.05, 0.5), self._begin)

    def _begin(self) -> None:
        self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            await self._loop.create_connection(lambda: _Idle(self), *self._place)
        except OSError:
            self.again()


def _many(sandbox: Sandbox, own: Guarded) -> list[str]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    host, _, port = sandbox.broker(2).address.rpartition(":")
    clients = _Clients(host, int(port))
    eventually(lambda: len(clients.open) == CONNECTIONS)
    before = _memory(own)
    begin = time.perf_counter()
    own.gateway.ask("fence", topic="nobody", reason="a benchmark", by="bench")
    eventually(lambda: own.gateway.state()["connections"]["open"] >= CONNECTIONS and len(clients.open) == CONNECTIONS)
    armed, memory = time.perf_counter() - begin, _memory(own) - before
    begin = time.perf_counter()
    own.gateway.ask("unfence", topic="nobody", reason="a benchmark", by="bench")
    eventually(lambda: own.gateway.state()["connections"]["open"] == 0 and len(clients.open) == CONNECTIONS)
    return [
        f"{CONNECTIONS:,} idle connections: all through the gateway; all back (1 s of it is `disarm.seconds`)",
        "",
        "",
        f"{armed:.1f} s; {time.perf_counter() - begin:.1f} s",
        f"the gateway takes {memory / MIB:.0f} MiB more",
    ]


def _memory(own: Guarded) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{own.gateway.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def _overshoot(rounds: int) -> Iterator[list[str]]:
    beyond: dict[bool, list[float]] = {True: [], False: []}
    speeds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(rounds):
        for is_fronted in (False, True):
            over, speed = _filled(is_fronted=is_fronted)
            beyond[is_fronted].append(over)
            speeds[is_fronted].append(speed)
    cells = [
        f"{statistics.median(beyond[each]):.1f} MB at {statistics.median(speeds[each]):.0f} MB/s"
        for each in (True, False)
    ]
    yield [f"beyond the limit of {LIMIT_PERCENT} % of {VOLUME // MIB} MiB, at full speed", "", *cells, ""]


def _filled(*, is_fronted: bool) -> tuple[float, float]:
    """MB beyond the limit, and MB/s before it."""
    spec = SandboxSpec(fronted=is_fronted, volumes=(VolumeSpec(size=VOLUME),))
    keys = {**BY_PERCENT, "disk.usage.check.interval.ms": "30000", **({} if is_fronted else INTERCEPTION)}
    with tempfile.TemporaryDirectory() as logs, Sandbox(spec) as sandbox, guarded(sandbox, Path(logs), 1, keys):
        create_topic(sandbox, "written", 4)
        (log_dir,) = sandbox.broker(1).log_dirs
        volume = sandbox.outside(log_dir)
        producer = Producer(
            {"bootstrap.servers": sandbox.bootstrap_servers, "acks": 1, "linger.ms": 5, "message.timeout.ms": 10_000}
        )
        limit, begin, highest, stands_since = VOLUME * LIMIT_PERCENT // 100, time.perf_counter(), 0, 0.0
        reached = begin
        while not stands_since or time.perf_counter() - stands_since < 5:
            for _ in range(50):
                with suppress(BufferError):
                    producer.produce("written", RECORD)
            producer.poll(0.001)
            status = os.statvfs(volume)
            used = (status.f_blocks - status.f_bavail) * status.f_frsize
            if used > highest:
                highest, stands_since = used, time.perf_counter() if used > limit else 0.0
                reached = time.perf_counter() if used <= limit else reached
        producer.purge()
        return (highest - limit) / 1e6, limit / 1e6 / (reached - begin)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.interception", description="Interception's benchmark.")
    parser.add_argument("--quick", action="store_true", help="three rounds instead of seven")
    parser.add_argument("--inside", type=int, metavar="ROUNDS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        _inside(options.inside)
        return 0
    print(HEADER)
    for figure in figures(3 if options.quick else ROUNDS):
        print(figure.row(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
