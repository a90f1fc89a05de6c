"""A broker whose clients are turned aside only near a limit: run in a network namespace of its own, as a process.

``python -m tests.integration.interception_inside SCENARIO VERSION``: an assertion that fails is its exit code. The
namespace and with it every rule goes when the process does.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from brimline.model import Bytes
from brimline.sandbox import Sandbox
from brimline.torture.clients.table import CLIENTS
from tests.integration.full_disks import (
    BY_PERCENT,
    MIB,
    create_topic_in,
    end_offset,
    refused_batches,
    two_disks,
    verify_unharmed,
    wait_for_refusal,
)
from tests.integration.gateway_clients.load import producing
from tests.integration.gateway_clients.verification import verify_read_back
from tests.integration.gatewayed import ENFORCING, RunningGateway, gateway, state_dir
from tests.integration.guarded import RunningGuard, guard
from tests.integration.replicated import Load, read_back
from tests.processes import command_line, is_alive
from tests.waiting import eventually

TOPIC = "orders"
FULL, HEALTHY = 0, 1
"""Partitions, each on a disk of its own."""
KEYS = {
    **ENFORCING,
    **BY_PERCENT,
    "brimline.gateway.interception": "tproxy",
    "brimline.gateway.interception.disarm.seconds": "1",
    "brimline.gateway.interception.arm.percent": "2",
}
OBSERVING = {**KEYS, "brimline.enforcement": "observe"}


def rules() -> str:
    """Everything that an interception lays, as the kernel has it."""
    commands = (
        ["nft", "list", "ruleset"],
        ["ip", "rule"],
        ["ip", "-6", "rule"],
        ["ip", "route", "show", "table", "all"],
        ["cat", "/proc/sys/net/ipv4/tcp_fwmark_accept"],
    )
    return "\n".join(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for command in commands
    )


def has_table() -> bool:
    return "brimline" in subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout


def phase(running: RunningGuard) -> str:
    document: dict[str, Any] = running.state()["interception"]
    return str(document["phase"])


def proxied(running: RunningGateway) -> int:
    return int(running.state()["connections"]["open"])


def acknowledged(load: Load, partition: int) -> int:
    return sum(where[0] == partition for where in load.acknowledged.copy())


def verify_goes_on(load: Load, *partitions: int) -> None:
    for partition in partitions:
        before = acknowledged(load, partition)
        eventually(lambda: acknowledged(load, partition) > before + 50)  # noqa: B023 (called at once)


@contextmanager
def beside(
    sandbox: Sandbox, logs: Path, keys: Mapping[str, str] = KEYS
) -> Iterator[tuple[RunningGateway, RunningGuard]]:
    with gateway(sandbox, logs / "gateway.log", keys) as running:
        with_state = {**keys, "brimline.state.dir": str(state_dir(sandbox))}
        with guard(sandbox, logs / "guard.log", with_state) as guarding:
            eventually(lambda: guarding.state()["interception"] is not None)
            yield running, guarding


@contextmanager
def loaded(sandbox: Sandbox) -> Iterator[Load]:
    create_topic_in(sandbox, TOPIC, *sandbox.broker(1).log_dirs)
    load = Load(sandbox.bootstrap_servers, TOPIC, (FULL, HEALTHY), first_bytes=MIB)
    load.start()
    try:
        yield load
    finally:
        load.stop()
    assert load.failures == []
    for partition in (FULL, HEALTHY):
        load.verify(partition, read_back(sandbox, TOPIC, partition))
        assert end_offset(sandbox, TOPIC, partition) == len(read_back(sandbox, TOPIC, partition))


def fill(sandbox: Sandbox) -> Path:
    return sandbox.fill(sandbox.broker(1).log_dirs[FULL], leave_free=Bytes(10 * MIB))


def rounds(sandbox: Sandbox, logs: Path) -> None:
    """Full and room again, twice; nobody passes through the gateway while there is room."""
    before = rules()
    with beside(sandbox, logs) as (running, guarding), loaded(sandbox) as load:
        for round_number in range(2):
            verify_goes_on(load, FULL, HEALTHY)
            assert (phase(guarding), proxied(running), has_table()) == ("idle", 0, False)
            refused = refused_batches(running, TOPIC)
            foreign = fill(sandbox)
            wait_for_refusal(running, TOPIC, beyond=refused + 5)
            eventually(lambda: phase(guarding) == "armed")
            stopped_at = end_offset(sandbox, TOPIC, FULL)
            verify_goes_on(load, HEALTHY)
            assert end_offset(sandbox, TOPIC, FULL) == stopped_at, f"round {round_number}: the fence was passed"
            assert proxied(running) > 0
            sandbox.unfill(foreign)
            eventually(lambda: phase(guarding) == "idle")
            eventually(lambda: proxied(running) == 0)
    verify_unharmed(sandbox)
    eventually(lambda: rules() == before)


def kills(sandbox: Sandbox, logs: Path) -> None:
    """kill -9 of the guard, of the gateway and of the helper while a disk is full: the table goes at once."""
    before = rules()
    with loaded(sandbox) as load:
        foreign = fill(sandbox)
        with beside(sandbox, logs) as (running, guarding):
            wait_for_refusal(running, TOPIC)
            eventually(lambda: phase(guarding) == "armed")
            (helper,) = _helpers()
            os.kill(helper, signal.SIGKILL)
            eventually(lambda: _helpers() not in ([], [helper]))
            eventually(lambda: phase(guarding) == "armed")
            guarding.process.kill()
            guarding.process.wait()
            eventually(lambda: not has_table())
            sandbox.unfill(foreign)
            verify_goes_on(load, FULL, HEALTHY)
        foreign = fill(sandbox)
        with beside(sandbox, logs) as (running, guarding):
            wait_for_refusal(running, TOPIC)
            eventually(lambda: phase(guarding) == "armed")
            running.kill()
            # Open by default: after a while producers reach the broker directly, and its disk has 10 MiB left.
            eventually(lambda: phase(guarding) == "idle")
            assert not has_table()
            sandbox.unfill(foreign)
            verify_goes_on(load, FULL, HEALTHY)
    verify_unharmed(sandbox)
    eventually(lambda: rules() == before)


def by_hand(sandbox: Sandbox, logs: Path) -> None:
    """A fence by hand arms at once, and its end lets clients go."""
    with beside(sandbox, logs) as (running, guarding), loaded(sandbox) as load:
        verify_goes_on(load, FULL, HEALTHY)
        running.ask("fence", topic=TOPIC, reason="a test", by="tester")
        eventually(lambda: phase(guarding) == "armed")
        wait_for_refusal(running, TOPIC, beyond=5)
        ends = [end_offset(sandbox, TOPIC, partition) for partition in (FULL, HEALTHY)]
        wait_for_refusal(running, TOPIC, beyond=refused_batches(running, TOPIC) + 5)
        assert [end_offset(sandbox, TOPIC, partition) for partition in (FULL, HEALTHY)] == ends
        running.ask("unfence", topic=TOPIC, reason="over", by="tester")
        eventually(lambda: phase(guarding) == "idle")
        verify_goes_on(load, FULL, HEALTHY)


def observed(sandbox: Sandbox, logs: Path) -> None:
    """A trial: clients are turned aside and judged, nothing is refused."""
    with beside(sandbox, logs, OBSERVING) as (running, guarding), loaded(sandbox) as load:
        verify_goes_on(load, FULL, HEALTHY)
        foreign = fill(sandbox)
        eventually(lambda: phase(guarding) == "armed")
        eventually(lambda: proxied(running) > 0)
        eventually(lambda: running.state()["wouldHaveRefused"] != [])
        verify_goes_on(load, FULL, HEALTHY)
        assert refused_batches(running, TOPIC) == 0
        sandbox.unfill(foreign)
        eventually(lambda: phase(guarding) == "idle")
        verify_goes_on(load, FULL, HEALTHY)
    verify_unharmed(sandbox)


def clients(sandbox: Sandbox, logs: Path) -> None:
    """Every client at once, two rounds: what is acknowledged is stored, once and in order where that is promised."""
    log_dirs = sandbox.broker(1).log_dirs
    with beside(sandbox, logs) as (running, guarding), ExitStack() as stack:
        loads = []
        for client in CLIENTS:
            create_topic_in(sandbox, str(client), *log_dirs)
            servers, patience = sandbox.bootstrap_servers, client.patience
            loads.append(
                stack.enter_context(
                    producing(client, servers, str(client), partitions=(FULL, HEALTHY), rate=40, properties=patience)
                )
            )
        for _ in range(2):
            for load in loads:
                load.wait_for_acks(20)
            assert (phase(guarding), proxied(running)) == ("idle", 0)
            before = {load.topic: refused_batches(running, load.topic) for load in loads}
            foreign = fill(sandbox)
            for load in loads:
                wait_for_refusal(running, load.topic, beyond=before[load.topic] + 5)
                load.wait_for_acks(20, partition=HEALTHY)
            sandbox.unfill(foreign)
            eventually(lambda: phase(guarding) == "idle")
            for load in loads:
                load.wait_for_acks(20, partition=FULL)
    for load in loads:
        assert load.failures == [], load.name
        assert load.acked() == set(range(load.sent)), load.name
        stored = verify_read_back(sandbox, load)
        if load.client.is_idempotent:
            assert sum(map(len, stored.values())) == load.sent, load.name
    verify_unharmed(sandbox)


def _helpers() -> list[int]:
    found = []
    for pid in [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]:
        with suppress(OSError):
            is_ours = Path(f"/proc/{pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink()
            if is_ours and "brimline.act.interception.helper" in command_line(pid) and is_alive(pid):
                found.append(pid)
    return found


SCENARIOS: dict[str, Callable[[Sandbox, Path], None]] = {
    "rounds": rounds,
    "kills": kills,
    "by_hand": by_hand,
    "observed": observed,
    "clients": clients,
}


def main(scenario: str, version: str) -> None:
    with tempfile.TemporaryDirectory() as logs:
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            with Sandbox(two_disks(version, fronted=False)) as sandbox:
                SCENARIOS[scenario](sandbox, Path(logs))
        except BaseException:
            for log in sorted(Path(logs).iterdir()):
                print(f"--- {log.name}\n{log.read_text()[-6000:]}", file=sys.stderr)
            raise


if __name__ == "__main__":
    main(*sys.argv[1:])
