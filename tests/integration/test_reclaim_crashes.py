"""A cycle that is disturbed: no more is deleted than was planned, it is gone on with, and the ledger tells of it."""

import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from brimline.act.ledger.files import LedgerFiles
from brimline.act.ledger.state import TrimPhase
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic
from tests.integration.full_disks import admin_client, alter_topic, clean_up
from tests.integration.full_followers import RESTARTED
from tests.integration.guarded import RunningGuard, guard
from tests.integration.reclaim_world import MIB, QUICK_BROKER, TRIMMABLE, Writer, reclaim_keys, story
from tests.integration.test_reclaim_ceiling import first_offset, used_bytes, used_percent
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

VOLUME = Bytes(160 * MIB)
EXCESS = 12 * MIB
OLD, NEW = "old", "new"
SLOW_DELETION = {**TRIMMABLE, "file.delete.delay.ms": "3000"}
"""So that a cycle lasts for as long as a test needs to disturb it."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    properties = {**QUICK_BROKER, **RESTARTED}
    spec = SandboxSpec(brokers=2, volumes=(VolumeSpec(size=VOLUME),), properties=properties)
    with Sandbox(spec) as running:
        yield running


@pytest.fixture
def volume(sandbox: Sandbox) -> Iterator[Path]:
    """Of broker 1, with two topics: the older one is enough for the excess, and goes first."""
    writer = Writer(sandbox.admin_servers)
    for topic, hours_old in ((OLD, 50.0), (NEW, 1.0)):
        create_topic(sandbox, topic, assignment={0: [1, 2]}, config=SLOW_DELETION)
        writer.write(topic, 20.5, hours_old=hours_old)
    yield sandbox.outside(sandbox.broker(1).log_dirs[0])
    clean_up(sandbox)


def ceiling_of(volume: Path, excess: int = EXCESS) -> int:
    return int(100 * (used_bytes(volume) - excess) / VOLUME)


@pytest.mark.parametrize("step", ["plan", "request", "answer", "came-back"])
def test_a_guard_that_is_killed_after_any_step_goes_on_from_the_ledger(
    sandbox: Sandbox, volume: Path, tmp_path: Path, step: str
) -> None:
    state_dir, ceiling = tmp_path / "state", ceiling_of(volume)
    with guard(sandbox, tmp_path / "log-1", reclaim_keys(state_dir, ceiling)) as first:
        eventually(lambda: step in kinds(state_dir))
        kill(first)
    planned_by_then = targets(state_dir, OLD)

    with guard(sandbox, tmp_path / "log-2", reclaim_keys(state_dir, ceiling)):
        eventually(lambda: used_percent(volume) <= ceiling)
        eventually(lambda: nothing_is_open(state_dir))

    # What was sent is watched to its end, what was not is decided anew: nothing was written, so it is the same again.
    assert {first_offset(sandbox, OLD)} == set(targets(state_dir, OLD)) == set(planned_by_then)
    assert first_offset(sandbox, NEW) == 0
    assert sum(cycle.count(TrimPhase.DONE) for cycle in story(state_dir).cycles) == 1
    assert story(state_dir).damage == ()


def test_a_broker_that_is_killed_and_forgets_a_trim_is_asked_again(
    sandbox: Sandbox, volume: Path, tmp_path: Path
) -> None:
    state_dir, ceiling = tmp_path / "state", ceiling_of(volume)
    with guard(sandbox, tmp_path / "log", reclaim_keys(state_dir, ceiling)):
        eventually(lambda: "answer" in kinds(state_dir))
        sandbox.broker(1).kill()
        sandbox.broker(1).start()
        eventually(lambda: nothing_is_open(state_dir))
        eventually(lambda: used_percent(volume) <= ceiling)

    assert first_offset(sandbox, OLD) in targets(state_dir, OLD)
    assert first_offset(sandbox, NEW) == 0


def test_a_topic_that_is_made_anew_is_not_trimmed_by_the_plan_for_its_namesake(
    sandbox: Sandbox, volume: Path, tmp_path: Path
) -> None:
    state_dir, ceiling = tmp_path / "state", ceiling_of(volume)
    with guard(sandbox, tmp_path / "log-1", reclaim_keys(state_dir, ceiling)) as first:
        eventually(lambda: "plan" in kinds(state_dir))
        kill(first)
    (planned,) = targets(state_dir, OLD)
    with admin_client(sandbox) as client:
        client.delete_topics([OLD])
    eventually(lambda: not (volume / f"{OLD}-0").exists())
    create_topic(sandbox, OLD, assignment={0: [1, 2]}, config=SLOW_DELETION)
    Writer(sandbox.admin_servers).write(OLD, 2 * planned * 10_000 / MIB, hours_old=1)

    with guard(sandbox, tmp_path / "log-2", reclaim_keys(state_dir, 99)):
        eventually(lambda: nothing_is_open(state_dir))

    assert first_offset(sandbox, OLD) == 0
    (cycle,) = story(state_dir).cycles
    assert [trim.phase.is_over for trim in cycle.trims] == [True]


def test_a_leader_that_moves_away_in_the_middle_costs_no_more_than_was_planned(
    sandbox: Sandbox, volume: Path, tmp_path: Path
) -> None:
    state_dir, ceiling = tmp_path / "state", ceiling_of(volume)
    with guard(sandbox, tmp_path / "log-1", reclaim_keys(state_dir, ceiling)) as first:
        eventually(lambda: "plan" in kinds(state_dir))
        kill(first)
    sandbox.broker(1).restart()
    with admin_client(sandbox) as client:
        eventually(lambda: leader(client, OLD) == 2)

        with guard(sandbox, tmp_path / "log-2", reclaim_keys(state_dir, ceiling)):
            eventually(lambda: used_percent(volume) <= ceiling)
            eventually(lambda: nothing_is_open(state_dir))

    # The new leader may never have heard of what the old one did last; the old one's disk is what counts here.
    assert first_offset(sandbox, OLD) in (0, *targets(state_dir, OLD))
    assert first_offset(sandbox, NEW) == 0
    assert sum(cycle.count(TrimPhase.DONE) for cycle in story(state_dir).cycles) == 1


def test_what_ordinary_retention_takes_meanwhile_is_not_taken_again(
    sandbox: Sandbox, volume: Path, tmp_path: Path
) -> None:
    state_dir, ceiling = tmp_path / "state", ceiling_of(volume)
    with guard(sandbox, tmp_path / "log-1", reclaim_keys(state_dir, ceiling)) as first:
        eventually(lambda: "plan" in kinds(state_dir))
        kill(first)
    alter_topic(sandbox, OLD, {"retention.bytes": str(2 * MIB)})
    eventually(lambda: first_offset(sandbox, OLD) > max(targets(state_dir, OLD)))
    by_retention = first_offset(sandbox, OLD)

    with guard(sandbox, tmp_path / "log-2", reclaim_keys(state_dir, ceiling)):
        eventually(lambda: nothing_is_open(state_dir))

    assert first_offset(sandbox, OLD) == by_retention
    assert first_offset(sandbox, NEW) == 0
    assert len(story(state_dir).cycles) == 1


def test_a_snapshot_that_a_clean_restart_leaves_among_trimmed_segments_holds_no_trim_open(
    sandbox: Sandbox, volume: Path, tmp_path: Path
) -> None:
    """A broker that stops writes a producer snapshot at the log's end, within a segment, and does not remove it."""
    create_topic(sandbox, "restarted", assignment={0: [1, 2]}, config=SLOW_DELETION)
    writer, folder = Writer(sandbox.admin_servers), volume / "restarted-0"
    writer.write("restarted", 0.5, hours_old=60)
    sandbox.broker(1).restart()
    writer.write("restarted", 0.1, hours_old=60)
    writer.write("restarted", 3, hours_old=60)
    (orphan,) = snapshots_within_segments(folder)
    state_dir, ceiling = tmp_path / "state", ceiling_of(volume, excess=3 * MIB)

    with guard(sandbox, tmp_path / "log", reclaim_keys(state_dir, ceiling)) as running:
        eventually(lambda: used_percent(volume) <= ceiling)
        eventually(lambda: nothing_is_open(state_dir))
        ended = running.samples("brimline_reclaim_trims_total")

    assert snapshots_within_segments(folder) == {orphan}
    assert 0 < orphan < max(targets(state_dir, "restarted"))
    (cycle,) = story(state_dir).cycles
    assert cycle.count(TrimPhase.DONE) == len(cycle.trims)
    assert cycle.freed_bytes == cycle.plan.planned_bytes
    assert {count for labels, count in ended.items() if 'end="abandoned"' in labels} == {0}


def snapshots_within_segments(folder: Path) -> set[int]:
    bases = {file.stem for file in folder.glob("*.log")}
    return {int(file.stem) for file in folder.glob("*.snapshot") if file.stem not in bases}


def kill(running: RunningGuard) -> None:
    running.process.send_signal(signal.SIGKILL)
    running.process.wait(PATIENCE_SECONDS)


def kinds(state_dir: Path) -> set[str]:
    """Of the entries on record; a line that is being written does not count."""
    ledger = LedgerFiles(state_dir, 1).current
    if not ledger.exists():
        return set()
    return {json.loads(line)["kind"] for line in ledger.read_text().split("\n")[:-1]}


def nothing_is_open(state_dir: Path) -> bool:
    cycles = story(state_dir).cycles if LedgerFiles(state_dir, 1).current.exists() else ()
    return bool(cycles) and all(cycle.has_ended for cycle in cycles)


def targets(state_dir: Path, topic: str) -> Sequence[int]:
    return [
        int(trim.planned.target)
        for cycle in story(state_dir).cycles
        for trim in cycle.trims
        if trim.planned.partition.topic == topic
    ]


def leader(client: KafkaAdminClient, topic: str) -> int:
    (described,) = client.describe_topics([topic])
    found: int = described["partitions"][0]["leader_id"]
    return found
