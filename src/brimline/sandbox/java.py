"""The Java that runs Kafka, Ivy and the stock tools: whatever this machine has, if it is new enough."""

import os
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from shutil import which

from brimline.sandbox.errors import MissingPart

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
