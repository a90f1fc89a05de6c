"""Kafka's own Java clients: one source file, compiled once per process.

It is compiled against the oldest client that it runs with: Kafka keeps its client interfaces compatible from there on.
"""

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from brimline.sandbox.class_archive import kafka_command
from brimline.sandbox.jar_cache import kafka_jars
from brimline.sandbox.java import QUICK_START, class_path, find_java, stock_jars

SOURCE = Path(__file__).with_name("KafkaTestClient.java")

OLDEST_CLIENT = "3.9.2"
_JAVAC_QUICK_START = [f"-J{option}" for option in QUICK_START]


@cache
def classes() -> Path:
    """The directory of the compiled classes, gone when this process ends."""
    directory = Path(tempfile.mkdtemp(prefix="brimline-java-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    javac = find_java().resolve().with_name("javac")
    path = class_path(stock_jars(kafka_jars(OLDEST_CLIENT)))
    # No annotation processing: a logging jar on the path brings a processor that warns about itself
    options = ["-proc:none", "-encoding", "UTF-8", "-Xlint:all", "-Werror", "-d", str(directory), "-cp", path]
    command = [str(javac), *_JAVAC_QUICK_START, *options, str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return directory


def command(version: str, mode: str, arguments: Iterable[str]) -> list[str]:
    """``mode`` is ``produce``, ``consume`` or ``describe``."""
    java, *rest = kafka_command([*stock_jars(kafka_jars(version)), classes()], "KafkaTestClient", [mode, *arguments])
    # log4j's default is to print errors on standard output, between our lines
    return [java, "-Dlog4j2.level=OFF", *rest]
