"""What an operator meets on a bad day, on real brokers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartitionReplica

from brimline import BrokerId, TopicPartition
from brimline.model import Bytes, FailureKind, KafkaError
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import admin, brimline, create_topic, eventually, produce

pytestmark = pytest.mark.integration

VOLUME = VolumeSpec(size=Bytes(64 << 20))


def test_an_offline_log_dir_is_named_and_hides_nothing_else() -> None:
    with Sandbox(SandboxSpec(volumes=(VOLUME, VOLUME))) as sandbox:
        create_topic(sandbox, "orders", partitions=2)
        dirs = {folder.name: log_dir for log_dir in sandbox.broker(1).log_dirs for folder in _folders(sandbox, log_dir)}
        # The first dir holds the metadata log: if that goes, the broker goes.
        broken = sandbox.broker(1).log_dirs[1]
        partition = int(next(name for name, log_dir in dirs.items() if log_dir == broken)[-1])
        sandbox.fill(broken, leave_free=Bytes(0))
        _produce_in_vain(sandbox, partition)
        eventually(lambda: _is_offline(sandbox, broken))

        with admin(sandbox) as client:
            (answer,) = client.describe_log_dirs().values()
        offline = answer.answer()[str(broken)]
        shown = brimline("log-dirs", "--bootstrap-server", sandbox.bootstrap_servers, "--describe")
        stock = sandbox.java_tool("log-dirs", "--bootstrap-server", sandbox.bootstrap_servers, "--describe")

        assert offline.error == KafkaError(56)
        assert (offline.total_bytes, offline.usable_bytes) == (None, None)
        assert answer.answer()[str(sandbox.broker(1).log_dirs[0])].error is None
        assert shown.returncode == stock.returncode == 0
        assert _errors(shown.stdout) == _errors(stock.stdout)
        assert _errors(shown.stdout)[str(broken)] == "org.apache.kafka.common.errors.KafkaStorageException"


def _produce_in_vain(sandbox: Sandbox, partition: int) -> None:
    """In a process of its own: this producer never gives up on records that can never arrive."""
    script = f"""
import os
from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError
producer = KafkaProducer(bootstrap_servers={sandbox.admin_servers!r})
for _ in range(100):
    producer.send("orders", b"x" * 1000, partition={partition})
try:
    producer.flush(timeout=2)
except KafkaTimeoutError:
    os._exit(7)
os._exit(0)
"""
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert finished.returncode == 7


def _is_offline(sandbox: Sandbox, log_dir: Path) -> bool:
    with admin(sandbox) as client:
        (answer,) = client.describe_log_dirs().values()
    return answer.answer()[str(log_dir)].error is not None


def _folders(sandbox: Sandbox, log_dir: Path) -> list[Path]:
    return list(sandbox.outside(log_dir).glob("orders-*"))


def _errors(output: str) -> dict[str, str | None]:
    (broker,) = json.loads(output.splitlines()[-1])["brokers"]
    return {log_dir["logDir"]: log_dir["error"] for log_dir in broker["logDirs"]}


def test_a_future_replica_is_marked() -> None:
    with Sandbox(SandboxSpec(volumes=(VOLUME, VOLUME))) as sandbox:
        create_topic(sandbox, "moving")
        produce(sandbox, "moving", 6)
        _move_slowly(sandbox)
        source = next(d for d in sandbox.broker(1).log_dirs if (sandbox.outside(d) / "moving-0").exists())
        (target,) = set(sandbox.broker(1).log_dirs) - {source}
        client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
        client.alter_replica_log_dirs({TopicPartitionReplica("moving", 0, 1): str(target)})
        client.close()
        eventually(lambda: any(sandbox.outside(target).glob("moving-0.*-future")))

        with admin(sandbox) as observer:
            (answer,) = observer.describe_log_dirs().values()
        moving = {
            path: log_dir.replica_infos.get(TopicPartition("moving", 0)) for path, log_dir in answer.log_dirs.items()
        }
        current, future = moving[str(source)], moving[str(target)]

        assert current is not None
        assert future is not None
        assert (current.is_future, future.is_future) == (False, True)
        assert future.offset_lag > 0
        assert future.size < current.size


def _move_slowly(sandbox: Sandbox) -> None:
    slow = "replica.alter.log.dirs.io.max.bytes.per.second=1"
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    changed = sandbox.java_tool(
        "configs", "--bootstrap-server", sandbox.admin_servers, "--alter", *broker, "--add-config", slow
    )
    assert changed.returncode == 0, changed.stderr


def test_a_broker_that_is_down_does_not_hide_the_others() -> None:
    # A long session, so that the cluster still lists the dead broker.
    with Sandbox(
        SandboxSpec(brokers=2, volumes=(VOLUME,), properties={"broker.session.timeout.ms": "60000"})
    ) as sandbox:
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


def test_an_unknown_broker_is_refused_in_the_stock_tools_words() -> None:
    with Sandbox(SandboxSpec(volumes=(VOLUME,))) as sandbox:
        options = ["--bootstrap-server", sandbox.bootstrap_servers, "--describe", "--broker-list", "0,1,2"]
        theirs = sandbox.java_tool("log-dirs", *options)
        ours = brimline("log-dirs", *options)

    assert ours.returncode == theirs.returncode == 1
    assert ours.stdout == theirs.stdout == ""
    assert ours.stderr.strip() in theirs.stderr
    assert "do not exist from --broker-list: 0,2. Current existent brokers: 1" in ours.stderr


def test_two_thousand_partitions() -> None:
    with Sandbox(SandboxSpec(volumes=(VolumeSpec(size=Bytes(512 << 20)),))) as sandbox:
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
