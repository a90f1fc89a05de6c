"""Java: which one, its class archives, and Kafka's stock tools.

The Java is whatever this machine has, if it is new enough.

A class archive for every Kafka version (AppCDS): a broker that finds its classes read and checked starts with a
third less work, and so does a tool or a client.

It is made once for a version and a Java, from a real broker that is started and stopped, and kept beside the jars.
Java uses it where the stock jars come first on the class path, in this order; where there is none, or it does not
fit, everything works as without it.

Tools go by the names of their scripts. They moved from Scala (``kafka.admin``, ``kafka.tools``) to Java
(``org.apache.kafka.tools``) over the years; which class a version has is read from its jars.
"""

import hashlib
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from shutil import which

from brimline.sandbox.errors import BadSpec, MissingPart
from brimline.sandbox.jars.lock import BETWEEN

OLDEST_JAVA = 17
"""Kafka 4 brokers ask for it; the older versions run on it too."""

QUICK_START = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    # As with both compilers: for the first one alone Java reserves 48 MB, and the JVM that fills them may die of it.
    # One round of Spark does; a busy broker takes 15. It is address space: memory is taken for what was compiled.
    "-XX:ReservedCodeCacheSize=240m",
    "-Xshare:auto",
    # hsperfdata files in /tmp would outlive a killed JVM
    "-XX:-UsePerfData",
)
"""Options for JVMs that live for seconds on few cores. What a JVM may hold is what Java gives it without them."""

_TEST_JAR = "__test.jar"


@cache
def find_java() -> Path:
    """``$JAVA_HOME/bin/java``, else ``java`` on the PATH; refused if older than Kafka wants."""
    home = os.environ.get("JAVA_HOME")
    found = which("java", path=str(Path(home) / "bin")) if home else which("java")
    where = f"JAVA_HOME ({home})" if home else "the PATH"
    if found is None:
        raise MissingPart(f"no java on {where}: install a JDK {OLDEST_JAVA} or newer")
    version = java_version(Path(found))
    if version < OLDEST_JAVA:
        raise MissingPart(f"{found} is Java {version}: Kafka needs {OLDEST_JAVA} or newer (set JAVA_HOME)")
    return Path(found)


def java_version(java: Path) -> int:
    """The feature version; the release file beside a JDK answers without starting a JVM."""
    release = java.resolve().parent.parent / "release"
    text = release.read_text(errors="replace") if release.is_file() else _ask_version(java)
    return parse_version(text, java)


def parse_version(text: str, java: Path) -> int:
    """From ``JAVA_VERSION="17.0.15"`` or ``openjdk version "17.0.15"``; up to 8 it was ``1.8.0``."""
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    if match is None:
        raise MissingPart(f"{java} does not tell its version: set JAVA_HOME to a JDK {OLDEST_JAVA} or newer")
    return int(match.group(1))


def class_path(jars: Sequence[Path]) -> str:
    return ":".join(str(jar) for jar in jars)


def stock_jars(jars: Sequence[Path]) -> list[Path]:
    """What a tool or a client needs: without the test jars, which bring logging configurations of their own."""
    return [jar for jar in jars if not jar.name.endswith(_TEST_JAR)]


def test_jars(jars: Sequence[Path]) -> list[Path]:
    return [jar for jar in jars if jar.name.endswith(_TEST_JAR)]


def _ask_version(java: Path) -> str:
    return subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False).stderr


SILENT_ARCHIVE = "-Xlog:cds=off,cds+dynamic=off,class+path=off"
"""An archive that does not fit is nobody's business."""


def archive_options(path: Sequence[Path]) -> list[str]:
    """For a JVM with this class path."""
    archive = archive_beside(path)
    return [f"-XX:SharedArchiveFile={archive}", SILENT_ARCHIVE] if archive.is_file() else []


def kafka_command(path: Sequence[Path], main_class: str, arguments: Iterable[str]) -> list[str]:
    """A short-lived program on Kafka's jars, from jars and directories of classes; the stock jars come first."""
    flags = [*QUICK_START, *archive_options(path), "-Xmx256m"]
    return [str(find_java()), *flags, "-cp", class_path(path), main_class, *arguments]


def archive_beside(jars: Sequence[Path]) -> Path:
    """Where the archive of these jars is kept.

    It fits one Java and these very files: with a cache that was copied to another home, or without its times, it is
    another one.
    """
    fits = hashlib.sha256(f"{java_stamp()}\n{jars[0]}\n{jars[0].stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return jars[0].parent / f"classes-{fits}.jsa"


def java_stamp() -> str:
    java = find_java().resolve()
    release = java.parent.parent / "release"
    return hashlib.sha256(f"{java}\n{release.read_text() if release.is_file() else ''}".encode()).hexdigest()[:12]


def make_archive(version: str) -> None:
    """Whole or not at all; what is there already is kept."""
    from brimline.sandbox.cluster import Sandbox
    from brimline.sandbox.jars.cache import kafka_jars
    from brimline.sandbox.spec import SandboxSpec

    archive = archive_beside(stock_jars(kafka_jars(version)))
    if archive.exists():
        return
    print(f"brimline: making Kafka {version} start quickly …", file=sys.stderr, flush=True)
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with Sandbox(SandboxSpec(version=version, java_options=(f"-XX:ArchiveClassesAtExit={partial}",))) as sandbox:
        sandbox.broker(1).stop()
        # A JVM that ended otherwise may have left half an archive, and half an archive kills the JVM that uses it
        if sandbox.broker(1).exit_code == 128 + signal.SIGTERM and partial.is_file():
            partial.rename(archive)


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
