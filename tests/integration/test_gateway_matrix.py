"""Every client through the gateway, in every form of traffic: a fence costs time, never a record.

With the clients' defaults, but for when they give up: a slow machine must not come near that. When they do by default
is measured (`bench/client_matrix.py`).
"""

import random
import signal
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.torture.clients.table import CLIENTS, JAVA_3, JAVA_4, LIBRDKAFKA_IDEMPOTENT
from tests.integration.cluster import admin, create_topic
from tests.integration.full_disks import NEVER_LATE, end_offset, wait_for_refusal
from tests.integration.gateway_clients.groups import Group, consuming
from tests.integration.gateway_clients.load import Load, producing
from tests.integration.gateway_clients.verification import verify_read_back, verify_transactions
from tests.integration.gatewayed import ENFORCING, RunningGateway, gateway, write_gateway_config
from tests.integration.kafka_clients import kafka_admin, kafka_consumer, kafka_producer
from tests.integration.raw_kafka import framed, raw_connection, request
from tests.integration.raw_produce import raw_producer
from tests.waiting import PATIENCE_SECONDS, eventually
from tests.wire.produce_messages import (
    FIRST_VERSION_WITH_TOPIC_ID,
    Partition,
    PlainRequest,
    PlainTopic,
    answer_read_by_oracle,
    batch,
    encoded_request,
)

pytestmark = pytest.mark.integration

VOLUME = VolumeSpec(size=Bytes(256 << 20))
NOTHING_IS_FULL = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
KAFKA_STORAGE_ERROR = 56
MOST_IN_FLIGHT = 5
WHY = "the matrix of clients"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(volumes=(VOLUME, VOLUME), fronted=True, properties=NEVER_LATE)) as running:
        yield running


@pytest.fixture(scope="module")
def fronting(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with gateway(sandbox, tmp_path_factory.mktemp("matrix") / "gateway.log", NOTHING_IS_FULL) as running:
        yield running


@contextmanager
def fence(fronting: RunningGateway, **target: str) -> Iterator[None]:
    assert fronting.ask("fence", **target, reason=WHY, by="test")["ok"]
    try:
        yield
    finally:
        assert fronting.ask("unfence", **target, reason=WHY, by="test")["ok"]


def wait_until_refused_often(fronting: RunningGateway, load: Load) -> None:
    """More often than a client has batches under way: it has come back, and was sent away again."""
    wait_for_refusal(fronting, load.topic, beyond=MOST_IN_FLIGHT)


def partitions_in(sandbox: Sandbox, topic: str, log_dir: Path) -> list[int]:
    """The partitions of a topic whose folders are in this log dir."""
    folders = [entry.name.rpartition("-") for entry in sandbox.outside(log_dir).iterdir()]
    return sorted(int(number) for name, _, number in folders if name == topic)


def topic_on_both_disks(sandbox: Sandbox, name: str) -> tuple[int, int]:
    """A new topic, and one of its partitions in each of the two log dirs."""
    create_topic(sandbox, name, partitions=4)
    first, second = (partitions_in(sandbox, name, log_dir) for log_dir in sandbox.broker(1).log_dirs)
    return first[0], second[0]


def test_one_partition_is_fenced_for_a_while_and_no_client_loses_a_record(
    sandbox: Sandbox, fronting: RunningGateway
) -> None:
    """All clients at once, each on a topic of its own; the partition on the other disk is served all the time."""
    full = sandbox.broker(1).log_dirs[0]
    with ExitStack() as stack:
        loads = []
        for client in CLIENTS:
            partitions = topic_on_both_disks(sandbox, str(client))
            loads.append(
                stack.enter_context(
                    producing(
                        client,
                        sandbox.bootstrap_servers,
                        str(client),
                        partitions=partitions,
                        rate=60,
                        properties=client.patience,
                    )
                )
            )
        for load in loads:
            load.wait_for_acks(20)
        with fence(fronting, logDir=str(full)):
            for load in loads:
                wait_until_refused_often(fronting, load)
            eventually(lambda: only_the_open_ones_get_on(loads))
        for load in loads:
            load.wait_for_acks(20, partition=load.partitions[0])

    for load in loads:
        assert load.failures == [], load.name
        assert load.acked() == set(range(load.sent)), load.name
        stored = verify_read_back(sandbox, load)
        if load.client.is_idempotent:
            assert sum(map(len, stored.values())) == load.sent, load.name


def only_the_open_ones_get_on(loads: Sequence[Load]) -> bool:
    """Not at the very first look: what was on its way when the fence came is still acknowledged."""
    stuck, moving = acked_counts(loads, 0), acked_counts(loads, 1)
    eventually(lambda: all(now >= then + 20 for now, then in zip(acked_counts(loads, 1), moving, strict=True)))
    return acked_counts(loads, 0) == stuck


def acked_counts(loads: Sequence[Load], which: int) -> list[int]:
    """Of the first or the second partition of each."""
    return [len(load.acked(load.partitions[which])) for load in loads]


@contextmanager
def rejecting_with(sandbox: Sandbox, fronting: RunningGateway, code: int) -> Iterator[None]:
    """The running gateway is told to answer refusals with another error, and back."""

    def tell(code: int) -> None:
        write_gateway_config(sandbox, {**ENFORCING, **NOTHING_IS_FULL, "brimline.reject.error": str(code)})
        fronting.process.send_signal(signal.SIGHUP)
        eventually(lambda: fronting.state()["rejectError"] == code)

    tell(code)
    try:
        yield
    finally:
        tell(KAFKA_STORAGE_ERROR)


def test_with_44_the_application_is_told_at_once_and_why(sandbox: Sandbox, fronting: RunningGateway) -> None:
    create_topic(sandbox, "told")
    with (
        rejecting_with(sandbox, fronting, 44),
        producing(JAVA_4, sandbox.bootstrap_servers, "told", rate=50) as load,
    ):
        load.wait_for_acks(10)
        with fence(fronting, topic="told"):
            eventually(lambda: len(load.failures) > MOST_IN_FLIGHT)
            told = {(failure.error, failure.text) for failure in load.failures}
        load.wait_for_acks(10)

    assert told == {("PolicyViolationException", f"fenced by hand: {WHY}")}
    failed = {failure.number for failure in load.failures}
    assert failed | load.acked() == set(range(load.sent))
    stored = verify_read_back(sandbox, load)[0]
    assert not failed & set(stored)


def test_with_128_the_answer_is_the_kips_own_number(sandbox: Sandbox, fronting: RunningGateway) -> None:
    """What clients make of it depends on their age: since Kafka 4.0 it is another error."""
    create_topic(sandbox, "numbered")
    with rejecting_with(sandbox, fronting, 128), raw_producer(sandbox.bootstrap_servers) as producer:
        open_answer = producer.produce([("numbered", 0)])["numbered", 0]
        with fence(fronting, topic="numbered"):
            fenced_answer = producer.produce([("numbered", 0)])["numbered", 0]
        stored = end_offset(sandbox, "numbered")

    assert (open_answer.code, fenced_answer.code) == (0, 128)
    assert fenced_answer.text == f"fenced by hand: {WHY}"
    assert stored == 1


def test_transactions_wait_for_the_release_and_commit(sandbox: Sandbox, fronting: RunningGateway) -> None:
    """Of the first version (an older client) and of the second, in which Produce itself joins the transaction."""
    assert transaction_version(sandbox) >= 2
    with ExitStack() as stack:
        loads = []
        for client in (JAVA_3, JAVA_4):
            topic = f"in-transactions-{client}"
            create_topic(sandbox, topic, partitions=2)
            loads.append(
                stack.enter_context(
                    producing(
                        client,
                        sandbox.bootstrap_servers,
                        topic,
                        partitions=(0, 1),
                        rate=60,
                        transactional_id=topic,
                        properties=client.patience,
                    )
                )
            )
        for load in loads:
            wait_for_transactions(load, 2)
        with ExitStack() as fences:
            for load in loads:
                fences.enter_context(fence(fronting, topic=load.topic))
            for load in loads:
                wait_until_refused_often(fronting, load)
        for load in loads:
            wait_for_transactions(load, 3)

    for load in loads:
        assert {transaction.outcome for transaction in load.transactions} == {"committed"}, load.name
        assert load.acked() == set(range(load.sent)), load.name
        verify_transactions(sandbox, load)


def transaction_version(sandbox: Sandbox) -> int:
    """As the gateway's clients learn it, upon which they choose how to speak."""
    with raw_connection(sandbox.bootstrap_servers) as connection:
        answer = connection.answers(
            request(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 4)
        )
    features = ApiVersionsResponse.decode(answer, version=4, header=True).finalized_features
    levels: dict[str, int] = {feature.name: feature.max_version_level for feature in features}
    return levels["transaction.version"]


def wait_for_transactions(load: Load, count: int) -> None:
    wanted = len(load.transactions) + count
    eventually(lambda: len(load.transactions) >= wanted or not load.process.is_running)
    assert len(load.transactions) >= wanted, load.process.complaint()[-2000:]


def test_a_group_shares_reads_and_rebalances_whatever_is_fenced(sandbox: Sandbox, fronting: RunningGateway) -> None:
    create_topic(sandbox, "grouped", partitions=4)
    servers = sandbox.bootstrap_servers

    def produce_some(name: str) -> None:
        with producing(
            LIBRDKAFKA_IDEMPOTENT, servers, "grouped", partitions=range(4), rate=500, count=100, name=name
        ) as load:
            load.wait_until_done()

    # Soon aware of each other, and never taken for dead; everything else as a client has it by default
    quick = {"heartbeat.interval.ms": "500", "session.timeout.ms": "600000"}
    produce_some("before")
    with ExitStack() as stack:
        with fence(fronting, topic="grouped"):
            group = stack.enter_context(consuming("4.3.1", servers, "grouped", "readers", properties=quick))
            group.wait_for_records(100)
            eventually(lambda: is_shared_by(2, group))
        with consuming("3.9.2", servers, "grouped", "readers", members=1, properties=quick) as newcomer:
            eventually(lambda: is_shared_by(3, group, newcomer))
            produce_some("between")
            eventually(lambda: len(group.consumed) + len(newcomer.consumed) >= 200)
        eventually(lambda: is_shared_by(2, group))
        produce_some("after")
        eventually(lambda: len(group.consumed) + len(newcomer.consumed) >= 300)

    read = [each.value for each in (*group.consumed, *newcomer.consumed)]
    assert newcomer.consumed
    assert sorted(read) == sorted(f"{name}-{n % 4}-{n}" for name in ("before", "between", "after") for n in range(100))


def is_shared_by(members: int, *groups: Group) -> bool:
    """Each of the four partitions has one reader, and every reader has one at least."""
    shares = [share for group in groups for share in group.assigned.values() if share]
    return len(shares) == members and sorted(number for share in shares for number in share) == [0, 1, 2, 3]


CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def test_every_compression_type(sandbox: Sandbox, fronting: RunningGateway) -> None:
    """A fence somewhere else makes the gateway look into every request."""
    create_topic(sandbox, "compressed", partitions=len(CODECS))
    with fence(fronting, topic="somewhere-else"), ExitStack() as stack:
        loads = [
            stack.enter_context(
                producing(
                    LIBRDKAFKA_IDEMPOTENT,
                    sandbox.bootstrap_servers,
                    "compressed",
                    partitions=(partition,),
                    rate=1000,
                    count=300,
                    value_bytes=500,
                    name=codec,
                    properties={"compression.type": codec, "linger.ms": "50"},
                )
            )
            for partition, codec in enumerate(CODECS)
        ]
        for load in loads:
            load.wait_until_done()

    for partition, load in enumerate(loads):
        assert verify_read_back(sandbox, load) == {partition: list(range(300))}
        assert codec_on_disk(sandbox, "compressed", partition) == CODECS[load.name]


def codec_on_disk(sandbox: Sandbox, topic: str, partition: int) -> int:
    """Of the first batch in the log."""
    (segment,) = (
        segment
        for log_dir in sandbox.broker(1).log_dirs
        for segment in sandbox.outside(log_dir).glob(f"{topic}-{partition}/*.log")
    )
    with segment.open("rb") as stream:
        (attributes,) = struct.unpack_from(">h", stream.read(61), 21)
    return int(attributes) & 7


@pytest.mark.parametrize("is_looked_into", [False, True], ids=["passing", "looked-into"])
def test_batches_of_several_megabytes_both_ways(
    sandbox: Sandbox, fronting: RunningGateway, *, is_looked_into: bool
) -> None:
    topic = f"big-{is_looked_into}"
    create_topic(sandbox, topic, config={"max.message.bytes": str(8 << 20)})
    values = [random_bytes((3 << 20) + number) for number in range(2)]
    with fence(fronting, topic="somewhere-else") if is_looked_into else nullcontext():
        with kafka_producer(sandbox.bootstrap_servers, max_request_size=8 << 20) as producer:
            for sent in [producer.send(topic, value, partition=0) for value in values]:
                sent.get(timeout=PATIENCE_SECONDS)

        assert values_through(sandbox, topic, len(values)) == values


def random_bytes(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def values_through(sandbox: Sandbox, topic: str, count: int) -> list[bytes]:
    """What a consumer reads through the gateway."""
    where = TopicPartition(topic, 0)
    values: list[bytes] = []

    def read_on() -> int:
        values.extend(record.value for record in consumer.poll(timeout_ms=500).get(where, []))
        return len(values)

    with kafka_consumer(sandbox.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([where])
        eventually(lambda: read_on() >= count, pause=0)
    return values


def test_a_thousand_partitions_in_one_request(sandbox: Sandbox, fronting: RunningGateway) -> None:
    names, count = ("many-open", "many-fenced"), 500
    for name in names:
        create_topic(sandbox, name, partitions=count)
    with admin(sandbox) as client:
        topics = client.topics(names)
    wanted = [
        PlainTopic(name, topics[name].topic_id, [Partition(number, batch()) for number in range(count)])
        for name in names
    ]
    with fence(fronting, topic="many-fenced"):
        eventually(lambda: fenced_partitions(fronting, "many-fenced") == count)
        for version in (9, 13):  # by name, and by topic id
            with raw_connection(sandbox.bootstrap_servers) as connection:
                frame = connection.ask(framed(encoded_request(PlainRequest(wanted), version)))

            assert frame is not None
            answered = answer_read_by_oracle(frame, version).topics
            by_topic = {topic.name or topic.topic_id: topic for topic in answered}
            assert len(by_topic) == len(answered) == len(names)
            for name in names:
                key = name if version < FIRST_VERSION_WITH_TOPIC_ID else topics[name].topic_id
                partitions = by_topic[key].partitions
                assert sorted(partition.index for partition in partitions) == list(range(count))
                seen = {(partition.error_code, partition.message) for partition in partitions}
                if name == "many-open":
                    assert seen == {(0, None)}
                else:  # the reason is told for the first hundred
                    assert seen == {(KAFKA_STORAGE_ERROR, f"fenced by hand: {WHY}"), (KAFKA_STORAGE_ERROR, None)}
    remove(sandbox, names)


def fenced_partitions(fronting: RunningGateway, topic: str) -> int:
    (count,) = (fence["partitions"] for fence in fronting.state()["fences"] if fence.get("topic") == topic)
    return int(count)


def remove(sandbox: Sandbox, topics: Sequence[str]) -> None:
    """Not left to burden the tests that come after."""
    with kafka_admin(sandbox.admin_servers) as client:
        client.delete_topics(list(topics))
