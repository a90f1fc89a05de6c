"""Interception with brokers on machines of their own and clients on another one: each a network namespace.

``unshare --net python -m tests.integration.interception_machines SCENARIO VERSION``: an assertion that fails is its
exit code. Longest gaps and other figures are printed, and not judged.
"""

import asyncio
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.protocol.admin import AlterClientQuotasRequest
from kafka.protocol.metadata import ApiVersionsRequest

from brimline import ClientConfig
from brimline.decide.interception import InterceptionSettings
from brimline.model import BrokerId, Bytes
from brimline.observe.client.connection import Connection, Deadline
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
    REPLICATING,
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
from tests.integration.networked import CLIENTS as CLIENTS_ADDRESS
from tests.integration.networked import NetworkedSandbox, address, rules
from tests.integration.raw_kafka import request
from tests.integration.replicated import in_sync, wait_for_isr
from tests.processes import children, command_line
from tests.waiting import PATIENCE_SECONDS, eventually

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
    """Rules, routes and switches of every machine. A helper removes its routes after the last connection has ended."""
    machines = {sandbox.machine(broker) for broker in range(1, sandbox.spec.brokers + 1)}
    before = [rules(sandbox.network, each) for each in machines]
    yield
    eventually(lambda: [rules(sandbox.network, each) for each in machines] == before)


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
        counted = {each: outcomes.count(each) for each in set(outcomes)}
        print(f"transactions: {counted}, longest gap {longest_gap(atomic, ELSEWHERE):.2f} s", flush=True)
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
    near = {**BY_PERCENT, "disk.max.used.percent": "95", "brimline.gateway.interception.arm.percent": "12"}
    with NetworkedSandbox(one_broker(version)) as sandbox, ExitStack() as clients:
        loads = []
        for client in (JAVA_4, LIBRDKAFKA_IDEMPOTENT):
            create_topic_in(sandbox, str(client), *sandbox.broker(1).log_dirs)
            servers, patience = sandbox.bootstrap_servers, client.patience
            running = producing(client, servers, str(client), partitions=(FULL, HEALTHY), rate=100, properties=patience)
            loads.append(clients.enter_context(running))
        for name, keys, harm in FAILURES:
            for need, limits in (("full", BY_PERCENT), *([] if keys else [("near", near)])):
                with as_before(sandbox), ExitStack() as stack:
                    own = beside(sandbox, logs, stack, 1, **{**keys, **limits})
                    harmed_at = _harmed(sandbox, own, loads, harm, is_closed=bool(keys))
                    stack.close()
                    if harm is BOTH_KILLED:  # what they leave does nothing, and the next start removes it
                        beside(sandbox, logs, stack, 1)
                gaps = {each.name: round(longest_gap(each, HEALTHY, harmed_at), 2) for each in loads}
                print(f"{name}, {need}: longest gaps {gaps}", flush=True)
        for load in loads:
            load.stop()
        _verify(sandbox, loads)


def _harmed(sandbox: NetworkedSandbox, own: Guarded, loads: list[Load], harm: "Harm", *, is_closed: bool) -> float:
    """Returns when it was; the disk has room again."""
    foreign = fill(sandbox)
    eventually(lambda: phase(own.guard) == "armed")
    for load in loads:
        load.wait_for_acks(20, partition=HEALTHY)
    harmed_at = time.monotonic()
    mended = harm(own)
    if is_closed:
        eventually(lambda: "new connections are refused" in own.guard.state()["interception"]["does"])
        ends = [end_offset(sandbox, load.topic, FULL) for load in loads]
        time.sleep(InterceptionSettings().grace + 2)
        assert (phase(own.guard), [end_offset(sandbox, load.topic, FULL) for load in loads]) == ("armed", ends)
    else:
        for load in loads:
            load.wait_for_acks(20, partition=HEALTHY)
    sandbox.unfill(foreign)
    mended()
    for load in loads:
        load.wait_for_acks(20, partition=HEALTHY)
        load.wait_for_acks(20, partition=FULL)
    return harmed_at


def _gateway(own: Guarded) -> int:
    return own.gateway.process.pid


def _guard(own: Guarded) -> int:
    return own.guard.process.pid


def _helper(own: Guarded) -> int:
    """A child of one of the guard's threads, which starts another when one has ended."""
    found: list[int] = []

    def is_found() -> bool:
        found[:] = [pid for pid in children(_guard(own)) if "interception.helper" in command_line(pid)]
        return bool(found)

    eventually(is_found)
    return found[0]


Harm: TypeAlias = Callable[[Guarded], Callable[[], None]]
"""Returns what mends it."""


def _killed(*which: Callable[[Guarded], int]) -> Harm:
    def harm(own: Guarded) -> Callable[[], None]:
        for pid in [each(own) for each in which]:
            os.kill(pid, signal.SIGKILL)
        return lambda: None

    return harm


def _on_machine(own: Guarded, *command: str) -> str:
    inside = ["nsenter", f"--net=/proc/{_gateway(own)}/ns/net", *command]
    return subprocess.run(inside, capture_output=True, text=True, check=True).stdout


def _hangs(which: Callable[[Guarded], int]) -> Harm:
    """A guard so long that its rules run out, a helper so long that the guard gives it up."""

    def harm(own: Guarded) -> Callable[[], None]:
        pid = which(own)
        os.kill(pid, signal.SIGSTOP)
        if which is _guard:
            eventually(lambda: "elements" not in _on_machine(own, "nft", "list", "ruleset"))
        elif which is _helper:
            eventually(lambda: _helper(own) != pid)
            return lambda: None
        return lambda: os.kill(pid, signal.SIGCONT)

    return harm


BOTH_KILLED = _killed(_helper, _guard)
CLOSED = {"brimline.gateway.interception.on.failure": "closed"}
FAILURES: tuple[tuple[str, dict[str, str], Harm], ...] = (
    ("gateway killed", {}, _killed(_gateway)),
    ("gateway hangs", {}, _hangs(_gateway)),
    ("guard killed", {}, _killed(_guard)),
    ("guard hangs", {}, _hangs(_guard)),
    ("helper killed", {}, _killed(_helper)),
    ("helper hangs", {}, _hangs(_helper)),
    ("guard and gateway killed", {}, _killed(_guard, _gateway)),
    ("helper and guard killed", {}, BOTH_KILLED),
    ("gateway killed, closed", CLOSED, _killed(_gateway)),
    ("gateway hangs, closed", CLOSED, _hangs(_gateway)),
)


def shared_listener(version: str, logs: Path) -> None:
    """The same, where brokers and clients have one listener."""
    full_follower(version, logs, is_shared=True)


def full_follower(version: str, logs: Path, *, is_shared: bool = False) -> None:
    """Three replicas, one disk full, nothing fronted: the follower's own fetches leave out what it has no room for."""
    spec = replace(three_brokers(version, REPLICATING if is_shared else SHRINKING), fronted=False)
    config = {**SMALL_SEGMENTS, "min.insync.replicas": "2"}
    with NetworkedSandbox(spec) as sandbox, as_before(sandbox), ExitStack() as stack:
        topic = "replicated"
        keys = {broker: one_listener(sandbox, broker) if is_shared else {} for broker in BROKERS}
        running = {broker: beside(sandbox, logs, stack, broker, **keys[broker]) for broker in BROKERS}
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
            ruleset = sandbox.network.said(FOLLOWER, "nft", "list", "ruleset")
            assert (f"saddr {address(LEADER)} accept" in ruleset) == is_shared, "leaders are clients of that listener"
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


def one_listener(sandbox: NetworkedSandbox, broker: int) -> dict[str, str]:
    """The sandbox asks brokers at another one, of which guard and gateway do not know."""
    of_broker = sandbox.broker(broker).properties
    return {each: of_broker[each].split(",")[0] for each in ("listeners", "advertised.listeners")}


def addresses(version: str, logs: Path) -> None:
    """ACLs by host, connections per address and quotas of an address, while clients are turned aside.

    The second and the third machine have no broker: they are other clients.
    """
    users = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users={"app": "secret"}, acls=True)
    many = f"{address(3)}:100,{CLIENTS_ADDRESS}:100"
    limits = {**NEVER_LATE, "max.connections.per.ip": "5", "max.connections.per.ip.overrides": many}
    spec = one_broker(version, security=users, properties=limits)
    with NetworkedSandbox(spec, more=2) as sandbox, as_before(sandbox), ExitStack() as stack:
        own = beside(sandbox, logs, stack, 1)
        create_topic(sandbox, "orders")
        orders = ResourcePattern(ResourceType.TOPIC, "orders")
        with admin_client(sandbox) as client:
            client.create_acls([ACL("User:app", address(2), ACLOperation.ALL, ACLPermissionType.ALLOW, orders)])
        set_quota(sandbox, address(3))

        def run(machine: int | None, program: str, *words: str) -> str:
            command = [sys.executable, "-c", program, sandbox.bootstrap_servers, *words]
            command = command if machine is None else sandbox.network.at(machine, command)
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

        def decided() -> list[object]:
            eventually(lambda: run(3, _MANY, "1") == "1")  # its quota has recovered
            answered = [int(run(machine, _MANY, str(count))) for machine, count in ((3, 30), (2, 9), (None, 30))]
            by_rate, *by_number = answered
            print("answered", answered, flush=True)
            return [run(2, _WRITER), run(None, _WRITER), by_number, 0 < by_rate < 30]

        directly = decided()
        assert directly == ["0", "29", [5, 30], True]
        own.gateway.ask("fence", topic="another", reason="a test", by="tester")
        eventually(lambda: phase(own.guard) == "armed")
        assert decided() == directly
        assert int(own.gateway.state()["connections"]["accepted"]) > 60, "they came through the gateway"
        stack.close()


def set_quota(sandbox: NetworkedSandbox, host: str) -> None:
    """One new connection a second from this address."""
    data = AlterClientQuotasRequest.EntryData
    entry = data(
        entity=[data.EntityData(entity_type="ip", entity_name=host)],
        ops=[data.OpData(key="connection_creation_rate", value=1.0, remove=False)],
    )
    with closing(Connection(ClientConfig.from_properties(sandbox.admin_servers))) as connection:
        deadline = Deadline(timedelta(seconds=PATIENCE_SECONDS))
        connection.ask(BrokerId(1), AlterClientQuotasRequest(entries=[entry], validate_only=False), deadline)


_WRITER = """
import sys
from tests.integration.raw_kafka import logged_in
from tests.integration.raw_produce import RawProducer
with logged_in(sys.argv[1], "app", "secret") as connection:
    print(RawProducer(connection).produce([("orders", 0)])["orders", 0].code)
"""
# How many of so many connections at once are answered; the broker keeps those that come too fast open for a while.
_MANY = """
import select, socket, sys, time
from kafka.protocol.metadata import ApiVersionsRequest
from tests.integration.raw_kafka import request
host, port = sys.argv[1].split(":")
waiting = {socket.create_connection((host, int(port)), 30) for _ in range(int(sys.argv[2]))}
for each in waiting:
    try:
        each.sendall(request(ApiVersionsRequest(), 2))
    except OSError:
        pass
answered, give_up_at = [], time.monotonic() + 10
while waiting and time.monotonic() < give_up_at:
    for each in select.select(waiting, [], [], 1)[0]:
        waiting.remove(each)
        try:
            answered += [each] if each.recv(1) else []
        except OSError:
            pass
print(len(answered))
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


MANY = 5_000


class _Idle(asyncio.Protocol):
    """One connection that asks once, and comes again when it is ended."""

    def __init__(self, clients: "IdleClients") -> None:
        self._clients = clients

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._clients.question)

    def data_received(self, data: bytes) -> None:
        self._clients.answered.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._clients.answered.discard(self)
        self._clients.come_again()


class IdleClients:
    """``MANY`` of them, in a thread of their own; those that are ended come again as clients of Kafka do."""

    def __init__(self, servers: str) -> None:
        self.answered: set[_Idle] = set()
        self.question = request(ApiVersionsRequest(), 2)
        self.ended = 0
        host, _, port = servers.rpartition(":")
        self._place = host, int(port)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        for number in range(MANY):
            self._loop.call_soon_threadsafe(self._loop.call_later, number / 1000, self._begin)

    def come_again(self) -> None:
        self.ended += 1
        self._loop.call_later(random.uniform(0.05, 0.5), self._begin)

    def _begin(self) -> None:
        self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            await self._loop.create_connection(lambda: _Idle(self), *self._place)
        except OSError:
            self.come_again()


def many(version: str, logs: Path) -> None:
    """Thousands of connections are turned aside and let go: how long it takes, and what gateway and broker need."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    spec = one_broker(version, heap=Bytes(384 * MIB))
    with NetworkedSandbox(spec) as sandbox, as_before(sandbox), ExitStack() as stack, ExitStack() as clients:
        own, servers = beside(sandbox, logs, stack, 1), sandbox.bootstrap_servers
        create_topic_in(sandbox, "orders", *sandbox.broker(1).log_dirs)
        running = producing(JAVA_4, servers, "orders", partitions=(FULL, HEALTHY), properties=JAVA_4.patience)
        load = clients.enter_context(running)
        idle = IdleClients(servers)
        for is_on in (True, False, True, False):
            eventually(lambda: len(idle.answered) == MANY)
            load.wait_for_acks(20)
            spent, memory, ended, begin = _spent(own), _resident(own), idle.ended, time.monotonic()
            own.gateway.ask("fence" if is_on else "unfence", topic="another", reason="a test", by="tester")
            wanted = ("armed", MANY) if is_on else ("idle", 0)
            eventually(lambda: phase(own.guard) == wanted[0])  # noqa: B023 (called at once)
            eventually(lambda: (proxied(own.gateway) >= MANY) == is_on and len(idle.answered) == MANY)  # noqa: B023
            seconds = time.monotonic() - begin
            load.wait_for_acks(20)
            print(
                f"{MANY} connections, {wanted[0]}: {seconds:.1f} s, each ended {(idle.ended - ended) / MANY:.2f} times;"
                f" the gateway takes {(_resident(own) - memory) / MIB:+.0f} MiB, the broker's CPU"
                f" {_spent(own) - spent:.1f} s; a producer's longest gap {longest_gap(load, HEALTHY, begin):.2f} s",
                flush=True,
            )
        load.stop()
        _verify(sandbox, [load])
        stack.close()


def _resident(own: Guarded) -> int:
    return int(Path(f"/proc/{_gateway(own)}/statm").read_text().split()[1]) * resource.getpagesize()


def _spent(own: Guarded) -> float:
    """Seconds of CPU of the broker: the JVM on the gateway's machine."""
    machine = Path(f"/proc/{_gateway(own)}/ns/net").readlink()
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "ns/net").readlink() == machine:
                name, words = (entry / "stat").read_text().split("(")[1].rsplit(")", 1)
                if name == "java":
                    return sum(map(int, words.split()[11:13])) / os.sysconf("SC_CLK_TCK")
    raise AssertionError("the broker has no process")


SCENARIOS: dict[str, Callable[[str, Path], None]] = {
    "everyone": everyone,
    "tls": tls,
    "failures": failures,
    "full_follower": full_follower,
    "shared_listener": shared_listener,
    "addresses": addresses,
    "neighbours": neighbours,
    "many": many,
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
