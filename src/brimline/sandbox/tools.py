"""The stock command-line tools of a Kafka version, by the names of their scripts.

They moved from Scala (``kafka.admin``, ``kafka.tools``) to Java (``org.apache.kafka.tools``) over the years; which
class a version has is read from its jars.
"""

import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from brimline.sandbox.errors import BadSpec
from brimline.sandbox.jars.lock import BETWEEN
from brimline.sandbox.java import kafka_command, stock_jars

_TOOLS = {
    "acls": ("AclCommand",),
    "broker-api-versions": ("BrokerApiVersionsCommand",),
    "configs": ("ConfigCommand",),
    "console-consumer": ("consumer.ConsoleConsumer", "ConsoleConsumer"),
    "console-producer": ("ConsoleProducer",),
    "consumer-groups": ("consumer.group.ConsumerGroupCommand", "ConsumerGroupCommand"),
    "consumer-perf-test": ("ConsumerPerformance",),
    "delete-records": ("DeleteRecordsCommand",),
    "dump-log": ("DumpLogSegments",),
    "features": ("FeatureCommand",),
    "get-offsets": ("GetOffsetShell",),
    "leader-election": ("LeaderElectionCommand",),
    "log-dirs": ("LogDirsCommand",),
    "producer-perf-test": ("ProducerPerformance",),
    "reassign-partitions": ("reassign.ReassignPartitionsCommand", "ReassignPartitionsCommand"),
    "topics": ("TopicCommand",),
    "transactions": ("TransactionsCommand",),
}
_PACKAGES = ("org.apache.kafka.tools", "kafka.admin", "kafka.tools")
_WITH_TOOLS = (f"org.apache.kafka{BETWEEN}kafka_", f"org.apache.kafka{BETWEEN}kafka-tools{BETWEEN}")


def tool_command(name: str, jars: Sequence[Path], arguments: Iterable[str]) -> list[str]:
    """The command line of ``kafka-<name>.sh`` without the script."""
    if name not in _TOOLS:
        raise BadSpec(f"no tool kafka-{name} in a sandbox: choose one of {', '.join(_TOOLS)}")
    return kafka_command(stock_jars(jars), _main_class(name, jars), arguments)


def _main_class(name: str, jars: Sequence[Path]) -> str:
    candidates = [f"{package}.{simple_name}" for package in _PACKAGES for simple_name in _TOOLS[name]]
    present: set[str] = set()
    for jar in jars:
        if jar.name.startswith(_WITH_TOOLS):
            with zipfile.ZipFile(jar) as archive:
                present |= {entry.removesuffix(".class").replace("/", ".") for entry in archive.namelist()}
    for candidate in candidates:
        if candidate in present:
            return candidate
    raise BadSpec(f"this Kafka version has no tool kafka-{name}")
