"""Careful by default, on a real broker: what a careful operator would not have deleted stays.

A windowed changelog as Kafka Streams makes it, an event store that is kept for ever, and ordinary topics.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import brimline_inside, create_topic
from tests.integration.full_disks import clean_up, used_percent
from tests.integration.guarded import guard, write_config
from tests.integration.reclaim_world import DELETE_DELAY_SECONDS, MIB, QUICK_BROKER, Writer, reclaim_keys
from tests.integration.test_reclaim_guard import is_held, segments
from tests.waiting import eventually

pytestmark = pytest.mark.integration

_DAYS_MS = 24 * 3600 * 1000
SMALL_SEGMENTS = {
    "segment.bytes": str(MIB),
    "file.delete.delay.ms": str(int(DELETE_DELAY_SECONDS * 1000)),
}
ORDINARY = {**SMALL_SEGMENTS, "retention.ms": str(30 * _DAYS_MS)}
CHANGELOG = {
    # As Kafka Streams makes them for windowed stores.
    **ORDINARY,
    "cleanup.policy": "compact,delete",
    "message.timestamp.type": "CreateTime",
    "min.compaction.lag.ms": str(30 * _DAYS_MS),
}
EVENTS = {**SMALL_SEGMENTS, "retention.ms": "-1"}
TOPICS = {"app-window-store-changelog": (CHANGELOG, 120.0), "events": (EVENTS, 96.0), "clicks": (ORDINARY, 72.0)}
"""The older ones are those that must stay."""
BELOW = 8
"""Percent of the volume that have to go."""


@pytest.fixture(scope="module")
def running_sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(volumes=(VolumeSpec(size=Bytes(64 * MIB)),), properties=QUICK_BROKER)) as running:
        yield running


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    for topic, (config, hours) in TOPICS.items():
        create_topic(running_sandbox, topic, config=config)
        Writer(running_sandbox.admin_servers, keys=True).write(topic, 10, hours_old=hours)
    yield running_sandbox
    clean_up(running_sandbox)


def ceiling(sandbox: Sandbox, below: int = BELOW) -> int:
    return int(used_percent(sandbox, sandbox.broker(1).log_dirs[0])) - below


def keys_of(state_dir: Path, ceiling_percent: int, policy: str, **more: str) -> dict[str, str]:
    return {**reclaim_keys(state_dir, ceiling_percent, **more), "brimline.reclaim.policy": policy}


def planned(sandbox: Sandbox, keys: dict[str, str]) -> dict[str, Any]:
    path = write_config(sandbox, keys)
    done = brimline_inside(sandbox, "reclaim", "--config", str(path), "--output", "json")
    assert done.returncode in (0, 3), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def topics_of(plan: dict[str, Any]) -> set[str]:
    return {trim["topic"] for device in plan["devices"] for trim in device["trims"]}


def reasons_in(plan: dict[str, Any]) -> set[str]:
    return {each["reason"] for device in plan["about"]["devices"] for each in device["segments"]}


def test_the_same_file_under_both_policies_differs_by_the_documented_rules(sandbox: Sandbox, tmp_path: Path) -> None:
    percent = ceiling(sandbox)

    careful = planned(sandbox, keys_of(tmp_path, percent, "careful"))
    letter = planned(sandbox, keys_of(tmp_path, percent, "kip-61"))

    assert topics_of(letter) == {"app-window-store-changelog"}, "the oldest go first"
    assert topics_of(careful) == {"clicks"}
    assert {"compacted", "for-ever"} <= reasons_in(careful)
    assert not {"compacted", "for-ever"} & reasons_in(letter)


def test_a_changelog_and_an_event_store_stay_whole(sandbox: Sandbox, tmp_path: Path) -> None:
    before = {topic: segments(sandbox, topic) for topic in TOPICS}

    with guard(sandbox, tmp_path / "log", keys_of(tmp_path, ceiling(sandbox), "careful")) as running:
        eventually(lambda: is_held(running))

    after = {topic: segments(sandbox, topic) for topic in TOPICS}
    assert {topic for topic in TOPICS if after[topic] != before[topic]} == {"clicks"}


def test_the_dry_run_and_doctor_name_what_is_kept_for_ever(sandbox: Sandbox, tmp_path: Path) -> None:
    path = write_config(sandbox, keys_of(tmp_path, ceiling(sandbox), "careful"))

    shown = brimline_inside(sandbox, "reclaim", "--config", str(path)).stdout
    doctor = brimline_inside(sandbox, "doctor", "--config", str(path)).stdout

    assert "Never trimmed, topics that are kept for ever: events." in shown
    assert "Never trimmed, compacted topics: app-window-store-changelog." in shown
    assert "never trimmed: topics that are kept for ever" in doctor
