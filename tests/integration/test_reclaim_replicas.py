"""Reclaim where a partition has several replicas: a trim at the leader shrinks them all, and each has a guard."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kafka.admin import NewTopic

from brimline.act.ledger.entries import Requested
from brimline.act.ledger.files import Damage, LedgerFiles, read_history
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic, replicas_on_disk
from tests.integration.full_followers import CALM
from tests.integration.guarded import guard
from tests.integration.kafka_clients import kafka_admin
from tests.integration.reclaim_world import MIB, QUICK_BROKER, TRIMMABLE, Writer, reclaim_keys, story
from tests.integration.segment_files import segment_files
from tests.integration.test_reclaim_ceiling import first_offset, used_bytes, used_percent
from tests.waiting import eventually

pytestmark = pytest.mark.integration

VOLUME = Bytes(256 * MIB)
BROKERS = (1, 2, 3)
TOPICS = 48
WRITTEN_MIB = 3.2
"""Of each topic: three closed segments and the active one."""
NEEDED = 60 * MIB
"""More than one batch, which has 20 trims at most."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    spec = SandboxSpec(brokers=3, volumes=(VolumeSpec(size=VOLUME),), properties={**QUICK_BROKER, **CALM})
    with Sandbox(spec) as running:
        yield running


def test_three_guards_that_cross_the_ceiling_together_do_not_each_delete_the_whole_excess(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    topics = [f"three-{number:02}" for number in range(TOPICS)]
    writer = Writer(sandbox.admin_servers)
    with kafka_admin(sandbox.admin_servers) as client:
        client.create_topics(
            [
                NewTopic(
                    topic,
                    replica_assignments={0: [BROKERS[(number + shift) % 3] for shift in range(3)]},
                    topic_configs=TRIMMABLE,
                )
                for number, topic in enumerate(topics)
            ]
        )
    eventually(lambda: all(replicas_on_disk(sandbox, topic) == len(BROKERS) for topic in topics))
    for hours_old in (3, 2, 1):
        for topic in topics:
            writer.write(topic, WRITTEN_MIB / 3, hours_old=hours_old)
    volumes = {broker: sandbox.outside(sandbox.broker(broker).log_dirs[0]) for broker in BROKERS}
    before = {broker: used_bytes(path) for broker, path in volumes.items()}
    ceiling = int(100 * (max(before.values()) - NEEDED) / VOLUME)
    needed = max(before.values()) - VOLUME * ceiling // 100

    with ExitStack() as stack:
        for each in BROKERS:
            stack.enter_context(
                guard(sandbox, tmp_path / f"log-{each}", reclaim_keys(tmp_path / "state", ceiling), broker=each)
            )
        eventually(lambda: all(used_percent(path) <= ceiling for path in volumes.values()))
        eventually(lambda: all(_has_nothing_open(tmp_path / "state", each) for each in BROKERS))

    freed = {broker: before[broker] - used_bytes(path) for broker, path in volumes.items()}
    batches = [batch for each in BROKERS for batch in _sent_batches(tmp_path / "state", each)]
    assert max(batches) < needed, "or one batch would be the whole need, and this would show nothing"
    assert max(freed.values()) <= needed + 2 * max(batches) + MIB


def test_a_full_follower_comes_down_although_the_leaders_are_elsewhere(sandbox: Sandbox, tmp_path: Path) -> None:
    leaders = {"two-a": 2, "two-b": 3, "two-c": 2}
    writer = Writer(sandbox.admin_servers)
    for topic, leader in leaders.items():
        create_topic(sandbox, topic, assignment={0: [leader, 1]}, config=TRIMMABLE)
        writer.write(topic, 8.5, hours_old=100)
    log_dir = sandbox.broker(1).log_dirs[0]
    volume = sandbox.outside(log_dir)
    eventually(lambda: all(sum(segment_files(volume / f"{topic}-0").values()) >= 8 * MIB for topic in leaders))
    foreign = sandbox.fill(log_dir, leave_free=Bytes(30 * MIB))
    try:
        ceiling = int(used_percent(volume)) - 4
        with guard(sandbox, tmp_path / "log", reclaim_keys(tmp_path / "state", ceiling)):
            eventually(lambda: used_percent(volume) <= ceiling)
            eventually(lambda: _has_nothing_open(tmp_path / "state", 1))
    finally:
        sandbox.unfill(foreign)

    trims = [trim for cycle in story(tmp_path / "state").cycles for trim in cycle.trims]
    assert {trim.planned.partition.topic for trim in trims} <= set(leaders), "they are the oldest of all"
    assert sum(trim.freed_bytes for trim in trims) > 0
    for topic in leaders:
        targets = [int(trim.planned.target) for trim in trims if trim.planned.partition.topic == topic]
        assert first_offset(sandbox, topic) in (0, *targets)


def _has_nothing_open(state_dir: Path, broker: int) -> bool:
    if not LedgerFiles(state_dir, broker).current.exists():
        return True
    return all(cycle.has_ended for cycle in story(state_dir, broker).cycles)


def _sent_batches(state_dir: Path, broker: int) -> Iterator[int]:
    """Bytes of every request on record."""
    files = LedgerFiles(state_dir, broker)
    if not files.current.exists():
        return
    planned = {cycle.plan.cycle: cycle.plan.trims for cycle in story(state_dir, broker).cycles}
    for recorded in read_history(files):
        assert not isinstance(recorded, Damage)
        if isinstance(recorded.entry, Requested):
            trims = planned[recorded.entry.cycle]
            yield sum(trims[each.number].allocated_bytes for each in recorded.entry.trims)
