"""KIP-61 on a real broker: two log dirs on one volume, 20 topics, and several times its size written to it."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka import TopicPartition as Partition
from kafka.admin import OffsetSpec

from brimline.act.ledger.files import LedgerFiles
from brimline.act.ledger.state import TrimPhase
from brimline.guard.reclaim.settings import JITTER
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic
from tests.integration.full_disks import admin_client, clean_up, count_readable, create_topic_in, verify_unharmed
from tests.integration.guarded import guard
from tests.integration.reclaim_world import (
    DELETE_DELAY_SECONDS,
    INTERVAL_SECONDS,
    MIB,
    QUICK_BROKER,
    TRIMMABLE,
    Writer,
    reclaim_keys,
    story,
    survivors_older_than_what_went,
    watched,
)
from tests.waiting import eventually

pytestmark = pytest.mark.integration

VOLUME = Bytes(256 * MIB)
_PLANNED, _ENDED = b'"kind":"plan"', b'"kind":"ended"'
CEILING = 50
TOPICS = 20
PROTECTED = "kept-by-law"
COMPACTED = "states"
BYTES_PER_SECOND = 12 * MIB
RETENTION_CHECK_SECONDS = 1.0
"""``QUICK_BROKER``'s."""
DELAYS_SECONDS = INTERVAL_SECONDS * (1 + JITTER) + RETENTION_CHECK_SECONDS + DELETE_DELAY_SECONDS
"""Survey and trims of a small volume are left out: the stated bound is this or more."""
BOUND = TOPICS * MIB + int(BYTES_PER_SECOND * DELAYS_SECONDS)
"""As docs/reclaim.md has it: active segments, and what is written until space is back."""
WRITTEN_IN_A_CYCLE = int(BYTES_PER_SECOND * DELAYS_SECONDS) // 2
"""At most, however long a busy machine takes for one: of two neighbouring cycles something may be there at once."""


@pytest.fixture(scope="module")
def running_sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(volumes=(VolumeSpec(size=VOLUME, log_dirs=2),), properties=QUICK_BROKER)) as running:
        yield running


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    yield running_sandbox
    clean_up(running_sandbox)


def test_the_ceiling_holds_while_more_than_the_volume_is_written(sandbox: Sandbox, tmp_path: Path) -> None:
    hold_the_ceiling(sandbox, tmp_path, volumes_written=1.2)


@pytest.mark.long
def test_the_ceiling_holds_while_ten_times_the_volume_is_written(sandbox: Sandbox, tmp_path: Path) -> None:
    hold_the_ceiling(sandbox, tmp_path, volumes_written=10)


class Turns:
    """Lets a writer write so much until the cycles under way are over, or the volume is under its ceiling."""

    def __init__(self, volume: Path, state_dir: Path) -> None:
        self._volume = volume
        self._ledger = LedgerFiles(state_dir, 1).current
        self._ended = self._since = 0

    def may_go_on(self, written: int) -> bool:
        told = self._ledger.read_bytes() if self._ledger.exists() else b""
        ended, is_open = told.count(_ENDED), told.count(_PLANNED) > told.count(_ENDED)
        if used_percent(self._volume) <= CEILING or (ended != self._ended and not is_open):
            self._ended, self._since = ended, written
        return written < self._since + WRITTEN_IN_A_CYCLE


def hold_the_ceiling(sandbox: Sandbox, tmp_path: Path, *, volumes_written: float) -> None:
    chance = random.Random(61)
    log_dirs = sandbox.broker(1).log_dirs
    outside = [sandbox.outside(log_dir) for log_dir in log_dirs]
    topics = [f"topic-{number:02}" for number in range(TOPICS)]
    writer = Writer(sandbox.admin_servers)
    for number, topic in enumerate(topics):
        create_topic_in(sandbox, topic, log_dirs[number % 2], config=TRIMMABLE)
        for hours_old in sorted((chance.uniform(0, 72) for _ in range(3)), reverse=True):
            writer.write(topic, chance.uniform(0.3, 2.5), hours_old=hours_old)
    create_topic(sandbox, PROTECTED, config=TRIMMABLE)
    create_topic(sandbox, COMPACTED, config={**TRIMMABLE, "cleanup.policy": "compact"})
    writer.write(PROTECTED, 4, hours_old=1000)
    Writer(sandbox.admin_servers, keys=True).write(COMPACTED, 4, hours_old=1000)
    kept = len(writer.timestamps[PROTECTED])
    weights = [1 / (number + 1) for number in range(TOPICS)]
    rates = {topic: BYTES_PER_SECOND * weight / sum(weights) for topic, weight in zip(topics, weights, strict=True)}

    keys = reclaim_keys(tmp_path / "state", CEILING, reclaim_protected_topics="kept-.*")
    turns = Turns(outside[0], tmp_path / "state")
    with watched(*outside) as history:
        guarded_since = time.time()
        with guard(sandbox, tmp_path / "log", keys):
            writer.flow(rates, int(VOLUME * volumes_written), turns.may_go_on)
            eventually(lambda: used_percent(outside[0]) <= CEILING)
            eventually(lambda: all(cycle.has_ended for cycle in story(tmp_path / "state").cycles))
    cycles = story(tmp_path / "state").cycles
    trims = [trim for cycle in cycles for trim in cycle.trims]

    verify_unharmed(sandbox)
    assert history.most_used_bytes <= VOLUME * CEILING // 100 + BOUND
    assert len(cycles) > 2
    eligible = {topic: writer.timestamps[topic] for topic in topics}
    assert survivors_older_than_what_went(cycles, history, eligible, guarded_since) == []
    assert {trim.planned.partition.topic for trim in trims} <= set(topics)
    assert (first_offset(sandbox, PROTECTED), count_readable(sandbox.admin_servers, PROTECTED, kept)) == (0, kept)
    assert first_offset(sandbox, COMPACTED) == 0
    done = [trim for trim in trims if trim.phase is TrimPhase.DONE]
    assert len(done) > TOPICS // 2
    compared = 0
    for trim in done:
        assert trim.freed_bytes == trim.planned.allocated_bytes
        segments = trim.planned.segments
        bases = history.segments[str(trim.planned.partition)].items()
        seen = [segment for base, segment in bases if segments.first <= base <= segments.last]
        if len(seen) == segments.count and all(segment.is_closed for segment in seen):
            assert trim.freed_bytes == sum(segment.allocated_bytes for segment in seen)
            compared += 1
    assert compared > TOPICS // 2
    for topic in topics:
        targets = [int(trim.planned.target) for trim in trims if trim.planned.partition.topic == topic]
        assert first_offset(sandbox, topic) in (0, *targets)


def test_what_the_ledger_names_is_what_the_disk_gets_back(sandbox: Sandbox, tmp_path: Path) -> None:
    """Nothing is written meanwhile, so that the disk's own count can be compared."""
    (outside, _) = (sandbox.outside(log_dir) for log_dir in sandbox.broker(1).log_dirs)
    writer = Writer(sandbox.admin_servers)
    for number in range(4):
        create_topic_in(sandbox, f"quiet-{number}", sandbox.broker(1).log_dirs[number % 2], config=TRIMMABLE)
        writer.write(f"quiet-{number}", 12.5, hours_old=10 - number)
    before = used_bytes(outside)
    ceiling = int(100 * (before - 20 * MIB) / VOLUME)

    with guard(sandbox, tmp_path / "log", reclaim_keys(tmp_path / "state", ceiling)):
        eventually(lambda: used_percent(outside) <= ceiling)
        eventually(lambda: all(cycle.has_ended for cycle in story(tmp_path / "state").cycles))
    told = story(tmp_path / "state")
    freed = before - used_bytes(outside)

    assert told.freed_bytes >= 20 * MIB
    # Kafka rewrites its checkpoints and its folders' lists meanwhile: a page here or there.
    assert abs(freed - told.freed_bytes) <= MIB // 8
    assert told.cycles[0].trims[0].planned.partition.topic == "quiet-0"


def used_bytes(path: Path) -> int:
    status = os.statvfs(path)
    return (status.f_blocks - status.f_bavail) * status.f_frsize


def used_percent(path: Path) -> float:
    status = os.statvfs(path)
    return 100 * (1 - status.f_bavail / status.f_blocks)


def first_offset(sandbox: Sandbox, topic: str) -> int:
    with admin_client(sandbox) as client:
        return offset(client, topic, OffsetSpec.EARLIEST)


def offset(client: KafkaAdminClient, topic: str, which: OffsetSpec) -> int:
    where = Partition(topic, 0)
    found: int = client.list_partition_offsets({where: which})[where].offset
    return found
