"""From three brokers' disks to tables: guards land snapshots, Spark takes them in, and says what the guards say."""

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import CALM, TIERED, brimline, brimline_inside, create_topic, produce
from tests.integration.guarded import RunningGuard, guard
from tests.integration.kafka_clients import kafka_consumer
from tests.integration.test_remote_info import is_settled
from tests.waiting import LONGER, SPARK_SECONDS, eventually

pytestmark = [pytest.mark.integration, LONGER]

MIB = 1 << 20
BROKERS = (1, 2, 3)
TOPICS = ("orders", "clicks", "archive")
FULL = 2
"""The broker whose volume a foreign file fills."""
ARCHIVING = (1, 2)
"""The brokers that have the tiered topic."""
PLAIN = "kafka_log_log_retentionsizeinpercent"
REMOTE = "kafka_log_remote_remotelogmanager_retentionsizeinpercent"
SMALL = {"segment.bytes": str(MIB), "retention.ms": "-1"}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    volumes = (VolumeSpec(size=Bytes(96 * MIB)),)
    with Sandbox(SandboxSpec(brokers=3, volumes=volumes, tiered=True, properties=CALM)) as running:
        create_topic(running, "orders", 3, 3, config={**SMALL, "retention.bytes": str(10 * MIB)})
        create_topic(running, "clicks", 3, 2, config={**SMALL, "retention.bytes": "-1"})
        limited = {**TIERED, "retention.bytes": str(40 * MIB)}
        create_topic(running, "archive", config=limited, assignment={0: list(ARCHIVING)})
        for partition in range(3):
            produce(running, "orders", 2 + partition, partition)
            produce(running, "clicks", 3, partition)
        produce(running, "archive", 6)
        for broker in ARCHIVING:
            eventually(partial(is_settled, running, "archive", 0, at_most=3, broker=broker))
        yield running


def keys(tmp_path: Path) -> dict[str, str]:
    return {
        "brimline.state.dir": str(tmp_path / "state"),
        "brimline.landing.uri": str(tmp_path / "landing"),
        "brimline.landing.interval.ms": "10000",
        "brimline.metrics.publish": "all",
        "brimline.reclaim.mode": "plan",
        "brimline.reclaim.interval.ms": "5000",
        "log.retention.disk.usage.percent": "10",
        "brimline.reclaim.policy": "kip-61",
        # Everything is at rest, so figures hold; those that are older than two intervals would be withdrawn.
        "log.retention.check.interval.ms": "600000",
        "remote.log.manager.task.interval.ms": "600000",
        "disk.max.used.percent": "80",
        "disk.min.free.bytes": "0",
    }


def test_the_tables_say_what_the_guards_say(sandbox: Sandbox, tmp_path: Path) -> None:
    foreign = sandbox.fill(sandbox.broker(FULL).log_dirs[0], leave_free=Bytes(8 * MIB))
    with ExitStack() as stack:
        stack.callback(sandbox.unfill, foreign)
        guards = {
            broker: stack.enter_context(guard(sandbox, tmp_path / f"log-{broker}", keys(tmp_path), broker=broker))
            for broker in BROKERS
        }
        for broker, running in guards.items():
            tiered = {("archive", 0)} if broker == ARCHIVING[0] else set()
            eventually(partial(knows_everything, running, folders(sandbox, broker), tiered))
            eventually(partial(has_sent_more_than, running, running.state()["landing"]["sent"] + 1))
        said = {broker: running.state() for broker, running in guards.items()}
        plain = {broker: percentages(running, PLAIN) for broker, running in guards.items()}
        remote = {broker: percentages(running, REMOTE) for broker, running in guards.items()}
    warehouse = ["--warehouse", str(tmp_path / "warehouse")]
    ran = brimline("fleet", "run", "--landing", str(tmp_path / "landing"), *warehouse, timeout=SPARK_SECONDS)
    assert ran.returncode == 0, ran.stderr

    volumes = shown(tmp_path, "volume_pressure")
    assert {(row["broker_id"], row["log_dir"]): row["state"] for row in volumes} == {
        (broker, path): volume["state"]
        for broker, state in said.items()
        for volume in state["volumes"]
        for path in volume["logDirs"]
    }
    assert [row["broker_id"] for row in volumes if row["state"] == "full"] == [FULL]
    pressure = shown(tmp_path, "retention_pressure")
    for broker in BROKERS:
        of_broker = [row for row in pressure if row["broker_id"] == broker]
        assert in_percent(of_broker, "plain_percent", plain[broker]) == plain[broker]
        assert in_percent(of_broker, "tiered_percent", remote[broker]) == remote[broker]
    assert {row["equals_guard"] for row in pressure} <= {True, None}
    assert sum(row["equals_guard"] is True for row in pressure) >= len(plain[1]) + len(plain[2]) + len(plain[3])
    planned = {row["broker_id"]: row for row in shown(tmp_path, "reclaim_plan")}
    for broker, state in said.items():
        (device,) = state["reclaim"]["devices"]
        assert planned[broker]["device_outcome"] == device["plan"]["outcome"]
        assert planned[broker]["device_taken_segments"] == device["plan"]["takenSegments"] > 0
    (summary,) = shown(tmp_path, "fleet_summary")
    assert (summary["brokers"], summary["full_log_dirs"]) == (3, 1)

    plan = what_a_ceiling_would_delete(tmp_path, warehouse)
    targets = {
        TopicPartition(trim["topic"], trim["partition"]): trim["target"]
        for device in json.loads(plan.read_text())["devices"]
        for trim in device["trims"]
    }
    assert targets
    carry_out(sandbox, plan)
    assert log_starts(sandbox, targets) == targets


def what_a_ceiling_would_delete(tmp_path: Path, warehouse: list[str]) -> Path:
    """The simulation's plan for the first broker."""
    limits = ["--ceiling", "10", "--broker", "1", "--plan-out", str(tmp_path / "plans")]
    simulated = brimline("fleet", "simulate", *warehouse, *limits)
    assert simulated.returncode == 0, simulated.stderr
    (plan,) = (tmp_path / "plans").iterdir()
    return plan


def carry_out(sandbox: Sandbox, plan: Path) -> None:
    config = sandbox.broker(1).node.server_properties.with_name("guard.properties")
    done = brimline_inside(sandbox, "reclaim", "--config", str(config), "--apply", "--plan", str(plan), "--yes")
    assert done.returncode == 0, done.stdout + done.stderr


def log_starts(sandbox: Sandbox, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    with kafka_consumer(sandbox.bootstrap_servers) as consumer:
        return dict(consumer.beginning_offsets(list(partitions)))


def folders(sandbox: Sandbox, broker: int) -> set[tuple[str, int]]:
    """The partitions of this test that a broker's disk holds."""
    (log_dir,) = sandbox.broker(broker).log_dirs
    parted = (folder.name.rpartition("-") for folder in sandbox.outside(log_dir).iterdir())
    return {(topic, int(partition)) for topic, _, partition in parted if topic in TOPICS}


def knows_everything(running: RunningGuard, held: set[tuple[str, int]], tiered: set[tuple[str, int]]) -> bool:
    """``tiered``: what this broker leads of it."""
    plans = [device["plan"] for device in running.state()["reclaim"]["devices"]]
    known = set(percentages(running, PLAIN)), set(percentages(running, REMOTE))
    return known == (held, tiered) and None not in plans


def has_sent_more_than(running: RunningGuard, snapshots: int) -> bool:
    return bool(running.state()["landing"]["sent"] > snapshots)


def percentages(running: RunningGuard, metric: str) -> dict[tuple[str, int], float]:
    """Of the topics of this test; the labels are as written: topic="orders",partition="0"."""
    found = {}
    for labels, value in running.samples(metric).items():
        topic, partition = (part.split("=")[1].strip('"') for part in labels.split(","))
        if topic in TOPICS:
            found[topic, int(partition)] = value
    return found


def in_percent(
    rows: list[dict[str, Any]], column: str, wanted: dict[tuple[str, int], float]
) -> dict[tuple[str, int], float]:
    return {(row["topic"], row["partition"]): row[column] for row in rows if (row["topic"], row["partition"]) in wanted}


def shown(tmp_path: Path, table: str) -> list[dict[str, Any]]:
    done = brimline("fleet", "show", "--warehouse", str(tmp_path / "warehouse"), table, "--output", "json")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows
