"""The JVM of the JMX bridge as a child process: bytes in, lines out, never waited for without an end.

It ends with its standard input, so it never outlives this process, however that ends. It has a session of its own:
the Ctrl-C that a terminal sends to everybody is for the guard to answer.
"""

import os
import select
import subprocess
import tempfile
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from brimline.metrics.bridge_jar import NoBridge, find_jar, find_tool
from brimline.metrics.jmx_settings import JmxSettings
from brimline.service.durable_files import NotRecorded

START_SECONDS = 60.0
"""A JVM is up in 0.3 s; a machine that is booting everything at once takes its time."""
ANSWER_SECONDS = 30.0
"""Who takes no update for that long is ended and started again."""
END_SECONDS = 1.0
_CHUNK = 1 << 16
_LAST_WORDS = 20


class ChildGone(Exception):
    """The child ended, or does not answer. Its text is the child's own last words where there are any."""


class Wake:
    """Ends a wait from another thread, as often as wanted, without ever blocking that thread."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        # A full pipe wakes just as well
        with suppress(BlockingIOError):
            os.write(self._writer, b"!")

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._reader, _CHUNK):
                pass

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


class Child(Protocol):
    """What the bridge needs of a child; every method raises ``ChildGone``."""

    def send(self, data: bytes) -> None:
        """Hand over all of it."""

    def read_line(self) -> str:
        """The next line that it says."""

    def wait_for(self, wake: Wake) -> None:
        """Until ``wake`` is set."""

    def end(self) -> None:
        """Close its input and, if that does not help, kill it. Only for the thread that uses it."""

    def kill(self) -> None:
        """At once, from any thread; whoever waits for the child gets ``ChildGone``."""


class JvmChild:
    """A running bridge."""

    def __init__(self, settings: JmxSettings, jar: Path | None = None) -> None:
        java = settings.java or find_tool("java")
        if java is None:
            raise NoBridge("no java on the PATH or in JAVA_HOME: JMX needs a Java 11 or newer, or no JMX port")
        _make_login(settings)
        with tempfile.NamedTemporaryFile("w", prefix="brimline-jmx-", suffix=".args") as file:
            file.write(settings.argument_file(jar or find_jar()))
            file.flush()
            try:
                self._process = subprocess.Popen(
                    [str(java), f"@{file.name}"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,
                )
            except OSError as error:
                raise NoBridge(f"{java} cannot be run: {error.strerror}") from error
            self._attach()
            try:
                self._expect_ready()
            except ChildGone:
                self.end()
                raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, data: bytes) -> None:
        rest = memoryview(data)
        deadline = time.monotonic() + ANSWER_SECONDS
        while rest:
            if self._stdin in self._poll([self._stdin], deadline):
                try:
                    rest = rest[os.write(self._stdin, rest) :]
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise ChildGone(self._last_words()) from error

    def read_line(self) -> str:
        deadline = time.monotonic() + ANSWER_SECONDS
        while not self._lines:
            self._poll([], deadline)
        return self._lines.popleft()

    def wait_for(self, wake: Wake) -> None:
        while wake.fileno() not in self._poll([], None, wake):
            pass
        wake.clear()

    def end(self) -> None:
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()

    def kill(self) -> None:
        self._process.kill()

    def _attach(self) -> None:
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = (pipe.fileno() for pipe in pipes if pipe)
        for descriptor in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(descriptor, False)
        self._reading = [self._stdout, self._stderr]
        self._lines: deque[str] = deque()
        self._unfinished = b""
        self._complaints = b""

    def _expect_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._lines:
            self._poll([], deadline)
        if (line := self._lines.popleft()) != "ready":
            raise ChildGone(f"unexpected first words of the JMX bridge: {line}")

    def _poll(self, writing: list[int], deadline: float | None, wake: Wake | None = None) -> list[int]:
        """Take in what the child says meanwhile; its end is the end of its output."""
        # Not select(), which knows no descriptor above 1023
        poller = select.poll()
        for descriptor in (*self._reading, *([wake.fileno()] if wake else [])):
            poller.register(descriptor, select.POLLIN)
        for descriptor in writing:
            poller.register(descriptor, select.POLLOUT)
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        ready = [descriptor for descriptor, _ in poller.poll(timeout)]
        if not ready:
            raise ChildGone(f"the JMX bridge did not answer in time: {self._last_words()}")
        if self._stderr in ready:
            if not (said := os.read(self._stderr, _CHUNK)):
                self._reading.remove(self._stderr)
            self._complaints = (self._complaints + said)[-_CHUNK:]
        if self._stdout in ready:
            said = os.read(self._stdout, _CHUNK)
            if not said:
                raise ChildGone(self._last_words())
            *lines, self._unfinished = (self._unfinished + said).split(b"\n")
            self._lines.extend(line.decode("utf-8", "replace") for line in lines)
        return ready

    def _last_words(self) -> str:
        """Why it ended, as the JVM puts it: the first lines name the cause, stack frames follow."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        with suppress(BlockingIOError):
            while more := os.read(self._stderr, _CHUNK):
                self._complaints += more
        lines = [line.strip() for line in self._complaints.decode("utf-8", "replace").splitlines()]
        telling = [line for line in lines if line and not line.startswith(("at ", "Picked up "))][:_LAST_WORDS]
        code = self._process.returncode
        ended = "still runs" if code is None else f"ended with exit code {code}"
        return f"the JVM {ended}{': ' if telling else ''}{'; '.join(telling)}"


def _make_login(settings: JmxSettings) -> None:
    if (login := settings.own_login) is None:
        return
    try:
        login.make()
    except NotRecorded as error:
        raise NoBridge(f"JMX has no password to ask for, so it is not served: {error.why}") from error
