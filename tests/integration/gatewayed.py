"""A real gateway in front of a real broker: the command as a process in the sandbox's own mount namespace.

The sandbox is a fronted one (``SandboxSpec(fronted=True)``): clients are told the gateway's port, the broker listens on
another one.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brimline.sandbox import Sandbox
from tests.integration.guarded import BRIMLINE, ENDS_WITH_US, QUICK
from tests.waiting import PATIENCE_SECONDS, eventually

ENFORCING = {**QUICK, "brimline.enforcement": "gateway", "brimline.log.format": "json"}

_AS_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="CLIENT")
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""A program that becomes another one, to which it passes a socket: only the last one knows its own process id."""


@dataclass(frozen=True, kw_only=True)
class RunningGateway:
    process: "subprocess.Popen[str]"
    log: Path
    control_socket: Path
    """As this process finds it."""

    def ask(self, op: str, **fields: object) -> dict[str, Any]:
        """One question over the control socket, and its answer."""
        with _connected(self.control_socket) as connection, connection.makefile("rw") as lines:
            lines.write(json.dumps({"op": op, **fields}) + "\n")
            lines.flush()
            answer: dict[str, Any] = json.loads(lines.readline())
        return answer

    def state(self) -> dict[str, Any]:
        document: dict[str, Any] = self.ask("state")["state"]
        return document

    def fenced(self) -> set[str]:
        """The log dirs and topics under a fence now; log dirs by the last two parts of their paths."""
        return {_short(fence["logDir"]) if "logDir" in fence else fence["topic"] for fence in self.state()["fences"]}

    def said(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def events(self) -> list[str]:
        return [line["event"] for line in self.said()]

    def kill(self) -> None:
        """As ``kill -9``; another one may be started in its place then."""
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)

    def stop(self) -> None:
        """As its service manager does: it drains its connections first."""
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)


def state_dir(sandbox: Sandbox, broker: int = 1) -> Path:
    """Where this broker's gateway keeps its state, as the sandbox names it; a guard beside it is told the same."""
    return sandbox.broker(broker).node.home / "brimline-state"


def write_gateway_config(sandbox: Sandbox, added: Mapping[str, str], broker: int = 1) -> Path:
    """The broker's own properties with ours behind them, in a file beside it; its path in there."""
    own = sandbox.broker(broker).node.server_properties
    path = own.with_name("gateway.properties")
    settings = {"brimline.state.dir": str(state_dir(sandbox, broker)), **added}
    lines = "".join(f"{key}={value}\n" for key, value in settings.items())
    sandbox.outside(path).write_text(sandbox.outside(own).read_text() + lines)
    return path


@contextmanager
def gateway(
    sandbox: Sandbox,
    log: Path,
    added: Mapping[str, str] | None = None,
    *,
    broker: int = 1,
    passed: socket.socket | None = None,
    program: Sequence[str] = BRIMLINE,
) -> Iterator[RunningGateway]:
    """Enforcing, unless ``added`` says otherwise. Started again, it finds the state of the one before.

    ``passed``: a listening socket that it gets as from systemd, which keeps it open.
    """
    sandbox.outside(state_dir(sandbox, broker)).mkdir(mode=0o700, exist_ok=True)
    config = write_gateway_config(sandbox, {**ENFORCING, **(added or {})}, broker)
    command = [*ENDS_WITH_US, *program, "gateway", "--config", str(config)]
    passed_fds = [] if passed is None else [passed.fileno()]
    if passed is not None:
        command = [sys.executable, "-c", _AS_SYSTEMD, str(passed.fileno()), *command]
    with log.open("w") as stream:
        process = subprocess.Popen(
            sandbox.inside(command), stderr=stream, text=True, stdin=subprocess.DEVNULL, pass_fds=passed_fds
        )
    try:
        _wait_until_started(process, log)
        control = sandbox.outside(state_dir(sandbox, broker)) / f"gateway-{broker}.sock"
        yield RunningGateway(process=process, log=log, control_socket=control)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()


def _wait_until_started(process: "subprocess.Popen[str]", log: Path) -> None:
    eventually(lambda: '"event": "started"' in log.read_text() or process.poll() is not None)
    assert process.poll() is None, log.read_text()


@contextmanager
def _connected(path: Path) -> Iterator[socket.socket]:
    """The kernel takes only 107 bytes as the name of a socket, and ours is deep: go by its directory's descriptor."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(PATIENCE_SECONDS)
            connection.connect(f"/proc/self/fd/{directory}/{path.name}")
            yield connection
    finally:
        os.close(directory)


def _short(log_dir: str) -> str:
    return "/".join(Path(log_dir).parts[-2:])
