"""Careful by default, on a real broker: what a careful operator would not have deleted stays.

A windowed changelog as Kafka Streams makes it, an event store that is kept for ever, and ordinary topics.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from brimline.guard.clock_memory import ClockMemory
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.settings.keys import KEYS, shown_value
from tests.integration.cluster import brimline, brimline_inside, create_topic
from tests.integration.full_disks import clean_up, used_percent
from tests.integration.guarded import guard, write_config
from tests.integration.reclaim_world import DELETE_DELAY_SECONDS, MIB, QUICK_BROKER, RECORD, Writer, reclaim_keys
from tests.integration.shared import shared
from tests.integration.test_mixed_versions import version_of
from tests.integration.test_reclaim_guard import device, is_held, reload, segments
from tests.waiting import PATIENCE_SECONDS, eventually

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
    with shared(
        SandboxSpec(volumes=(VolumeSpec(size=Bytes(64 * MIB), log_dirs=2),), properties=QUICK_BROKER)
    ) as running:
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
    each_alone = {key.name: shown_value(key.kip_61) for key in KEYS if key.kip_61 is not None}
    key_by_key = {**keys_of(tmp_path, percent, "careful"), **each_alone}

    def differ_by_nothing_else() -> bool:
        """A broker's own files may grow between two looks: its metadata log, checkpoints."""
        by_policy, by_keys = (planned(sandbox, keys) for keys in (keys_of(tmp_path, percent, "kip-61"), key_by_key))
        return bool(by_policy["devices"] == by_keys["devices"])

    assert topics_of(letter) == {"app-window-store-changelog"}, "the oldest go first"
    assert topics_of(careful) == {"clicks"}
    assert {"compacted", "for-ever"} <= reasons_in(careful)
    assert not {"compacted", "for-ever"} & reasons_in(letter)
    eventually(differ_by_nothing_else)


def test_a_changelog_and_an_event_store_stay_whole(sandbox: Sandbox, tmp_path: Path) -> None:
    before = {topic: segments(sandbox, topic) for topic in TOPICS}

    with guard(sandbox, tmp_path / "log", keys_of(tmp_path, ceiling(sandbox), "careful")) as running:
        eventually(lambda: is_held(running))

    after = {topic: segments(sandbox, topic) for topic in TOPICS}
    assert {topic for topic in TOPICS if after[topic] != before[topic]} == {"clicks"}


def test_an_open_transaction_is_not_beheaded(sandbox: Sandbox, tmp_path: Path) -> None:
    """It begins in the middle of the only topic that may be trimmed, and the ceiling wants all that is behind it."""
    create_topic(sandbox, "payments", config=ORDINARY)
    Writer(sandbox.admin_servers).write("payments", 2.5, hours_old=200)
    open_at, producer = open_transaction(sandbox, "payments")
    write_behind(sandbox, "payments", megabytes=6)
    only_this = {"reclaim_protected_topics": "clicks", "reclaim_only_curable": "false"}
    keys = keys_of(tmp_path, ceiling(sandbox, below=9), "careful", **only_this)

    with guard(sandbox, tmp_path / "log", keys) as running:
        eventually(lambda: device(running)["state"] == "stuck" and segments(sandbox, "payments")[0] > 0)
        while_open = segments(sandbox, "payments")
        producer.abort_transaction()
        eventually(lambda: is_held(running))

    assert 0 < while_open[0] <= open_at
    assert segments(sandbox, "payments")[0] > open_at


def write_behind(sandbox: Sandbox, topic: str, megabytes: int) -> None:
    producer = Producer({"bootstrap.servers": sandbox.admin_servers, "enable.idempotence": True})
    at = int((time.time() - 199 * 3600) * 1000)
    for _ in range(megabytes * MIB // len(RECORD)):
        producer.produce(topic, RECORD, partition=0, timestamp=at)
        producer.poll(0)
    assert producer.flush(PATIENCE_SECONDS) == 0


def open_transaction(sandbox: Sandbox, topic: str) -> tuple[int, Producer]:
    """With one record in it, at this offset."""
    producer = Producer(
        {
            "bootstrap.servers": sandbox.admin_servers,
            "transactional.id": f"hangs-{topic}",
            "transaction.timeout.ms": 900_000,
        }
    )
    producer.init_transactions()
    producer.begin_transaction()
    offsets: list[int | None] = []
    at = int((time.time() - 200 * 3600) * 1000)
    producer.produce(topic, b"x", partition=0, timestamp=at, on_delivery=lambda _, sent: offsets.append(sent.offset()))
    producer.flush()
    (offset,) = offsets
    assert offset is not None
    return offset, producer


def test_what_is_younger_than_a_day_stays_until_the_last_reserve(sandbox: Sandbox, tmp_path: Path) -> None:
    """Nothing refuses writes here: the brakes yield when the disk is down to its reserve, and not before."""
    create_topic(sandbox, "fresh", config=ORDINARY)
    Writer(sandbox.admin_servers).write("fresh", 8, hours_old=1)
    free = 100 - ceiling(sandbox, below=0)
    low = 100 - 2 * free - 6  # the reserve is at most half of what the ceiling leaves free
    keys = keys_of(tmp_path, low, "careful", reclaim_protected_topics="clicks")
    before = segments(sandbox, "fresh")

    with guard(sandbox, tmp_path / "log", keys) as running:
        eventually(lambda: device(running)["state"] == "stuck")
        above_the_reserve = segments(sandbox, "fresh")
        reload(sandbox, running, {**keys, "disk.min.free.bytes": str(64 * MIB * (free + 2) // 100)})
        eventually(lambda: segments(sandbox, "fresh") != before)
        said = running.log.read_text()

    assert above_the_reserve == before
    assert "BRAKES OVERRIDDEN" in said
    assert segments(sandbox, "clicks")[0] == 0


def test_nothing_goes_for_a_file_that_deleting_cannot_make_up_for(sandbox: Sandbox, tmp_path: Path) -> None:
    """Somebody's backup is above the ceiling by itself. Below its fence nothing goes, above it as much as it must."""
    before = {topic: segments(sandbox, topic) for topic in TOPICS}
    percent = 22
    foreign = sandbox.outside(sandbox.broker(1).log_dirs[0]) / "backup.tar"
    foreign.write_bytes(b"x" * (16 * MIB))
    used = int(used_percent(sandbox, sandbox.broker(1).log_dirs[0]))
    keys = {**keys_of(tmp_path, percent, "careful"), "disk.max.used.percent": str(used + 3)}
    letter = planned(sandbox, {**keys, "brimline.reclaim.policy": "kip-61"})
    try:
        with guard(sandbox, tmp_path / "log", keys) as running:
            eventually(lambda: device(running)["state"] == "stuck")
            below_the_fence = {topic: segments(sandbox, topic) for topic in TOPICS}
            said = device(running)
            foreign.write_bytes(b"x" * (19 * MIB))
            eventually(lambda: segments(sandbox, "clicks") != before["clicks"])
            eventually(lambda: used_percent(sandbox, sandbox.broker(1).log_dirs[0]) <= used + 3)
    finally:
        foreign.unlink()

    assert below_the_fence == before
    assert said["plan"]["outcome"] == "no-cure"
    assert "what is not Kafka's is above it by itself" in said["does"]
    assert len(topics_of(letter)) > 1, "by the letter all of it goes, and the ceiling is still not met"
    assert segments(sandbox, "clicks")[-1] - segments(sandbox, "clicks")[0] > 0, "and much of it is still there"


def test_a_clock_that_jumped_before_the_guard_started_makes_nothing_old(sandbox: Sandbox, tmp_path: Path) -> None:
    """By the clock clicks are three days old. By what passed since a guard looked last, they are an hour old."""
    create_topic(sandbox, "stamped", config={**ORDINARY, "message.timestamp.type": "LogAppendTime"})
    Writer(sandbox.admin_servers).write("stamped", 1, hours_old=0)  # the broker's time is that of the same clock
    memory = ClockMemory(tmp_path, 1, writes=True)
    memory.write(int((time.time() - 71 * 3600) * 1000))
    keys = keys_of(tmp_path, ceiling(sandbox), "careful", reclaim_hold_percent="-1")
    before = segments(sandbox, "clicks")

    with guard(sandbox, tmp_path / "log", keys) as running:
        eventually(lambda: device(running)["state"] == "stuck")
        first = device(running)["decidedAt"]
        eventually(lambda: device(running)["decidedAt"] != first)
        while_doubted, said = segments(sandbox, "clicks"), running.events()
        memory.path.unlink()  # a person says that the clock is right
        eventually(lambda: segments(sandbox, "clicks") != before)

    assert while_doubted == before
    assert "clock-ahead" in said


def fresh_above_the_ceiling(sandbox: Sandbox, tmp_path: Path, **more: str) -> dict[str, str]:
    """The last day and what is kept for ever are more than the ceiling lets be; only clicks are older."""
    create_topic(sandbox, "fresh", config=ORDINARY)
    Writer(sandbox.admin_servers).write("fresh", 8, hours_old=1)
    return keys_of(tmp_path, ceiling(sandbox, below=25), "careful", **more)


def test_fresh_data_above_the_ceiling_are_no_reason_to_let_old_data_stay(sandbox: Sandbox, tmp_path: Path) -> None:
    keys = fresh_above_the_ceiling(sandbox, tmp_path, reclaim_hold_percent="-1")

    with guard(sandbox, tmp_path / "log", keys) as running:
        eventually(lambda: len(segments(sandbox, "clicks")) == 1)
        eventually(lambda: device(running)["state"] == "stuck")
        said = device(running)

    assert said["plan"]["outcome"] == "floor-reached"
    assert "minimum retention" in said["does"]
    assert {segments(sandbox, topic)[0] for topic in ("fresh", "events", "app-window-store-changelog")} == {0}


@pytest.mark.long
def test_a_ceiling_that_slept_before_an_upgrade_is_a_new_one(sandbox: Sandbox, tmp_path: Path) -> None:
    keys = fresh_above_the_ceiling(sandbox, tmp_path)
    before = version_of("2f40139", tmp_path)
    all_of_it = segments(sandbox, "clicks")

    with guard(sandbox, tmp_path / "log", keys, program=before.program) as running:
        eventually(lambda: device(running)["state"] == "stuck")
        eventually(lambda: list(tmp_path.glob("reclaim-seen-*")))
    slept = segments(sandbox, "clicks")
    with guard(sandbox, tmp_path / "again", keys) as running:
        eventually(lambda: device(running)["state"] == "held")
        held = segments(sandbox, "clicks")
        path = write_config(sandbox, keys)
        brimline_inside(sandbox, "reclaim", "--config", str(path), "--apply", "--yes", "--no-wait")
        eventually(lambda: len(segments(sandbox, "clicks")) == 1)

    assert all_of_it == slept == held


def test_a_change_that_would_delete_much_waits_for_a_person(sandbox: Sandbox, tmp_path: Path) -> None:
    keys = keys_of(tmp_path, ceiling(sandbox, below=-5), "careful")
    changed = {**keys, "log.retention.disk.usage.percent": str(ceiling(sandbox, below=12))}
    before = segments(sandbox, "clicks")

    with guard(sandbox, tmp_path / "log", keys) as running:
        eventually(lambda: device(running)["state"] == "under-ceiling")
        reload(sandbox, running, changed)
        eventually(lambda: device(running)["state"] == "held")
        status = brimline("status", "--url", f"http://127.0.0.1:{running.port}").stdout
        while_held = segments(sandbox, "clicks")
        running.process.kill()
    with guard(sandbox, tmp_path / "again", changed) as running:
        eventually(lambda: device(running)["state"] == "held")
        path = write_config(sandbox, changed)
        confirmed = brimline_inside(sandbox, "reclaim", "--config", str(path), "--apply", "--yes", "--no-wait")
        eventually(lambda: is_held(running))

    assert while_held == before
    assert confirmed.returncode in (0, 3), confirmed.stderr
    assert "held: with the new settings" in " ".join(status.split())
    assert segments(sandbox, "clicks") != before
    assert segments(sandbox, "events")[0] == segments(sandbox, "app-window-store-changelog")[0] == 0


def test_a_ceiling_of_8_deletes_nothing_that_should_stay(sandbox: Sandbox, tmp_path: Path) -> None:
    before = {topic: segments(sandbox, topic) for topic in TOPICS}

    keys = keys_of(tmp_path, 8, "careful")
    del keys["brimline.reclaim.policy"]
    with guard(sandbox, tmp_path / "log", keys) as running:
        eventually(lambda: device(running)["state"] == "held")
        said = running.log.read_text()

    assert "a ceiling below 10 % deletes almost everything; was 80 meant?" in said
    assert said.count("by default (before: ") == sum(key.kip_61 is not None for key in KEYS), (
        "the defaults that changed"
    )
    assert {topic: segments(sandbox, topic) for topic in TOPICS} == before


def test_files_that_are_not_kafkas_are_waited_on_below_the_fence(sandbox: Sandbox, tmp_path: Path) -> None:
    before = segments(sandbox, "clicks")
    foreign = sandbox.outside(sandbox.broker(1).log_dirs[0]) / "core.1234"
    with guard(sandbox, tmp_path / "log", keys_of(tmp_path, ceiling(sandbox, below=-2), "careful")) as running:
        eventually(lambda: list(tmp_path.glob("reclaim-seen-*")))
        foreign.write_bytes(b"x" * (5 * MIB))
        try:
            eventually(lambda: device(running)["state"] == "held")
            said = device(running)["does"]
        finally:
            foreign.unlink()
        eventually(lambda: device(running)["state"] == "under-ceiling")

    assert "files that are not Kafka's have grown by 5.0" in said
    assert segments(sandbox, "clicks") == before


def test_the_dry_run_and_doctor_name_what_is_kept_for_ever(sandbox: Sandbox, tmp_path: Path) -> None:
    path = write_config(sandbox, keys_of(tmp_path, ceiling(sandbox), "careful"))

    shown = brimline_inside(sandbox, "reclaim", "--config", str(path)).stdout
    doctor = brimline_inside(sandbox, "doctor", "--config", str(path)).stdout

    assert "Never trimmed, topics kept forever: events." in shown
    assert "Never trimmed, compacted topics: app-window-store-changelog." in shown
    assert "never trimmed: topics kept forever" in doctor
