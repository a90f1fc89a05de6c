"""KIP-61 by the daemon: a real volume comes under its ceiling, and everybody is told."""

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from brimline.act.ledger.entries import Paused, Resumed
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import CycleRecord, TrimPhase
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import brimline, create_topic
from tests.integration.full_disks import clean_up, used_percent
from tests.integration.guarded import RunningGuard, guard, write_config
from tests.integration.kafka_clients import kafka_consumer
from tests.integration.reclaim_world import QUICK_BROKER, TRIMMABLE, Writer, reclaim_keys, story
from tests.integration.shared import shared
from tests.waiting import eventually

pytestmark = pytest.mark.integration

MIB = 1 << 20
CEILING = 50
NOTHING_YET = {"state": "not looked at yet", "lastCycle": None, "plan": None}


@pytest.fixture(scope="module")
def running_sandbox() -> Iterator[Sandbox]:
    """Two log dirs on one volume."""
    volume = VolumeSpec(size=Bytes(64 * MIB), log_dirs=2)
    with shared(SandboxSpec(volumes=(volume,), properties=QUICK_BROKER)) as running:
        yield running


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    """39 MiB of 64 are used: by one topic of three days, one of two and one of an hour, in both log dirs."""
    writer = Writer(running_sandbox.admin_servers)
    for topic, hours in (("old", 48.0), ("older", 72.0), ("young", 1.0)):
        create_topic(running_sandbox, topic, config=TRIMMABLE)
        writer.write(topic, 13, hours_old=hours)
    yield running_sandbox
    clean_up(running_sandbox)


def used(sandbox: Sandbox) -> float:
    return used_percent(sandbox, sandbox.broker(1).log_dirs[0])


def cycles(state_dir: Path) -> list[CycleRecord]:
    return [chapter for chapter in story(state_dir).chapters if isinstance(chapter, CycleRecord)]


def device(running: RunningGuard) -> dict[str, Any]:
    """There is one, and a moment before it is looked at."""
    found: list[dict[str, Any]] = running.state()["reclaim"]["devices"]
    return found[0] if found else NOTHING_YET


def is_held(running: RunningGuard) -> bool:
    """The device has come down by a cycle that is over."""
    now = device(running)
    return now["state"] == "under-ceiling" and now["lastCycle"] is not None


def segments(sandbox: Sandbox, topic: str) -> list[int]:
    """The base offsets of its live segments."""
    folders = (sandbox.outside(log_dir) / f"{topic}-0" for log_dir in sandbox.broker(1).log_dirs)
    return sorted(int(path.stem) for folder in folders if folder.is_dir() for path in folder.glob("*.log"))


def commit(sandbox: Sandbox, group: str, topic: str, offset: int) -> None:
    with kafka_consumer(sandbox.admin_servers, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)})


def test_the_oldest_go_first_and_everybody_is_told(sandbox: Sandbox, tmp_path: Path) -> None:
    before, all_older = used(sandbox), segments(sandbox, "older")
    commit(sandbox, "slow-readers", "older", 100)
    with guard(sandbox, tmp_path / "log", reclaim_keys(tmp_path, CEILING)) as running:
        eventually(lambda: is_held(running))
        after, told = used(sandbox), device(running)
        freed = told["sinceStart"]["freedBytes"]
        eventually(lambda: list(running.samples("brimline_reclaim_freed_bytes_total").values()) == [freed])
        status = brimline("status", "--url", f"http://127.0.0.1:{running.port}")

    trims = [trim for cycle in cycles(tmp_path) for trim in cycle.trims]
    freed_bytes = sum(trim.freed_bytes for trim in trims)
    assert before > CEILING >= after
    assert {(trim.planned.partition.topic, trim.phase) for trim in trims} == {("older", TrimPhase.DONE)}
    assert segments(sandbox, "older") == [base for base in all_older if base >= trims[-1].planned.target]
    assert freed_bytes == sum(trim.planned.allocated_bytes for trim in trims) == told["sinceStart"]["freedBytes"]
    assert "not read yet by group slow-readers" in trims[0].planned.reason
    assert "not yet read by slow-readers" in running.log.read_text()
    assert "below its ceiling of 50 %" in status.stdout
    assert {event for event in running.events() if event.startswith("reclaim")} == {
        "reclaim",
        "reclaim-over",
        "reclaim-under-ceiling",
    }


def test_plan_deletes_nothing_until_a_reload_says_apply_and_what_is_protected_stays(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    keys = reclaim_keys(tmp_path, CEILING, reclaim_mode="plan", reclaim_protected_topics="old(er)?")
    before = {topic: segments(sandbox, topic) for topic in ("old", "older", "young")}
    with guard(sandbox, tmp_path / "log", keys) as running:
        eventually(lambda: device(running)["state"] == "planned")
        planned, while_planned = device(running)["plan"], segments(sandbox, "young")
        reload(sandbox, running, {**keys, "brimline.reclaim.mode": "apply"})
        eventually(lambda: is_held(running))

    assert (planned["outcome"], while_planned) == ("enough-taken", before["young"])
    assert {topic: segments(sandbox, topic) for topic in ("old", "older")} == {
        topic: before[topic] for topic in ("old", "older")
    }
    assert {trim.planned.partition.topic for cycle in cycles(tmp_path) for trim in cycle.trims} == {"young"}


def reload(sandbox: Sandbox, running: RunningGuard, keys: dict[str, str]) -> None:
    write_config(sandbox, {**keys, "brimline.metrics.port": "0", "brimline.log.format": "json"})
    os.kill(running.process.pid, signal.SIGHUP)


def test_a_pause_holds_it_and_a_resume_lets_it_go_on(sandbox: Sandbox, tmp_path: Path) -> None:
    by_hand = Ledger(tmp_path, 1, lambda: datetime.now(UTC))
    by_hand.append(Paused(by="root", reason="an audit"))
    with guard(sandbox, tmp_path / "log", reclaim_keys(tmp_path, CEILING)) as running:
        eventually(lambda: device(running)["state"] == "paused" and device(running)["plan"] is not None)
        paused, while_paused = device(running), running.samples("brimline_reclaim_paused")
        by_hand.append(Resumed(by="root", reason="it is over"))
        eventually(lambda: is_held(running))
    by_hand.close()

    assert "paused by root: an audit" in paused["does"]
    assert paused["sinceStart"]["cycles"] == 0
    assert list(while_paused.values()) == [1.0]
    assert len(cycles(tmp_path)) >= 1
