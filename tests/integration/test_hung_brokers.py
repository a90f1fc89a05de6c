"""A broker that accepts connections and never answers: it costs its own answer, and nobody else's."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from brimline import Admin, BrokerId, ClientConfig, DescribeLogDirsOptions, TopicPartition
from brimline.model import Bytes, FailureKind, Reason, ReplicaInfo
from brimline.observe.cluster.admin import DescribeLogDirsResult
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.wire.remote_log_metadata import metadata_partition
from tests.integration.cluster import CALM, TIERED, create_topic, hung, produce
from tests.integration.test_remote_info import is_settled, remote_segments
from tests.waiting import eventually

pytestmark = pytest.mark.integration

VOLUMES = (VolumeSpec(size=Bytes(128 << 20)),)
PARTITIONS = range(4)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    # The cluster goes on listing the hung broker.
    with Sandbox(SandboxSpec(brokers=3, volumes=VOLUMES, tiered=True, properties=CALM)) as running:
        create_topic(running, "tiered", config=TIERED, assignment={partition: [2] for partition in PARTITIONS})
        for partition in PARTITIONS:
            produce(running, "tiered", 2.2, partition)
        eventually(lambda: all(is_settled(running, "tiered", p, at_most=3, broker=2) for p in PARTITIONS))
        yield running


def described(
    client: Admin, is_enough: Callable[[DescribeLogDirsResult], bool], *, include_remote_info: bool
) -> DescribeLogDirsResult:
    """With more and more time until those that are alive have answered in it: the hung one takes all of it."""
    answers: list[DescribeLogDirsResult] = []

    def has_enough() -> bool:
        timeout = timedelta(seconds=3 * 2 ** len(answers))
        options = DescribeLogDirsOptions(include_remote_info=include_remote_info, timeout=timeout)
        answers.append(client.describe_log_dirs(options=options))
        return is_enough(answers[-1])

    eventually(has_enough)
    return answers[-1]


def replicas(answer: DescribeLogDirsResult) -> dict[int, ReplicaInfo]:
    """Of the tiered topic, which is on broker 2; none if that did not answer."""
    log_dirs = answer[BrokerId(2)].log_dirs.values()
    return {p: each.replica_infos[TopicPartition("tiered", p)] for each in log_dirs for p in PARTITIONS}


@pytest.mark.parametrize("broker", [1, pytest.param(3, marks=pytest.mark.long)])
def test_remote_sizes_that_do_not_need_it_are_known(sandbox: Sandbox, broker: int) -> None:
    """All data is on broker 2; the hung broker leads only some of the metadata topic's partitions."""
    with Admin(ClientConfig.from_properties(sandbox.bootstrap_servers)) as client:
        topics = client.topics(["tiered", "__remote_log_metadata"])
        leaders, topic_id = topics["__remote_log_metadata"].leaders, topics["tiered"].topic_id
        assert topic_id is not None
        needing = {p for p in PARTITIONS if leaders[metadata_partition(topic_id, p, len(leaders))] == broker}
        known = set(PARTITIONS) - needing
        with hung(sandbox, broker):
            answer = described(
                client,
                lambda found: {p for p, info in replicas(found).items() if info.only_local_size is not None} == known,
                include_remote_info=True,
            )

    failure = answer[BrokerId(broker)].failure
    assert failure is not None
    assert failure.kind is FailureKind.TIMED_OUT
    found = replicas(answer)
    for partition in known:
        assert found[partition].remote_size == sum(remote_segments(sandbox, "tiered", partition).values())
    for partition in needing:
        reasons = found[partition].remote_size_reason, found[partition].only_local_size_reason
        assert reasons == (Reason.NO_ANSWER, Reason.NO_ANSWER)
    assert any("could not be read" in note for note in answer.notes) == bool(needing)


@pytest.mark.parametrize("broker", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3))])
def test_a_hung_bootstrap_server_hides_no_other(sandbox: Sandbox, broker: int) -> None:
    with hung(sandbox, broker), Admin(ClientConfig.from_properties(sandbox.bootstrap_servers)) as client:
        answer = described(client, lambda found: answering(found) == {1, 2, 3} - {broker}, include_remote_info=False)

    assert answering(answer) == {1, 2, 3} - {broker}


def answering(answer: DescribeLogDirsResult) -> set[BrokerId]:
    return {number for number in answer if answer[number].failure is None}
