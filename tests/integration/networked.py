"""Brokers on machines of their own: each in a network namespace, behind one switch. Clients are on another machine.

Made by a process that has a network namespace to itself (``unshare --net``), which is the clients' machine: everything
goes with it.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from brimline.sandbox import Sandbox, SandboxSpec
from brimline.sandbox.properties import Node
from tests.waiting import eventually

CLIENTS = "192.0.2.254"
"""This machine's address; the controller is here too, where it has a process of its own."""


class Network:
    """``machines``: as many as there are brokers; the n-th has the address 192.0.2.n."""

    def __init__(self, machines: int) -> None:
        self._holders: list[subprocess.Popen[bytes]] = []
        for command in (
            "ip link set lo up",
            "ip link add switch type bridge",
            f"ip address add {CLIENTS}/24 dev switch",
            "ip link set switch up",
        ):
            _run(command)
        for number in range(1, machines + 1):
            self._add(number)

    def close(self) -> None:
        for holder in self._holders:
            holder.kill()
            holder.wait()

    def at(self, number: int, argv: Sequence[str]) -> list[str]:
        """The same command, run on that machine."""
        return ["nsenter", f"--net=/proc/{self._holders[number - 1].pid}/ns/net", *argv]

    def said(self, number: int, *argv: str) -> str:
        return subprocess.run(self.at(number, argv), capture_output=True, text=True, check=True).stdout

    def _add(self, number: int) -> None:
        holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"])
        self._holders.append(holder)
        network, own = Path(f"/proc/{holder.pid}/ns/net"), Path("/proc/self/ns/net").readlink()
        eventually(lambda: network.readlink() != own)
        _run(f"ip link add port-{number} type veth peer name cable netns {holder.pid}")
        _run(f"ip link set port-{number} master switch up")
        # Without addresses that the kernel makes in its own time: its routes are compared.
        alone = "link set cable addrgenmode none"
        for command in ("link set lo up", alone, f"address add {address(number)}/24 dev cable", "link set cable up"):
            self.said(number, "ip", *command.split())


def address(number: int) -> str:
    return f"192.0.2.{number}"


class NetworkedSandbox(Sandbox):
    """Each broker on a machine of its own, or all ``together`` on the first; ``more``: machines without a broker.

    ``everywhere``: bound to all addresses instead of one.
    """

    def __init__(self, spec: SandboxSpec, *, everywhere: bool = True, together: bool = False, more: int = 0) -> None:
        super().__init__(spec)
        self.network = Network(1 if together else spec.brokers + more)
        self._everywhere = everywhere
        self._together = together

    def close(self) -> None:
        super().close()
        self.network.close()

    def at(self, broker: int) -> Sandbox:
        """The same, with commands that run on that broker's machine."""
        return cast(Sandbox, _At(self, broker))

    def machine(self, broker: int) -> int:
        return 1 if self._together else broker

    def _nodes(self) -> list[Node]:
        nodes = super()._nodes()
        hosts = [address(self.machine(node.node_id)) if "broker" in node.roles else CLIENTS for node in nodes]
        return [replace(node, host=host) for node, host in zip(nodes, hosts, strict=True)]

    def _command(self, node: Node) -> list[str]:
        command = super()._command(node)
        return self.network.at(self.machine(node.node_id), command) if "broker" in node.roles else command

    def _launch(self) -> None:
        if self._everywhere:
            for broker in self.brokers:
                listeners = broker.properties["listeners"].replace(f"//{broker.node.host}:", "//0.0.0.0:")
                broker.alter_properties({"listeners": listeners})
        super()._launch()


class _At:
    def __init__(self, sandbox: NetworkedSandbox, broker: int) -> None:
        self._sandbox = sandbox
        self._broker = broker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    def inside(self, argv: Sequence[str]) -> list[str]:
        return self._sandbox.network.at(self._sandbox.machine(self._broker), self._sandbox.inside(argv))


def rules(network: Network, number: int) -> str:
    """Everything that an interception lays on that machine, as its kernel has it."""
    commands = (
        ("nft", "list", "ruleset"),
        ("ip", "rule"),
        ("ip", "-6", "rule"),
        ("ip", "route", "show", "table", "all"),
        ("cat", "/proc/sys/net/ipv4/tcp_fwmark_accept"),
    )
    return "\n".join(network.said(number, *command).strip() for command in commands)


def _run(command: str) -> None:
    subprocess.run(command.split(), check=True)
