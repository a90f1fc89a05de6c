"""Reclaim beside what Kafka does to the same logs at the same time: compaction, and moves between log dirs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.full_disks import admin_client, clean_up, create_topic_in, end_offset, verify_unharmed
from tests.integration.guarded import guard
from tests.integration.reclaim_world import MIB, QUICK_BROKER, TRIMMABLE, Writer, reclaim_keys, story
from tests.integration.test_reclaim_ceiling import first_offset, used_bytes, used_percent
from tests.integration.test_reclaim_crashes import kill, kinds, nothing_is_open, targets
from tests.waiting import eventually

pytestmark = pytest.mark.integration

VOLUME = Bytes(160 * MIB)
COMPACTS = {**TRIMMABLE, "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.01"}


@pytest.fixture(scope="module")
def running_sandbox() -> Iterator[Sandbox]:
    cleaner = {"log.cleaner.backoff.ms": "200"}
    spec = SandboxSpec(volumes=(VolumeSpec(size=VOLUME, log_dirs=2),), properties={**QUICK_BROKER, **cleaner})
    with Sandbox(spec) as running:
        yield running


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    yield running_sandbox
    clean_up(running_sandbox)


def test_a_log_that_is_compacted_all_the_time_is_trimmed_to_what_was_planned(sandbox: Sandbox, tmp_path: Path) -> None:
    state_dir, log_dir = tmp_path / "state", sandbox.broker(1).log_dirs[0]
    volume = sandbox.outside(log_dir)
    create_topic_in(sandbox, "both", log_dir, config=COMPACTS)
    writer = Writer(sandbox.admin_servers, keys=True)
    writer.write("both", 30.5, hours_old=5)
    # Of what is written alone: compaction has copies of segments on the disk, now and then.
    ceiling = int(100 * 18 * MIB / VOLUME)

    with guard(sandbox, tmp_path / "log", reclaim_keys(state_dir, ceiling)):
        for _ in range(20):
            writer.write("both", 0.5)
        eventually(lambda: used_percent(volume) <= ceiling)
        eventually(lambda: nothing_is_open(state_dir))

    verify_unharmed(sandbox)
    assert first_offset(sandbox, "both") in targets(state_dir, "both")
    assert end_offset(sandbox, "both") == len(writer.timestamps["both"])


def test_a_log_that_is_moved_after_it_was_planned_loses_no_more_than_that(sandbox: Sandbox, tmp_path: Path) -> None:
    state_dir, (here, there) = tmp_path / "state", sandbox.broker(1).log_dirs
    volume = sandbox.outside(here)
    create_topic_in(sandbox, "moving", here, config=TRIMMABLE)
    Writer(sandbox.admin_servers).write("moving", 20.5, hours_old=5)
    ceiling = int(100 * (used_bytes(volume) - 12 * MIB) / VOLUME)
    with guard(sandbox, tmp_path / "log-1", reclaim_keys(state_dir, ceiling)) as first:
        eventually(lambda: "plan" in kinds(state_dir))
        kill(first)
    with admin_client(sandbox) as client:
        client.alter_replica_log_dirs({("moving", 0, 1): str(there)})

    with guard(sandbox, tmp_path / "log-2", reclaim_keys(state_dir, ceiling)):
        eventually(lambda: (sandbox.outside(there) / "moving-0").is_dir())
        eventually(lambda: nothing_is_open(state_dir))
        eventually(lambda: used_percent(volume) <= ceiling)

    verify_unharmed(sandbox)
    assert first_offset(sandbox, "moving") in targets(state_dir, "moving")
    assert story(state_dir).damage == ()
