"""The driver's JVM, started for a run of seconds to minutes, and gone with the run.

pyspark would start a shell script, which starts a JVM, which prints the command that starts the JVM. Here the last
one is started at once, with options for a short life (the serial collector, a quick compiler). It reads our end of a
pipe as its input and ends when that closes, whichever way this process ends. Until then it holds the files it was
given open, and with them the locks on them: a run that was killed keeps its warehouse until its JVM is gone too.
"""

import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from brimline.fleet.session.class_archive import MAKE_SECONDS, ClassArchive
from brimline.fleet.session.errors import FleetError
from brimline.sandbox.java import QUICK_START, find_java

_START_SECONDS = 600
"""Only for one that hangs: when it dies that is seen at once, and a machine may be busy."""
_END_SECONDS = 30
_LAST_WORDS = 2000
# What Spark asks for since Java 17, as its own launcher does
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
FIRST_COMPILER_ONLY = "-XX:TieredStopAtLevel=1"
SECOND_COMPILER_LATE = (
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=200000",
    "-XX:Tier4BackEdgeThreshold=2000000",
)
"""For what is really used often: by Java's own thresholds it takes a third of the work of a small fleet's rounds."""
ARROW_UNCHECKED = ("-Darrow.enable_unsafe_memory_access=true", "-Darrow.enable_null_check_for_get=false")
"""Spark asks for the nulls itself and stays within bounds: checking every value again takes a tenth of an ingest."""
_PROPERTIES = ("-Dio.netty.tryReflectionSetAccessible=true", *ARROW_UNCHECKED)


class Jvm:
    """``with Jvm(…) as jvm: with jvm.gateway(): …`` and pyspark finds it instead of starting one."""

    def __init__(self, command: Sequence[str], held: Sequence[int] = (), archive: ClassArchive | None = None) -> None:
        """``held``: file descriptors that stay open as long as the JVM lives; ``archive``: made if it is missing."""
        self._archive = archive if archive is not None and not archive.is_there else None
        self._folder = tempfile.TemporaryDirectory(prefix="brimline-spark-")
        self._address = Path(self._folder.name) / "gateway"
        self._log = Path(self._folder.name) / "log"
        environment = os.environ | {
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._address),
            "SPARK_HOME": str(spark_home()),
            "SPARK_CONNECT_MODE": "0",
            # Python's workers must agree on the hash of a text
            "PYTHONHASHSEED": "0",
        }
        flags = [] if archive is None else archive.flags
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                # What Spark and its libraries unpack and spill is in our folder, and goes with it
                [command[0], f"-Djava.io.tmpdir={self._folder.name}", *flags, *command[1:]],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                pass_fds=tuple(held),
                # ctrl-C is for us: we tell Spark to stop
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> "Jvm":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS if self._archive is None else MAKE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        if self._archive is not None:
            self._archive.finish()
        self._folder.cleanup()

    @contextmanager
    def gateway(self) -> Iterator[None]:
        """While this lasts, pyspark connects to this JVM."""
        port, secret = self._await_address()
        before = dict(os.environ)
        os.environ |= {
            "PYSPARK_GATEWAY_PORT": str(port),
            "PYSPARK_GATEWAY_SECRET": secret,
            # Else workers take the system's Python, in local mode too
            "PYSPARK_PYTHON": before.get("PYSPARK_PYTHON", sys.executable),
        }
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def ends_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-_LAST_WORDS:]

    def _await_address(self) -> tuple[int, str]:
        """Spark puts the file there whole, by a rename."""
        deadline = time.monotonic() + _START_SECONDS
        while not self._address.exists():
            if self._process.poll() is not None:
                raise FleetError(f"Spark's JVM exited at once. Its last output:\n{self.last_words()}")
            if time.monotonic() > deadline:
                raise FleetError(f"Spark's JVM did not start within {_START_SECONDS} s:\n{self.last_words()}")
            time.sleep(0.02)
        content = self._address.read_bytes()
        port, length = struct.unpack_from(">ii", content)
        return port, content[8 : 8 + length].decode()


def spark_home() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FleetError("Spark is not installed: pip install 'brimline[fleet]'")
    return Path(spec.origin).parent


def spark_jars() -> list[Path]:
    return sorted((spark_home() / "jars").glob("*.jar"))


def java_program(flags: Sequence[str], words: Sequence[str], jars: Sequence[Path] = ()) -> list[str]:
    """The command line of one of Spark's own Java programs; ``jars`` come behind Spark's own."""
    quick = [flag for flag in QUICK_START if flag != FIRST_COMPILER_ONLY]
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    more = ["-XX:+IgnoreUnrecognizedVMOptions", "--add-modules=jdk.incubator.vector", *opened, *_PROPERTIES]
    path = ":".join(map(str, (spark_home() / "conf", *spark_jars(), *jars)))
    return [str(find_java()), *quick, *flags, *more, "-cp", path, *words]
