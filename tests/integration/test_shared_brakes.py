"""The brakes of one broker's guard bind the guard of another replica: found through Kafka, and nothing else.

Broker 1 has room and brakes, broker 2 has a ceiling that takes from the same partitions. What went is told by the
brokers' own log starts.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.errors import BrokerResponseError
from kafka.structs import OffsetAndMetadata

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import brimline_inside, create_topic
from tests.integration.full_disks import clean_up, used_percent
from tests.integration.guarded import RunningGuard, guard, write_config
from tests.integration.kafka_clients import kafka_admin
from tests.integration.reclaim_world import MIB, QUICK_BROKER, TRIMMABLE, Writer, reclaim_keys
from tests.integration.segment_files import segment_files
from tests.integration.test_reclaim_ceiling import first_offset
from tests.integration.test_reclaim_guard import device, is_held
from tests.waiting import eventually

pytestmark = pytest.mark.integration

TOPICS = {"audit": 120.0, "clicks": 72.0}
"""The older one goes first, where nothing protects it."""
WRITTEN_MIB = 10
NO_NOTE = OffsetAndMetadata(-1, "", -1)


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)])
def running_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    spec = SandboxSpec(
        version=request.param, brokers=2, volumes=(VolumeSpec(size=Bytes(64 * MIB)),), properties=QUICK_BROKER
    )
    with Sandbox(spec) as running:
        yield running


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    for topic, hours in TOPICS.items():
        create_topic(running_sandbox, topic, assignment={0: [1, 2]}, config=TRIMMABLE)
        Writer(running_sandbox.admin_servers).write(topic, WRITTEN_MIB, hours_old=hours)
    copies = running_sandbox.outside(running_sandbox.broker(2).log_dirs[0])
    whole = (WRITTEN_MIB - 1) * MIB
    eventually(lambda: all(sum(segment_files(copies / f"{topic}-0").values()) > whole for topic in TOPICS))
    yield running_sandbox
    clean_up(running_sandbox)


def keys_of(tmp_path: Path, broker: int, ceiling: int, **more: str) -> dict[str, str]:
    return reclaim_keys(tmp_path / str(broker), ceiling, reclaim_brakes="shared", **more)


@contextmanager
def braked_guard(sandbox: Sandbox, tmp_path: Path, **brakes: str) -> Iterator[RunningGuard]:
    """Of broker 1, which has room; it has told of its brakes."""
    with guard(sandbox, tmp_path / "log-1", keys_of(tmp_path, 1, 99, **brakes)) as running:
        eventually(lambda: "writtenAt" in note(sandbox, 1))
        yield running


@contextmanager
def full_guard(sandbox: Sandbox, tmp_path: Path) -> Iterator[RunningGuard]:
    ceiling = int(used_percent(sandbox, sandbox.broker(2).log_dirs[0])) - 8
    with guard(sandbox, tmp_path / "log-2", keys_of(tmp_path, 2, ceiling), broker=2) as running:
        yield running


def note(sandbox: Sandbox, broker: int) -> str:
    """As Kafka's own client finds it."""
    group, where = f"brimline-guard-{broker}", TopicPartition("__consumer_offsets", 0)
    with kafka_admin(sandbox.admin_servers) as client, suppress(BrokerResponseError):  # its coordinator is being made
        return str(client.list_group_offsets({group: None})[group].get(where, NO_NOTE).metadata)
    return ""


def starts(sandbox: Sandbox) -> dict[str, int]:
    return {topic: first_offset(sandbox, topic) for topic in TOPICS}


def test_what_one_guard_protects_no_other_one_trims(sandbox: Sandbox, tmp_path: Path) -> None:
    with (
        braked_guard(sandbox, tmp_path, reclaim_protected_topics="audit"),
        full_guard(sandbox, tmp_path) as full,
    ):
        eventually(lambda: is_held(full))
        told = full.state()["reclaim"]["brakes"]

    after = starts(sandbox)
    assert after["audit"] == 0
    assert after["clicks"] > 0
    assert told == ["stricter brakes of the guards of broker 1 apply here too"]


def test_a_pause_on_one_broker_pauses_the_guard_of_the_other_until_it_ends(sandbox: Sandbox, tmp_path: Path) -> None:
    with braked_guard(sandbox, tmp_path):
        config = str(write_config(sandbox, keys_of(tmp_path, 1, 99)))
        paused = brimline_inside(sandbox, "reclaim", "pause", "--config", config, "--reason", "a replay")
        examined = brimline_inside(sandbox, "doctor", "--config", config)
        with full_guard(sandbox, tmp_path) as full:
            eventually(lambda: device(full)["state"] == "paused" and device(full)["plan"] is not None)
            first = device(full)["decidedAt"]
            eventually(lambda: device(full)["decidedAt"] != first)
            while_paused, does = starts(sandbox), device(full)["does"]
            by_hand = reclaimed_by_hand(sandbox)
            resumed = brimline_inside(sandbox, "reclaim", "resume", "--config", config)
            eventually(lambda: is_held(full))

    assert "guards of brokers with a replica in common pause too" in paused.stdout
    assert "a replay (resume: brimline reclaim resume): nothing is deleted until then" in examined.stdout
    assert while_paused == dict.fromkeys(TOPICS, 0)
    assert "on broker 1: a replay (resume: brimline reclaim resume on broker 1)" in does
    assert "nothing was deleted; brimline reclaim resume on broker 1 ends it" in by_hand
    assert "resume too" in resumed.stdout
    assert starts(sandbox)["audit"] > 0


def reclaimed_by_hand(sandbox: Sandbox) -> str:
    """What is said to whoever tries, on broker 2."""
    config = sandbox.broker(2).node.server_properties.with_name("guard.properties")
    done = brimline_inside(sandbox, "reclaim", "--config", str(config), "--apply", "--yes")
    assert done.returncode == 1
    return " ".join(done.stderr.split())
