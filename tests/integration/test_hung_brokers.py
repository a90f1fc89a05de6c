"""A broker that accepts connections and never answers: it costs its own answer, and nobody else's."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from brimline import Admin, BrokerId, ClientConfig, DescribeLogDirsOptions, TopicPartition
from brimline.model import Bytes, FailureKind, Reason
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.wire.remote_log_metadata import metadata_partition
from tests.integration.cluster import TIERED, create_topic, eventually, produce
from tests.integration.test_remote_info import is_settled, remote_segments

pytestmark = pytest.mark.integration

VOLUMES = (VolumeSpec(size=Bytes(128 << 20)),)
# Long sessions: the cluster goes on listing the hung broker.
PATIENT = {"broker.session.timeout.ms": "600000"}
OPTIONS = DescribeLogDirsOptions(include_remote_info=True, timeout=timedelta(seconds=3))


@contextmanager
def hung(sandbox: Sandbox, broker: int) -> Iterator[None]:
    os.kill(sandbox.broker(broker).pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(sandbox.broker(broker).pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(brokers=3, volumes=VOLUMES, tiered=True, properties=PATIENT)) as running:
        create_topic(running, "tiered", config=TIERED, assignment={0: [2], 1: [2], 2: [2], 3: [2]})
        for partition in range(4):
            produce(running, "tiered", 2.2, partition)
        eventually(lambda: all(is_settled(running, "tiered", p, at_most=3, broker=2) for p in range(4)))
        yield running


@pytest.mark.parametrize("broker", [1, 3])
def test_remote_sizes_that_do_not_need_it_are_known(sandbox: Sandbox, broker: int) -> None:
    """All data is on broker 2; the hung broker leads only some of the metadata topic's partitions."""
    with Admin(ClientConfig.from_properties(sandbox.bootstrap_servers)) as client:
        topics = client.topics(["tiered", "__remote_log_metadata"])
        metadata_leaders, topic_id = topics["__remote_log_metadata"].leaders, topics["tiered"].topic_id
        assert topic_id is not None
        with hung(sandbox, broker):
            answer = client.describe_log_dirs(options=OPTIONS)

    failure = answer[BrokerId(broker)].failure
    assert failure is not None
    assert failure.kind is FailureKind.TIMED_OUT
    (log_dir,) = answer[BrokerId(2)].answer().values()
    for partition in range(4):
        info = log_dir.replica_infos[TopicPartition("tiered", partition)]
        source = metadata_partition(topic_id, partition, len(metadata_leaders))
        if metadata_leaders[source] == broker:
            assert info.remote_size_reason is info.only_local_size_reason is Reason.NO_ANSWER
            assert any("could not be read" in note for note in answer.notes)
        else:
            assert info.remote_size == sum(remote_segments(sandbox, "tiered", partition).values())
            assert info.only_local_size is not None


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_a_hung_bootstrap_server_hides_no_other(sandbox: Sandbox, broker: int) -> None:
    with hung(sandbox, broker), Admin(ClientConfig.from_properties(sandbox.bootstrap_servers)) as client:
        answer = client.describe_log_dirs(options=DescribeLogDirsOptions(timeout=timedelta(seconds=3)))

    assert {number for number in answer if answer[number].failure is None} == {1, 2, 3} - {broker}
