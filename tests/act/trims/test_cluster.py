"""What is made of a cluster's answers before a trim: every partition has its facts, or its problem."""

from collections.abc import Mapping
from uuid import UUID

import pytest

from brimline.act.trims import cluster as trim_cluster
from brimline.act.trims.cluster import TrimCluster
from brimline.act.trims.rules import PartitionNow, Problem
from brimline.model import BrokerId, Failure, FailureKind, KafkaError, ObservationFailed, Offset, TopicPartition
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Connection
from brimline.observe.cluster.offsets import OffsetSpec
from brimline.observe.cluster.topics import Topic

ORDERS = TopicPartition("orders", 0)
CONFIG = {"cleanup.policy": "delete", "remote.storage.enable": "false"}
NOW = PartitionNow(
    topic_id=UUID(int=1),
    leader=BrokerId(2),
    log_start=Offset(10),
    high_watermark=Offset(90),
    cleanup_policy="delete",
    is_tiered=False,
)


class Answers:
    """A cluster's answers, each of them to be changed; and how often somebody has connected to it."""

    def __init__(self) -> None:
        self.topics = {"orders": topic()}
        self.configs: dict[str, Mapping[str, str] | Failure] = {"orders": CONFIG}
        self.offsets: dict[OffsetSpec, Offset | Failure | None] = {
            OffsetSpec.EARLIEST: Offset(10),
            OffsetSpec.LATEST: Offset(90),
        }
        self.trimmed: Offset | KafkaError | Failure = Offset(50)
        self.silence: Failure | None = None
        self.connections: list[FakeConnection] = []

    def connect(self, _: ClientConfig) -> "FakeConnection":
        if self.silence is not None:
            raise ObservationFailed(self.silence)
        self.connections.append(FakeConnection())
        return self.connections[-1]


class FakeConnection(Connection):
    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def topic(error: int = 0, leaders: Mapping[int, BrokerId | None] | None = None) -> Topic:
    return Topic(
        name="orders",
        topic_id=UUID(int=1),
        leaders={0: BrokerId(2)} if leaders is None else leaders,
        error=KafkaError(error) if error else None,
    )


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    answers = Answers()
    monkeypatch.setattr(trim_cluster, "describe_topics", lambda *_: answers.topics)
    monkeypatch.setattr(trim_cluster, "describe_topic_configs", lambda *_: answers.configs)
    monkeypatch.setattr(
        trim_cluster, "list_offsets", lambda _, leaders, spec, __: dict.fromkeys(leaders, answers.offsets[spec])
    )
    monkeypatch.setattr(trim_cluster, "delete_records", lambda _, leaders, *__: dict.fromkeys(leaders, answers.trimmed))
    return answers


@pytest.fixture
def cluster(answers: Answers) -> TrimCluster:
    return TrimCluster(ClientConfig(bootstrap_servers=("broker:9092",)), answers.connect)


def test_a_partition_with_all_its_facts(cluster: TrimCluster) -> None:
    assert cluster.look([ORDERS]) == {ORDERS: NOW}


@pytest.mark.parametrize(
    ("change", "why", "may_pass"),
    [
        ({"topics": {}}, "the cluster did not describe the topic orders", True),
        ({"topics": {"orders": topic(error=3)}}, "the topic orders is gone", False),
        ({"topics": {"orders": topic(error=29)}}, "needs DESCRIBE and DELETE", False),
        ({"topics": {"orders": topic(error=5)}}, "LEADER_NOT_AVAILABLE", True),
        ({"topics": {"orders": topic(leaders={1: BrokerId(1)})}}, "has no partition 0", False),
        ({"topics": {"orders": topic(leaders={0: None})}}, "it has no leader", True),
        ({"configs": {}}, "its configuration is unknown", True),
        ({"configs": {"orders": Failure(kind=FailureKind.NOT_AUTHORIZED, message="no right")}}, "no right", False),
        ({"offsets": dict.fromkeys(OffsetSpec, None)}, "does not tell its log start", True),
        (
            {"offsets": dict.fromkeys(OffsetSpec, Failure(kind=FailureKind.TIMED_OUT, message="did not answer"))},
            "did not answer",
            True,
        ),
    ],
)
def test_what_is_missing_is_named(
    answers: Answers,
    cluster: TrimCluster,
    change: dict[str, object],
    why: str,
    may_pass: bool,  # noqa: FBT001 (of a table)
) -> None:
    for name, value in change.items():
        setattr(answers, name, value)

    (problem,) = cluster.look([ORDERS]).values()

    assert isinstance(problem, Problem)
    assert why in problem.why
    assert problem.may_pass is may_pass


def test_a_tiered_topic_is_seen_to_be_one(answers: Answers, cluster: TrimCluster) -> None:
    answers.configs = {"orders": {"cleanup.policy": "delete", "remote.storage.enable": "true"}}

    (now,) = cluster.look([ORDERS]).values()

    assert isinstance(now, PartitionNow)
    assert now.is_tiered


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Offset(50), Offset(50)),
        (KafkaError(7), Problem(why="not all of its replicas followed in time", may_pass=True)),
        (Failure(kind=FailureKind.TIMED_OUT, message="no answer"), Problem(why="no answer", may_pass=True)),
    ],
)
def test_a_trims_outcome(
    answers: Answers, cluster: TrimCluster, answer: Offset | KafkaError | Failure, outcome: Offset | Problem
) -> None:
    answers.trimmed = answer

    assert cluster.trim({ORDERS: Offset(50)}, {ORDERS: BrokerId(2)}) == {ORDERS: outcome}


def test_one_connection_serves_until_something_is_wrong(answers: Answers, cluster: TrimCluster) -> None:
    cluster.look([ORDERS])
    cluster.trim({ORDERS: Offset(50)}, {ORDERS: BrokerId(2)})
    while_well = len(answers.connections)
    answers.trimmed = KafkaError(6)
    cluster.trim({ORDERS: Offset(50)}, {ORDERS: BrokerId(2)})
    cluster.look([ORDERS])
    cluster.close()

    assert while_well == 1
    assert [connection.is_closed for connection in answers.connections] == [True, True]


def test_when_nobody_answers_it_says_so_and_connects_anew_the_next_time(answers: Answers, cluster: TrimCluster) -> None:
    answers.silence = Failure(kind=FailureKind.UNREACHABLE, message="refused the connection")

    with pytest.raises(ObservationFailed, match="refused the connection"):
        cluster.look([ORDERS])
    answers.silence = None

    assert cluster.look([ORDERS]) == {ORDERS: NOW}
