"""The guard's steady CPU time and memory beside a real broker with 4,000 partitions, at the default intervals.

Nothing is scaled: the window is as long as the longest default interval, so it holds what every such window holds: one
plain pass, about ten tiered passes, five looks or more at the disk, one scan, and a Prometheus scrape every 15 seconds.
That it held them is counted, not assumed. The broker is not idle meanwhile: before every scrape each plain partition
and some tiered ones get a record, so sizes differ, files change and segments are uploaded.

``python -m bench.guard`` prints it; ``python -m bench.guard COMMIT`` has that commit's guard beside today's instead.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from bench.gateway_paths import BRIMLINE
from bench.older_gateway import older_program
from bench.ratio import AgainstGoal, run_command
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec

PARTITIONS_PER_TOPIC = 40
PLAIN_TOPICS = 75
TIERED_TOPICS = 25
SEGMENTS_UPLOADED = 3
ROLLING = 20
"""Tiered partitions that roll a segment before every scrape: more uploads than a busy broker has."""
WINDOW = 300.0
LONGEST_WINDOW = 2 * WINDOW
"""On a busy machine a scan may be just late for the end of a window that is as long as its interval."""
SCRAPE_INTERVAL = 15.0
DEFAULTS = {
    "log.initial.task.delay.ms": "30000",
    "log.retention.check.interval.ms": "300000",
    "remote.log.manager.task.interval.ms": "30000",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "50",
}
"""What a sandbox makes quick, made as slow again as a broker's defaults."""
SPEC = SandboxSpec(
    tiered=True,
    volumes=(VolumeSpec(size=Bytes(4 << 30)),),
    heap=Bytes(1 << 30),
    properties={**DEFAULTS, "remote.log.manager.copier.thread.pool.size": "10"},
)
TIERED = {"remote.storage.enable": "true", "retention.bytes": "100000000", "segment.ms": "1000"}
PLAIN_SERIES = "kafka_log_log_retentionsizeinpercent"
TIERED_SERIES = "kafka_log_remote_remotelogmanager_retentionsizeinpercent"
AGES = {
    "plain passes": 'brimline_retention_percent_age_seconds{tier="log"}',
    "tiered passes": 'brimline_retention_percent_age_seconds{tier="remote"}',
    "looks at the disk": "brimline_volume_check_age_seconds",
    "scans": "brimline_scan_age_seconds",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    pid: int
    port: int

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    def cpu_seconds(self) -> float:
        """All threads of the process; it has no children without a JMX port."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_megabytes(self) -> float:
        return _kilobytes(Path(f"/proc/{self.pid}/status"), "VmHWM") / 1024

    def resident_megabytes(self) -> float:
        return _kilobytes(Path(f"/proc/{self.pid}/smaps_rollup"), "Rss") / 1024


def figures() -> Iterator[AgainstGoal]:
    with Sandbox(SPEC) as sandbox:
        producer = KafkaProducer(bootstrap_servers=sandbox.admin_servers, linger_ms=50, batch_size=4096)
        fill(sandbox, producer)
        with running_guard(sandbox) as guard:
            wait_for(lambda: is_complete(guard.metrics()))
            yield from steady(guard, producer)
            yield from topics(sandbox)
        producer.close()


def fill(sandbox: Sandbox, producer: KafkaProducer) -> None:
    client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers, request_timeout_ms=120_000)
    for kind, count, config in (
        ("plain", PLAIN_TOPICS, {"retention.bytes": "1000000"}),
        ("tiered", TIERED_TOPICS, TIERED),
    ):
        for number in range(count):
            client.create_topics([NewTopic(f"{kind}.{number}", PARTITIONS_PER_TOPIC, 1, topic_configs=config)])
    client.close()
    for _ in range(SEGMENTS_UPLOADED + 1):
        send(producer, "plain", PLAIN_TOPICS * PARTITIONS_PER_TOPIC)
        send(producer, "tiered", TIERED_TOPICS * PARTITIONS_PER_TOPIC)
        time.sleep(1)  # longer than segment.ms: the next record rolls
    uploaded = SEGMENTS_UPLOADED * TIERED_TOPICS * PARTITIONS_PER_TOPIC
    wait_for(lambda: len(list(sandbox.outside(sandbox.tiered_dir).glob("tiered.*/*.log"))) >= uploaded)


def send(producer: KafkaProducer, kind: str, partitions: int) -> None:
    for number in range(partitions):
        topic, partition = divmod(number, PARTITIONS_PER_TOPIC)
        producer.send(f"{kind}.{topic}", b"x" * 1000, partition=partition)
    producer.flush()


def beside_older(commit: str) -> Iterator[AgainstGoal]:
    """Both at the same broker, over the same window."""
    with Sandbox(SPEC) as sandbox, tempfile.TemporaryDirectory() as folder:
        producer = KafkaProducer(bootstrap_servers=sandbox.admin_servers, linger_ms=50, batch_size=4096)
        fill(sandbox, producer)
        older = running_guard(sandbox, "older", older_program(commit, Path(folder)))
        with older as theirs, running_guard(sandbox) as ours:
            wait_for(lambda: is_complete(theirs.metrics()) and is_complete(ours.metrics()))
            before, begin = [each.cpu_seconds() for each in (theirs, ours)], time.monotonic()
            for number in range(1, int(WINDOW / SCRAPE_INTERVAL) + 1):
                send(producer, "plain", PLAIN_TOPICS * PARTITIONS_PER_TOPIC)
                send(producer, "tiered", ROLLING)
                for each in (theirs, ours):
                    each.metrics()
                time.sleep(max(begin + number * SCRAPE_INTERVAL - time.monotonic(), 0))
            seconds = time.monotonic() - begin
            for name, each, then in zip((commit, "today"), (theirs, ours), before, strict=True):
                used = 100 * (each.cpu_seconds() - then) / seconds
                yield AgainstGoal(what=f"{name}: CPU over {seconds:.0f} s", unit="% of a core", ours=used)
                yield AgainstGoal(what=f"{name}: resident memory", unit="MB", ours=each.resident_megabytes())
        producer.close()


@contextmanager
def running_guard(sandbox: Sandbox, name: str = "guard", program: Sequence[str] = BRIMLINE) -> Iterator[Guard]:
    """Its configuration is the broker's own file; only the port and what is published are ours."""
    own = sandbox.broker(1).node.server_properties
    path = own.with_name(f"{name}.properties")
    added = "brimline.metrics.port=0\nbrimline.metrics.publish=all\nbrimline.log.format=json\n"
    added += f"brimline.state.dir={own.with_name(f'{name}-state')}\n"
    sandbox.outside(path).write_text(sandbox.outside(own).read_text() + added)
    command = [*program, "guard", "--config", str(path)]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(sandbox.inside(command), stderr=log)
        try:
            wait_for(lambda: bool(ports(log.fileno())))
            yield Guard(pid=process.pid, port=ports(log.fileno())[0])
        finally:
            process.terminate()
            process.wait()


def ports(log: int) -> list[int]:
    """The one that the guard says it started with, once it has."""
    lines = os.pread(log, 1 << 16, 0).decode().splitlines()
    return [json.loads(line)["port"] for line in lines if '"event": "started"' in line]


def is_complete(metrics: str) -> bool:
    """Every partition has its figure, and the first scan is over."""
    plain, tiered = (metrics.count(f"\n{name}{{") for name in (PLAIN_SERIES, TIERED_SERIES))
    wanted = TIERED_TOPICS * PARTITIONS_PER_TOPIC
    return plain >= PLAIN_TOPICS * PARTITIONS_PER_TOPIC + wanted and tiered == wanted and AGES["scans"] in metrics


def steady(guard: Guard, producer: KafkaProducer) -> Iterator[AgainstGoal]:
    """One whole window from now, longer if it has not held one of everything; a pass is what sets an age back."""
    passes: Counter[str] = Counter()
    before = ages(guard.metrics())
    cpu, begin = guard.cpu_seconds(), time.monotonic()
    number = 0
    while number * SCRAPE_INTERVAL < WINDOW or (len(passes) < len(AGES) and number * SCRAPE_INTERVAL < LONGEST_WINDOW):
        number += 1
        send(producer, "plain", PLAIN_TOPICS * PARTITIONS_PER_TOPIC)
        send(producer, "tiered", ROLLING)
        time.sleep(max(begin + number * SCRAPE_INTERVAL - time.monotonic(), 0))
        now = ages(guard.metrics())
        passes.update(what for what in AGES if now[what] < before[what])
        before = now
    seconds = time.monotonic() - begin
    used = guard.cpu_seconds() - cpu
    if len(passes) < len(AGES):
        raise RuntimeError(f"the window was too short: it held {dict(passes)}")
    held = ", ".join(f"{passes[what]} {what}" for what in AGES)
    yield AgainstGoal(
        what=f"CPU over {seconds:.0f} s ({held}, {number} scrapes)",
        unit="% of a core",
        ours=100 * used / seconds,
        goal=2,
    )
    yield AgainstGoal(what="resident memory at its end", unit="MB", ours=guard.resident_megabytes(), goal=150)
    yield AgainstGoal(what="peak resident memory since the start", unit="MB", ours=guard.peak_megabytes(), goal=150)


def topics(sandbox: Sandbox) -> Iterator[AgainstGoal]:
    """What ``brimline topics`` takes for all of it, files included, while the guard goes on."""
    config = str(sandbox.broker(1).node.server_properties.with_name("guard.properties"))
    command = [sys.executable, "-m", "brimline.cli", "topics", "--config", config, "--output", "json"]
    run = run_command(sandbox.inside(command))
    yield AgainstGoal(what="`brimline topics --config` once: CPU", unit="s", ours=run.cpu_seconds, goal=10)
    yield AgainstGoal(what="`brimline topics --config` once: peak memory", unit="MB", ours=run.megabytes, goal=150)


def ages(metrics: str) -> dict[str, float]:
    return {what: float(found[1]) for what, name in AGES.items() if (found := _sample(metrics, name))}


def _sample(metrics: str, name: str) -> "re.Match[str] | None":
    return re.search(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", metrics, re.MULTILINE)


def _kilobytes(path: Path, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", path.read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"no {name} in {path}")
    return int(found[1])


def wait_for(condition: Callable[[], bool], seconds: float = 300) -> None:
    give_up_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"not within {seconds:.0f} s")
        time.sleep(0.2)


if __name__ == "__main__":
    for figure in beside_older(sys.argv[1]) if sys.argv[1:] else figures():
        print(figure.row(), flush=True)
