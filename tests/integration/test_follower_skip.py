"""A follower that has no room is not sent one partition, and misses nothing once it is sent it again.

Three brokers fetch from each other through their gateways: the listener that they use among themselves is the clients',
and the gateways stand in front of it.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import pytest
from kafka import TopicPartition
from kafka.errors import KafkaError

from brimline.gateway.rules.follower_orders import LONGEST_SECONDS
from brimline.sandbox import Sandbox, SandboxSpec
from tests.integration.cluster import create_topic
from tests.integration.full_disks import NO_LIMIT, SMALL_SEGMENTS, admin_client, end_offset, topic_id
from tests.integration.full_followers import QUICK_RETENTION, REPLICATING, RESTARTED
from tests.integration.gatewayed import RunningGateway, gateway
from tests.integration.replicated import Load, read_back, wait_for_isr
from tests.integration.segment_files import batches, log_end, segment_files
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = [pytest.mark.integration, pytest.mark.long]

LEADER, FOLLOWER, OTHER_FOLLOWER = 1, 2, 3
SKIPPED, HEALTHY = 0, 1
"""Partitions that the same thread of the follower fetches from the same leader."""
ASSIGNMENT = {SKIPPED: [LEADER, FOLLOWER, OTHER_FOLLOWER], HEALTHY: [LEADER, FOLLOWER, OTHER_FOLLOWER]}
MIB = 1 << 20
SECONDS = LONGEST_SECONDS
"""How long the guard's word counts: longer than a busy machine keeps its thread waiting."""
PROPERTIES = {**QUICK_RETENTION, **REPLICATING, **RESTARTED}


@pytest.fixture(scope="module", params=["4.3.1", "3.9.2"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(version=request.param, brokers=3, fronted=True, properties=PROPERTIES)) as running:
        yield running


@pytest.fixture(scope="module")
def gateways(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[int, RunningGateway]]:
    logs = tmp_path_factory.mktemp("gateways")
    with ExitStack() as stack:
        yield {
            broker.broker_id: stack.enter_context(
                gateway(
                    sandbox,
                    logs / f"gateway-{broker.broker_id}.log",
                    {
                        **NO_LIMIT,
                        "brimline.gateway.listeners": f"CLIENT://{broker.address}",
                        "brimline.admin.listener": "ADMIN",
                    },
                    broker=broker.broker_id,
                )
            )
            for broker in sandbox.brokers
        }


class Replica:
    """One partition's folder on one broker."""

    def __init__(self, sandbox: Sandbox, topic: str, broker: int, partition: int) -> None:
        self.folder = sandbox.outside(sandbox.broker(broker).log_dirs[0]) / f"{topic}-{partition}"

    @property
    def size(self) -> int:
        return sum(segment_files(self.folder).values())

    @property
    def segments(self) -> list[int]:
        return sorted(segment_files(self.folder))

    def batches(self) -> dict[int, bytes]:
        return batches(self.folder)


class Guard:
    """What a guard says to the leader's gateway: once what is to be skipped, then every second that it still is."""

    def __init__(self, leader: RunningGateway) -> None:
        self._leader = leader
        self._is_over = threading.Event()
        self._renewing = threading.Thread(target=self._renew, daemon=True)

    def skip(self, sandbox: Sandbox, topic: str) -> None:
        topics = [{"topic": topic, "topicId": str(topic_id(sandbox, topic)), "partitions": [SKIPPED]}]
        said = self._leader.ask("skips", epoch=1, seconds=SECONDS, followers={str(FOLLOWER): topics})
        assert (said["ok"], said["inForce"]) == (True, True)
        self._renewing.start()

    def release(self) -> None:
        self.fall_silent()
        self._leader.ask("skips", epoch=2, seconds=SECONDS, followers={})

    def fall_silent(self) -> None:
        """Its last word counts for a second."""
        self._is_over.set()
        if self._renewing.ident is not None:
            self._renewing.join(PATIENCE_SECONDS)
        self._leader.ask("skips", epoch=1, seconds=1)

    def _renew(self) -> None:
        while not self._is_over.wait(1.0):
            self._leader.ask("skips", epoch=1, seconds=SECONDS)


@pytest.fixture
def guard(gateways: Mapping[int, RunningGateway]) -> Iterator[Guard]:
    guard = Guard(gateways[LEADER])
    yield guard
    guard.release()


@contextmanager
def load_on(sandbox: Sandbox, topic: str) -> Iterator[Load]:
    """A topic with three replicas in sync, some segments in each, and a load that goes on until the end."""
    create_topic(sandbox, topic, config=SMALL_SEGMENTS, assignment=ASSIGNMENT)
    wait_for_isr(sandbox, topic, ASSIGNMENT)
    load = Load(sandbox.bootstrap_servers, topic, ASSIGNMENT, first_bytes=3 * MIB)
    load.start()
    try:
        eventually(lambda: Replica(sandbox, topic, FOLLOWER, SKIPPED).size > 3 * MIB)
        yield load
    finally:
        load.stop()
    assert load.failures == []


def wait_until_skipped(leader: RunningGateway) -> None:
    before = leader.state()["skips"]["partitionsSkipped"]
    eventually(lambda: leader.state()["skips"]["partitionsSkipped"] > before)


def delete_before(sandbox: Sandbox, topic: str, offset: int) -> None:
    """Returns when every replica that is alive has taken notice, the one outside the ISR included."""
    where = TopicPartition(topic, SKIPPED)

    def has_been_noticed() -> bool:
        # The client itself waits for no answer longer than half a minute. Again is fine.
        with suppress(KafkaError), admin_client(sandbox) as client:
            return bool(client.delete_records({where: offset}, timeout_ms=20_000))
        return False

    eventually(has_been_noticed)


def test_a_full_follower_stops_growing_comes_down_and_catches_up(
    sandbox: Sandbox, gateways: Mapping[int, RunningGateway], guard: Guard
) -> None:
    topic, leader = "orders", gateways[LEADER]
    full, healthy, on_leader = (
        Replica(sandbox, topic, *where) for where in ((FOLLOWER, SKIPPED), (FOLLOWER, HEALTHY), (LEADER, SKIPPED))
    )
    with load_on(sandbox, topic) as load:
        guard.skip(sandbox, topic)
        wait_until_skipped(leader)
        stopped_at, healthy_at, leader_at = full.size, healthy.size, on_leader.size

        wait_for_isr(sandbox, topic, {SKIPPED: (LEADER, OTHER_FOLLOWER)})
        eventually(lambda: on_leader.size > leader_at + MIB)
        eventually(lambda: healthy.size > healthy_at + MIB)
        wait_for_isr(sandbox, topic, {HEALTHY: ASSIGNMENT[HEALTHY]})
        assert full.size == stopped_at
        assert leader.state()["skips"]["bytesWithheld"] > 0

        delete_before(sandbox, topic, full.segments[-1])
        eventually(lambda: len(full.segments) == 1)
        assert full.size < stopped_at

        guard.release()
        wait_for_isr(sandbox, topic, ASSIGNMENT)
    verify_same_everywhere(sandbox, topic, load)


def test_a_follower_that_restarts_stays_skipped_until_the_guard_falls_silent(
    sandbox: Sandbox, gateways: Mapping[int, RunningGateway], guard: Guard
) -> None:
    topic, leader = "payments", gateways[LEADER]
    full, healthy, on_leader = (
        Replica(sandbox, topic, *where) for where in ((FOLLOWER, SKIPPED), (FOLLOWER, HEALTHY), (LEADER, SKIPPED))
    )
    with load_on(sandbox, topic) as load:
        guard.skip(sandbox, topic)
        wait_until_skipped(leader)
        stopped_at = full.size

        sandbox.broker(FOLLOWER).restart()
        wait_until_skipped(leader)
        healthy_at = healthy.size
        eventually(lambda: healthy.size > healthy_at + MIB)
        assert full.size == stopped_at

        # Beyond what the follower has; but not all that there is, or it would have everything again, and be in sync.
        eventually(lambda: on_leader.segments[-1] > log_end(full.folder))
        begin = on_leader.segments[-1]
        eventually(lambda: end_offset(sandbox, topic, SKIPPED) > begin)
        delete_before(sandbox, topic, begin)
        eventually(lambda: full.size == 0)
        wait_for_isr(sandbox, topic, {SKIPPED: (LEADER, OTHER_FOLLOWER)})

        guard.fall_silent()
        wait_for_isr(sandbox, topic, ASSIGNMENT)
        eventually(lambda: "skips-expired" in leader.events())
    verify_same_everywhere(sandbox, topic, load)


def verify_same_everywhere(sandbox: Sandbox, topic: str, load: Load) -> None:
    """Every replica holds the same batches at the same offsets, and every acknowledged record is there."""
    for partition in ASSIGNMENT:
        end = end_offset(sandbox, topic, partition)
        replicas = [Replica(sandbox, topic, broker, partition) for broker in ASSIGNMENT[partition]]
        eventually(partial(_all_end_at, replicas, end))
        logs = [replica.batches() for replica in replicas]
        begin = max(min(log) for log in logs)
        first, *others = [{base: batch for base, batch in log.items() if base >= begin} for log in logs]
        assert all(other == first for other in others)
        load.verify(partition, read_back(sandbox, topic, partition))


def _all_end_at(replicas: list[Replica], offset: int) -> bool:
    return all(log_end(each.folder) == offset for each in replicas)
