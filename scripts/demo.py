"""The main job, on a real Kafka: what `make demo` shows.

Two brokers with two small disks each, a tiered topic, a forgotten one, then a disk that somebody else fills while a
guard watches it. Every command printed behind a `$` is run as printed.
"""

import re
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec

BRIMLINE = Path(sys.executable).with_name("brimline")
PATIENCE_SECONDS = 60


def main() -> int:
    say("Starting a real Kafka 4.3.1: two brokers, each with two disks of 64 MiB…")
    volume = VolumeSpec(size=Bytes(64 << 20))
    # Kafka ignores what it does not know: the guard's keys stand in the broker's own file.
    limits = {
        "disk.max.used.percent": "90",
        "disk.min.free.bytes": "0",
        "disk.usage.check.interval.ms": "500",
        "brimline.metrics.port": "0",
    }
    with Sandbox(SandboxSpec(brokers=2, volumes=(volume, volume), tiered=True, properties=limits)) as sandbox:
        server = sandbox.bootstrap_servers
        load(sandbox)

        say("The stock tool knows the replicas, but not the disks under them:")
        stock = sandbox.java_tool("log-dirs", "--bootstrap-server", server, "--describe", "--topic-list", "orders")
        print(f"$ kafka-log-dirs.sh --bootstrap-server {server} --describe --topic-list orders\n{stock.stdout}")

        say("Brimline knows both. Same question, for people:")
        run("log-dirs", "--bootstrap-server", server)

        say("What exists only on these disks, and what is in the remote store already (KIP-1187):")
        run("log-dirs", "--bootstrap-server", server, "--topic-list", "orders", "--include-remote-info")

        say("A guard beside broker 2, started from the broker's own server.properties (disk.max.used.percent=90):")
        with guard(sandbox.broker(2).node.server_properties, sandbox) as url:
            run("status", "--url", url)

            say("Somebody copies a large file onto broker 2's first disk. No topic grew; the guard notices:")
            sandbox.fill(sandbox.broker(2).log_dirs[0], leave_free=Bytes(3 << 20))
            wait_for(lambda: '"full"' in read(f"{url}/v1/state"))
            run("status", "--url", url)

    say("The cluster is gone, and so is everything it made. Start your own with: .venv/bin/brimline sandbox up")
    return 0


def load(sandbox: Sandbox) -> None:
    tiered = {
        "remote.storage.enable": "true",
        "segment.bytes": str(1 << 20),
        "local.retention.bytes": str(3 << 20),
        "file.delete.delay.ms": "0",
    }
    client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
    client.create_topics(
        [NewTopic("orders", 4, 1, topic_configs=tiered), NewTopic("clicks", 4, 2), NewTopic("forgotten", 2, 1)]
    )
    client.close()
    say("Producing 60 MB into three topics; the closed segments of 'orders' go to a remote store…")
    producer = KafkaProducer(bootstrap_servers=sandbox.admin_servers, linger_ms=20, batch_size=200_000)
    for megabyte in range(20):
        for topic, partitions in (("orders", 4), ("clicks", 4), ("forgotten", 1)):
            for _ in range(1000):
                producer.send(topic, b"x" * 1000, partition=megabyte % partitions)
    producer.flush()
    producer.close()
    wait_for_uploads(sandbox)


def wait_for_uploads(sandbox: Sandbox) -> None:
    """Until every closed segment of 'orders' is uploaded, and local retention has taken the oldest off the disks."""

    def base_offsets(folder: Path) -> list[int]:
        return sorted(int(file.name[:20]) for file in folder.glob("*.log"))

    def is_settled(partition: int) -> bool:
        local = [
            base_offsets(folder)
            for broker in sandbox.brokers
            for log_dir in broker.log_dirs
            for folder in sandbox.outside(log_dir).glob(f"orders-{partition}")
        ]
        remote = [base_offsets(folder) for folder in sandbox.outside(sandbox.tiered_dir).glob(f"orders-{partition}-*")]
        return bool(remote) and all(bases[0] > 0 and set(bases[:-1]) <= set(remote[0]) for bases in local)

    wait_for(lambda: all(is_settled(partition) for partition in range(4)))


def wait_for(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > give_up_at:
            raise RuntimeError(f"the cluster did not settle within {PATIENCE_SECONDS} s")
        time.sleep(0.2)


@contextmanager
def guard(server_properties: Path, sandbox: Sandbox) -> Iterator[str]:
    """A guard in the sandbox, where the broker's paths are valid; gives the address that it serves."""
    command = ["guard", "--config", str(server_properties)]
    print("$ brimline " + shlex.join(command), flush=True)
    process = subprocess.Popen(sandbox.inside([str(BRIMLINE), *command]), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            print(line, end="", flush=True)
            if served := re.search(r"http://[^/]+", line):
                break
        else:
            raise RuntimeError("the guard ended")
        yield served[0]
    finally:
        process.terminate()
        process.communicate()


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        text: str = answer.read().decode()
    return text


def run(*arguments: str) -> None:
    print("$ brimline " + shlex.join(arguments), flush=True)
    # Asked for by name, so that the demo shows the same in a terminal and in a log. A full disk is no failure here.
    finished = subprocess.run([BRIMLINE, *arguments, "--output", "table"], check=False)
    if finished.returncode not in (0, 3):
        raise RuntimeError(f"brimline {arguments[0]} ended with {finished.returncode}")
    print(flush=True)


def say(sentence: str) -> None:
    print(f"\n── {sentence}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
