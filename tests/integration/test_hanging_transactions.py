"""Which open transactions hang, on a real broker: Brimline and ``kafka-transactions.sh find-hanging`` name the same."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import brimline_inside, create_topic
from tests.integration.full_disks import clean_up
from tests.integration.guarded import guard, write_config
from tests.integration.raw_kafka import framed, raw_connection
from tests.integration.reclaim_world import MIB, QUICK_BROKER
from tests.integration.test_reclaim_careful import ORDINARY, keys_of, open_transaction, write_behind
from tests.waiting import eventually
from tests.wire.produce_messages import Partition, PlainRequest, PlainTopic, batch, encoded_request

pytestmark = pytest.mark.integration

TOPIC = "payments"
PRODUCE_VERSION = 9
LONG_AGO_SECONDS = 20 * 60


@pytest.fixture(scope="module")
def running_sandbox() -> Iterator[Sandbox]:
    """A broker as brokers before 3.6 were: it does not ask the coordinator before it writes."""
    properties = {**QUICK_BROKER, "transaction.partition.verification.enable": "false"}
    with Sandbox(SandboxSpec(volumes=(VolumeSpec(size=Bytes(64 * MIB)),), properties=properties)) as running:
        yield running


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    create_topic(running_sandbox, TOPIC, config=ORDINARY)
    yield running_sandbox
    clean_up(running_sandbox)


def named_by_the_stock_tool(sandbox: Sandbox) -> bool:
    done = sandbox.java_tool(
        "transactions", "--bootstrap-server", sandbox.bootstrap_servers, "find-hanging", "--broker-id", "1"
    )
    assert done.returncode == 0, done.stderr
    return TOPIC in done.stdout


def doctor(sandbox: Sandbox, keys: dict[str, str]) -> str:
    return " ".join(brimline_inside(sandbox, "doctor", "--config", str(write_config(sandbox, keys))).stdout.split())


def test_a_young_transaction_with_old_records_does_not_hang(sandbox: Sandbox, tmp_path: Path) -> None:
    """As replays, MirrorMaker and Streams write them; and its file has not been written to for long."""
    offset, producer = open_transaction(sandbox, TOPIC)
    write_behind(sandbox, TOPIC, megabytes=6)
    age_files(sandbox)
    keys = keys_of(tmp_path, 50, "careful")

    with guard(sandbox, tmp_path / "log", keys) as running:
        eventually(lambda: running.samples("brimline_reclaim_hung_bytes"))
        hung = running.samples("brimline_reclaim_hung_bytes")
    examined, is_named = doctor(sandbox, keys), named_by_the_stock_tool(sandbox)
    producer.abort_transaction()

    assert (set(hung.values()), is_named) == ({0.0}, False)
    assert f"a transaction has been open at offset {offset}" not in examined


def test_one_that_no_coordinator_knows_hangs(sandbox: Sandbox, tmp_path: Path) -> None:
    ghost = batch(producer_id=4711, producer_epoch=0, base_sequence=0, transactional=True)
    topics = [PlainTopic(name=TOPIC, topic_id=None, partitions=[Partition(index=0, records=ghost)])]
    with raw_connection(sandbox.bootstrap_servers) as connection:
        connection.ask(framed(encoded_request(PlainRequest(topics=topics, transactional_id="ghost"), PRODUCE_VERSION)))
    write_behind(sandbox, TOPIC, megabytes=6)
    keys = keys_of(tmp_path, 50, "careful")
    young = doctor(sandbox, keys)
    age_files(sandbox)

    with guard(sandbox, tmp_path / "log", keys) as running:
        eventually(lambda: running.samples("brimline_reclaim_hung_bytes"))
        hung = running.samples("brimline_reclaim_hung_bytes")

    assert named_by_the_stock_tool(sandbox)
    assert "a transaction has been open" not in young, "nobody has seen it for long enough"
    assert min(hung.values()) > 4 * MIB
    assert f"abort --topic {TOPIC} --partition 0 --start-offset" in doctor(sandbox, keys)


def age_files(sandbox: Sandbox) -> None:
    """As if the last write to them were long ago."""
    then = time.time() - LONG_AGO_SECONDS
    for path in (sandbox.outside(sandbox.broker(1).log_dirs[0]) / f"{TOPIC}-0").glob("*.log"):
        os.utime(path, (then, then))
