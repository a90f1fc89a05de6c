"""Interception: what it costs while there is room and while clients are turned aside, and how soon it is in force.

A broker on a machine of its own, with guard and gateway; clients on another one (network namespaces). Writers take
turns: with guard and gateway stopped, which is the broker alone; with both running and clients connected directly; and
sent to the gateway. Then a small disk is filled at full speed, with interception and with the gateway always in the
path, in turns.

It needs root, for networks of its own.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from confluent_kafka import Producer

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic
from tests.integration.full_disks import BY_PERCENT, LIMIT_PERCENT, NO_LIMIT, delete_topics
from tests.integration.full_followers import Guarded, guarded
from tests.integration.guarded import ENDS_WITH_US
from tests.integration.networked import NetworkedSandbox, address
from tests.waiting import eventually

MIB = 1 << 20
ROUNDS = 7
PAIRS = 3
"""Of each round."""
FILLS = 3
WRITTEN = 96 * MIB
RECORD = bytes(10 * 1024)
PINGS = 500
VOLUME = Bytes(512 * MIB)
DIRECT, IDLE, ARMED = "direct", "idle", "armed"
Speeds: TypeAlias = tuple[float, float]
INTERCEPTION = {
    "brimline.gateway.interception": "tproxy",
    "brimline.gateway.interception.disarm.seconds": "1",
}
QUICK_DELETES = {"log.segment.delete.delay.ms": "100", "auto.create.topics.enable": "false"}
HEADER = "| what | beside it | interception | ratio | middle half of the pairs |\n|---|---|---|---|---|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Figures, each with what it is compared with, which was taken right before or after it."""

    what: str
    unit: str
    beside: Sequence[float]
    ours: Sequence[float]

    def row(self) -> str:
        ratios = sorted(ours / beside for ours, beside in zip(self.ours, self.beside, strict=True))
        medians = (f"{statistics.median(each):.3g} {self.unit}" for each in (self.beside, self.ours))
        spread = f"{ratios[len(ratios) // 4]:.2f} to {ratios[-1 - len(ratios) // 4]:.2f}"
        return f"| {self.what} | {' | '.join(medians)} | {statistics.median(ratios):.2f} | {spread} |"


def figures() -> Iterator[Pairs]:
    command = [*ENDS_WITH_US, "unshare", "--net", sys.executable, "-m", "bench.interception"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                yield Pairs(**json.loads(line))
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise RuntimeError(f"the benchmark of interception ended with {process.returncode}")


def _inside() -> None:
    for found in chain(_rates(), _overshoot()):
        print(json.dumps(found), flush=True)


def _rates() -> Iterator[dict[str, object]]:
    spec = SandboxSpec(volumes=(VolumeSpec(size=Bytes(2 << 30)),), heap=Bytes(512 * MIB), properties=QUICK_DELETES)
    found: dict[str, list[tuple[Speeds, Speeds]]] = {IDLE: [], ARMED: []}
    with tempfile.TemporaryDirectory() as logs, NetworkedSandbox(spec) as sandbox, ExitStack() as stack:
        keys = {**NO_LIMIT, **INTERCEPTION, "brimline.metrics.host": address(1)}
        own = stack.enter_context(guarded(sandbox.at(1), Path(logs), 1, keys))
        for number in range(ROUNDS + 1):
            pairs = _round(sandbox, own)
            if number:  # the first warms the JVM up
                for way, each in pairs.items():
                    found[way] += each
    for what, unit, at in (("written, acks=1", "MB/s", 0), ("one record at a time, median", "ms", 1)):
        for way, name in ((IDLE, "clients connected directly"), (ARMED, "clients sent to the gateway")):
            beside, ours = ([pair[side][at] for pair in found[way]] for side in (0, 1))
            yield {"what": f"{what}: {name}", "unit": unit, "beside": beside, "ours": ours}


def _round(sandbox: Sandbox, own: Guarded) -> dict[str, list[tuple[Speeds, Speeds]]]:
    create_topic(sandbox, "written", 4)
    servers, pairs = sandbox.bootstrap_servers, []
    for number in range(PAIRS):
        both = {way: _measured(servers, own, way) for way in ((DIRECT, IDLE) if number % 2 else (IDLE, DIRECT))}
        pairs.append((both[DIRECT], both[IDLE]))
    _arm(own, is_on=True)
    armed = [(direct, _measured(servers, own, ARMED)) for direct, _ in pairs]
    _arm(own, is_on=False)
    delete_topics(sandbox, "written")
    return {IDLE: pairs, ARMED: armed}


def _measured(servers: str, own: Guarded, way: str) -> Speeds:
    """MB/s, and milliseconds of one record."""
    beside = (own.guard.process.pid, own.gateway.process.pid) if way == DIRECT else ()
    for pid in beside:
        os.kill(pid, signal.SIGSTOP)
    found = _write(servers), _ping(servers)
    for pid in beside:
        os.kill(pid, signal.SIGCONT)
    return found


def _arm(own: Guarded, *, is_on: bool) -> None:
    own.gateway.ask("fence" if is_on else "unfence", topic="nobody", reason="a benchmark", by="bench")
    wanted = "armed" if is_on else "idle"
    eventually(lambda: own.guard.state()["interception"]["phase"] == wanted)


def _write(servers: str) -> float:
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": servers, "acks": 1, "linger.ms": 5, "batch.size": MIB})
    producer.list_topics("written", timeout=30)

    def delivered(error: object, _message: object) -> None:
        if error:
            failures.append(error)

    begin = time.perf_counter()
    for number in range(WRITTEN // len(RECORD)):
        while True:
            try:
                producer.produce("written", RECORD, partition=number % 4, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    if producer.flush(240) or failures:
        raise RuntimeError(f"not everything was written: {failures[:3]}")
    return WRITTEN / 1e6 / (time.perf_counter() - begin)


def _ping(servers: str) -> float:
    producer = Producer({"bootstrap.servers": servers, "acks": 1, "linger.ms": 0})
    times = []
    for _ in range(PINGS):
        begin = time.perf_counter()
        producer.produce("written", b"x" * 100, partition=0)
        producer.flush(60)
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times)


def _overshoot() -> Iterator[dict[str, object]]:
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as logs, ExitStack() as stack:
        sandboxes, beside = {}, {}
        for is_fronted in (True, False):
            spec = SandboxSpec(fronted=is_fronted, volumes=(VolumeSpec(size=VOLUME),), properties=QUICK_DELETES)
            sandboxes[is_fronted] = stack.enter_context(Sandbox(spec))
            keys = {**BY_PERCENT, "disk.usage.check.interval.ms": "5000", **({} if is_fronted else INTERCEPTION)}
            own_logs = Path(logs) / str(is_fronted)
            own_logs.mkdir()
            beside[is_fronted] = stack.enter_context(guarded(sandboxes[is_fronted], own_logs, 1, keys))
        for number in range(FILLS):
            for is_fronted in (True, False) if number % 2 else (False, True):
                found[is_fronted].append(_filled(sandboxes[is_fronted], f"written-{number}"))
                _wait_for_room(beside[is_fronted])
    theirs, ours = ([over for over, _ in found[each]] for each in (True, False))
    speeds = " and ".join(f"{statistics.median(speed for _, speed in found[each]):.0f}" for each in (True, False))
    what = f"beyond the limit of {LIMIT_PERCENT} % of {VOLUME // MIB} MiB; the gateway always in the path beside it"
    yield {"what": f"{what} ({speeds} MB/s)", "unit": "MB", "beside": theirs, "ours": ours}


def _wait_for_room(own: Guarded) -> None:
    eventually(lambda: not own.gateway.fenced())
    eventually(lambda: (own.guard.state()["interception"] or {"phase": "idle"})["phase"] == "idle")


def _filled(sandbox: Sandbox, topic: str) -> tuple[float, float]:
    """MB beyond the limit, and MB/s before it."""
    create_topic(sandbox, topic, 4)
    (log_dir,) = sandbox.broker(1).log_dirs
    volume, limit = sandbox.outside(log_dir), VOLUME * LIMIT_PERCENT // 100
    servers = sandbox.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "acks": 1, "linger.ms": 5, "message.timeout.ms": 10_000})
    reached = begin = time.perf_counter()
    highest, stands_since = 0, 0.0
    while not stands_since or time.perf_counter() - stands_since < 5:
        for _ in range(50):
            with suppress(BufferError):
                producer.produce(topic, RECORD)
        producer.poll(0.001)
        status = os.statvfs(volume)
        used = (status.f_blocks - status.f_bavail) * status.f_frsize
        if used > highest:
            highest, stands_since = used, time.perf_counter() if used > limit else 0.0
            reached = time.perf_counter() if used <= limit else reached
    producer.purge()
    producer.flush(10)
    delete_topics(sandbox, topic)
    return (highest - limit) / 1e6, limit / 1e6 / (reached - begin)


if __name__ == "__main__":
    _inside()
