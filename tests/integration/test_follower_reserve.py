"""One disk of three is full, and replication does not pass a gateway: the leader's producers go on until the reserve.

Three brokers, three replicas each. Only the leader has a guard and a gateway; the full broker is found by what it says.
A volume of 192 MiB whose limit is 80 % has 38 MiB free at its limit: the reserve is 19 MiB, its last half 9.6 MiB.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import TopicPartition as ClientPartition

from brimline import ClientConfig
from brimline.model import BrokerId, Bytes
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.alter_broker_config import alter_own_dynamic_value
from brimline.observe.cluster.replication_throttle import RATE, alter_lists, look_at_throttle
from brimline.sandbox import Sandbox
from tests.integration.full_disks import (
    SMALL_SEGMENTS,
    admin_client,
    clean_up,
    end_offset,
    refused_batches,
    wait_for_refusal,
)
from tests.integration.full_followers import (
    BROKERS,
    FOLLOWER,
    FULL,
    HEALTHY,
    LEADER,
    MIB,
    OTHER_FOLLOWER,
    RESTARTED,
    SHRINKING,
    Guarded,
    acknowledged,
    create_spread_topic,
    doctor,
    fill_follower,
    guarded,
    load_on,
    replica,
    signs_of_death,
    size,
    three_brokers,
    verify_same_everywhere,
)
from tests.integration.gatewayed import state_dir
from tests.integration.replicated import InSync, in_sync, wait_for_isr
from tests.integration.segment_files import log_end
from tests.integration.shared import shared
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

BEYOND_THE_LIMIT = Bytes(30 * MIB)
IN_THE_RESERVE = Bytes(12 * MIB)


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with shared(three_brokers(request.param)) as running:
        yield running


PATIENT = {"disk.usage.check.interval.ms": "60000"}
"""What a broker that is away said last counts for three of these: longer than a busy machine takes to start one."""
VERY_PATIENT = {"disk.usage.check.interval.ms": "600000"}
ONE_BATCH_AT_A_TIME = {"replica.fetch.max.bytes": "1", "replica.fetch.response.max.bytes": "1"}
"""A backlog of thousands of batches then takes a follower longer than a guard needs to see it, on any machine."""


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)])
def slow(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(three_brokers(request.param, {**SHRINKING, **RESTARTED, **ONE_BATCH_AT_A_TIME})) as running:
        yield running


@pytest.fixture(autouse=True)
def clean(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    for name in ("sandbox", "slow"):
        if name in request.fixturenames:
            clean_up(request.getfixturevalue(name))


def full(leader: Guarded) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (leader.guard.state()["followers"] or {"full": []})["full"]
    return found


def held_back(leader: Guarded) -> list[int]:
    return [int(each["heldBackPartitions"]) for each in full(leader)]


def test_produce_goes_on_until_the_last_reserve_is_refused_then_and_recovers(sandbox: Sandbox, tmp_path: Path) -> None:
    topic, strict = "orders", "strict"
    with guarded(sandbox, tmp_path) as leader:
        eventually(lambda: leader.guard.state()["followers"] is not None)
        create_spread_topic(sandbox, topic)
        create_spread_topic(sandbox, strict, {**SMALL_SEGMENTS, "min.insync.replicas": "3"})
        with load_on(sandbox, topic) as load, InSync(sandbox, topic, FULL) as watched:
            first = fill_follower(sandbox, leave_free=BEYOND_THE_LIMIT)
            eventually(lambda: [each["broker"] for each in full(leader)] == [FOLLOWER])
            eventually(lambda: "go on, refused below" in full(leader)[0]["does"])
            stored = acknowledged(load, FULL)
            eventually(lambda: acknowledged(load, FULL) > stored + 200)
            assert (refused_batches(leader.gateway, topic), leader.gateway.state()["followerFences"]) == (0, [])
            assert "reserve, because followers do not fetch through the gateway" in doctor(sandbox)

            # What would fall below min.insync.replicas without this follower is refused first.
            second = fill_follower(sandbox, leave_free=IN_THE_RESERVE)
            eventually(lambda: held_back(leader) == [1])
            (fence,) = leader.gateway.state()["followerFences"]
            assert (fence["follower"], fence["partitions"]) == (FOLLOWER, 1)
            stored = acknowledged(load, FULL)
            eventually(lambda: acknowledged(load, FULL) > stored + 100)
            assert refused_batches(leader.gateway, topic) == 0

            wait_for_refusal(leader.gateway, topic, beyond=20)
            eventually(lambda: held_back(leader) == [2])
            stopped_at, went_on_at = size(sandbox, topic, LEADER, FULL), acknowledged(load, HEALTHY)
            eventually(lambda: acknowledged(load, HEALTHY) > went_on_at + 200)
            assert {size(sandbox, topic, broker, FULL) for broker in BROKERS} == {stopped_at}

            stored = acknowledged(load, FULL)
            sandbox.unfill(first)
            sandbox.unfill(second)
            eventually(lambda: acknowledged(load, FULL) > stored + 200)
            eventually(lambda: leader.gateway.state()["followerFences"] == [])
            eventually(lambda: watched.looks > 5)
        assert watched.seen == {frozenset(BROKERS)}
        verify_same_everywhere(sandbox, topic, load)
    assert signs_of_death(sandbox) == []


def write_single_batches(sandbox: Sandbox, topic: str, partition: int, count: int) -> None:
    """Of 1,000 bytes each, all stored by the leader."""
    producer = Producer({"bootstrap.servers": sandbox.admin_servers, "batch.num.messages": 1, "acks": 1})
    before = end_offset(sandbox, topic, partition)
    for number in range(1, count + 1):
        producer.produce(topic, bytes(1000), partition=partition)
        if number % 500 == 0:  # a busy machine takes its time for each, and has a deadline for some
            assert producer.flush(PATIENCE_SECONDS) == 0
    eventually(lambda: end_offset(sandbox, topic, partition) == before + count)


def throttle(leader: Guarded) -> dict[str, Any]:
    found: dict[str, Any] | None = (leader.guard.state()["followers"] or {"throttle": None})["throttle"]
    return found or {"partitions": 0}


def questions(leader: Guarded) -> float:
    return leader.guard.samples("brimline_peer_questions_total")['kind="volumes"']


def reassign(sandbox: Sandbox, topic: str, replicas: list[int]) -> None:
    with admin_client(sandbox) as client:
        client.alter_partition_reassignments({ClientPartition(topic, FULL): replicas})


def throttles(sandbox: Sandbox, topic: str) -> tuple[str | None, str]:
    """The leader's own rate, and the topic's list."""
    patience = Deadline(timedelta(seconds=PATIENCE_SECONDS))
    connection = Connection(ClientConfig.from_properties(sandbox.admin_servers))
    try:
        seen = look_at_throttle(connection, BrokerId(LEADER), patience)
    finally:
        connection.close()
    return seen.own_rate, seen.lists.get(topic, "")


def verify_hardly_grows(sandbox: Sandbox, leader: Guarded, topic: str) -> None:
    """A throttle is a rate over a window: a batch may pass now and then."""
    begun_at = size(sandbox, topic, FOLLOWER, FULL)
    asked = questions(leader)
    eventually(lambda: questions(leader) > asked + 20)
    assert size(sandbox, topic, FOLLOWER, FULL) < begun_at + MIB
    assert size(sandbox, topic, FOLLOWER, FULL) < size(sandbox, topic, LEADER, FULL)
    assert FOLLOWER not in in_sync(sandbox, topic, FULL)


def assign_to_full_disk(sandbox: Sandbox, topic: str) -> None:
    with admin_client(sandbox) as client:
        client.alter_replica_log_dirs({(topic, FULL, FOLLOWER): str(sandbox.broker(FOLLOWER).log_dirs[0])})
    reassign(sandbox, topic, BROKERS)


def write_backlog(sandbox: Sandbox, topic: str) -> None:
    """The other follower fetches one by one as well. While it lags it must not be slowed, and so nobody is held."""
    write_single_batches(sandbox, topic, FULL, 20_000)
    other = replica(sandbox, topic, OTHER_FOLLOWER, FULL)
    eventually(lambda: log_end(other) == end_offset(sandbox, topic, FULL))
    wait_for_isr(sandbox, topic, {FULL: [LEADER, OTHER_FOLLOWER]})


def topic_without_the_follower(sandbox: Sandbox, topic: str) -> None:
    """With a backlog for whoever is assigned to it."""
    create_spread_topic(sandbox, topic)
    reassign(sandbox, topic, [LEADER, OTHER_FOLLOWER])
    eventually(lambda: not replica(sandbox, topic, FOLLOWER, FULL).is_dir())
    write_backlog(sandbox, topic)


@pytest.mark.long
def test_a_newly_assigned_and_a_lagging_replica_of_a_full_disk_stop_growing(slow: Sandbox, tmp_path: Path) -> None:
    """The guard is killed in between: the next one goes on, and takes the throttle back when there is room."""
    sandbox, topic = slow, "orders"
    topic_without_the_follower(sandbox, topic)
    foreign = fill_follower(sandbox, leave_free=BEYOND_THE_LIMIT)
    (tmp_path / "again").mkdir()
    with guarded(sandbox, tmp_path, added=PATIENT) as leader:
        eventually(lambda: [each["broker"] for each in full(leader)] == [FOLLOWER])
        assign_to_full_disk(sandbox, topic)
        eventually(lambda: throttle(leader)["partitions"] == 1)
        verify_hardly_grows(sandbox, leader, topic)
        leader.guard.process.kill()
        leader.guard.process.wait(PATIENCE_SECONDS)
        assert throttles(sandbox, topic) == ("1", f"{FULL}:{LEADER}")
    with guarded(sandbox, tmp_path / "again", added=PATIENT) as leader:
        eventually(lambda: throttle(leader)["partitions"] == 1)
        verify_hardly_grows(sandbox, leader, topic)
        sandbox.unfill(foreign)
        wait_for_isr(sandbox, topic, {FULL: BROKERS})
        eventually(lambda: leader.guard.state()["followers"]["throttle"] is None)
        assert throttles(sandbox, topic) == (None, "")

        # The same disk is full again, and its broker is away for a while.
        foreign = fill_follower(sandbox, leave_free=BEYOND_THE_LIMIT)
        eventually(lambda: [each["partitions"] for each in full(leader)] == [1])
        sandbox.broker(FOLLOWER).stop()
        write_backlog(sandbox, topic)
        eventually(lambda: throttle(leader)["partitions"] == 1)
        sandbox.broker(FOLLOWER).start()
        verify_hardly_grows(sandbox, leader, topic)
        sandbox.unfill(foreign)
        wait_for_isr(sandbox, topic, {FULL: BROKERS})
        eventually(lambda: throttles(sandbox, topic) == (None, ""))
    assert signs_of_death(sandbox) == []


def set_throttle(sandbox: Sandbox, *, rate: str | None = None, lists: Mapping[str, str | None]) -> None:
    """As an operator does: ``None`` takes away what is there."""
    patience = Deadline(timedelta(seconds=PATIENCE_SECONDS))
    connection = Connection(ClientConfig.from_properties(sandbox.admin_servers))
    try:
        alter_lists(connection, BrokerId(LEADER), lists, patience)
        alter_own_dynamic_value(connection, BrokerId(LEADER), RATE, rate, patience.renewed())
    finally:
        connection.close()


def set_list(sandbox: Sandbox, topic: str, value: str | None) -> None:
    connection = Connection(ClientConfig.from_properties(sandbox.admin_servers))
    try:
        alter_lists(connection, BrokerId(LEADER), {topic: value}, Deadline(timedelta(seconds=PATIENCE_SECONDS)))
    finally:
        connection.close()


def on_record(sandbox: Sandbox) -> bool:
    return sandbox.outside(state_dir(sandbox, LEADER) / f"throttle-{LEADER}.json").exists()


def verify_held(sandbox: Sandbox, leader: Guarded, topic: str) -> None:
    eventually(lambda: throttle(leader).get("foreign") is None and throttle(leader)["partitions"] == 1)
    assert throttles(sandbox, topic) == ("1", f"{FULL}:{LEADER}")
    assert on_record(sandbox)


def verify_withdrawn(sandbox: Sandbox, leader: Guarded, named: str) -> None:
    eventually(lambda: named in (throttle(leader).get("foreign") or ""))
    assert throttle(leader)["partitions"] == 0
    assert not on_record(sandbox)


@pytest.mark.long
def test_a_throttle_is_withdrawn_before_an_operators_and_taken_back_at_the_end(slow: Sandbox, tmp_path: Path) -> None:
    """What the operator has set is never touched; a guard that was killed finds out what is not its own any more."""
    sandbox, topic, other = slow, "payments", "others"
    theirs = ("2000", f"{FULL}:{LEADER},{FULL}:{FOLLOWER},{FULL}:{OTHER_FOLLOWER}")
    create_spread_topic(sandbox, other, brokers=[LEADER, OTHER_FOLLOWER])
    topic_without_the_follower(sandbox, topic)
    fill_follower(sandbox, leave_free=BEYOND_THE_LIMIT)
    with guarded(sandbox, tmp_path) as leader:
        eventually(lambda: [each["broker"] for each in full(leader)] == [FOLLOWER])
        assign_to_full_disk(sandbox, topic)
        verify_held(sandbox, leader, topic)
        assert "leader.replication.throttled.rate=1 on this broker since" in doctor(sandbox)
        leader.guard.process.kill()
        leader.guard.process.wait(PATIENCE_SECONDS)
        # As kafka-reassign-partitions --throttle does.
        set_throttle(sandbox, rate=theirs[0], lists={topic: theirs[1]})
    (tmp_path / "again").mkdir()
    with guarded(sandbox, tmp_path / "again", added=VERY_PATIENT) as leader:
        verify_withdrawn(sandbox, leader, f"leader.replication.throttled.rate={theirs[0]}")
        assert throttles(sandbox, topic) == theirs

        # From here on it cannot catch up while nobody holds it.
        sandbox.broker(FOLLOWER).stop()
        set_throttle(sandbox, lists={topic: None})
        verify_held(sandbox, leader, topic)

        set_throttle(sandbox, rate=theirs[0], lists={topic: "*"})
        verify_withdrawn(sandbox, leader, f"leader.replication.throttled.rate={theirs[0]}")
        assert throttles(sandbox, topic) == (theirs[0], "*")
        set_throttle(sandbox, lists={topic: None})
        verify_held(sandbox, leader, topic)

        for their_list in ("*", f"{HEALTHY}:{LEADER}"):
            set_list(sandbox, other, their_list)
            verify_withdrawn(sandbox, leader, f"a list of topic {other} ({their_list})")
            assert throttles(sandbox, topic) == (None, "")
            assert throttles(sandbox, other) == (None, their_list)
            set_list(sandbox, other, None)
            verify_held(sandbox, leader, topic)

        leader.guard.process.terminate()
        leader.guard.process.wait(PATIENCE_SECONDS)
        assert throttles(sandbox, topic) == (None, "")
        assert not on_record(sandbox)
        assert "replication throttle removed" in leader.guard.said()[-1]["message"]
    sandbox.broker(FOLLOWER).start()
    assert signs_of_death(sandbox) == []
