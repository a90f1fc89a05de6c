"""DeleteRecords on real brokers: what every refusal looks like, and space that really comes back."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from brimline.act.ledger.state import TrimPhase
from brimline.act.trims.cluster import TrimCluster
from brimline.act.trims.rules import PartitionNow, Problem
from brimline.model import BrokerId, Bytes, Failure, KafkaError, Offset, TopicPartition
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.delete_records import delete_records
from brimline.observe.cluster.offsets import OffsetSpec, list_offsets
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry
from brimline.sandbox import Sandbox, SandboxSpec, SecuritySpec, VolumeSpec
from tests.integration.cluster import create_topic, produce
from tests.integration.kafka_clients import kafka_admin, kafka_consumer
from tests.integration.trimming import SMALL_SEGMENTS, begun, carried_out, planned, to_its_end
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
AS_GUARD = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{MODULE} required username="guard" password="secret";',
}
ORDERS = TopicPartition("orders", 0)
GUARDED = TopicPartition("guarded", 0)
VOLUME = VolumeSpec(size=Bytes(64 << 20))
LONG = timedelta(seconds=PATIENCE_SECONDS)


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Two brokers; broker 1 leads everything."""
    security = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users={"guard": "secret"}, acls=True)
    # A broker that is held up stays a member for as long as a test holds it up.
    patient = {"broker.session.timeout.ms": "180000", "replica.lag.time.max.ms": "600000"}
    spec = SandboxSpec(version=request.param, brokers=2, volumes=(VOLUME,), security=security, properties=patient)
    with Sandbox(spec) as running:
        create_topic(running, "orders", assignment={0: [1]}, config=SMALL_SEGMENTS)
        create_topic(running, "guarded", assignment={0: [1]})
        create_topic(running, "compacted", assignment={0: [1]}, config={"cleanup.policy": "compact"})
        produce(running, "orders", 0.1)
        produce(running, "guarded", 0.1)
        create_offsets_topic(running)
        yield running


def create_offsets_topic(sandbox: Sandbox) -> None:
    with kafka_consumer(sandbox.admin_servers, "orders", group_id="readers") as consumer:
        eventually(lambda: (consumer.poll(timeout_ms=200), bool(consumer.assignment()))[1])


@pytest.fixture
def connection(sandbox: Sandbox) -> Iterator[Connection]:
    made = Connection(as_owner(sandbox))
    yield made
    made.close()


def as_owner(sandbox: Sandbox) -> ClientConfig:
    return ClientConfig.from_properties(sandbox.admin_servers)


def as_guard(sandbox: Sandbox) -> ClientConfig:
    entries = [PropertyEntry(key, value, "test") for key, value in AS_GUARD.items()]
    return ClientConfig.from_properties(sandbox.bootstrap_servers, JavaProperties(entries))


def delete(
    connection: Connection,
    before: Mapping[TopicPartition, int],
    leader: int = 1,
    timeout: timedelta = LONG / 2,
) -> Mapping[TopicPartition, Offset | KafkaError | Failure]:
    leaders = dict.fromkeys(before, BrokerId(leader))
    offsets = {partition: Offset(offset) for partition, offset in before.items()}
    return delete_records(connection, leaders, offsets, timeout, Deadline(LONG))


def test_records_go_and_the_low_watermark_tells(connection: Connection) -> None:
    gone = delete(connection, {ORDERS: 20})
    nothing_more = delete(connection, {ORDERS: 10})

    assert gone == {ORDERS: 20}
    assert nothing_more == {ORDERS: 20}


def test_every_refusal_is_of_its_own_partition(connection: Connection) -> None:
    compacted, unknown = TopicPartition("compacted", 0), TopicPartition("nowhere", 0)
    internal, beyond = TopicPartition("__consumer_offsets", 0), TopicPartition("orders", 7)

    answers = delete(connection, {ORDERS: 10_000_000, compacted: 0, unknown: 1, internal: 0, beyond: 1})

    assert answers == {
        ORDERS: KafkaError(1),
        compacted: KafkaError(44),
        unknown: KafkaError(3),
        internal: KafkaError(17),
        beyond: KafkaError(3),
    }


def test_only_the_leader_does_it(connection: Connection) -> None:
    assert delete(connection, {ORDERS: 30}, leader=2) == {ORDERS: KafkaError(6)}


def test_without_the_follower_the_answer_is_a_timeout_although_the_leader_has_done_it(
    sandbox: Sandbox, connection: Connection
) -> None:
    followed = TopicPartition("followed", 0)
    create_topic(sandbox, "followed", assignment={0: [1, 2]})
    produce(sandbox, "followed", 0.1)
    with held_up(sandbox.broker(2).pid):
        unfinished = delete(connection, {followed: 50}, timeout=timedelta(seconds=1))
        log_start = list_offsets(connection, {followed: BrokerId(1)}, OffsetSpec.EARLIEST, Deadline(LONG))
    eventually(lambda: delete(connection, {followed: 50}) == {followed: 50})

    assert unfinished == {followed: KafkaError(7)}
    assert log_start == {followed: 50}


@contextmanager
def held_up(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_broker_that_is_not_there_is_a_failure_of_its_partitions(connection: Connection) -> None:
    (answer,) = delete(connection, {ORDERS: 30}, leader=77).values()

    assert isinstance(answer, Failure)
    assert "is not a live broker" in answer.message


def test_what_a_principal_may_not_do_is_named(sandbox: Sandbox) -> None:
    cluster = TrimCluster(as_guard(sandbox))
    sees_nothing = cluster.look([GUARDED])[GUARDED]
    allow(sandbox, ACLOperation.DESCRIBE)
    allow(sandbox, ACLOperation.DESCRIBE_CONFIGS)
    eventually(lambda: isinstance(cluster.look([GUARDED])[GUARDED], PartitionNow))
    refused = cluster.trim({GUARDED: Offset(40)}, {GUARDED: BrokerId(1)})[GUARDED]
    allow(sandbox, ACLOperation.DELETE)
    eventually(lambda: cluster.trim({GUARDED: Offset(40)}, {GUARDED: BrokerId(1)})[GUARDED] == 40)
    cluster.close()

    for problem in (sees_nothing, refused):
        assert isinstance(problem, Problem)
        assert not problem.may_pass
        assert "this principal needs DESCRIBE and DELETE on the topic guarded" in problem.why


def allow(sandbox: Sandbox, operation: ACLOperation) -> None:
    pattern = ResourcePattern(ResourceType.TOPIC, "guarded")
    with kafka_admin(sandbox.admin_servers) as client:
        client.create_acls([ACL("User:guard", "*", operation, ACLPermissionType.ALLOW, pattern)])


def test_the_disk_gets_back_what_the_ledger_says(sandbox: Sandbox, tmp_path: Path) -> None:
    create_topic(sandbox, "large", assignment={0: [1]}, config=SMALL_SEGMENTS)
    produce(sandbox, "large", 7)
    trim = planned(sandbox, "large", 5)
    usable = usable_bytes(sandbox, 1)

    cycle = carried_out(tmp_path, as_owner(sandbox), trim)

    assert [each.phase for each in cycle.trims] == [TrimPhase.DONE]
    assert cycle.freed_bytes == trim.allocated_bytes
    # A broker writes a little meanwhile.
    assert abs(usable_bytes(sandbox, 1) - usable - cycle.freed_bytes) < 1 << 20


def test_a_followers_disk_comes_down_and_its_leader_need_not_be_asked_again(sandbox: Sandbox, tmp_path: Path) -> None:
    """Each broker has a guard of its own, and rolls its segments where it likes."""
    create_topic(sandbox, "doubled", assignment={0: [1, 2]}, config=SMALL_SEGMENTS)
    produce(sandbox, "doubled", 6)
    eventually(lambda: len(base_offsets(sandbox, "doubled", broker=2)) > 4)
    at_the_follower = planned(sandbox, "doubled", 4, broker=2)
    below = [base for base in base_offsets(sandbox, "doubled", broker=1) if base <= at_the_follower.target]
    at_the_leader = planned(sandbox, "doubled", len(below) - 1)

    follower = carried_out(tmp_path / "2", as_owner(sandbox), at_the_follower)
    leader = carried_out(tmp_path / "1", as_owner(sandbox), at_the_leader)

    assert [trim.phase for trim in (*follower.trims, *leader.trims)] == [TrimPhase.DONE] * 2
    assert follower.freed_bytes == at_the_follower.allocated_bytes
    assert leader.trims[0].was_done_by_others


def base_offsets(sandbox: Sandbox, topic: str, broker: int) -> list[int]:
    folder = sandbox.outside(sandbox.broker(broker).log_dirs[0]) / f"{topic}-0"
    return [int(log.stem) for log in folder.glob("*.log")]


def usable_bytes(sandbox: Sandbox, broker: int) -> int:
    status = os.statvfs(sandbox.outside(sandbox.broker(broker).log_dirs[0]))
    return status.f_bavail * status.f_frsize


def test_a_topic_that_was_made_anew_is_left_alone_and_the_other_goes_on(sandbox: Sandbox, tmp_path: Path) -> None:
    for topic in ("renewed", "steady"):
        create_topic(sandbox, topic, assignment={0: [1]}, config=SMALL_SEGMENTS)
        produce(sandbox, topic, 3)
    trims = [planned(sandbox, topic, 1) for topic in ("renewed", "steady")]
    renew(sandbox, "renewed")

    cycle = carried_out(tmp_path, as_owner(sandbox), *trims)

    assert [trim.phase for trim in cycle.trims] == [TrimPhase.ABANDONED, TrimPhase.DONE]
    # The broker that answers may not have heard of the new one yet.
    assert cycle.trims[0].why in (
        "topic renewed was deleted and recreated since",
        "the topic renewed is gone",
    )
    assert cycle.trims[0].requests == 0


def renew(sandbox: Sandbox, topic: str) -> None:
    with kafka_admin(sandbox.admin_servers) as client:
        client.delete_topics([topic])
    log_dir = sandbox.outside(sandbox.broker(1).log_dirs[0])
    eventually(lambda: not list(log_dir.glob(f"{topic}-0*")))
    create_topic(sandbox, topic, assignment={0: [1]}, config=SMALL_SEGMENTS)
    produce(sandbox, topic, 3)


@pytest.mark.long
def test_what_a_killed_broker_has_forgotten_is_asked_for_again(tmp_path: Path) -> None:
    """Until it is killed, nothing is removed and nothing is written down that would make it remember."""
    never = {"log.retention.check.interval.ms": "3600000", "log.flush.start.offset.checkpoint.interval.ms": "3600000"}
    with Sandbox(SandboxSpec(volumes=(VOLUME,), properties=never)) as running:
        create_topic(running, "orders", config=SMALL_SEGMENTS)
        produce(running, "orders", 4)
        trim = planned(running, "orders", 2)
        with begun(tmp_path, as_owner(running), trim) as trims:
            trims.step()
            answered = trims.cycle.trims[0].low_watermark
            broker = running.broker(1)
            broker.kill()
            broker.alter_properties({"log.retention.check.interval.ms": "1000"})
            broker.start()
            cycle = to_its_end(trims)
        log_start = start_of(running, ORDERS)

    assert answered == trim.target
    assert cycle.trims[0].phase is TrimPhase.DONE
    assert cycle.trims[0].requests >= 2
    assert cycle.trims[0].freed_bytes == trim.allocated_bytes
    assert log_start == trim.target


def start_of(sandbox: Sandbox, partition: TopicPartition) -> Offset:
    cluster = TrimCluster(as_owner(sandbox))
    look = cluster.look([partition])[partition]
    cluster.close()
    assert isinstance(look, PartitionNow)
    return look.log_start
