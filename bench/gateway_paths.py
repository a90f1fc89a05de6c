"""The ways from a client to one real broker: direct, through HAProxy, and through the gateway.

A client follows the addresses that a broker advertises. So the broker gets one listener for each way, bound to a port
of its own and advertised at the port where that way begins; nothing but the way differs. A front is such a pair of
ports, and every proxy is told the same thing: its fronts.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import which

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, SecuritySpec, VolumeSpec
from brimline.sandbox.properties import render

DIRECT, HAPROXY, GATEWAY = "direct", "HAProxy", "gateway"
SPEC = SandboxSpec(
    volumes=(VolumeSpec(size=Bytes(6 << 30)),),
    heap=Bytes(1 << 30),
    # CLIENT speaks TLS and ADMIN is plain: those are the direct ways
    security=SecuritySpec(protocol="SSL", key_store="PEM"),
)
BRIMLINE = (sys.executable, "-m", "brimline.cli")
NOTHING_IS_FULL = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
KEY_STORE = "listener.name.client.ssl."
JVM_LAST_WORD = "_JAVA_OPTIONS"
"""Options in this variable win over those of the command line."""
START_SECONDS, STOP_SECONDS = 30.0, 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """A port for clients, and the plain port behind it."""

    listener: str
    port: int
    upstream: int
    tls: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A running forwarder, measured from outside."""

    name: str
    pid: int
    control_socket: Path | None = None
    """The gateway's, as this process finds it."""
    guard: "Proxy | None" = None
    """Beside the gateway, where one was asked for."""

    def cpu_seconds(self) -> float:
        """All its threads, in user and in kernel mode, by its own clock (clock_getcpuclockid): a tick is too coarse."""
        return time.clock_gettime((~self.pid << 3) | 2)

    def resident_kilobytes(self) -> int:
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        found = re.search(r"^Rss:\s+(\d+) kB", rollup, re.MULTILINE)
        if found is None:
            raise RuntimeError(f"{self.name} has no memory any more")
        return int(found[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One of the things compared; the direct one has no proxy."""

    name: str
    port: int
    tls_port: int
    proxy: Proxy | None = None


Launcher = Callable[[Sequence[Front]], AbstractContextManager[Proxy]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A broker, and what can be started in front of it."""

    sandbox: Sandbox
    directory: Path
    """For the files of this run."""
    fronts: Mapping[str, Sequence[Front]]
    """Of each proxy: a plain one and one with TLS, advertised by the broker."""
    launchers: Mapping[str, Launcher]

    @contextmanager
    def ways(self) -> Iterator[list[Way]]:
        """To the broker, each proxy freshly started; the direct way comes first."""
        node = self.sandbox.broker(1).node
        ways = [Way(name=DIRECT, port=node.admin_port, tls_port=node.client_port)]
        with ExitStack() as stack:
            for name, launch in self.launchers.items():
                plain, tls = self.fronts[name]
                proxy = stack.enter_context(launch((plain, tls)))
                ways.append(Way(name=name, port=plain.port, tls_port=tls.port, proxy=proxy))
            yield ways

    @contextmanager
    def ways_to(self, upstream: int) -> Iterator[list[Way]]:
        """To something that is not a broker, plain only."""
        ways = [Way(name=DIRECT, port=upstream, tls_port=0)]
        with ExitStack() as stack:
            for name, launch in self.launchers.items():
                front = Front(listener="OTHER", port=self.sandbox.reserve_ports(1)[0], upstream=upstream)
                proxy = stack.enter_context(launch([front]))
                ways.append(Way(name=name, port=front.port, tls_port=0, proxy=proxy))
            yield ways


@contextmanager
def site(*, with_gateway: bool) -> Iterator[Site]:
    """A running broker whose listeners know of both proxies."""
    with whole_compiler(), Sandbox(SPEC) as sandbox, tempfile.TemporaryDirectory() as directory:
        fronts = {proxy: (_front(sandbox, proxy), _front(sandbox, proxy, tls=True)) for proxy in (HAPROXY, GATEWAY)}
        # The ports of the sandbox's own listeners were known only when it ran: so its broker starts once more
        broker = sandbox.broker(1)
        broker.stop()
        broker.alter_properties(_listeners(broker.properties, [front for pair in fronts.values() for front in pair]))
        broker.start()
        launchers: dict[str, Launcher] = {HAPROXY: partial(running_haproxy, sandbox)}
        if with_gateway:
            launchers[GATEWAY] = partial(running_gateway, sandbox)
        yield Site(sandbox=sandbox, directory=Path(directory), fronts=fronts, launchers=launchers)


@contextmanager
def running_haproxy(sandbox: Sandbox, fronts: Sequence[Front]) -> Iterator[Proxy]:
    """One thread, splicing where it can: what an operator would give to a plain TCP forwarder."""
    program = which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        raise RuntimeError("no haproxy on the PATH: scripts/setup.sh --bench installs it")
    lines = ["global", "  nbthread 1", "  maxconn 4000", "defaults", "  mode tcp", "  option splice-auto"]
    lines += ["  timeout connect 5s", "  timeout client 1h", "  timeout server 1h"]
    for front in fronts:
        tls = f" ssl crt {_key_store(sandbox)}" if front.tls else ""
        lines += [f"listen {front.listener}", f"  bind 127.0.0.1:{front.port}{tls}"]
        lines += [f"  server broker 127.0.0.1:{front.upstream}"]
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as config:
        config.write("\n".join(lines) + "\n")
        config.flush()
        with _running([program, "-db", "-f", config.name], lambda _: _accepts(fronts[0].port)) as pid:
            yield Proxy(name=HAPROXY, pid=pid)


def _key_store(sandbox: Sandbox) -> Path:
    return sandbox.outside(Path(sandbox.broker(1).properties[KEY_STORE + "keystore.location"]))


@contextmanager
def running_gateway(
    sandbox: Sandbox,
    fronts: Sequence[Front],
    program: Sequence[str] = BRIMLINE,
    limits: Mapping[str, str] = NOTHING_IS_FULL,
    *,
    with_guard: bool = False,
) -> Iterator[Proxy]:
    """As an operator starts it: with the broker's own file, in which it finds its fronts and the key store."""
    broker = sandbox.broker(1)
    state_dir = broker.node.home / f"gateway-{fronts[0].port}"
    sandbox.outside(state_dir).mkdir(exist_ok=True)
    config = state_dir / "server.properties"
    settings = {
        **broker.properties,
        **_listeners(broker.properties, fronts),
        **_terminated_by_gateway(broker.properties, [front for front in fronts if front.tls]),
        **limits,
        "brimline.metrics.port": "0",
        "brimline.enforcement": "gateway",
        "brimline.state.dir": str(state_dir),
        "brimline.log.format": "json",
        "brimline.gateway.refusals.per.second": str(10**6),
    }
    sandbox.outside(config).write_text(render(settings))
    with ExitStack() as stack:

        def started(daemon: str) -> int:
            command = sandbox.inside([*program, daemon, "--config", str(config)])
            return stack.enter_context(_running(command, _says_started))

        pid = started("gateway")
        control_socket = sandbox.outside(state_dir / f"gateway-{broker.broker_id}.sock")
        guard = Proxy(name="guard", pid=started("guard")) if with_guard else None
        yield Proxy(name=GATEWAY, pid=pid, control_socket=control_socket, guard=guard)


@contextmanager
def whole_compiler() -> Iterator[None]:
    """A sandbox's JVMs start quickly because they compile lightly; these are to be as fast as others."""
    before = os.environ.get(JVM_LAST_WORD)
    os.environ[JVM_LAST_WORD] = f"{before or ''} -XX:TieredStopAtLevel=4".strip()
    try:
        yield
    finally:
        del os.environ[JVM_LAST_WORD]
        if before is not None:
            os.environ[JVM_LAST_WORD] = before


def _front(sandbox: Sandbox, proxy: str, *, tls: bool = False) -> Front:
    port, upstream = sandbox.reserve_ports(2)
    return Front(listener=f"{proxy.upper()}{'TLS' if tls else ''}", port=port, upstream=upstream, tls=tls)


def _listeners(known: Mapping[str, str], fronts: Sequence[Front]) -> dict[str, str]:
    """The sandbox's own listeners, and one that listens behind each front and is advertised at it."""
    own = re.findall(r"(?:CLIENT|ADMIN|CONTROLLER)://[^,]+", known["listeners"])
    behind = [f"{front.listener}://127.0.0.1:{front.upstream}" for front in fronts]
    at = [f"{front.listener}://127.0.0.1:{front.port}" for front in fronts]
    protocols = ["CLIENT:SSL", "ADMIN:PLAINTEXT", "CONTROLLER:PLAINTEXT"]
    return {
        "listeners": ",".join(own + behind),
        "advertised.listeners": ",".join([each for each in own if not each.startswith("CONTROLLER")] + at),
        "listener.security.protocol.map": ",".join(protocols + [f"{front.listener}:PLAINTEXT" for front in fronts]),
    }


def _terminated_by_gateway(known: Mapping[str, str], fronts: Sequence[Front]) -> dict[str, str]:
    """TLS in front of a plain listener, with the key store of the broker's own TLS listener."""
    store = {key.removeprefix(KEY_STORE): value for key, value in known.items() if key.startswith(KEY_STORE)}
    settings = {
        f"listener.name.{front.listener.lower()}.ssl.{key}": value for front in fronts for key, value in store.items()
    }
    protocols = ",".join(f"{front.listener}:SSL" for front in fronts)
    return settings | ({"brimline.gateway.security.protocol.map": protocols} if fronts else {})


@contextmanager
def _running(command: Sequence[str], is_ready: Callable[[str], bool]) -> Iterator[int]:
    """A process from when ``is_ready`` likes its output; yields its pid."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        give_up_at = time.monotonic() + START_SECONDS
        try:
            while not is_ready(said := os.pread(log.fileno(), 1 << 16, 0).decode(errors="replace")):
                if process.poll() is not None or time.monotonic() > give_up_at:
                    raise RuntimeError(f"{' '.join(command)} did not start:\n{said}")
                time.sleep(0.02)
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def _accepts(port: int) -> bool:
    with suppress(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    return False


def _says_started(said: str) -> bool:
    lines = (line for line in said.splitlines(keepends=True) if line.endswith("\n"))
    return any('"event": "started"' in line and json.loads(line)["event"] == "started" for line in lines)
