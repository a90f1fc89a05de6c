"""``brimline reclaim`` beside a real broker: a look touches nothing; what was shown and is still true is what goes."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ToCommit
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from brimline.act.ledger.files import LedgerFiles
from brimline.act.ledger.state import CycleRecord, TrimPhase
from brimline.act.ledger.story import tell
from brimline.model import BrokerId, Bytes, FailureKind, Offset, TopicPartition
from brimline.model.blast_radius import GroupActivity
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.delete_records import delete_records
from brimline.observe.cluster.group_offsets import committed_offsets
from brimline.observe.cluster.offsets import OffsetSpec, list_offsets
from brimline.observe.cluster.topics import cluster_id
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry
from brimline.sandbox import Sandbox, SandboxSpec, SecuritySpec, VolumeSpec
from tests.integration.cluster import brimline_inside, create_topic
from tests.integration.guarded import write_config
from tests.integration.kafka_clients import kafka_admin
from tests.integration.reclaim_world import QUICK_BROKER, RECLAIM, RECORD, TRIMMABLE, Writer
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

BROKER = BrokerId(1)
LONG = timedelta(seconds=PATIENCE_SECONDS)
WRITTEN_MIB = 6
LAST = WRITTEN_MIB * (1 << 20) // len(RECORD) - 1
A_FEW_PERCENT = 2
"""Of the volume, that a test asks for: three or four segments of the topic that it wrote for that."""
NOT_TODAY = {"file.delete.delay.ms": "3600000"}
AS_GUARD = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="guard" password="secret";',
}


@dataclass(frozen=True, kw_only=True)
class World:
    sandbox: Sandbox
    oldest: Callable[..., TopicPartition]
    """Makes a topic whose records are older than any other's here, so that the next plan takes from it."""

    @property
    def log_starts(self) -> "LogStarts":
        return LogStarts(self.sandbox)


@dataclass(frozen=True)
class LogStarts:
    sandbox: Sandbox

    def __getitem__(self, partition: TopicPartition) -> int:
        with connected(self.sandbox) as connection:
            found = list_offsets(connection, {partition: BROKER}, OffsetSpec.EARLIEST, Deadline(LONG))[partition]
        assert isinstance(found, int)
        return found


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Two log dirs on one volume; the listener of others than the owner asks who they are."""
    spec = SandboxSpec(
        volumes=(VolumeSpec(size=Bytes(128 << 20), log_dirs=2),),
        security=SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users={"guard": "secret"}, acls=True),
        properties={**QUICK_BROKER, "log.segment.delete.delay.ms": "500"},
    )
    with Sandbox(spec) as sandbox:
        hours = 1000

        def oldest(name: str, config: Mapping[str, str] | None = None) -> TopicPartition:
            nonlocal hours
            hours += 1000
            create_topic(sandbox, name, config={**TRIMMABLE, **(config or {})})
            Writer(sandbox.admin_servers).write(name, WRITTEN_MIB, hours_old=hours)
            return TopicPartition(name, 0)

        yield World(sandbox=sandbox, oldest=oldest)


@pytest.fixture
def command(world: World, tmp_path: Path) -> "Command":
    keys = {**RECLAIM, "brimline.state.dir": str(tmp_path)}
    return Command(sandbox=world.sandbox, config=write_config(world.sandbox, keys), state_dir=tmp_path)


@dataclass(frozen=True, kw_only=True)
class Command:
    """``brimline reclaim`` as a process of its own, on the broker's host."""

    sandbox: Sandbox
    config: Path
    state_dir: Path

    def line(self, *arguments: str) -> list[str]:
        own = [sys.executable, "-m", "brimline.cli", "reclaim", "--config", str(self.config), *arguments]
        return self.sandbox.inside(own)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return brimline_inside(self.sandbox, "reclaim", "--config", str(self.config), *arguments)

    def plan(self, *arguments: str) -> dict[str, Any]:
        done = self.run("--output", "json", *arguments)
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def ceiling(self, below: int = A_FEW_PERCENT) -> str:
        """Below what is used by a few percent, so that the oldest segments have to go. Nothing else may be going."""
        eventually(
            lambda: not [path for path in all_files(self.sandbox) if "delete" in f"{path.parent.name}{path.suffix}"]
        )
        status = os.statvfs(self.sandbox.outside(self.sandbox.broker(1).log_dirs[0]))
        return str((status.f_blocks - status.f_bavail) * 100 // status.f_blocks - below)

    def cycles(self) -> tuple[CycleRecord, ...]:
        return tell(LedgerFiles(self.state_dir, 1)).cycles


@contextmanager
def connected(sandbox: Sandbox, properties: Mapping[str, str] | None = None) -> Iterator[Connection]:
    """As the owner, or as who the properties say."""
    if properties is None:
        config = ClientConfig.from_properties(sandbox.admin_servers)
    else:
        entries = [PropertyEntry(key, value, "test") for key, value in properties.items()]
        config = ClientConfig.from_properties(sandbox.bootstrap_servers, JavaProperties(entries))
    connection = Connection(config)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def group(sandbox: Sandbox, name: str, partition: TopicPartition, offset: int, **settings: str) -> Iterator[None]:
    """A group that has committed this offset, with one member while the block lasts."""
    consumer = Consumer(
        {
            "bootstrap.servers": sandbox.admin_servers,
            "group.id": name,
            "enable.auto.commit": False,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )
    try:
        consumer.subscribe([partition.topic])
        eventually(lambda: (consumer.poll(0.2), bool(consumer.assignment()))[1])
        consumer.commit(offsets=[ToCommit(partition.topic, partition.partition, offset)], asynchronous=False)
        yield
    finally:
        consumer.close()


def taken(plan: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {trim["topic"]: trim for device in plan["devices"] for trim in device["trims"]}


def folders(sandbox: Sandbox) -> dict[str, list[str]]:
    """Every replica's files by name; the broker's own checkpoints come and go."""
    return {
        str(folder): sorted(path.name for path in folder.iterdir())
        for log_dir in sandbox.broker(1).log_dirs
        for folder in sandbox.outside(log_dir).iterdir()
        if folder.is_dir() and not folder.name.startswith("__")
    }


def test_a_look_shows_what_would_go_and_touches_nothing(world: World, command: Command) -> None:
    looked = world.oldest("looked")
    ceiling = command.ceiling()
    before = folders(world.sandbox)

    shown, rows = command.run("--ceiling", ceiling), command.run("--ceiling", ceiling, "--output", "csv")

    assert shown.returncode == rows.returncode == 0, shown.stderr + rows.stderr
    head, settings = shown.stdout.splitlines()[:2]
    assert "would be deleted" in head
    assert f"ceiling {ceiling} % by hand (the file has none)" in settings
    (row,) = csv.DictReader(io.StringIO(rows.stdout))
    assert (row["topic"], row["log_start"]) == ("looked", "0")
    assert int(row["target"]) == int(row["records_at_most"]) > 0
    assert folders(world.sandbox) == before
    assert world.log_starts[looked] == 0
    assert list(command.state_dir.iterdir()) == []


def test_groups_that_would_miss_records_are_named(world: World, command: Command) -> None:
    read = world.oldest("read")
    sandbox = world.sandbox
    with group(sandbox, "left-behind", read, 10), group(sandbox, "caught-up", read, LAST):
        pass  # both are empty from here on
    ceiling = command.ceiling()

    with group(sandbox, "reading-now", read, 50, group_protocol="consumer"):
        plan = command.plan("--ceiling", ceiling)

    target = taken(plan)["read"]["target"]
    assert 50 < target < LAST
    found = {each["group"]: (each["activity"], each["recordsAtMost"]) for each in plan["about"]["groups"]}
    assert found == {"left-behind": ("empty", target - 10), "reading-now": ("active", target - 50)}
    assert plan["about"]["unknownGroups"] == []


def test_who_may_not_see_groups_learns_that_there_are_some(world: World) -> None:
    partition = world.oldest("guarded")
    with group(world.sandbox, "hidden", partition, 1):
        pass
    allow(world.sandbox, ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"))
    allow(world.sandbox, ResourcePattern(ResourceType.TOPIC, "guarded"))

    with connected(world.sandbox, AS_GUARD) as connection:
        refused, cluster = committed_offsets(connection, [partition]), cluster_id(connection, Deadline(LONG))
    with connected(world.sandbox) as connection:
        seen = committed_offsets(connection, [partition])
        assert cluster_id(connection, Deadline(LONG)) == cluster

    assert refused.groups == ()
    assert {unknown.failure.kind for unknown in refused.unknown} == {FailureKind.NOT_AUTHORIZED}
    assert refused.asked == seen.asked
    assert [(each.name, each.activity, each.committed) for each in seen.groups] == [
        ("hidden", GroupActivity.EMPTY, {partition: 1})
    ]


def allow(sandbox: Sandbox, pattern: ResourcePattern) -> None:
    with kafka_admin(sandbox.admin_servers) as client:
        client.create_acls([ACL("User:guard", "*", ACLOperation.DESCRIBE, ACLPermissionType.ALLOW, pattern)])


def test_a_plan_from_a_file_is_carried_out_and_nothing_beyond_it(world: World, command: Command) -> None:
    filed = world.oldest("filed")
    plan = command.plan("--ceiling", command.ceiling())
    path = command.state_dir / "plan.json"
    path.write_text(json.dumps(plan))
    later = world.oldest("later")  # older than everything in the plan, and the disk is fuller than it was

    unsaid = command.run("--apply", "--plan", str(path), "--yes")
    done = command.run(*the_ceiling_of(plan), "--apply", "--plan", str(path), "--yes", "--output", "json")

    assert (unsaid.returncode, "the plan has a ceiling of its own" in unsaid.stderr) == (1, True)
    assert done.returncode in (0, 3), done.stderr
    assert f"log.retention.disk.usage.percent is {plan['ceilingPercent']} in the plan and 100 in the" in done.stderr
    (cycle,) = command.cycles()
    (trim,) = cycle.trims
    assert (trim.planned.partition, trim.phase) == (filed, TrimPhase.DONE)
    assert 0 < trim.planned.target <= taken(plan)["filed"]["target"]
    assert world.log_starts[filed] == trim.planned.target
    assert trim.freed_bytes == trim.planned.allocated_bytes
    assert world.log_starts[later] == 0
    assert json.loads(done.stdout)["cycles"][0]["freedBytes"] == trim.freed_bytes


def test_what_is_not_true_any_more_is_left_out(world: World, command: Command) -> None:
    remade, moved = world.oldest("remade"), world.oldest("moved")
    plan = command.plan("--ceiling", command.ceiling(below=6))
    assert taken(plan).keys() >= {"remade", "moved"}
    path = command.state_dir / "plan.json"
    path.write_text(json.dumps(plan))
    make_anew(world.sandbox, "remade")
    target = Offset(taken(plan)["moved"]["target"] + 1)
    with connected(world.sandbox) as connection:
        delete_records(connection, {moved: BROKER}, {moved: target}, LONG, Deadline(LONG))

    done = command.run(*the_ceiling_of(plan), "--apply", "--plan", str(path), "--yes")

    assert done.returncode == 3, done.stderr
    assert "remade-0: left out: the topic remade was deleted and recreated since" in done.stdout
    assert f"moved-0: left out: its log start is already {target}" in done.stdout
    assert (world.log_starts[remade], world.log_starts[moved]) == (0, target)
    wait_for_files_below(world.sandbox, moved, target)


def test_a_plan_with_another_digit_deletes_nothing(world: World, command: Command) -> None:
    filed = world.oldest("damaged")
    plan = command.plan("--ceiling", command.ceiling())
    path = command.state_dir / "plan.json"
    target = taken(plan)["damaged"]["target"]
    path.write_text(json.dumps(plan).replace(f'"target": {target},', f'"target": {target + 1},'))

    done = command.run(*the_ceiling_of(plan), "--apply", "--plan", str(path), "--yes")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"brimline: {path}: damaged or edited")
    assert world.log_starts[filed] == 0
    assert not LedgerFiles(command.state_dir, 1).current.exists()


def the_ceiling_of(plan: Mapping[str, Any]) -> tuple[str, str]:
    """Of its own, and so to be repeated."""
    return "--ceiling", str(plan["ceilingPercent"])


def make_anew(sandbox: Sandbox, topic: str) -> None:
    delete_topic(sandbox, topic)
    create_topic(sandbox, topic, config=TRIMMABLE)
    Writer(sandbox.admin_servers).write(topic, WRITTEN_MIB)


def delete_topic(sandbox: Sandbox, topic: str) -> None:
    with kafka_admin(sandbox.admin_servers) as client:
        client.delete_topics([topic])
    eventually(lambda: not [path for path in all_files(sandbox) if path.parent.name == f"{topic}-0"])


def wait_for_files_below(sandbox: Sandbox, partition: TopicPartition, offset: int) -> None:
    """All segments but the one that the offset is in."""

    def bases() -> list[int]:
        return sorted(int(path.stem) for path in all_files(sandbox, str(partition)) if path.suffix == ".log")

    eventually(lambda: sum(base <= offset for base in bases()) == 1)


def all_files(sandbox: Sandbox, folder: str = "*") -> Iterator[Path]:
    return (path for log_dir in sandbox.broker(1).log_dirs for path in sandbox.outside(log_dir).glob(f"{folder}/*"))


def test_while_paused_nothing_is_deleted(world: World, command: Command) -> None:
    kept = world.oldest("kept")
    ceiling = command.ceiling()
    paused = command.run("pause", "--reason", "CHG-1042")

    shown = command.run("--ceiling", ceiling)
    refused = command.run("--ceiling", ceiling, "--apply", "--yes")

    assert (paused.returncode, refused.returncode) == (0, 1)
    assert "CHG-1042 (resume: brimline reclaim resume): --apply deletes nothing until then" in shown.stderr
    assert "(CHG-1042): nothing was deleted; brimline reclaim resume" in refused.stderr
    (ledger,) = command.state_dir.glob("ledger-*.jsonl")
    content = bytearray(ledger.read_bytes())
    content[-20] ^= 1
    ledger.write_bytes(content)
    assert command.run("--ceiling", ceiling, "--apply", "--yes").returncode == 1
    assert world.log_starts[kept] == 0
    assert command.run("resume").returncode == 0
    assert command.run("--ceiling", ceiling, "--apply", "--yes").returncode == 0
    assert world.log_starts[kept] > 0


def test_a_device_that_somebody_works_on_is_left_alone(world: World, command: Command) -> None:
    kept = world.oldest("contended")
    ceiling = command.ceiling()
    volume = world.sandbox.broker(1).log_dirs[0].parent
    holding = ["flock", "--no-fork", "--exclusive", str(volume), "sh", "-c", "echo held; exec sleep 3600"]
    with subprocess.Popen(world.sandbox.inside(holding), stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            refused = command.run("--ceiling", ceiling, "--apply", "--yes")
        finally:
            other.kill()

    assert refused.returncode == 1
    assert "another cycle is running on the volume of" in refused.stderr
    assert world.log_starts[kept] == 0
    assert command.cycles() == ()


def test_what_was_only_sent_is_looked_after_by_the_next(world: World, command: Command) -> None:
    sent = world.oldest("sent")
    ceiling = command.ceiling()

    first = command.run("--ceiling", ceiling, "--apply", "--yes", "--no-wait")

    assert first.returncode == 0, first.stderr
    (cycle,) = command.cycles()
    assert (cycle.has_ended, [trim.phase for trim in cycle.trims]) == (False, [TrimPhase.REQUESTED])
    assert world.log_starts[sent] == cycle.trims[0].planned.target
    second = command.run("--ceiling", ceiling, "--apply", "--yes")
    assert second.returncode == 0, second.stderr
    ended, *more = command.cycles()
    assert (ended.has_ended, ended.plan) == (True, cycle.plan)
    assert [trim.freed_bytes for trim in ended.trims] == [trim.planned.allocated_bytes for trim in cycle.trims]
    assert all(each.has_ended for each in more)


def test_an_interrupted_cycle_is_on_record(world: World, command: Command) -> None:
    world.oldest("interrupted", NOT_TODAY)
    ledger = LedgerFiles(command.state_dir, 1).current
    running = subprocess.Popen(
        command.line("--ceiling", command.ceiling(), "--apply", "--yes"), stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    eventually(lambda: ledger.exists() and b'"kind":"answer"' in ledger.read_bytes())

    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=PATIENCE_SECONDS)

    assert running.returncode == 130
    assert "the guard or the next brimline reclaim --apply finishes what was sent" in said
    (cycle,) = command.cycles()
    assert not cycle.has_ended
    delete_topic(world.sandbox, "interrupted")


def test_a_ledger_that_fails_in_the_middle_does_not_say_that_nothing_was_changed(
    world: World, command: Command
) -> None:
    topic = world.oldest("broken-off", NOT_TODAY)
    ledger, aside = LedgerFiles(command.state_dir, 1).current, command.state_dir / "aside"
    running = subprocess.Popen(
        command.line("--ceiling", command.ceiling(), "--apply", "--yes"), stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    eventually(lambda: ledger.exists() and b'"kind":"answer"' in ledger.read_bytes())

    ledger.rename(aside)
    ledger.mkdir()
    shown, said = running.communicate(timeout=PATIENCE_SECONDS)

    assert running.returncode == 3, said
    assert "nothing was" not in said
    assert f"stopped: {ledger} cannot be written: Is a directory; the guard or the next" in said
    assert "broken-off" in shown
    assert world.log_starts[topic] > 0
    ledger.rmdir()
    aside.rename(ledger)
    delete_topic(world.sandbox, "broken-off")
