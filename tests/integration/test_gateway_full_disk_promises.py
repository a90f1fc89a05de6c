"""What producers were promised, they keep while a disk is full: order, once only, transactions, committed offsets.

A refusal is an answer like any other to them, and comes at the worst moments here: before a broker knows the producer,
with more batches under way behind the refused one, and from a gateway that is killed before it can release anything.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import TopicPartition

from brimline.sandbox import Broker, Sandbox
from brimline.torture.clients.table import JAVA_4, LIBRDKAFKA, LIBRDKAFKA_IDEMPOTENT, Client
from brimline.torture.read_back import read_back
from tests.integration.full_disks import (
    BY_PERCENT,
    FIRST,
    KAFKA_STORAGE_ERROR,
    NO_LIMIT,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    PATIENT,
    SECOND,
    STORED,
    clean_up,
    create_topic_in,
    end_offset,
    fill_beyond_limit,
    refused_batches,
    two_disks,
    verify_unharmed,
    wait_for_refusal,
)
from tests.integration.gateway_clients.load import producing
from tests.integration.gateway_clients.verification import verify_read_back, verify_transactions
from tests.integration.gatewayed import gateway
from tests.integration.kafka_clients import kafka_consumer
from tests.integration.raw_produce import raw_producer
from tests.integration.shared import shared
from tests.waiting import PATIENCE_SECONDS, eventually
from tests.wire.produce_messages import batch

pytestmark = pytest.mark.integration

INVALID_TOPIC = 17
KAFKAJS_VERSION = 7
ONE_PER_BATCH = {**LIBRDKAFKA.patience, "linger.ms": "0", "batch.num.messages": "1"}
"""How librdkafka loses what it called delivered, if batches overtake a refused one."""

PATIENT_READER: dict[str, object] = {
    "group_id": "readers",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "session_timeout_ms": 600_000,
    "max_poll_interval_ms": 600_000,
}
PATIENT_WRITER = {**LIBRDKAFKA.patience, "transaction.timeout.ms": "600000"}
"""Neither is taken for dead, nor its transaction for abandoned, on a machine that is slow."""


@pytest.fixture(scope="module")
def running_sandbox() -> Iterator[Sandbox]:
    with shared(two_disks("4.3.1")) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    """Whatever a test does to it, its broker has lived through it."""
    yield running_sandbox
    verify_unharmed(running_sandbox)
    clean_up(running_sandbox)


def test_what_kafka_needs_itself_goes_on_while_every_disk_is_full(sandbox: Sandbox, tmp_path: Path) -> None:
    """Offsets are committed and transactions ended, though the internal topics for these are on full disks too."""
    full, other = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "read", full)
    create_topic_in(sandbox, "atomic", full, other)
    servers = sandbox.bootstrap_servers
    where = TopicPartition("read", 0)
    with ExitStack() as stack:
        running = stack.enter_context(gateway(sandbox, tmp_path / "log", BY_PERCENT))
        raw = stack.enter_context(raw_producer(servers))
        raw.produce([("read", 0)])
        consumer = stack.enter_context(kafka_consumer(servers, "read", **PATIENT_READER))
        eventually(lambda: bool(consumer.poll(timeout_ms=200)))
        producer = Producer({"bootstrap.servers": servers, "transactional.id": "atomic", **PATIENT_WRITER})
        producer.init_transactions(PATIENCE_SECONDS)
        write_transaction(producer, "first")
        assert producer.flush(PATIENCE_SECONDS) == 0

        foreign = [fill_beyond_limit(sandbox, log_dir) for log_dir in (full, other)]
        eventually(lambda: running.fenced() == {FIRST, SECOND})
        said = raw.produce([("__consumer_offsets", 0), ("read", 0)])
        consumer.commit()
        committed = consumer.committed(where)
        producer.commit_transaction(PATIENCE_SECONDS)
        write_transaction(producer, "second")
        wait_for_refusal(running, "atomic")
        producer.abort_transaction(PATIENCE_SECONDS)

        for each in foreign:
            sandbox.unfill(each)
        eventually(lambda: running.fenced() == set())
        write_transaction(producer, "third")
        producer.commit_transaction(PATIENCE_SECONDS)

    assert committed == 1
    assert {topic: answer.code for (topic, _), answer in said.items()} == {
        "__consumer_offsets": INVALID_TOPIC,  # the broker's own answer
        "read": KAFKA_STORAGE_ERROR,
    }
    for partition in (0, 1):
        stored = [record.value for record in read_back(sandbox, "atomic", partition, committed=True)]
        assert stored == ["first", "third"]


def write_transaction(producer: Producer, value: str) -> None:
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce("atomic", value, partition=partition)
    producer.poll(0)


def test_a_transaction_that_waits_for_space_is_committed_with_it(sandbox: Sandbox, tmp_path: Path) -> None:
    full, other = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "atomic", full, other)
    with (
        gateway(sandbox, tmp_path / "log", BY_PERCENT) as running,
        producing(
            JAVA_4, sandbox.bootstrap_servers, "atomic", partitions=(0, 1), transactional_id="java", properties=PATIENT
        ) as load,
    ):
        load.wait_for_acks(50)
        foreign = fill_beyond_limit(sandbox, full)
        wait_for_refusal(running, "atomic")
        sandbox.unfill(foreign)
        load.wait_for_acks(50)

    assert {each.outcome for each in load.transactions} == {"committed"}
    verify_transactions(sandbox, load)


def test_without_acks_the_connection_is_closed_and_what_is_allowed_is_stored(sandbox: Sandbox, tmp_path: Path) -> None:
    full, other = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "silent", full, other)
    foreign = fill_beyond_limit(sandbox, full)
    servers = sandbox.bootstrap_servers
    with gateway(sandbox, tmp_path / "log", BY_PERCENT) as running:
        with raw_producer(servers) as raw:
            is_closed = raw.is_closed_after([("silent", 0), ("silent", 1)])
        eventually(lambda: end_offset(sandbox, "silent", 1) == 1)
        with producing(LIBRDKAFKA, servers, "silent", properties={"acks": "0"}):
            eventually(lambda: running.state()["connections"]["closed"].get("refused-without-acks", 0) > 2)
            stored = end_offset(sandbox, "silent")
            sandbox.unfill(foreign)
            eventually(lambda: end_offset(sandbox, "silent") > 0)

    assert is_closed
    assert stored == 0


def test_batches_never_overtake_a_refused_one_however_often_the_fence_flips(sandbox: Sandbox, tmp_path: Path) -> None:
    """From the first message on: a broker that does not know a producer yet takes any sequence for its first."""
    full, other = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "flipping", full, other)
    servers = sandbox.bootstrap_servers
    by_hand = {"topic": "flipping", "reason": "flip", "by": "a test"}
    with gateway(sandbox, tmp_path / "log", NO_LIMIT) as running:
        running.ask("fence", **by_hand)
        with (
            producing(LIBRDKAFKA_IDEMPOTENT, servers, "flipping", partitions=(0,), properties=ONE_PER_BATCH) as native,
            producing(JAVA_4, servers, "flipping", partitions=(1,), properties=PATIENT) as java,
        ):
            eventually(lambda: {row["partition"] for row in running.state()["refusals"]} == {0, 1})
            for _ in range(6):
                running.ask("unfence", **by_hand)
                native.wait_for_acks(3)
                before = refused_batches(running, "flipping")
                running.ask("fence", **by_hand)
                wait_for_refusal(running, "flipping", beyond=before)
            running.ask("unfence", **by_hand)
            for each in (native, java):
                each.wait_for_acks(20)

    for each in (native, java):
        assert each.failures == []
        assert verify_read_back(sandbox, each) == {each.partitions[0]: list(range(each.sent))}


@pytest.mark.parametrize("client", [LIBRDKAFKA_IDEMPOTENT, JAVA_4], ids=str)
def test_a_batch_under_way_behind_a_refused_one_does_not_overtake_it(
    sandbox: Sandbox, tmp_path: Path, client: Client
) -> None:
    """The fence goes while the client does not know yet that its first batch was refused, and has sent the second."""
    fenced, other = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "overtaken", other, fenced, fenced)
    by_hand = {"logDir": str(fenced), "reason": "a test", "by": "a test"}
    properties = PATIENT if client is JAVA_4 else ONE_PER_BATCH
    with gateway(sandbox, tmp_path / "log", NO_LIMIT) as running:
        running.ask("fence", **by_hand)
        # One that is refused for a while, so that the broker's word on this client is known; some for the healthy
        # partition; then the first for the partition in question.
        partitions = (2,) + (0,) * 20 + (1,) * 79
        with producing(
            client, sandbox.bootstrap_servers, "overtaken", partitions=partitions, rate=3, properties=properties
        ) as load:
            wait_for_refusal(running, "overtaken")
            running.ask("unfence", **by_hand)
            eventually(lambda: 0 in load.acked())
            running.ask("fence", **by_hand)
            eventually(lambda: len(load.acked()) >= 19)
            with paused(sandbox.broker(1)):
                # The broker owes answers now, and the refusal must wait behind them.
                before = running.state()["requests"]["produce"]
                eventually(lambda: 1 in {row["partition"] for row in running.state()["refusals"]})
                running.ask("unfence", **by_hand)
                eventually(lambda: running.state()["requests"]["produce"] >= before + 4)
            load.wait_for_acks(5)

    assert load.failures == []
    stored = verify_read_back(sandbox, load)
    assert stored == {0: list(range(1, 21)), 1: list(range(21, load.sent)), 2: [0]}


@contextmanager
def paused(broker: Broker) -> Iterator[None]:
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def test_a_gateway_that_is_killed_while_it_refuses_still_knows_what_it_refused(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """The space comes back while no gateway runs: only its memory can hold back what must not come first."""
    full, _ = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "killed", full, full, full)
    foreign = fill_beyond_limit(sandbox, full)
    servers = sandbox.bootstrap_servers
    first, second = ({("killed", 2): batch(producer_id=9000, producer_epoch=0, base_sequence=n)} for n in (0, 1))
    with ExitStack() as stack:
        killed = stack.enter_context(gateway(sandbox, tmp_path / "killed", BY_PERCENT))
        native = stack.enter_context(
            producing(LIBRDKAFKA_IDEMPOTENT, servers, "killed", partitions=(0,), properties=ONE_PER_BATCH)
        )
        java = stack.enter_context(producing(JAVA_4, servers, "killed", partitions=(1,), properties=PATIENT))
        with raw_producer(servers) as raw:
            refused = raw.produce(first)["killed", 2].code
        eventually(lambda: {row["partition"] for row in killed.state()["refusals"]} == {0, 1, 2})
        killed.kill()
        sandbox.unfill(foreign)
        fences = stack.enter_context(gateway(sandbox, tmp_path / "log", BY_PERCENT)).state()["fences"]
        with raw_producer(servers) as raw:
            said = [raw.produce(each)["killed", 2] for each in (second, first, second)]
        for each in (native, java):
            each.wait_for_acks(20)
            each.stop()

    assert refused == KAFKA_STORAGE_ERROR
    assert fences == []
    assert [answer.code for answer in said] == [OUT_OF_ORDER_SEQUENCE_NUMBER, STORED, STORED]
    assert [answer.offset for answer in said[1:]] == [0, 1]
    for each in (native, java):
        assert each.failures == []
        assert verify_read_back(sandbox, each) == {each.partitions[0]: list(range(each.sent))}


def test_kafkajs_loses_nothing_if_it_sends_to_full_and_healthy_partitions_at_once(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """In its own bytes. After a partial refusal it sets all sequences back, and sends other records under them."""
    full, other = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "mixed", full, other)

    def numbered(partition: int, sequence: int, value: bytes) -> dict[tuple[str, int], bytes]:
        return {("mixed", partition): batch(producer_id=7, producer_epoch=0, base_sequence=sequence, value=value)}

    with (
        gateway(sandbox, tmp_path / "log", NO_LIMIT) as running,
        raw_producer(sandbox.bootstrap_servers, by_name=KAFKAJS_VERSION) as kafkajs,
    ):
        assert running.ask("fence", logDir=str(full), reason="for a test")["ok"]
        said = kafkajs.produce(numbered(0, 0, b"first") | numbered(1, 0, b"first"))
        assert {answer.code for answer in said.values()} == {KAFKA_STORAGE_ERROR}
        said = kafkajs.produce(numbered(1, 0, b"second"))
        assert said["mixed", 1].code == STORED
        assert running.ask("unfence", logDir=str(full))["ok"]
        said = kafkajs.produce(numbered(0, 0, b"first") | numbered(1, 1, b"first"))
        assert {answer.code for answer in said.values()} == {STORED}

    assert [record.value for record in read_back(sandbox, "mixed", 0)] == ["first"]
    assert [record.value for record in read_back(sandbox, "mixed", 1)] == ["second", "first"]
