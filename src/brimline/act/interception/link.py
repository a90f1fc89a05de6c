"""The guard's side of the helper: starts it, asks it, and starts it anew when it has gone.

Under systemd the guard has no capability, and the helper is a service of its own behind a Unix socket; whoever has it
starts the helper as a child. Either way the helper ends when the line to it does.
"""

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from brimline.act.interception.nftables import InterceptionFailed, Nftables, has_net_admin
from brimline.act.interception.ruleset import SECONDS_WHILE_FULL, ForeignRule, foreign_rules
from brimline.documents.codec import read_json

PATIENCE_SECONDS = float(SECONDS_WHILE_FULL)
"""As long as its rules may last without it. To give the helper up removes them: no sooner than they end by themselves.
One that answers later than it should renews them, even those that have run out."""
_TO_END_SECONDS = 2.0
_CHUNK = 1 << 16
Leaders: TypeAlias = Sequence[tuple[str, int]]
"""Addresses and ports of other brokers."""


class Counted(NamedTuple):
    """Connections: direct ones; those through a gateway, which the kernel lists twice; those of others on this machine
    that bear a mark of ours, and so pass."""

    direct: int
    marked: int
    passing: int = 0


def why_not_here(service: Path) -> str | None:
    """What is missing for the helper on this machine; ``None``: nothing that can be seen without trying."""
    try:
        Nftables().close()
    except InterceptionFailed as error:
        return str(error)
    if shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
        return "ip is not installed: apt install iproute2"
    return None if service.exists() or has_net_admin() else _no_helper(service)


def _no_helper(service: Path) -> str:
    return f"no CAP_NET_ADMIN and no helper at {service}: systemctl enable --now brimline-interception.socket"


def rules_of_others(ports: Collection[int]) -> list[ForeignRule] | None:
    """That send one of these ports elsewhere, in this network namespace; ``None``: this user may not look."""
    try:
        nftables = Nftables()
    except InterceptionFailed:
        return None
    try:
        return foreign_rules(nftables.run("list ruleset"), ports)
    except InterceptionFailed:
        return None
    finally:
        nftables.close()


class HelperLink:
    def __init__(self, node_id: int, ports: Collection[int], service: Path | None = None) -> None:
        """``ports``: the broker's, for clients. ``service``: the socket of the helper's own unit."""
        self._node_id = node_id
        self._ports = tuple(ports)
        self._service = service
        self._line: socket.socket | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._opened: object = None

    def open(
        self, ports: Mapping[int, int], spared: Sequence[str], leaders: Leaders = (), for_fetches: int | None = None
    ) -> None:
        """Said once for each helper, and again when something of it changes."""
        wanted = {
            "ports": {str(port): own for port, own in ports.items()},
            "spared": list(spared),
            "leaders": [list(each) for each in leaders] if for_fetches is not None else [],
            "for_fetches": for_fetches,
        }
        if self._line is None or self._opened != wanted:
            self._ask("open", node=self._node_id, **wanted)
            self._opened = wanted

    def say(self, *, armed: bool, held: bool, fetches: bool = False) -> None:
        self._ask("say", armed=armed, held=held, fetches=fetches)

    def count(self) -> Counted:
        answer = self._ask("count")
        return Counted(int(answer["direct"]), int(answer["marked"]), int(answer.get("passing", 0)))

    def cut(self, *, marked: bool, most: int) -> int:
        return int(self._ask("cut", marked=marked, most=most)["cut"])

    def disarm(self) -> None:
        """What was turned aside goes on."""
        self._ask("disarm")
        self._opened = None

    def close(self) -> tuple[int, bool]:
        """As if there had never been any rules. Returns how many connections still pass through the gateway, which go
        on, and whether routes stay for them or for others."""
        answer = self._ask("close", ports=self._ports)
        self._opened = None
        return int(answer["left"]), bool(answer["is_used"])

    def end(self) -> None:
        """With the helper, which ends as soon as nobody passes through the gateway any more."""
        if self._line is not None:
            self._line.close()
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(_TO_END_SECONDS)

    def _ask(self, word: str, **more: object) -> Mapping[str, Any]:
        try:
            line = self._connected()
            with suppress(BrokenPipeError):  # one that has ended has said why
                line.sendall(json.dumps({"do": word, **more}).encode() + b"\n")
            answer = read_json(object, _read_line(line))
        except (OSError, ValueError) as error:
            self._hang_up()
            raise InterceptionFailed(f"the helper does not answer: {error}") from error
        if isinstance(answer, dict) and "ended" in answer:
            self._hang_up()
        if not isinstance(answer, dict) or "error" in answer:
            raise InterceptionFailed(str(answer["error"] if isinstance(answer, dict) else answer))
        return dict(answer)

    def _connected(self) -> socket.socket:
        if self._line is None:
            service = self._service
            if service is not None and not service.exists() and not has_net_admin():
                raise InterceptionFailed(_no_helper(service))
            self._line = self._called() if service is not None and service.exists() else self._started()
            self._line.settimeout(PATIENCE_SECONDS)
        return self._line

    def _called(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(PATIENCE_SECONDS)
        line.connect(str(self._service))
        return line

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "brimline.act.interception.helper"]
        with theirs:
            self._child = subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno())
        return ours

    def _hang_up(self) -> None:
        self._opened = None
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None


def _read_line(line: socket.socket) -> bytes:
    read, give_up_at = bytearray(), time.monotonic() + PATIENCE_SECONDS
    while not read.endswith(b"\n"):
        ready, _, _ = select.select([line], [], [], max(give_up_at - time.monotonic(), 0.0))
        more = line.recv(_CHUNK) if ready else b""
        if not more:
            raise OSError(f"silent for {PATIENCE_SECONDS:.0f} s" if not ready else "it has ended")
        read += more
    return bytes(read)
