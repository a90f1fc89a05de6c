"""The main job, on a real Kafka: what `make demo` shows.

Two brokers with two small disks each, a tiered topic, a forgotten one, then a disk that somebody else fills. Every
command printed behind a `$` is run as printed.
"""

import shlex
import subprocess
import sys
import time
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec

BRIMLINE = Path(sys.executable).with_name("brimline")
UPLOAD_PATIENCE_SECONDS = 60


def main() -> int:
    say("Starting a real Kafka 4.3.1: two brokers, each with two disks of 64 MiB…")
    volume = VolumeSpec(size=Bytes(64 << 20))
    with Sandbox(SandboxSpec(brokers=2, volumes=(volume, volume), tiered=True)) as sandbox:
        server = sandbox.bootstrap_servers
        load(sandbox)

        say("The stock tool knows the replicas, but not the disks under them:")
        stock = sandbox.java_tool("log-dirs", "--bootstrap-server", server, "--describe", "--topic-list", "orders")
        print(f"$ kafka-log-dirs.sh --bootstrap-server {server} --describe --topic-list orders\n{stock.stdout}")

        say("Brimline knows both. Same question, for people:")
        run("log-dirs", "--bootstrap-server", server)

        say("What exists only on these disks, and what is in the remote store already (KIP-1187):")
        run("log-dirs", "--bootstrap-server", server, "--topic-list", "orders", "--include-remote-info")

        say("Somebody copies a large file onto broker 2's first disk. No topic grew; the disk is nearly full:")
        sandbox.fill(sandbox.broker(2).log_dirs[0], leave_free=Bytes(3 << 20))
        run("log-dirs", "--bootstrap-server", server, "--broker-list", "2", "--topic-list", "clicks")

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
    """Until every partition of 'orders' has its closed segments uploaded and the local copies trimmed."""
    give_up_at = time.monotonic() + UPLOAD_PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        kept = [
            len(list(folder.glob("*.log")))
            for broker in sandbox.brokers
            for log_dir in broker.log_dirs
            for folder in sandbox.outside(log_dir).glob("orders-*")
        ]
        if kept and max(kept) <= 4:
            return
        time.sleep(0.5)


def run(*arguments: str) -> None:
    print("$ brimline " + shlex.join(arguments), flush=True)
    # Asked for by name, so that the demo shows the same in a terminal and in a log.
    subprocess.run([BRIMLINE, *arguments, "--output", "table"], check=True)
    print(flush=True)


def say(sentence: str) -> None:
    print(f"\n── {sentence}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
