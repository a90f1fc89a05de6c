"""A real guard beside a real broker: the daemon as a process in the sandbox's own mount namespace."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brimline.sandbox import Sandbox
from tests.waiting import PATIENCE_SECONDS, eventually

# Quick enough for a test to wait for, and 0: any free port, which the log names. A busy machine is no stalled disk.
QUICK = {
    "brimline.metrics.port": "0",
    "disk.usage.check.interval.ms": "300",
    "brimline.disk.stall.timeout.ms": "600000",
}
STARTED = '"event": "started"'
BRIMLINE = (sys.executable, "-m", "brimline.cli")
"""The command as it is now; a test of other versions has others."""
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Before a daemon's command: a run of tests that is killed leaves none behind."""


@dataclass(frozen=True, kw_only=True)
class RunningGuard:
    process: "subprocess.Popen[str]"
    port: int
    log: Path
    host: str = "127.0.0.1"

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.host}:{self.port}{path}", timeout=PATIENCE_SECONDS) as answer:
            text: str = answer.read().decode()
        return text

    def state(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.get("/v1/state"))
        return document

    def states(self) -> dict[str, str]:
        """Log dir → state, by the last two parts of its path, which are unique in a sandbox."""
        return states_of(self.state())

    def samples(self, metric: str) -> dict[str, float]:
        """Labels as written → value, of one Prometheus metric."""
        return samples_of(self.get("/metrics"), metric)

    def percent(self, metric: str, topic: str, partition: int = 0) -> float | None:
        return self.samples(metric).get(f'topic="{topic}",partition="{partition}"')

    def said(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def events(self) -> list[str]:
        return [line["event"] for line in self.said()]


def samples_of(scraped: str, metric: str) -> dict[str, float]:
    """Of one metric in what was scraped at one moment."""
    found = {}
    for line in scraped.splitlines():
        name, _, rest = line.partition("{") if "{" in line else line.partition(" ")
        if name == metric:
            labels, _, value = rest.rpartition("} ")
            found[labels] = float(value)
    return found


def states_of(state: Mapping[str, Any]) -> dict[str, str]:
    return {
        "/".join(Path(path).parts[-2:]): volume["state"] for volume in state["volumes"] for path in volume["logDirs"]
    }


def write_config(sandbox: Sandbox, added: Mapping[str, str], broker: int = 1) -> Path:
    """The broker's own properties with ours behind them, in a file beside it; its path in there."""
    own = sandbox.broker(broker).node.server_properties
    path = own.with_name("guard.properties")
    settings = {"brimline.state.dir": str(own.with_name("brimline-state")), **added}
    lines = "".join(f"{key}={value}\n" for key, value in settings.items())
    sandbox.outside(path).write_text(sandbox.outside(own).read_text() + lines)
    return path


@contextmanager
def guard(
    sandbox: Sandbox,
    log: Path,
    added: Mapping[str, str] | None = None,
    *,
    broker: int = 1,
    user: int | None = None,
    program: Sequence[str] = BRIMLINE,
) -> Iterator[RunningGuard]:
    """``user``: run as this uid, without any capability."""
    config = write_config(sandbox, {**QUICK, "brimline.log.format": "json", **(added or {})}, broker)
    who = [] if user is None else [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all"]
    command = [*ENDS_WITH_US, *who, *program, "guard", "--config", str(config)]
    with log.open("w") as stream:
        process = subprocess.Popen(sandbox.inside(command), stderr=stream, text=True, stdin=subprocess.DEVNULL)
    try:
        host = (added or {}).get("brimline.metrics.host", "127.0.0.1")
        yield RunningGuard(process=process, port=_port(process, log), log=log, host=host)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _port(process: "subprocess.Popen[str]", log: Path) -> int:
    def said() -> str:
        assert process.poll() is None, log.read_text()
        return log.read_text()

    eventually(lambda: STARTED in said())
    (port,) = (json.loads(line)["port"] for line in said().splitlines() if STARTED in line)
    return int(port)
