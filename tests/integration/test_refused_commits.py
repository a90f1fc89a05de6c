"""A last line behind the fence, on a real broker: past it commits are refused, and nothing else of a group."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from brimline.decide.commits import OffsetsTopic
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic, produce
from tests.integration.full_disks import MIB, NEVER_LATE, create_topic_in
from tests.integration.gatewayed import ENFORCING, gateway, state_dir
from tests.integration.guarded import guard
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

OFFSETS_TOPIC, PARTITIONS = "__consumer_offsets", 4
LIMITS = {
    **ENFORCING,
    "disk.max.used.percent": "100",
    "disk.min.free.bytes": str(32 * MIB),
    "brimline.disk.reserve": "off",
    "brimline.cordon": "false",
    "brimline.gateway.commits.refuse.below.percent": "50",
}
PAST_LINE = Bytes(8 * MIB)
LOAD_IN_PROGRESS = 14


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    disk = VolumeSpec(size=Bytes(96 * MIB))
    properties = {**NEVER_LATE, "offsets.topic.num.partitions": str(PARTITIONS)}
    with Sandbox(SandboxSpec(volumes=(disk, disk), fronted=True, properties=properties)) as running:
        yield running


def consumer(sandbox: Sandbox, group: str) -> Consumer:
    settings = {"bootstrap.servers": sandbox.bootstrap_servers, "group.id": group, "enable.auto.commit": False}
    return Consumer({**settings, "auto.offset.reset": "earliest"})


def commits(client: Consumer, offset: int) -> int:
    """The error code of one commit, which is not tried again."""
    try:
        (answered,) = client.commit(offsets=[TopicPartition("read", 0, offset, "m" * 1000)], asynchronous=False)
    except KafkaException as error:
        return int(error.args[0].code())
    return 0 if answered.error is None else int(answered.error.code())


def join(client: Consumer) -> None:
    client.subscribe(["read"])
    eventually(lambda: client.poll(0.2) is not None)


def offsets_bytes(sandbox: Sandbox, disk: Path) -> int:
    return sum(each.stat().st_size for each in sandbox.outside(disk).glob(f"{OFFSETS_TOPIC}-*/*.log"))


def test_past_the_line_commits_to_that_disk_are_refused_until_there_is_room(sandbox: Sandbox, tmp_path: Path) -> None:
    other, disk = sandbox.broker(1).log_dirs
    create_topic(sandbox, "read", 1)
    produce(sandbox, "read", 3)
    # Half of the groups' offsets lie on the disk that fills
    offsets = OffsetsTopic(partitions=PARTITIONS)
    log_dirs = [other, disk] * (PARTITIONS // 2)
    create_topic_in(sandbox, OFFSETS_TOPIC, *log_dirs, config={"cleanup.policy": "compact"})
    here, elsewhere = (
        next(f"group-{n}" for n in range(100) if log_dirs[offsets.partition_of(f"group-{n}")] == wanted)
        for wanted in (disk, other)
    )
    keys = {**LIMITS, "brimline.state.dir": str(state_dir(sandbox))}
    with (
        gateway(sandbox, tmp_path / "gateway", keys) as running,
        guard(sandbox, tmp_path / "guard", keys) as watching,
    ):
        filed = sandbox.outside(state_dir(sandbox)) / "reserve-1.json"
        eventually(lambda: filed.is_file() and json.loads(filed.read_text())["offsets"] is not None)
        assert json.loads(filed.read_text())["offsets"] == {"partitions": PARTITIONS, "led": list(range(PARTITIONS))}
        member, neighbour, healthy = (consumer(sandbox, group) for group in (here, here, elsewhere))
        join(member)
        assert commits(member, 1) == 0

        filler = sandbox.fill(disk, leave_free=PAST_LINE)
        eventually(lambda: commits(member, 2) == LOAD_IN_PROGRESS)
        before = offsets_bytes(sandbox, disk)
        refused = [commits(member, 3) for _ in range(10)]
        assert offsets_bytes(sandbox, disk) == before
        assert commits(healthy, 2) == 0, "its offsets lie on the other disk"
        assert refused == [LOAD_IN_PROGRESS] * 10
        eventually(lambda: running.state()["commits"]["requests"] >= 10)
        (shown,) = running.state()["commits"]["largest"]
        assert shown["group"] == here
        eventually(lambda: here in str([each["facts"] for each in watching.state()["notices"]]))
        eventually(lambda: watching.samples("brimline_gateway_refused_commits_total")[""] >= 10)

        joined = []
        neighbour.subscribe(["read"], on_assign=lambda _, assigned: joined.append(assigned))
        eventually(lambda: (member.poll(0.1), neighbour.poll(0.1)) and joined)
        neighbour.close()
        assert member.committed([TopicPartition("read", 0)], PATIENCE_SECONDS)[0].offset < 3

        sandbox.outside(filler).unlink()
        eventually(lambda: commits(member, 3) == 0)
        assert member.committed([TopicPartition("read", 0)], PATIENCE_SECONDS)[0].offset == 3
        member.close()
        healthy.close()
    assert sandbox.broker(1).is_running
