"""The table of clients, and their processes.

A process's lines are read as they come, its complaint is kept, and it never outlives whoever made it. Kafka's own Java
clients are one source file, compiled once per process, against the oldest client that it runs with: Kafka keeps its
client interfaces compatible from there on.

The clients' properties are their library's defaults; only idempotence is chosen where it says so.
"""

import atexit
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from brimline.sandbox.jars.cache import kafka_jars
from brimline.sandbox.java import QUICK_START, class_path, find_java, kafka_command, stock_jars
from brimline.sandbox.supervisor import read_line

_PATIENCE_SECONDS = 240.0


class ClientProcess:
    """``heard`` is called with every line, in a thread of its own."""

    def __init__(self, command: Sequence[str], heard: Callable[[dict[str, Any]], None]) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        # Its input is held open by us: it ends when we do, in whatever way.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._reading = threading.Thread(target=self._read, args=(heard,))
        self._reading.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def complaint(self) -> str:
        """What it wrote to standard error."""
        self._errors.seek(0)
        return self._errors.read()

    def ask_to_stop(self) -> None:
        """By the end of its input: a signal would come too early for one that is only just starting."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        self._process.kill()

    def wait(self, seconds: float = _PATIENCE_SECONDS) -> None:
        """Until it ended by itself and every line is read; raises ``AssertionError`` if it does not end."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the client did not end within {seconds:.0f} s: {self.complaint()[-2000:]}") from None
        self._reading.join()

    def close(self) -> None:
        """Whatever it is doing, it is over."""
        self.kill()
        self._process.wait()
        self._reading.join()
        self.ask_to_stop()
        self._errors.close()

    def _read(self, heard: Callable[[dict[str, Any]], None]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                heard(read_line(line))


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


def java_command(version: str, mode: str, arguments: Iterable[str]) -> list[str]:
    """``mode`` is ``produce``, ``consume`` or ``describe``."""
    java, *rest = kafka_command([*stock_jars(kafka_jars(version)), classes()], "KafkaTestClient", [mode, *arguments])
    # log4j's default is to print errors on standard output, between our lines
    return [java, "-Dlog4j2.level=OFF", *rest]


_PACKAGE = "brimline.torture.clients"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A producing client; ``str`` of it is its name in test ids."""

    name: str
    is_idempotent: bool
    module: str = ""
    """Of the Python client."""
    java_version: str = ""
    """Of the Java client."""
    properties: Mapping[str, str] = field(default_factory=dict)
    patience: Mapping[str, str] = field(default_factory=dict)
    """Properties with which it goes on trying for as long as a slow machine may take. Not among its own: some want to
    see when it gives up."""

    def __str__(self) -> str:
        return self.name

    def command(self, arguments: Iterable[str], properties: Mapping[str, str]) -> list[str]:
        """``properties`` win over the client's own."""
        given = {**self.properties, **properties}
        options = [word for key, value in given.items() for word in ("--property", f"{key}={value}")]
        if self.java_version:
            return java_command(self.java_version, "produce", [*arguments, *options])
        return [sys.executable, "-m", f"{_PACKAGE}.{self.module}", *arguments, *options]


_LONG_MS = "600000"
_OF_JAVA = dict.fromkeys(("delivery.timeout.ms", "max.block.ms", "transaction.timeout.ms"), _LONG_MS)
_OF_LIBRDKAFKA = {"message.timeout.ms": _LONG_MS}
_OF_KAFKA_PYTHON = dict.fromkeys(("delivery_timeout_ms", "max_block_ms"), _LONG_MS)
_OF_AIOKAFKA = {"request_timeout_ms": _LONG_MS}

JAVA_4 = Client(name="java-4.3.1", is_idempotent=True, java_version="4.3.1", patience=_OF_JAVA)
JAVA_3 = Client(name="java-3.9.2", is_idempotent=True, java_version="3.9.2", patience=_OF_JAVA)
LIBRDKAFKA = Client(name="librdkafka", is_idempotent=False, module="librdkafka_producer", patience=_OF_LIBRDKAFKA)
LIBRDKAFKA_IDEMPOTENT = Client(
    name="librdkafka-idempotent",
    is_idempotent=True,
    module="librdkafka_producer",
    properties={"enable.idempotence": "true"},
    patience=_OF_LIBRDKAFKA,
)
KAFKA_PYTHON = Client(
    name="kafka-python", is_idempotent=True, module="kafka_python_producer", patience=_OF_KAFKA_PYTHON
)
AIOKAFKA = Client(name="aiokafka", is_idempotent=False, module="aiokafka_producer", patience=_OF_AIOKAFKA)
AIOKAFKA_IDEMPOTENT = Client(
    name="aiokafka-idempotent",
    is_idempotent=True,
    module="aiokafka_producer",
    properties={"enable_idempotence": "true"},
    patience=_OF_AIOKAFKA,
)

CLIENTS = (JAVA_4, JAVA_3, LIBRDKAFKA, LIBRDKAFKA_IDEMPOTENT, KAFKA_PYTHON, AIOKAFKA, AIOKAFKA_IDEMPOTENT)
IDEMPOTENT_CLIENTS = tuple(client for client in CLIENTS if client.is_idempotent)
