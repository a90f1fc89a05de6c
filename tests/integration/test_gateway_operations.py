"""A gateway in daily use: killed, restarted, reloaded, fenced by hand; and its clients do not lose a record over it."""

import signal
import socket
import struct
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.torture.clients.table import JAVA_4, LIBRDKAFKA, LIBRDKAFKA_IDEMPOTENT
from tests.integration.cluster import brimline_inside, create_topic
from tests.integration.gateway_clients.load import Load, producing
from tests.integration.gateway_clients.verification import verify_read_back
from tests.integration.gatewayed import ENFORCING, RunningGateway, gateway, state_dir, write_gateway_config
from tests.integration.guarded import RunningGuard, guard
from tests.integration.kafka_clients import meanwhile
from tests.integration.test_bad_input import refused
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

LIMITS = {"disk.max.used.percent": "90", "disk.min.free.bytes": "0"}
ALWAYS_FULL = {"disk.max.used.percent": "100", "disk.min.free.bytes": str(1 << 50)}
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)
"""A whole request: version 0, correlation id 7, no client id."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(fronted=True, volumes=(VolumeSpec(size=Bytes(128 << 20)),))) as running:
        yield running


class Services:
    """Gateways and guards of the sandbox's broker, one after the other; whatever still runs ends with the test."""

    def __init__(self, sandbox: Sandbox, logs: Path, stack: ExitStack) -> None:
        self._sandbox = sandbox
        self._logs = (logs / f"log-{number}" for number in count(1))
        self._stack = stack

    def gateway(self, passed: socket.socket | None = None) -> RunningGateway:
        return self._stack.enter_context(gateway(self._sandbox, next(self._logs), LIMITS, passed=passed))

    def guard(self) -> RunningGuard:
        """It shares the gateway's state."""
        added = {**ENFORCING, **LIMITS, "brimline.state.dir": str(state_dir(self._sandbox))}
        return self._stack.enter_context(guard(self._sandbox, next(self._logs), added))


@pytest.fixture
def services(sandbox: Sandbox, tmp_path: Path) -> Iterator[Services]:
    with ExitStack() as stack:
        yield Services(sandbox, tmp_path, stack)


@contextmanager
def under_load(sandbox: Sandbox, topic: str) -> Iterator[Callable[[], None]]:
    """Two clients that do not stop, and a function that waits until both get on.

    Whatever happens in the block, they go on afterwards, and every record is stored once and in order.
    """
    create_topic(sandbox, topic, partitions=4)
    loads: list[Load] = []

    def wait_for_progress() -> None:
        for load in loads:
            load.wait_for_acks(50)

    with ExitStack() as stack:
        for client, partitions in ((JAVA_4, (0, 1)), (LIBRDKAFKA_IDEMPOTENT, (2, 3))):
            running = producing(
                client,
                sandbox.bootstrap_servers,
                topic,
                partitions=partitions,
                rate=200,
                properties=client.patience,
            )
            loads.append(stack.enter_context(running))
        wait_for_progress()
        yield wait_for_progress
        wait_for_progress()
    for load in loads:
        assert load.failures == []
        assert load.acked() == set(range(load.sent))
        verify_read_back(sandbox, load, exactly_once=True)


def test_clients_survive_kill_9_of_the_gateway(sandbox: Sandbox, services: Services) -> None:
    running = services.gateway()
    with under_load(sandbox, "gateway-killed") as wait_for_progress:
        for _ in range(3):
            running.kill()
            running = services.gateway()
            wait_for_progress()


def test_clients_are_served_though_the_state_dir_is_read_only(sandbox: Sandbox, tmp_path: Path) -> None:
    """At a restart: whoever dies of it cuts every client off."""
    read_only = sandbox.broker(1).node.home / "read-only"
    sandbox.outside(read_only).mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(read_only)]
    subprocess.run(sandbox.inside(mount), check=True, timeout=PATIENCE_SECONDS)
    try:
        with (
            gateway(sandbox, tmp_path / "log", {**LIMITS, "brimline.state.dir": str(read_only)}) as running,
            under_load(sandbox, "without-state") as wait_for_progress,
        ):
            wait_for_progress()
    finally:
        subprocess.run(sandbox.inside(["umount", str(read_only)]), check=True, timeout=PATIENCE_SECONDS)

    assert {"no-state", "no-control"} <= set(running.events())


def test_clients_do_not_notice_kill_9_of_the_guard(sandbox: Sandbox, services: Services) -> None:
    running = services.gateway()
    watching = services.guard()
    with under_load(sandbox, "guard-killed") as wait_for_progress:
        watching.process.kill()
        wait_for_progress()
        again = services.guard()
        eventually(lambda: again.state()["gateway"]["up"])
        wait_for_progress()
        fences, refusals = running.state()["fences"], running.state()["refusals"]

    assert (fences, refusals) == ([], [])


def test_clients_survive_kill_9_of_the_broker(sandbox: Sandbox, services: Services) -> None:
    running = services.gateway()
    with under_load(sandbox, "broker-killed") as wait_for_progress:
        sandbox.broker(1).kill()
        eventually(lambda: running.state()["connections"]["closed"].get("broker-unreachable", 0) > 0)
        eventually(lambda: "broker-gone" in running.events())
        told = refused(sandbox.bootstrap_servers)
        told_by_tls = refused(sandbox.bootstrap_servers, "--command-property", "security.protocol=SSL")
        sandbox.broker(1).start()
        wait_for_progress()
        eventually(lambda: "broker-back" in running.events())

    assert running.process.poll() is None
    assert running.events().count("broker-gone") == running.events().count("broker-back")
    assert "the broker behind this gateway is down" in told
    assert "the broker behind this gateway is down" in told_by_tls


class Caller:
    """Connects again and again, each time with one request, and counts what becomes of it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self.outcomes: Counter[str] = Counter()

    def call(self, ended: threading.Event) -> None:
        while not ended.wait(0.005):
            self.outcomes[self._outcome()] += 1

    def wait_for_an_answer(self) -> None:
        before = self.outcomes["answered"]
        eventually(lambda: self.outcomes["answered"] > before)

    def _outcome(self) -> str:
        try:
            with socket.create_connection(self._address, timeout=PATIENCE_SECONDS) as connection:
                connection.sendall(API_VERSIONS)
                return "answered" if connection.recv(4) else "closed"
        except ConnectionRefusedError:
            return "refused"
        except (ConnectionResetError, BrokenPipeError):
            return "closed"


def test_a_restart_with_sockets_of_systemd_refuses_no_connection(sandbox: Sandbox, services: Services) -> None:
    host, _, port = sandbox.bootstrap_servers.partition(":")
    caller = Caller((host, int(port)))
    with socket.create_server((host, int(port)), backlog=1024) as held:
        running = services.gateway(held)
        with under_load(sandbox, "restarted") as wait_for_progress, meanwhile(caller.call):
            for _ in range(2):
                running.stop()
                running = services.gateway(held)
                wait_for_progress()
                caller.wait_for_an_answer()
        running.stop()

    assert caller.outcomes["refused"] == 0
    assert caller.outcomes["answered"] > 0
    assert running.process.returncode == 0


def test_a_reload_changes_the_error_and_the_limits_and_refuses_nonsense(sandbox: Sandbox, services: Services) -> None:
    create_topic(sandbox, "reloaded")
    running = services.gateway()

    def reload(changes: Mapping[str, str]) -> None:
        write_gateway_config(sandbox, {**ENFORCING, **LIMITS, **changes})
        running.process.send_signal(signal.SIGHUP)

    running.ask("fence", topic="reloaded", reason="a test", by="tester")
    with producing(LIBRDKAFKA, sandbox.bootstrap_servers, "reloaded") as load:
        eventually(lambda: bool(running.state()["refusals"]))
        retried = list(load.failures)
        reload({"brimline.reject.error": "POLICY_VIOLATION"})
        eventually(lambda: any(failure.error == "POLICY_VIOLATION" for failure in load.failures))
    running.ask("unfence", topic="reloaded", reason="over", by="tester")
    reload(ALWAYS_FULL)
    eventually(lambda: len(running.fenced()) == 1)
    reload({"disk.max.used.percent": "5"})
    eventually(lambda: "reload-refused" in running.events())
    still = running.fenced()
    reload({})
    eventually(lambda: running.fenced() == set())

    assert retried == []
    assert len(still) == 1
    assert running.state()["rejectError"] == 56
    reloaded = [line["key"] for line in running.said() if line["event"] == "reloaded" and "key" in line]
    assert "brimline.reject.error" in reloaded
    assert "disk.min.free.bytes" in reloaded


def test_the_commands_of_daily_use_tell_what_is_so(sandbox: Sandbox, services: Services) -> None:
    create_topic(sandbox, "clicks", partitions=3)
    config = str(write_gateway_config(sandbox, {**ENFORCING, **LIMITS}))
    target = ("--config", config, "--topic", "clicks")

    without = brimline_inside(sandbox, "fence", *target, "--reason", "too early")
    running = services.gateway()
    watching = services.guard()
    eventually(lambda: watching.state()["gateway"]["up"] and watching.state()["broker"]["connected"])
    url = f"http://127.0.0.1:{watching.port}"
    calm = brimline_inside(sandbox, "status", "--url", url)
    checked = brimline_inside(sandbox, "doctor", "--config", config)
    fenced = brimline_inside(sandbox, "fence", *target, "--reason", "runaway producer")
    running.kill()
    eventually(lambda: not watching.state()["gateway"]["up"])
    down = brimline_inside(sandbox, "status", "--url", url)
    services.gateway()
    eventually(lambda: bool((watching.state()["gateway"]["state"] or {"fences": []})["fences"]))
    remembered = brimline_inside(sandbox, "status", "--url", url)
    lifted, again = brimline_inside(sandbox, "unfence", *target), brimline_inside(sandbox, "unfence", *target)

    expect(without, 1, "no gateway is running")
    expect(calm, 0, "every volume has room", "OK, nothing refused")
    expect(checked, 0, "gateway running", "the guard can do all of its work")
    expect(fenced, 0, "Produce to its 3 partitions is refused with error 56", "lift it with")
    expect(down, 3, "does not answer", "start brimline gateway")
    expect(remembered, 3, "FENCED  topic clicks", "runaway producer", "lift it with: brimline unfence")
    expect(lifted, 0, "Produce to its 3 partitions is accepted again")
    expect(again, 1, "topic clicks is not fenced; nothing is")


def expect(done: "subprocess.CompletedProcess[str]", exit_code: int, *sentences: str) -> None:
    said = done.stdout + done.stderr
    assert done.returncode == exit_code, said
    assert [sentence for sentence in sentences if sentence not in said] == [], said
