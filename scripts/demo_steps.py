"""What the acts of the demo share: saying, running as printed, waiting, and the processes beside a broker."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from brimline.sandbox import Sandbox

BRIMLINE = Path(sys.executable).with_name("brimline")
PATIENCE_SECONDS = 300
"""A machine that has other things to do shows the same, later."""


def say(sentence: str) -> None:
    print(f"\n── {sentence}\n", flush=True)


def show(line: str) -> None:
    print(f"   {line}", flush=True)


def run(*arguments: str) -> None:
    _run([str(BRIMLINE), *arguments], arguments)


def run_as_it_is(*arguments: str) -> None:
    """A command that shows its progress and has no table."""
    print("$ brimline " + shlex.join(arguments), flush=True)
    subprocess.run([str(BRIMLINE), *arguments], check=True)
    print(flush=True)


def run_inside(sandbox: Sandbox, *arguments: str) -> None:
    """On the broker's host, so to speak: where its paths are valid."""
    _run(sandbox.inside([str(BRIMLINE), *arguments]), arguments)


def _run(command: Sequence[str], arguments: Sequence[str]) -> None:
    print("$ brimline " + shlex.join(arguments), flush=True)
    # Asked for by name, so that the demo shows the same in a terminal and in a log. A full disk is no failure here.
    finished = subprocess.run([*command, "--output", "table"], check=False)
    if finished.returncode not in (0, 3):
        raise RuntimeError(f"brimline {arguments[0]} ended with {finished.returncode}")
    print(flush=True)


class Unsettled(RuntimeError):
    """The cluster or the disk under it did not come to what was to be shown."""


def wait_for(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > give_up_at:
            raise Unsettled(
                f"the cluster did not settle within {PATIENCE_SECONDS} s: this machine or this disk is busy"
            )
        time.sleep(0.2)


class Beside:
    """A guard or a gateway that runs. ``line`` is the one that it started with."""

    def __init__(self, process: "subprocess.Popen[str]", line: str) -> None:
        self._process = process
        self.line = line

    @property
    def address(self) -> str:
        served = re.search(r"http://[^/]+", self.line)
        if served is None:
            raise RuntimeError(f"no address in: {self.line}")
        return served[0]

    def reload(self) -> None:
        self._process.send_signal(signal.SIGHUP)


@contextmanager
def beside_broker(command: str, sandbox: Sandbox, broker: int) -> Iterator[Beside]:
    """In the sandbox, where the broker's paths are valid."""
    arguments = [command, "--config", str(sandbox.broker(broker).node.server_properties)]
    print("$ brimline " + shlex.join(arguments), flush=True)
    process = subprocess.Popen(sandbox.inside([str(BRIMLINE), *arguments]), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = _started(process.stderr)
        # Nobody reads the rest, and a full pipe must not hold anybody up.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield Beside(process, line)
    finally:
        process.terminate()
        process.wait()


def _started(lines: IO[str]) -> str:
    for line in lines:
        print(line, end="", flush=True)
        if " started " in line:
            return line
    raise RuntimeError("it ended")


def state_of(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/v1/state", timeout=PATIENCE_SECONDS) as answer:
        document: dict[str, Any] = json.loads(answer.read())
    return document


def is_fenced(guard: str) -> bool:
    gateway = state_of(guard)["gateway"]
    return bool(gateway and gateway["state"] and gateway["state"]["fences"])


def used_percent(sandbox: Sandbox, log_dir: Path) -> float:
    usage = shutil.disk_usage(sandbox.outside(log_dir))
    return 100 * (1 - usage.free / usage.total)


class Producer:
    """A producer that does not stop, in a process of its own: it outlives a broker that dies under it."""

    def __init__(self, servers: str, topic: str, kilobytes_per_second: int) -> None:
        command = [sys.executable, "-m", "scripts.demo_producer", servers, topic, str(kilobytes_per_second)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def acknowledged(self) -> int:
        """How many records were acknowledged up to now: asks the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def finish(self) -> int:
        """No more records; waits for what is under way, and returns how many were acknowledged."""
        output, _ = self._process.communicate(timeout=PATIENCE_SECONDS)
        return int(output.split()[-1])

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def producing(servers: str, topic: str, kilobytes_per_second: int) -> Iterator[Producer]:
    producer = Producer(servers, topic, kilobytes_per_second)
    try:
        yield producer
    finally:
        producer.kill()
