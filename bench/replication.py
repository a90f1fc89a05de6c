"""Replication through the gateway, beside HAProxy and beside no proxy; and what a skipped partition costs the others.

Three clusters of two brokers, alike but for what stands in front of the leader's listener, which the follower fetches
from. They take turns; the others idle. A follower that is given four partitions of a leader catches up as fast as it
can; clients past any proxy write to four replicated partitions and wait for the follower.

``python -m bench.replication`` prints it, ``--quick`` in fewer rounds.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from kafka import TopicPartition

from bench.gateway_paths import DIRECT, GATEWAY, HAPROXY, Front, Proxy, running_haproxy, whole_compiler
from bench.gateway_rows import HEADER, ThreeWays, medians
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic, eventually
from tests.integration.full_disks import NO_LIMIT, admin_client, delete_topics, topic_id
from tests.integration.gatewayed import RunningGateway, gateway

LEADER, FOLLOWER = 1, 2
MIB = 1 << 20
PARTITIONS = 4
CAUGHT_UP = 1024 * MIB
WRITTEN = 512 * MIB
RECORD = bytes(10 * 1024)
ROUNDS = 5
LAG = 8 * MIB
"""Of the partition that is skipped: all the time there is something that it could be sent."""
SKIP_SECONDS = 600
_POLL_SECONDS = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One of the three, and what stands before its leader."""

    sandbox: Sandbox
    proxy: Proxy | None = None
    gateway: RunningGateway | None = None

    def stored(self, topic: str, broker: int) -> int:
        """Bytes of all its partitions' logs on that broker."""
        folders = (self._log_dir(broker) / f"{topic}-{partition}" for partition in range(PARTITIONS))
        return sum(file.stat().st_size for folder in folders for file in folder.glob("*.log"))

    def follow(self, topic: str, *, is_followed: bool) -> None:
        replicas = [LEADER, FOLLOWER] if is_followed else [LEADER]
        moves = {TopicPartition(topic, partition): replicas for partition in range(PARTITIONS)}
        with admin_client(self.sandbox) as client:
            client.alter_partition_reassignments(moves)

    def is_in_sync(self, topic: str) -> bool:
        with admin_client(self.sandbox) as client:
            (described,) = client.describe_topics([topic])
        return all(len(each["isr_nodes"]) == 2 for each in described["partitions"])

    def has_no_copy(self, topic: str) -> bool:
        return not any(self._log_dir(FOLLOWER).glob(f"{topic}-*"))

    def _log_dir(self, broker: int) -> Path:
        (log_dir,) = self.sandbox.broker(broker).log_dirs
        return self.sandbox.outside(log_dir)


def figures(rounds: int = ROUNDS) -> Iterator[ThreeWays]:
    with _clusters() as clusters:
        for cluster in clusters.values():
            create_topic(cluster.sandbox, "copied", assignment={each: [LEADER] for each in range(PARTITIONS)})
            _write(cluster.sandbox, "copied", CAUGHT_UP)
        yield from _compared("a follower catches up", rounds, clusters, CAUGHT_UP, _catch_up)
        yield from _compared("written with acks=all", rounds, clusters, WRITTEN, _write_anew)
        yield _beside_a_skipped_partition(rounds, clusters[GATEWAY])


def _compared(
    what: str, rounds: int, clusters: Mapping[str, Cluster], size: int, measure: Callable[[Cluster], float]
) -> Iterator[ThreeWays]:
    """Medians of all rounds but the first, which warms the JVMs up."""
    speeds: list[dict[str, float]] = []
    costs: list[dict[str, float]] = []
    names = list(clusters)
    for number in range(rounds + 1):
        first = number % len(names)
        speed, cost = {}, {}
        for name in [*names[first:], *names[:first]]:
            proxy = clusters[name].proxy
            before = proxy.cpu_seconds() if proxy else 0.0
            speed[name] = measure(clusters[name])
            if proxy:
                cost[name] = (proxy.cpu_seconds() - before) / (size / 1e9)
        speeds.append(speed)
        costs.append(cost)
    yield ThreeWays(what=what, unit="MB/s", figures=medians(speeds[1:]), against=DIRECT, goal="at least 0.95")
    yield ThreeWays(what=f"{what}: CPU of the proxy", unit="s/GB", figures=medians(costs[1:]), against=HAPROXY)


def _catch_up(cluster: Cluster) -> float:
    """MB/s from the first bytes that the follower has to the last."""
    cluster.follow("copied", is_followed=True)
    while not (begun_with := cluster.stored("copied", FOLLOWER)):
        time.sleep(_POLL_SECONDS)
    begin = time.perf_counter()
    whole = cluster.stored("copied", LEADER)
    while cluster.stored("copied", FOLLOWER) < whole:
        time.sleep(_POLL_SECONDS)
    seconds = time.perf_counter() - begin
    # While replicas are still being added, they cannot be taken away.
    eventually(lambda: cluster.is_in_sync("copied"))
    cluster.follow("copied", is_followed=False)
    eventually(lambda: cluster.has_no_copy("copied"))
    return (whole - begun_with) / 1e6 / seconds


def _write_anew(cluster: Cluster) -> float:
    create_topic(cluster.sandbox, "written", assignment={each: [LEADER, FOLLOWER] for each in range(PARTITIONS)})
    seconds = _write(cluster.sandbox, "written", WRITTEN)
    delete_topics(cluster.sandbox, "written")
    return WRITTEN / 1e6 / seconds


def _beside_a_skipped_partition(rounds: int, cluster: Cluster) -> ThreeWays:
    """The same four partitions catch up while the follower's thread is refused a fifth, and while it is not."""
    running = cluster.gateway
    assert running is not None
    create_topic(cluster.sandbox, "lagging", assignment={0: [LEADER, FOLLOWER]})
    topics = [{"topic": "lagging", "topicId": str(topic_id(cluster.sandbox, "lagging")), "partitions": [0]}]
    alone: list[float] = []
    beside: list[float] = []
    for number in range(2 * rounds):
        is_skipped = number % 2 == 0
        if is_skipped:
            running.ask("skips", epoch=number + 1, seconds=SKIP_SECONDS, followers={str(FOLLOWER): topics})
            _write(cluster.sandbox, "lagging", LAG, partitions=1, acks="1")
        (beside if is_skipped else alone).append(_catch_up(cluster))
        if is_skipped:
            running.ask("skips", epoch=number + 2, seconds=SKIP_SECONDS, followers={})
            eventually(lambda: cluster.stored("lagging", FOLLOWER) == cluster.stored("lagging", LEADER))
    rates = {DIRECT: statistics.median(alone), GATEWAY: statistics.median(beside)}
    what = "a follower catches up through the gateway: alone (first column), beside a partition that is skipped"
    return ThreeWays(what=what, unit="MB/s", figures=rates, against=DIRECT, goal="at least 0.95")


def _write(sandbox: Sandbox, topic: str, size: int, *, partitions: int = PARTITIONS, acks: str = "all") -> float:
    """Seconds until all of it is acknowledged; straight to the brokers."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": sandbox.admin_servers, "acks": acks}
    producer = Producer({**settings, "linger.ms": 5, "batch.size": MIB, "queue.buffering.max.kbytes": 256 << 10})
    producer.list_topics(topic, timeout=30)
    begin = time.perf_counter()
    for number in range(size // len(RECORD)):
        while True:
            try:
                producer.produce(topic, RECORD, partition=number % partitions, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    if producer.flush(120) or failures:
        raise RuntimeError(f"not everything was written: {failures[:3]}")
    return time.perf_counter() - begin


@contextmanager
def _clusters() -> Iterator[dict[str, Cluster]]:
    with ExitStack() as stack:
        stack.enter_context(whole_compiler())
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        direct = stack.enter_context(Sandbox(_spec(fronted=False)))
        with_haproxy = stack.enter_context(Sandbox(_spec(fronted=True)))
        with_gateway = stack.enter_context(Sandbox(_spec(fronted=True)))
        haproxy = stack.enter_context(running_haproxy(with_haproxy, [_front(with_haproxy)]))
        running = stack.enter_context(
            gateway(
                with_gateway,
                logs / "gateway.log",
                {
                    **NO_LIMIT,
                    "brimline.gateway.listeners": f"CLIENT://{with_gateway.broker(LEADER).address}",
                    "brimline.admin.listener": "ADMIN",
                },
                broker=LEADER,
            )
        )
        yield {
            DIRECT: Cluster(sandbox=direct),
            HAPROXY: Cluster(sandbox=with_haproxy, proxy=haproxy),
            GATEWAY: Cluster(sandbox=with_gateway, proxy=Proxy(name=GATEWAY, pid=running.process.pid), gateway=running),
        }


def _spec(*, fronted: bool) -> SandboxSpec:
    return SandboxSpec(
        brokers=2,
        fronted=fronted,
        volumes=(VolumeSpec(size=Bytes(3 << 30)),),
        heap=Bytes(512 * MIB),
        # Topics are deleted between rounds, and the volumes are memory.
        properties={"inter.broker.listener.name": "CLIENT", "log.segment.delete.delay.ms": "100"},
    )


def _front(sandbox: Sandbox) -> Front:
    node = sandbox.broker(LEADER).node
    return Front(
        listener="CLIENT", port=int(sandbox.broker(LEADER).address.rpartition(":")[2]), upstream=node.client_port
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.replication", description="Replication's benchmark.")
    parser.add_argument("--quick", action="store_true", help="three rounds instead of five")
    options = parser.parse_args()
    print(HEADER)
    for figure in figures(3 if options.quick else ROUNDS):
        print(figure.row(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
