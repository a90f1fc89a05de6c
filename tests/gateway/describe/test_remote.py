"""Real brokers: what the worker adds, what Brimline's own client makes of it, against what it works out itself."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from socket import create_connection
from struct import pack

import pytest
from kafka import TopicPartition as ClientPartition

from brimline import Admin, ClientConfig, DescribeLogDirsOptions, DescribeLogDirsResult
from brimline.gateway.describe.child import WORKER, DescribeWorker
from brimline.gateway.describe.job import BrokerAccess, DescribeJob
from brimline.model import BrokerId, Bytes, LogDirDescription, Reason, ReplicaInfo, TopicPartition
from brimline.sandbox import Broker, Sandbox, SandboxSpec, VolumeSpec
from brimline.wire.describe_log_dirs_request import API_KEY, KIP_1187, AskedLogDirs, Layout, encode_request
from tests.gateway.describe.describing import decoded, drive
from tests.gateway.marked_proxy import MarkedProxy, in_front_of, read_frame, write_frame
from tests.integration.cluster import TIERED, brimline, create_topic, produce
from tests.integration.full_disks import NEVER_LATE
from tests.integration.kafka_clients import kafka_admin
from tests.integration.test_remote_info import only_local_on_disk
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

VOLUMES = (VolumeSpec(size=Bytes(96 << 20)),)
PATIENCE = timedelta(seconds=PATIENCE_SECONDS)
WITH_REMOTE = DescribeLogDirsOptions(include_remote_info=True, timeout=PATIENCE)
TIERED_0, TIERED_1, PLAIN_0 = TopicPartition("tiered", 0), TopicPartition("tiered", 1), TopicPartition("plain", 0)
TRIMMED_0 = TopicPartition("trimmed", 0)
"""Partition 0 of the tiered topic is led by broker 1, partition 1 by broker 2; the other is the follower."""


@dataclass(frozen=True, kw_only=True)
class Fronted:
    """Two brokers: a gateway before the first, something that only passes everything on before the second."""

    sandbox: Sandbox
    worker: DescribeWorker
    gateway: MarkedProxy

    def admin(self) -> Admin:
        """Through both; the admin listeners lead past them."""
        return Admin(ClientConfig.from_properties(self.sandbox.bootstrap_servers))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Fronted]:
    spec = SandboxSpec(brokers=2, volumes=VOLUMES, tiered=True, fronted=True, properties=NEVER_LATE)
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(spec))
        worker = DescribeWorker(access(sandbox.broker(1)), deadline_seconds=PATIENCE_SECONDS)
        stack.callback(worker.close)
        gateway = stack.enter_context(in_front_of(sandbox.broker(1), worker))
        stack.enter_context(in_front_of(sandbox.broker(2)))
        create_topic(sandbox, "tiered", config=TIERED, assignment={0: [1, 2], 1: [2, 1]})
        create_topic(sandbox, "plain", assignment={0: [1]})
        for partition in (0, 1):
            produce(sandbox, "tiered", 2.5, partition=partition)
        eventually(lambda: is_settled(sandbox, TIERED_0) and is_settled(sandbox, TIERED_1, leader=2))
        yield Fronted(sandbox=sandbox, worker=worker, gateway=gateway)


def access(broker: Broker) -> BrokerAccess:
    return BrokerAccess(
        node_id=broker.broker_id,
        bootstrap_servers=broker.admin_address,
        client_properties={"client.id": "brimline-gateway"},
    )


def is_settled(sandbox: Sandbox, partition: TopicPartition, leader: int = 1) -> bool:
    """Everything but the active segment is uploaded, and the followers are level: from now on nothing moves."""
    (log_dir,) = sandbox.broker(leader).log_dirs
    active = max(sandbox.outside(log_dir / str(partition)).glob("*.log"))
    replicas = [
        info.replica_infos[partition]
        for broker in worked_out(sandbox).values()
        for info in broker.answer().values()
        if partition in info.replica_infos
    ]
    return len({replica.size for replica in replicas}) == 1 and active.stat().st_size in {
        replica.only_local_size for replica in replicas
    }


def figures(answer: DescribeLogDirsResult) -> dict[tuple[int, str], dict[TopicPartition, ReplicaInfo]]:
    """All that is known of the two topics, reasons too: the others grow by themselves."""
    return {(broker, path): of_interest(found) for broker in answer for path, found in answer[broker].answer().items()}


def of_interest(log_dir: LogDirDescription) -> dict[TopicPartition, ReplicaInfo]:
    return {
        partition: info for partition, info in log_dir.replica_infos.items() if partition.topic in ("tiered", "plain")
    }


def worked_out(sandbox: Sandbox, options: DescribeLogDirsOptions = WITH_REMOTE) -> DescribeLogDirsResult:
    with Admin(ClientConfig.from_properties(sandbox.admin_servers)) as admin:
        return admin.describe_log_dirs(options=options)


def told_by(broker: Broker, version: int) -> bytes:
    """What the broker itself answers, as it came."""
    host, _, port = broker.direct_address.rpartition(":")
    request = pack(">hhih", API_KEY, version, 7, -1) + b"\0" + encode_request(version, None)
    with (
        create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as connection,
        connection.makefile("rwb") as stream,
    ):
        write_frame(stream, request)
        return read_frame(stream)


def added_by(worker: DescribeWorker, job: DescribeJob) -> list[LogDirDescription]:
    answers: list[bytes | None] = []
    worker.submit(job, answers.append)
    drive(worker, lambda: bool(answers))
    return list(decoded(answers[0], job.asked.layout).log_dirs)


def answered(worker: DescribeWorker, broker: Broker, version: int, asked: AskedLogDirs) -> list[LogDirDescription]:
    return added_by(worker, DescribeJob(payload=told_by(broker, version), version=version, asked=asked))


def test_the_worker_adds_the_sizes_that_the_client_would_have_worked_out(cluster: Fronted) -> None:
    """A client of KIP-1187, which gets numbers and no reasons, before the broker's version 4 as before its 5."""
    expected = worked_out(cluster.sandbox)[BrokerId(1)].answer()

    for version in (4, 5):
        asked = AskedLogDirs(layout=KIP_1187, include_remote_info=True)
        (log_dir,) = answered(cluster.worker, cluster.sandbox.broker(1), version, asked)

        (known,) = expected.values()
        assert {
            partition: (info.size, info.remote_size, info.only_local_size)
            for partition, info in of_interest(log_dir).items()
        } == {
            partition: (info.size, info.remote_size, info.only_local_size)
            for partition, info in of_interest(known).items()
        }
        assert (log_dir.total_bytes, log_dir.is_cordoned) == (known.total_bytes, None)
        infos = log_dir.replica_infos
        assert infos[TIERED_0].only_local_size is not None
        assert infos[TIERED_1].remote_size is not None
        assert (infos[PLAIN_0].remote_size, infos[PLAIN_0].only_local_size) == (None, infos[PLAIN_0].size)


def test_the_client_gets_the_same_from_a_gateway_as_by_itself_in_a_mixed_cluster(cluster: Fronted) -> None:
    asked_before = len(cluster.gateway.answered)

    with cluster.admin() as admin:
        through = admin.describe_log_dirs(options=WITH_REMOTE)

    direct = worked_out(cluster.sandbox)
    assert figures(through) == figures(direct)
    assert list(through) == list(direct) == [1, 2]
    assert (through.skipped_records, through.notes) == (direct.skipped_records, direct.notes)
    for broker in through:
        (seen,), (known,) = through[broker].answer().values(), direct[broker].answer().values()
        assert (
            (seen.is_cordoned, seen.total_bytes) == (known.is_cordoned, known.total_bytes) == (False, seen.total_bytes)
        )
    assert len(cluster.gateway.answered) == asked_before + 1
    (first,) = through[BrokerId(1)].answer().values()
    assert first.replica_infos[TIERED_1].only_local_size_reason is Reason.FOLLOWER
    assert first.replica_infos[PLAIN_0].remote_size_reason is Reason.NOT_TIERED


def test_a_worker_beside_the_disk_knows_what_cannot_be_known_from_outside(cluster: Fronted) -> None:
    """What broker 1 follows, and a log whose start has moved into what is local, as default local retention has it."""
    sandbox, broker = cluster.sandbox, cluster.sandbox.broker(1)
    create_topic(sandbox, "trimmed", config={**TIERED, "local.retention.bytes": str(64 << 20)}, assignment={0: [1]})
    produce(sandbox, "trimmed", 2.5)
    eventually(lambda: is_settled(sandbox, TRIMMED_0))
    with kafka_admin(sandbox.admin_servers) as client:
        client.delete_records({ClientPartition("trimmed", 0): 500})
    (from_outside,) = worked_out(sandbox)[BrokerId(1)].answer().values()
    reasons = {
        partition: from_outside.replica_infos[partition].only_local_size_reason for partition in (TIERED_1, TRIMMED_0)
    }
    beside = DescribeWorker(access(broker), argv=sandbox.inside(WORKER), deadline_seconds=PATIENCE_SECONDS)
    try:
        asked = AskedLogDirs(layout=KIP_1187, include_remote_info=True)
        (log_dir,) = answered(beside, broker, 4, asked)
    finally:
        beside.close()

    assert reasons == {TIERED_1: Reason.FOLLOWER, TRIMMED_0: Reason.LOG_START_MOVED}
    for partition in (TIERED_1, TRIMMED_0):
        found = log_dir.replica_infos[partition]
        assert found.only_local_size == only_local_on_disk(sandbox, partition.topic, partition.partition)
        assert 0 < found.only_local_size < found.size


def test_only_the_topics_that_were_asked_about_are_worked_out(cluster: Fronted) -> None:
    options = DescribeLogDirsOptions(include_remote_info=True, topics=frozenset({"plain"}), timeout=PATIENCE)

    with cluster.admin() as admin:
        through = admin.describe_log_dirs(options=options)

    assert figures(through) == figures(worked_out(cluster.sandbox, options))
    (first,) = through[BrokerId(1)].answer().values()
    assert first.replica_infos[TIERED_0].remote_size_reason is Reason.NOT_ASKED
    assert cluster.gateway.answered[-1].remote_topics == ("plain",)


def test_the_command_shows_the_same_through_a_gateway(cluster: Fronted) -> None:
    options = (
        "--describe",
        "--include-remote-info",
        "--topic-list",
        "tiered,plain",
        "--timeout",
        str(int(PATIENCE_SECONDS)),
        "--output",
        "csv",
    )

    def is_the_same() -> bool:
        """The brokers' own metadata log grows now and then: if it did just between the two, they are asked again."""
        through = brimline("log-dirs", "--bootstrap-server", cluster.sandbox.bootstrap_servers, *options)
        direct = brimline("log-dirs", "--bootstrap-server", cluster.sandbox.admin_servers, *options)
        assert (through.returncode, through.stderr) == (0, "")
        return rows(through.stdout, cluster.sandbox) == rows(direct.stdout, cluster.sandbox)

    eventually(is_the_same)


def rows(csv: str, sandbox: Sandbox) -> str:
    """Without the addresses that were asked."""
    for broker in sandbox.brokers:
        csv = csv.replace(broker.address, "broker").replace(broker.admin_address, "broker")
    return csv


def test_a_gateway_without_a_worker_leaves_the_work_to_the_client(cluster: Fronted) -> None:
    before = cluster.worker.failures
    broken = DescribeWorker(None, argv=["/nowhere/python"])
    cluster.gateway.worker = broken

    try:
        with cluster.admin() as admin:
            through = admin.describe_log_dirs(options=WITH_REMOTE)
    finally:
        cluster.gateway.worker = cluster.worker
        broken.close()

    assert figures(through) == figures(worked_out(cluster.sandbox))
    assert (broken.failures, cluster.worker.failures) == (1, before)


def test_a_segment_that_was_uploaded_since_the_broker_answered_is_not_subtracted_from_too_little(
    cluster: Fronted,
) -> None:
    """The sizes are looked at again after the uploads: what the answer says of a growing partition is too old."""
    broker, growing = cluster.sandbox.broker(1), TopicPartition("growing", 0)
    create_topic(cluster.sandbox, "growing", config=TIERED, assignment={0: [1]})
    produce(cluster.sandbox, "growing", 0.5)
    told_before = told_by(broker, 4)
    produce(cluster.sandbox, "growing", 2)
    eventually(lambda: is_settled(cluster.sandbox, growing))

    asked = AskedLogDirs(layout=KIP_1187, include_remote_info=True)
    (log_dir,) = added_by(cluster.worker, DescribeJob(payload=told_before, version=4, asked=asked))

    (known,) = worked_out(cluster.sandbox)[BrokerId(1)].answer().values()
    seen, expected = log_dir.replica_infos[growing], known.replica_infos[growing]
    assert expected.only_local_size is not None
    assert (seen.size, seen.remote_size, seen.only_local_size) == (
        expected.size,
        expected.remote_size,
        expected.only_local_size,
    )


@pytest.fixture(scope="module")
def old() -> Iterator[tuple[Sandbox, DescribeWorker]]:
    """A broker that knows neither volume bytes nor tiered storage, and a worker that sees its file systems."""
    with Sandbox(SandboxSpec(version="3.2.3", volumes=(VolumeSpec(size=Bytes(32 << 20)),))) as sandbox:
        create_topic(sandbox, "plain")
        there = sandbox.inside(WORKER)
        worker = DescribeWorker(access(sandbox.broker(1)), argv=there, deadline_seconds=PATIENCE_SECONDS)
        yield sandbox, worker
        worker.close()


@pytest.mark.long
@pytest.mark.parametrize("asked", [Layout(4), Layout(5), KIP_1187])
def test_an_old_brokers_volumes_are_looked_at_where_the_broker_sees_them(
    old: tuple[Sandbox, DescribeWorker], asked: Layout
) -> None:
    sandbox, worker = old
    broker = sandbox.broker(1)

    (log_dir,) = answered(worker, broker, 3, AskedLogDirs(layout=asked))

    facts = os.statvfs(sandbox.outside(broker.log_dirs[0]))
    assert log_dir.total_bytes == facts.f_blocks * facts.f_frsize == 32 << 20
    assert log_dir.usable_bytes is not None
    assert 0 < log_dir.usable_bytes <= log_dir.total_bytes


@pytest.mark.long
def test_the_worker_connects_anew_when_the_broker_was_restarted(old: tuple[Sandbox, DescribeWorker]) -> None:
    sandbox, worker = old
    broker = sandbox.broker(1)
    asked = AskedLogDirs(layout=KIP_1187, include_remote_info=True, explain=True)
    # A broker that has just made a topic, or just started, may answer before it knows of it.
    eventually(lambda: is_known_not_to_be_tiered(answered(worker, broker, 3, asked)))
    pid = worker.pid

    broker.stop()
    broker.start()

    eventually(lambda: is_known_not_to_be_tiered(answered(worker, broker, 3, asked)))
    assert worker.pid == pid


def is_known_not_to_be_tiered(log_dirs: list[LogDirDescription]) -> bool:
    (log_dir,) = log_dirs
    info = log_dir.replica_infos.get(PLAIN_0)
    return info is not None and info.remote_size_reason is Reason.NOT_TIERED
