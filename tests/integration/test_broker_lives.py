"""What a broker's disk is filled by besides Produce, on real brokers: the cleaner held, inodes, a log dir offline."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka.admin import ConfigResource, ConfigResourceType

from brimline.guard.cleaner import BACKOFF, BACKOFFS, HELD_RATIO, RATIO
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import brimline_inside, create_topic, produce
from tests.integration.full_disks import (
    BY_PERCENT,
    KAFKA_STORAGE_ERROR,
    MIB,
    NEVER_LATE,
    SECOND,
    STORED,
    admin_client,
    create_topic_in,
    delete_topics,
    log_dir_errors,
    signs_of_death,
)
from tests.integration.gatewayed import ENFORCING, gateway, state_dir
from tests.integration.guarded import RunningGuard, guard
from tests.integration.raw_produce import raw_producer
from tests.waiting import eventually

pytestmark = pytest.mark.integration

COMPACTED = {"cleanup.policy": "compact", "segment.bytes": str(MIB)}
LIMITS = {**ENFORCING, "disk.max.used.percent": "100", "disk.min.free.bytes": str(32 * MIB), "brimline.cordon": "false"}
NEAR, ALMOST_FULL = Bytes(36 * MIB), Bytes(3 * MIB)
"""Of a volume whose limit keeps 32 MiB free: no cleaning begins; one under way is ended, and there is no window."""
INODES_VOLUME = "volume-2/log-dir-0"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may loop-mount an ext4 volume")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    volumes = [VolumeSpec(size=Bytes(96 * MIB)), VolumeSpec(size=Bytes(96 * MIB))]
    if os.geteuid() == 0:
        volumes.append(VolumeSpec(size=Bytes(96 * MIB), filesystem="ext4"))
    with Sandbox(SandboxSpec(volumes=tuple(volumes), fronted=True, properties=NEVER_LATE)) as running:
        yield running


@contextmanager
def guarding(sandbox: Sandbox, log: Path, limits: Mapping[str, str] = LIMITS) -> Iterator[RunningGuard]:
    """With the state of the guard before it, as its gateway has it."""
    settings = {**limits, "brimline.state.dir": str(state_dir(sandbox))}
    sandbox.outside(state_dir(sandbox)).mkdir(mode=0o700, exist_ok=True)
    with guard(sandbox, log, settings) as running:
        yield running


@contextmanager
def compacted(sandbox: Sandbox, *topics: str) -> Iterator[Path]:
    """Compacted topics on the second disk; that disk."""
    disk = sandbox.broker(1).log_dirs[1]
    for topic in topics:
        create_topic_in(sandbox, topic, disk, config=COMPACTED)
        produce(sandbox, topic, 3, keyed=True)
    yield disk
    with admin_client(sandbox) as client:
        left = set(topics).intersection(client.list_topics())
    delete_topics(sandbox, *left)


def topics_come_and_go(sandbox: Sandbox, disk: Path, number: int) -> None:
    create_topic(sandbox, f"created-{number}", config=COMPACTED)
    with admin_client(sandbox) as client:
        client.delete_topics([f"created-{number}", f"deleted-{number}"])
    # Its folder has another name then, until the deletion delay is over
    eventually(lambda: not (sandbox.outside(disk) / f"deleted-{number}-0").exists())


def own_settings(sandbox: Sandbox) -> dict[str, str]:
    """What is set for this broker alone, as it was set."""
    with admin_client(sandbox) as client:
        found = client.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")], include_synonyms=True)
    return {
        key: synonym["value"]
        for key, entry in found["broker"]["1"].items()
        for synonym in entry["synonyms"]
        if "log.cleaner" in key and synonym["source"] == "DYNAMIC_BROKER_CONFIG"
    }


def set_by_operator(sandbox: Sandbox, key: str, value: str | None) -> None:
    change = ("DELETE", None) if value is None else value
    with admin_client(sandbox) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.BROKER, "1", {key: change})])
    eventually(lambda: own_settings(sandbox).get(key) == value)


def write_until_lost(sandbox: Sandbox, topic: str, disk: Path) -> None:
    """Past the gateway; the producer ends with this, or it would knock at a broker that is restarted."""
    producer = Producer({"bootstrap.servers": sandbox.admin_servers, "message.timeout.ms": 5000})

    def is_lost() -> bool:
        producer.produce(topic, b"x" * 100_000)
        producer.poll(0)
        return log_dir_errors(sandbox)[str(disk)] == KAFKA_STORAGE_ERROR

    eventually(is_lost)
    producer.purge()


def verify_lives(sandbox: Sandbox) -> None:
    assert sandbox.broker(1).is_running
    assert set(log_dir_errors(sandbox).values()) == {0}


def test_near_its_limit_a_broker_begins_no_cleaning_and_gets_its_own_settings_back(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    topics = ("held", "deleted-1", "deleted-2", "deleted-3")
    with compacted(sandbox, *topics) as disk, guarding(sandbox, tmp_path / "guard") as running:
        set_by_operator(sandbox, BACKOFF, "30000")
        filler = sandbox.fill(disk, leave_free=NEAR)
        eventually(lambda: own_settings(sandbox).get(BACKOFF) in BACKOFFS)
        assert own_settings(sandbox)[RATIO] == HELD_RATIO
        eventually(lambda: running.samples("brimline_cleaner_held") == {"": 1})
        topics_come_and_go(sandbox, disk, 1)

        more = sandbox.fill(disk, leave_free=ALMOST_FULL)
        eventually(lambda: running.states()[SECOND] == "full")
        topics_come_and_go(sandbox, disk, 2)

        for each in {filler, more}:
            sandbox.outside(each).unlink()
        eventually(lambda: own_settings(sandbox) == {BACKOFF: "30000"})
        topics_come_and_go(sandbox, disk, 3)
        eventually(lambda: running.samples("brimline_cleaner_held") == {"": 0})
        assert list(sandbox.outside(state_dir(sandbox)).glob("cleaner-hold-*")) == []
    set_by_operator(sandbox, BACKOFF, None)
    verify_lives(sandbox)


def test_it_stays_held_over_restarts_of_guard_and_broker_and_a_killed_guards_hold_is_given_back(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with compacted(sandbox, "restarted") as disk:
        with guarding(sandbox, tmp_path / "guard") as running:
            filler = sandbox.fill(disk, leave_free=ALMOST_FULL)
            eventually(lambda: own_settings(sandbox).keys() == {RATIO, BACKOFF})
        assert "cleaner-stays-held" in running.events()
        sandbox.broker(1).restart()
        assert own_settings(sandbox).keys() == {RATIO, BACKOFF}
        before = own_settings(sandbox)[BACKOFF]
        with guarding(sandbox, tmp_path / "killed") as running:
            eventually(lambda: own_settings(sandbox)[BACKOFF] != before)
            running.process.kill()
        sandbox.outside(filler).unlink()
        assert own_settings(sandbox).keys() == {RATIO, BACKOFF}
        with guarding(sandbox, tmp_path / "last"):
            eventually(lambda: own_settings(sandbox) == {})
    verify_lives(sandbox)


@pytest.mark.long
def test_a_disk_that_only_compaction_can_empty_is_released(sandbox: Sandbox, tmp_path: Path) -> None:
    with compacted(sandbox, "emptied") as disk, guarding(sandbox, tmp_path / "guard") as running:
        filler = sandbox.fill(disk, leave_free=NEAR)
        eventually(lambda: own_settings(sandbox).get(RATIO) == HELD_RATIO)
        producer = Producer({"bootstrap.servers": sandbox.admin_servers})
        for number in range(2000):
            producer.produce("emptied", b"x" * 10_000, key=str(number % 10))
        producer.flush()
        eventually(lambda: running.states()[SECOND] == "full")
        eventually(lambda: running.states()[SECOND] == "ok")
        assert RATIO not in own_settings(sandbox), "a window"

        sandbox.outside(filler).unlink()
        eventually(lambda: own_settings(sandbox) == {})
    verify_lives(sandbox)


def test_a_log_dir_that_the_broker_has_lost_is_offline_for_everybody_until_it_is_restarted(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Whatever room its disk has."""
    disk = sandbox.broker(1).log_dirs[1]
    create_topic_in(sandbox, "lost", disk)
    limits = {**ENFORCING, **BY_PERCENT}
    with (
        guarding(sandbox, tmp_path / "guard", limits) as running,
        gateway(sandbox, tmp_path / "gateway", limits) as fence,
    ):
        filler = sandbox.fill(disk, leave_free=Bytes(0))
        eventually(lambda: fence.fenced() == {SECOND})
        write_until_lost(sandbox, "lost", disk)
        eventually(lambda: running.states()[SECOND] == "offline")
        sandbox.outside(filler).unlink()
        eventually(lambda: running.state()["volumes"][1]["usableBytes"] > 64 * MIB)
        # A look of the gateway and one of the guard later
        seen = running.state()["volumes"][1]["observedAt"]
        eventually(lambda: running.state()["volumes"][1]["observedAt"] > seen)
        assert (running.state()["volumes"][1]["bytesToLimit"] or 0) > 0
        verify_told_as_offline(sandbox, running, disk)

        sandbox.broker(1).restart()
        eventually(lambda: running.states()[SECOND] == "ok")
        eventually(lambda: samples_by_state(running, disk) == {"ok": 1, "full": 0, "unknown": 0, "offline": 0})
        eventually(lambda: not any(each["feature"] == "offline" for each in running.state()["notices"]))
        eventually(lambda: "notice-over" in running.events())
        eventually(lambda: running.state()["cordon"]["logDirs"] == [])
    delete_topics(sandbox, "lost")


def verify_told_as_offline(sandbox: Sandbox, running: RunningGuard, disk: Path) -> None:
    config = sandbox.broker(1).node.server_properties.with_name("guard.properties")
    status = brimline_inside(sandbox, "status", "--url", f"http://127.0.0.1:{running.port}")
    doctor = brimline_inside(sandbox, "doctor", "--config", str(config))
    topics = brimline_inside(sandbox, "topics", "--bootstrap-server", sandbox.admin_servers, "--output", "json")
    words = [event["word"] for event in json.loads(running.get("/v1/history"))["events"]]

    assert samples_by_state(running, disk) == {"ok": 0, "full": 0, "unknown": 0, "offline": 1}
    assert [each["key"] for each in running.state()["notices"] if each["feature"] == "offline"] == [str(disk)]
    assert {"ROOM", "RELEASED", "UNCORDONED"}.isdisjoint(words[words.index("OFFLINE") :]), words
    assert (status.returncode, "OFFLINE: " in status.stdout.splitlines()[0]) == (3, True)
    assert f"holds {disk} offline" in doctor.stdout
    assert json.loads(topics.stdout)["offline"] == [{"broker": 1, "logDir": str(disk)}]
    assert "not counted" in topics.stderr


def samples_by_state(running: RunningGuard, disk: Path) -> dict[str, float]:
    found = running.samples("brimline_volume_state")
    of_disk = {labels: value for labels, value in found.items() if f'log_dir="{disk}"' in labels}
    return {labels.rpartition('state="')[2].strip('"'): value for labels, value in of_disk.items()}


@needs_root
def test_without_inodes_a_disk_is_full_before_a_segment_cannot_be_rolled(sandbox: Sandbox, tmp_path: Path) -> None:
    disk = sandbox.broker(1).log_dirs[2]
    folder = sandbox.outside(disk).parent / "foreign"
    folder.mkdir()
    before = signs_of_death(sandbox)
    create_topic_in(sandbox, "rolled", disk, config={"segment.bytes": str(MIB)})
    with (
        guarding(sandbox, tmp_path / "guard") as running,
        gateway(sandbox, tmp_path / "gateway", LIMITS) as fence,
        raw_producer(sandbox.bootstrap_servers) as raw,
    ):
        eventually(lambda: raw.produce([("rolled", 0)])["rolled", 0].code == STORED)
        eventually(lambda: running.samples("brimline_reserve_pending").keys())
        number = 0
        while os.statvfs(folder).f_favail > 100:
            (folder / str(number)).touch()
            number += 1
        eventually(lambda: fence.fenced() == {INODES_VOLUME})
        assert raw.produce([("rolled", 0)])["rolled", 0].code == KAFKA_STORAGE_ERROR
        eventually(lambda: running.states()[INODES_VOLUME] == "full")
        for each in folder.iterdir():
            each.unlink()
        folder.rmdir()
        eventually(lambda: fence.fenced() == set())
        eventually(lambda: raw.produce([("rolled", 0)])["rolled", 0].code == STORED)
        eventually(lambda: running.states()[INODES_VOLUME] == "ok")
    assert signs_of_death(sandbox) == before
    verify_lives(sandbox)
    delete_topics(sandbox, "rolled")
