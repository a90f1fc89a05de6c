"""Interception with brokers on machines of their own and clients on another one: each a network namespace.

``unshare --net python -m tests.integration.interception_machines SCENARIO VERSION``: an assertion that fails is its
exit code. Longest gaps and other figures are printed, and not judged.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from brimline.model import Bytes
from brimline.sandbox import SandboxSpec, SecuritySpec, VolumeSpec
from brimline.torture.clients.table import CLIENTS, JAVA_4, LIBRDKAFKA, LIBRDKAFKA_IDEMPOTENT
from tests.integration.cluster import create_topic
from tests.integration.full_disks import (
    BY_PERCENT,
    KEEPS_ALL,
    MIB,
    NEVER_LATE,
    SMALL_SEGMENTS,
    VOLUME,
    admin_client,
    create_topic_in,
    end_offset,
    refused_batches,
    wait_for_refusal,
    watched_level,
)
from tests.integration.full_followers import (
    ASSIGNMENT,
    BROKERS,
    FOLLOWER,
    LEADER,
    OTHER_FOLLOWER,
    SHRINKING,
    Guarded,
    acknowledged,
    create_spread_topic,
    fill_follower,
    guarded,
    load_on,
    signs_of_death,
    size,
    three_brokers,
    verify_same_everywhere,
)
from tests.integration.gateway_clients.groups import consuming
from tests.integration.gateway_clients.load import Load, producing
from tests.integration.gateway_clients.verification import verify_read_back, verify_transactions
from tests.integration.interception_inside import KEYS, phase, proxied
from tests.integration.networked import NetworkedSandbox, address, rules
from tests.integration.replicated import in_sync, wait_for_isr
from tests.waiting import eventually

FULL, HEALTHY, ELSEWHERE = 0, 1, 2
"""Partitions: on the broker's disk that is filled, on its other disk, and on another broker."""
ROUNDS = int(os.environ.get("ROUNDS", "10"))
"""``ROUNDS=3`` in the environment: fewer, for a quick look."""
TWO_DISKS = (VolumeSpec(size=VOLUME), VolumeSpec(size=VOLUME))


def one_broker(version: str, **more: object) -> SandboxSpec:
    spec = SandboxSpec(version=version, volumes=TWO_DISKS, properties=NEVER_LATE)
    return replace(spec, **more)  # type: ignore[arg-type]


def beside(sandbox: NetworkedSandbox, logs: Path, stack: ExitStack, broker: int, **added: str) -> Guarded:
    """A broker's gateway and guard, on its machine."""
    keys = {**KEYS, "brimline.metrics.host": address(sandbox.machine(broker)), **added}
    running = stack.enter_context(guarded(sandbox.at(broker), logs, broker, keys))
    eventually(lambda: running.guard.state()["interception"] is not None)
    return running


def longest_gap(load: Load, partition: int, since: float = 0.0) -> float:
    """In seconds; from ``since`` on, if that is given."""
    times = sorted(each.at for each in load.acknowledged if each.partition == partition and each.at >= since)
    times = [since, *times] if since else times
    return max((later - sooner for sooner, later in pairwise(times)), default=0.0)


def fill(sandbox: NetworkedSandbox, broker: int = 1) -> Path:
    return sandbox.fill(sandbox.broker(broker).log_dirs[FULL], leave_free=Bytes(10 * MIB))


@contextmanager
def as_before(sandbox: NetworkedSandbox) -> Iterator[None]:
    """Rules, routes and switches of every machine."""
    machines = {sandbox.machine(broker) for broker in range(1, sandbox.spec.brokers + 1)}
    before = [rules(sandbox.network, each) for each in machines]
    yield
    assert [rules(sandbox.network, each) for each in machines] == before


def everyone(version: str, logs: Path) -> None:
    """Three brokers and every client: fill, armed, refused, room, drained, again and again."""
    spec = replace(one_broker(version), brokers=3, heap=Bytes(160 * MIB))
    with NetworkedSandbox(spec) as sandbox, as_before(sandbox), ExitStack() as stack:
        running = {broker: beside(sandbox, logs, stack, broker) for broker in BROKERS}
        own, servers = running[1], sandbox.bootstrap_servers

        def topic(name: str) -> str:
            first, second = sandbox.broker(1).log_dirs
            with admin_client(sandbox) as client:
                client.alter_replica_log_dirs({(name, FULL, 1): str(first), (name, HEALTHY, 1): str(second)})
            create_topic(sandbox, name, config=KEEPS_ALL, assignment={FULL: [1], HEALTHY: [1], ELSEWHERE: [3]})
            return name

        everywhere = (FULL, HEALTHY, ELSEWHERE)
        with ExitStack() as clients:
            loads = [
                clients.enter_context(
                    producing(each, servers, topic(str(each)), partitions=everywhere, rate=30, properties=each.patience)
                )
                for each in CLIENTS
            ]
            atomic = clients.enter_context(
                producing(
                    JAVA_4,
                    servers,
                    topic("atomic"),
                    partitions=everywhere,
                    rate=30,
                    name="atomic",
                    properties=JAVA_4.patience,
                    transactional_id="atomic",
                )
            )
            silent = clients.enter_context(
                producing(
                    LIBRDKAFKA, servers, topic("silent"), partitions=everywhere, rate=30, properties={"acks": "0"}
                )
            )
            read = str(CLIENTS[0])
            protocols = ("classic", "consumer") if spec.release >= (4, 0) else ("classic",)
            groups = [
                clients.enter_context(
                    consuming(version, servers, read, each, members=1, properties={"group.protocol": each})
                )
                for each in protocols
            ]
            for number in range(ROUNDS):
                for load in (*loads, atomic):
                    load.wait_for_acks(20)
                assert (phase(own.guard), proxied(own.gateway)) == ("idle", 0)
                before = {each.topic: refused_batches(own.gateway, each.topic) for each in (*loads, atomic)}
                foreign = fill(sandbox)
                for load in loads:
                    wait_for_refusal(own.gateway, load.topic, beyond=before[load.topic] + 2)
                    load.wait_for_acks(20, partition=HEALTHY)
                    load.wait_for_acks(20, partition=ELSEWHERE)
                wait_for_refusal(own.gateway, "atomic", beyond=before["atomic"])
                eventually(lambda: phase(own.guard) == "armed")
                names = [*(each.topic for each in loads), "atomic", "silent"]
                ends = {each: end_offset(sandbox, each, FULL) for each in names}
                for load in loads:
                    load.wait_for_acks(10, partition=HEALTHY)
                assert {each: end_offset(sandbox, each, FULL) for each in names} == ends, "the fence was passed"
                assert [phase(running[each].guard) for each in (2, 3)] == ["idle", "idle"]
                sandbox.unfill(foreign)
                eventually(lambda: phase(own.guard) == "idle")
                for load in (*loads, atomic):
                    load.wait_for_acks(10, partition=FULL)
                print(f"round {number + 1} of {ROUNDS}", flush=True)
            gone_on = end_offset(sandbox, "silent", FULL)
            eventually(lambda: end_offset(sandbox, "silent", FULL) > gone_on)
            loads[0].stop()
            for group in groups:
                group.wait_for_records(loads[0].sent)
        for load in loads:
            assert load.failures == [], load.name
            assert load.acked() == set(range(load.sent)), load.name
            stored = verify_read_back(sandbox, load)
            count = sum(map(len, stored.values()))
            assert count == load.sent or not load.client.is_idempotent, load.name
            gaps = ", ".join(f"{longest_gap(load, each):.2f}" for each in (HEALTHY, ELSEWHERE))
            print(f"{load.name}: {load.sent} sent, {count - load.sent} doubled, longest gaps {gaps} s", flush=True)
        verify_transactions(sandbox, atomic)
        outcomes = [each.outcome for each in atomic.transactions]
        print(f"transactions: { ({each: outcomes.count(each) for each in set(outcomes)}) }", flush=True)
        print(f"acks=0: {silent.sent} sent, {sum(end_offset(sandbox, 'silent', each) for each in everywhere)} stored")
        for group, name in zip(groups, protocols, strict=True):
            seen = {(each.partition, each.offset) for each in group.consumed}
            print(f"group {name}: {len(group.consumed)} read, {len(seen)} different")
            assert len(seen) == loads[0].sent
        assert signs_of_death(sandbox) == []
        assert all(broker.is_running for broker in sandbox.brokers)
        stack.close()


def tls(version: str, logs: Path) -> None:
    """A listener with TLS, by the broker's own key store; the broker is bound to one address."""
    spec = one_broker(version, security=SecuritySpec(protocol="SSL"))
    with NetworkedSandbox(spec, everywhere=False) as sandbox, as_before(sandbox), ExitStack() as stack:
        own = beside(sandbox, logs, stack, 1)
        plain = {"security.protocol": "ssl", "ssl.ca.location": str(sandbox.ca_pem)}
        native = {**plain, "ssl.endpoint.identification.algorithm": "none", **LIBRDKAFKA_IDEMPOTENT.patience}
        java = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(sandbox.ca_pem),
            "ssl.endpoint.identification.algorithm": "",
            **JAVA_4.patience,
        }
        with ExitStack() as clients:
            loads = []
            for client, properties in ((LIBRDKAFKA_IDEMPOTENT, native), (JAVA_4, java)):
                create_topic_in(sandbox, str(client), *sandbox.broker(1).log_dirs)
                running = producing(
                    client, sandbox.bootstrap_servers, str(client), partitions=(FULL, HEALTHY), properties=properties
                )
                loads.append(clients.enter_context(running))
            for _ in range(2):
                _round(sandbox, own, loads)
        _verify(sandbox, loads)
        stack.close()


def _round(sandbox: NetworkedSandbox, own: Guarded, loads: list[Load]) -> None:
    for load in loads:
        load.wait_for_acks(20)
    assert (phase(own.guard), proxied(own.gateway)) == ("idle", 0)
    before = {each.topic: refused_batches(own.gateway, each.topic) for each in loads}
    foreign = fill(sandbox)
    for load in loads:
        wait_for_refusal(own.gateway, load.topic, beyond=before[load.topic] + 2)
        load.wait_for_acks(20, partition=HEALTHY)
    sandbox.unfill(foreign)
    eventually(lambda: phase(own.guard) == "idle")
    eventually(lambda: proxied(own.gateway) == 0)
    for load in loads:
        load.wait_for_acks(20, partition=FULL)


def _verify(sandbox: NetworkedSandbox, loads: list[Load]) -> None:
    for load in loads:
        assert load.failures == [], load.name
        stored = verify_read_back(sandbox, load)
        assert sum(map(len, stored.values())) == load.sent, load.name
        print(f"{load.name}: {load.sent} sent, longest gap {longest_gap(load, HEALTHY):.2f} s", flush=True)
    assert signs_of_death(sandbox) == []


def failures(version: str, logs: Path) -> None:
    """Every part hangs or is killed under load, near a limit and beyond it; after each the machine is as before."""
    with NetworkedSandbox(one_broker(version)) as sandbox, ExitStack() as clients:
        loads = []
        for client in (JAVA_4, LIBRDKAFKA_IDEMPOTENT):
            create_topic_in(sandbox, str(client), *sandbox.broker(1).log_dirs)
            servers, patience = sandbox.bootstrap_servers, client.patience
            running = producing(client, servers, str(client), partitions=(FULL, HEALTHY), rate=100, properties=patience)
            loads.append(clients.enter_context(running))
        near = {**BY_PERCENT, "disk.max.used.percent": "95", "brimline.gateway.interception.arm.percent": "12"}
        for name, keys, harm in FAILURES:
            for need, limits in (("near", near), ("full", BY_PERCENT)):
                if need == "near" and "closed" in name:
                    continue
                with as_before(sandbox), ExitStack() as stack:
                    own = beside(sandbox, logs, stack, 1, **{**keys, **limits})
                    foreign = fill(sandbox)
                    eventually(lambda: phase(own.guard) == "armed")  # noqa: B023 (called at once)
                    for load in loads:
                        load.wait_for_acks(20, partition=HEALTHY)
                    harmed_at = time.monotonic()
                    mended = harm(own)
                    if "closed" not in name:
                        for load in loads:
                            load.wait_for_acks(20, partition=HEALTHY)
                    sandbox.unfill(foreign)
                    mended()
                    for load in loads:
                        load.wait_for_acks(20, partition=HEALTHY)
                        load.wait_for_acks(20, partition=FULL)
                    gaps = {each.name: round(longest_gap(each, HEALTHY, harmed_at), 2) for each in loads}
                    print(f"{name}, {need}: longest gaps {gaps}", flush=True)
    _verify(sandbox, loads)


def _helper(own: Guarded) -> int:
    children = Path(f"/proc/{own.guard.process.pid}/task/{own.guard.process.pid}/children").read_text().split()
    (found,) = (each for each in children if b"interception.helper" in Path(f"/proc/{each}/cmdline").read_bytes())
    return int(found)


def _nothing() -> None:
    return


def _killed(which: Callable[[Guarded], int]) -> Callable[[Guarded], Callable[[], None]]:
    def harm(own: Guarded) -> Callable[[], None]:
        os.kill(which(own), signal.SIGKILL)
        return _nothing

    return harm


def _hangs(which: Callable[[Guarded], int]) -> Callable[[Guarded], Callable[[], None]]:
    def harm(own: Guarded) -> Callable[[], None]:
        pid = which(own)
        os.kill(pid, signal.SIGSTOP)
        return lambda: os.kill(pid, signal.SIGCONT)

    return harm


def _of_gateway(own: Guarded) -> int:
    return own.gateway.process.pid


def _of_guard(own: Guarded) -> int:
    return own.guard.process.pid


CLOSED = {"brimline.gateway.interception.on.failure": "closed"}
FAILURES: tuple[tuple[str, dict[str, str], Callable[[Guarded], Callable[[], None]]], ...] = (
    ("gateway killed", {}, _killed(_of_gateway)),
    ("gateway hangs", {}, _hangs(_of_gateway)),
    ("guard killed", {}, _killed(_of_guard)),
    ("guard hangs", {}, _hangs(_of_guard)),
    ("helper killed", {}, _killed(_helper)),
    ("helper hangs", {}, _hangs(_helper)),
    ("gateway hangs, closed", CLOSED, _hangs(_of_gateway)),
)


def full_follower(version: str, logs: Path) -> None:
    """Three replicas, one disk full, nothing fronted: the follower's own fetches leave out what it has no room for."""
    spec = replace(three_brokers(version, SHRINKING), fronted=False)
    config = {**SMALL_SEGMENTS, "min.insync.replicas": "2"}
    with NetworkedSandbox(spec) as sandbox, as_before(sandbox), ExitStack() as stack:
        topic = "replicated"
        running = {broker: beside(sandbox, logs, stack, broker) for broker in BROKERS}
        create_spread_topic(sandbox, topic, config)
        log_dir = sandbox.broker(FOLLOWER).log_dirs[0]
        with load_on(sandbox, topic) as load, watched_level(sandbox, log_dir) as level:
            foreign = fill_follower(sandbox)
            own = running[FOLLOWER]
            eventually(lambda: own.gateway.state()["skips"]["partitionsSkipped"] > 0)
            eventually(lambda: in_sync(sandbox, topic, FULL) == {LEADER, OTHER_FOLLOWER})
            assert in_sync(sandbox, topic, HEALTHY) == set(BROKERS), "the other disk's replica is fetched on"
            stopped_at = size(sandbox, topic, FOLLOWER, FULL)
            stored = {partition: acknowledged(load, partition) for partition in (FULL, HEALTHY)}
            eventually(lambda: all(acknowledged(load, each) > stored[each] + 500 for each in stored))
            assert size(sandbox, topic, FOLLOWER, FULL) == stopped_at, "the full disk grew"
            assert refused_batches(running[LEADER].gateway, topic) == 0
            assert running[LEADER].gateway.state()["skips"]["partitionsSkipped"] == 0, "nothing is fronted"
            print("fetches", own.gateway.state()["skips"], f"highest {level.highest:.1f} %", flush=True)
            sandbox.unfill(foreign)
            wait_for_isr(sandbox, topic, ASSIGNMENT)
            eventually(lambda: phase(own.guard) == "idle")
            eventually(lambda: proxied(own.gateway) == 0)
        assert level.highest < 100
        verify_same_everywhere(sandbox, topic, load)
        assert signs_of_death(sandbox) == []
        stack.close()


def addresses(version: str, logs: Path) -> None:
    """ACLs by host, connections per address and quotas by address, while clients are turned aside.

    The second machine has no broker: it is another client.
    """
    users = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users={"app": "secret"}, acls=True)
    most = {**NEVER_LATE, "max.connections.per.ip": "5"}
    with (
        NetworkedSandbox(one_broker(version, security=users, properties=most), more=1) as sandbox,
        ExitStack() as stack,
    ):
        own = beside(sandbox, logs, stack, 1)
        create_topic(sandbox, "orders")
        rule = ACL(
            "User:app",
            address(2),
            ACLOperation.ALL,
            ACLPermissionType.ALLOW,
            ResourcePattern(ResourceType.TOPIC, "orders"),
        )
        with admin_client(sandbox) as client:
            client.create_acls([rule])

        def written(machine: int | None) -> str:
            command = [sys.executable, "-c", _WRITER, sandbox.bootstrap_servers]
            command = command if machine is None else sandbox.network.at(machine, command)
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

        def kept() -> int:
            host, port = sandbox.broker(1).address.split(":")
            command = sandbox.network.at(2, [sys.executable, "-c", _MANY, host, port])
            return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

        directly = [written(2), written(None), kept()]
        assert directly == ["0", "29", 5]
        own.gateway.ask("fence", topic="another", reason="a test", by="tester")
        eventually(lambda: phase(own.guard) == "armed")
        assert [written(2), written(None), kept()] == directly
        assert int(own.gateway.state()["connections"]["accepted"]) > 5, "they came through the gateway"
        stack.close()


_WRITER = """
import sys
from tests.integration.raw_kafka import logged_in
from tests.integration.raw_produce import RawProducer
with logged_in(sys.argv[1], "app", "secret") as connection:
    print(RawProducer(connection).produce([("orders", 0)])["orders", 0].code)
"""
_MANY = """
import socket, sys, time
kept = [socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) for _ in range(9)]
time.sleep(3)
for each in kept:
    each.setblocking(False)
def is_open(each):
    try:
        return each.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
print(sum(map(is_open, kept)))
"""


def neighbours(version: str, logs: Path) -> None:
    """Two brokers on one machine: each has its own rules, and the end of one leaves the other's alone."""
    spec = replace(one_broker(version), brokers=2)
    with (
        NetworkedSandbox(spec, together=True) as sandbox,
        as_before(sandbox),
        ExitStack() as stack,
        ExitStack() as later,
    ):
        first, second = beside(sandbox, logs, stack, 1), beside(sandbox, logs, later, 2)
        loads = []
        with ExitStack() as clients:
            for broker in (1, 2):
                name, log_dirs = f"of-{broker}", sandbox.broker(broker).log_dirs
                with admin_client(sandbox) as client:
                    client.alter_replica_log_dirs({(name, n, broker): str(path) for n, path in enumerate(log_dirs)})
                create_topic(sandbox, name, config=KEEPS_ALL, assignment={FULL: [broker], HEALTHY: [broker]})
                running = producing(
                    JAVA_4,
                    sandbox.bootstrap_servers,
                    name,
                    partitions=(FULL, HEALTHY),
                    name=name,
                    properties=JAVA_4.patience,
                )
                loads.append(clients.enter_context(running))
            for load in loads:
                load.wait_for_acks(20)
            foreign = fill(sandbox, 1)
            wait_for_refusal(first.gateway, "of-1", beyond=3)
            assert (phase(second.guard), proxied(second.gateway)) == ("idle", 0)
            other = fill(sandbox, 2)
            wait_for_refusal(second.gateway, "of-2", beyond=3)
            sandbox.unfill(foreign)
            eventually(lambda: phase(first.guard) == "idle")
            refused = refused_batches(second.gateway, "of-2")
            wait_for_refusal(second.gateway, "of-2", beyond=refused + 3)
            loads[1].wait_for_acks(20, partition=HEALTHY)
            stack.close()
            wait_for_refusal(second.gateway, "of-2", beyond=refused_batches(second.gateway, "of-2") + 3)
            sandbox.unfill(other)
            eventually(lambda: phase(second.guard) == "idle")
            for load in loads:
                load.wait_for_acks(20, partition=FULL)
        _verify(sandbox, loads)
        later.close()


SCENARIOS: dict[str, Callable[[str, Path], None]] = {
    "everyone": everyone,
    "tls": tls,
    "failures": failures,
    "full_follower": full_follower,
    "addresses": addresses,
    "neighbours": neighbours,
}


def main(scenario: str, version: str) -> None:
    with tempfile.TemporaryDirectory() as logs:
        try:
            SCENARIOS[scenario](version, Path(logs))
        except BaseException:
            for log in sorted(Path(logs).iterdir()):
                print(f"--- {log.name}\n{log.read_text()[-4000:]}", file=sys.stderr)
            raise


if __name__ == "__main__":
    main(*sys.argv[1:])
