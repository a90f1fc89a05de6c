"""The whole command against the stock tool, on one real cluster."""

import sys
from collections.abc import Iterator

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from bench.ratio import Comparison, compare_commands
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec

PARTITIONS = 1000
ROUNDS = 7
# What kafka-run-class.sh passes to every tool unless told otherwise.
STOCK_FLAGS = (
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)


def comparisons() -> Iterator[Comparison]:
    with Sandbox(SandboxSpec(volumes=(VolumeSpec(size=Bytes(512 << 20)),))) as sandbox:
        client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
        client.create_topics([NewTopic("orders", PARTITIONS, 1)])
        client.close()
        options = ("--bootstrap-server", sandbox.bootstrap_servers, "--describe")
        ours = [sys.executable, "-m", "brimline.cli", "log-dirs", *options]
        quick_java = sandbox.tool_command("log-dirs", *options)
        java, *rest = quick_java[0], *quick_java[quick_java.index("-cp") :]
        yield from compare_commands("stock flags", [java, *STOCK_FLAGS, *rest], ours, ROUNDS)
        yield from compare_commands("quickest flags", quick_java, ours, ROUNDS)
