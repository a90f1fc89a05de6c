"""What the acts of the demo share: saying, running as printed, waiting, and the processes beside a broker."""

import json
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from brimline.sandbox import Sandbox

BRIMLINE = Path(sys.executable).with_name("brimline")
PATIENCE_SECONDS = 90


def say(sentence: str) -> None:
    print(f"\n── {sentence}\n", flush=True)


def show(line: str) -> None:
    print(f"   {line}", flush=True)


def run(*arguments: str) -> None:
    print("$ brimline " + shlex.join(arguments), flush=True)
    # Asked for by name, so that the demo shows the same in a terminal and in a log. A full disk is no failure here.
    finished = subprocess.run([BRIMLINE, *arguments, "--output", "table"], check=False)
    if finished.returncode not in (0, 3):
        raise RuntimeError(f"brimline {arguments[0]} ended with {finished.returncode}")
    print(flush=True)


def wait_for(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > give_up_at:
            raise RuntimeError(f"the cluster did not settle within {PATIENCE_SECONDS} s")
        time.sleep(0.2)


@contextmanager
def beside_broker(command: str, sandbox: Sandbox, broker: int) -> Iterator[str]:
    """A guard or a gateway in the sandbox, where the broker's paths are valid; gives the line it started with."""
    arguments = [command, "--config", str(sandbox.broker(broker).node.server_properties)]
    print("$ brimline " + shlex.join(arguments), flush=True)
    process = subprocess.Popen(sandbox.inside([str(BRIMLINE), *arguments]), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield _started(process.stderr)
    finally:
        process.terminate()
        process.communicate()


def _started(lines: IO[str]) -> str:
    for line in lines:
        print(line, end="", flush=True)
        if " started " in line:
            return line
    raise RuntimeError("it ended")


def address_in(line: str) -> str:
    served = re.search(r"http://[^/]+", line)
    if served is None:
        raise RuntimeError(f"no address in: {line}")
    return served[0]


def state_of(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/v1/state", timeout=PATIENCE_SECONDS) as answer:
        document: dict[str, Any] = json.loads(answer.read())
    return document


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
