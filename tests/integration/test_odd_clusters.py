"""What an operator meets on a bad day, on real brokers."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import TopicPartitionReplica

from brimline import BrokerId, TopicPartition
from brimline.model import Bytes, FailureKind, KafkaError
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import (
    CALM,
    THROTTLED_FOR_GOOD,
    admin,
    brimline,
    create_topic,
    move_log_dirs_slowly,
    produce,
)
from tests.integration.kafka_clients import kafka_admin
from tests.waiting import eventually

pytestmark = pytest.mark.integration

VOLUME = VolumeSpec(size=Bytes(64 << 20))


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeDirs:
    """Each has a role of its own: between two a replica moves, slowly, and the third may break.

    The move has begun before that: with an offline log dir a broker begins none.
    """

    sandbox: Sandbox
    broken: Path
    source: Path
    target: Path
    partition: int
    """Of ``orders``; it is in the log dir that breaks."""


@pytest.fixture(scope="module")
def three_dirs() -> Iterator[ThreeDirs]:
    with Sandbox(SandboxSpec(volumes=(VOLUME, VOLUME, VOLUME), properties=THROTTLED_FOR_GOOD)) as sandbox:
        move_log_dirs_slowly(sandbox)
        create_topic(sandbox, "moving")
        produce(sandbox, "moving", 6)
        create_topic(sandbox, "orders", partitions=3)
        log_dirs = sandbox.broker(1).log_dirs
        held = {path: [folder.name for folder in sandbox.outside(path).iterdir()] for path in log_dirs}
        (source,) = (path for path, names in held.items() if "moving-0" in names)
        # The first dir holds the metadata log: if that goes, the broker goes.
        *_, broken = (path for path in log_dirs[1:] if path != source)
        (target,) = set(held) - {source, broken}
        partition = next(number for number in range(3) if f"orders-{number}" in held[broken])
        with kafka_admin(sandbox.admin_servers) as client:
            client.alter_replica_log_dirs({TopicPartitionReplica("moving", 0, 1): str(target)})
        eventually(lambda: any(sandbox.outside(target).glob("moving-0.*-future")))
        yield ThreeDirs(sandbox=sandbox, broken=broken, source=source, target=target, partition=partition)


def test_an_offline_log_dir_is_named_and_hides_nothing_else(three_dirs: ThreeDirs) -> None:
    sandbox, broken = three_dirs.sandbox, three_dirs.broken
    sandbox.fill(broken, leave_free=Bytes(0))
    with producing_in_vain(sandbox, three_dirs.partition):
        eventually(lambda: _is_offline(sandbox, broken))

    with admin(sandbox) as client:
        (answer,) = client.describe_log_dirs().values()
    offline = answer.answer()[str(broken)]
    shown = brimline("log-dirs", "--bootstrap-server", sandbox.bootstrap_servers, "--describe")
    stock = sandbox.java_tool("log-dirs", "--bootstrap-server", sandbox.bootstrap_servers, "--describe")

    assert offline.error == KafkaError(56)
    assert (offline.total_bytes, offline.usable_bytes) == (None, None)
    assert [path for path, found in answer.answer().items() if found.error is not None] == [str(broken)]
    assert shown.returncode == stock.returncode == 0
    assert _errors(shown.stdout) == _errors(stock.stdout)
    assert _errors(shown.stdout)[str(broken)] == "org.apache.kafka.common.errors.KafkaStorageException"


@contextmanager
def producing_in_vain(sandbox: Sandbox, partition: int) -> Iterator[None]:
    """In a process of its own: this producer never gives up on records that can never arrive."""
    script = f"""
from kafka import KafkaProducer
producer = KafkaProducer(bootstrap_servers={sandbox.admin_servers!r})
for _ in range(100):
    producer.send("orders", b"x" * 1000, partition={partition})
producer.flush()
"""
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as producing:
        try:
            yield
            assert producing.poll() is None, "it did not produce in vain"
        finally:
            producing.kill()


def _is_offline(sandbox: Sandbox, log_dir: Path) -> bool:
    with admin(sandbox) as client:
        (answer,) = client.describe_log_dirs().values()
    return answer.answer()[str(log_dir)].error is not None


def _errors(output: str) -> dict[str, str | None]:
    (broker,) = json.loads(output.splitlines()[-1])["brokers"]
    return {log_dir["logDir"]: log_dir["error"] for log_dir in broker["logDirs"]}


def test_a_future_replica_is_marked(three_dirs: ThreeDirs) -> None:
    with admin(three_dirs.sandbox) as observer:
        (answer,) = observer.describe_log_dirs().values()
    moving = {path: log_dir.replica_infos.get(TopicPartition("moving", 0)) for path, log_dir in answer.log_dirs.items()}
    current, future = moving[str(three_dirs.source)], moving[str(three_dirs.target)]

    assert current is not None
    assert future is not None
    assert (current.is_future, future.is_future) == (False, True)
    assert future.offset_lag > 0
    assert future.size < current.size


def test_a_broker_that_is_down_does_not_hide_the_others() -> None:
    # The cluster still lists the dead broker.
    with Sandbox(SandboxSpec(brokers=2, volumes=(VOLUME,), properties=CALM)) as sandbox:
        create_topic(sandbox, "orders", assignment={0: [1], 1: [2]})
        sandbox.broker(2).kill()
        options = ("log-dirs", "--bootstrap-server", sandbox.bootstrap_servers, "--describe", "--output")

        with admin(sandbox) as client:
            answer = client.describe_log_dirs()
        table, document, stock_like = (brimline(*options, output) for output in ("table", "json", "kafka-json"))

        assert answer[BrokerId(1)].failure is None
        assert len(answer[BrokerId(1)].answer()) == 1
        failure = answer[BrokerId(2)].failure
        assert failure is not None
        assert failure.kind is FailureKind.UNREACHABLE
        assert "broker 2" in failure.message
        assert "refused" in failure.message
        assert table.returncode == document.returncode == 3
        assert "orders-0" in table.stdout
        assert "refused" in table.stdout
        assert {b["broker"]: b["failure"] is None for b in json.loads(document.stdout)["brokers"]} == {
            1: True,
            2: False,
        }
        # The stock tool's format cannot say "some": it says nothing and fails, as the stock tool does.
        assert stock_like.returncode == 1
        assert stock_like.stdout == "Querying brokers for log directories information\n"
        assert "broker 2" in stock_like.stderr


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(volumes=(VolumeSpec(size=Bytes(512 << 20)),))) as running:
        yield running


def test_an_unknown_broker_is_refused_in_the_stock_tools_words(three_dirs: ThreeDirs) -> None:
    sandbox = three_dirs.sandbox
    options = ["--bootstrap-server", sandbox.bootstrap_servers, "--describe", "--broker-list", "0,1,2"]
    theirs = sandbox.java_tool("log-dirs", *options)
    ours = brimline("log-dirs", *options)

    assert ours.returncode == theirs.returncode == 1
    assert ours.stdout == theirs.stdout == ""
    assert ours.stderr.strip() in theirs.stderr
    assert "do not exist from --broker-list: 0,2. Current existent brokers: 1" in ours.stderr


@pytest.mark.long
def test_two_thousand_partitions(sandbox: Sandbox) -> None:
    create_topic(sandbox, "many", partitions=2000)
    options = ["--bootstrap-server", sandbox.bootstrap_servers, "--describe", "--topic-list", "many"]
    table = brimline("log-dirs", *options, "--output", "table")
    csv = brimline("log-dirs", *options, "--output", "csv")
    with admin(sandbox) as client:
        (answer,) = client.describe_log_dirs().values()

    (log_dir,) = answer.answer().values()
    assert sum(partition.topic == "many" for partition in log_dir.replica_infos) == 2000
    assert csv.stdout.count("\n") == 2001
    assert "1,980 more" in table.stdout
