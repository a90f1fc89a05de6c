"""Snapshots of a real broker by a real guard: from its disks to a file, and to a plan made from the file."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from brimline.landing.header import Header, Source
from brimline.landing.place import LandingPlace
from brimline.landing.reader import Snapshot
from brimline.landing.schema import LOGS, SEGMENTS, TOPICS, VOLUMES
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic, produce
from tests.integration.guarded import QUICK, RunningGuard, guard, write_config
from tests.integration.segment_files import segment_files
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

MIB = 1 << 20
SPOOL_BYTES = 80 << 10
"""Two snapshots of this little broker, and not three."""
CEILING = {
    "log.retention.disk.usage.percent": "8",
    "brimline.reclaim.policy": "kip-61",
    "disk.max.used.percent": "100",
    "disk.min.free.bytes": "0",
}
VOLUME_SPECS = (VolumeSpec(size=Bytes(64 * MIB)), VolumeSpec(size=Bytes(64 * MIB), log_dirs=2))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(volumes=VOLUME_SPECS)) as running:
        create_topic(running, "orders", 6, config={"segment.bytes": str(MIB), "retention.bytes": str(8 * MIB)})
        for partition in range(3):
            produce(running, "orders", 4, partition)
        yield running


def landing_keys(landing: Path, state: Path) -> dict[str, str]:
    return {
        "brimline.landing.uri": str(landing),
        "brimline.landing.interval.ms": "1000",
        "brimline.state.dir": str(state),
        "log.retention.check.interval.ms": "1000",
    }


def test_the_plan_from_the_file_is_the_plan_from_memory(sandbox: Sandbox, tmp_path: Path) -> None:
    config = write_config(sandbox, {**QUICK, **CEILING})
    command = [sys.executable, "-m", "tests.integration.landing_inside", str(config)]

    done = subprocess.run(
        sandbox.inside([*command, str(tmp_path / "landing"), str(tmp_path / "state")]),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    compared = json.loads(done.stdout)
    assert compared["segments"] > 12
    assert compared["trimmed"] > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What a test looks at in a snapshot."""

    header: Header
    volumes: list[dict[str, Any]]
    orders: dict[int, dict[str, Any]]
    segments: int
    segments_of_logs: int


def newest(place: LandingPlace) -> Landed:
    with Snapshot(place.open(place.names()[-1])) as snapshot:
        volumes, topics, logs = (snapshot.read(name).to_pylist() for name in (VOLUMES, TOPICS, LOGS))
        return Landed(
            header=snapshot.header,
            volumes=volumes,
            orders={
                row["partition"]: row for row in logs if row["topic"] >= 0 and topics[row["topic"]]["topic"] == "orders"
            },
            segments=len(snapshot.read(SEGMENTS)),
            segments_of_logs=sum(row["segments"] for row in logs),
        )


def test_a_guard_puts_down_what_it_knows(sandbox: Sandbox, tmp_path: Path) -> None:
    """A figure that is late is withdrawn meanwhile: looked at is a snapshot that has it."""
    place = LandingPlace(str(tmp_path / "landing"))
    keys = {**landing_keys(tmp_path / "landing", tmp_path / "state"), "disk.max.used.percent": "95"}
    own_gauges_too = {"disk.min.free.bytes": "0", "brimline.metrics.publish": "all"}
    (folder,) = (found for d in sandbox.broker(1).log_dirs for found in sandbox.outside(d).glob("orders-0"))
    right = sum(segment_files(folder).values()) * 100 // (8 * MIB)
    found: list[Landed] = []

    def percent_in_newest() -> int | None:
        found.append(newest(place))
        percent: int | None = found[-1].orders[0]["bytes_percent"]
        return percent

    with guard(sandbox, tmp_path / "log", {**keys, **own_gauges_too}) as running:
        eventually(lambda: running.state()["landing"]["sent"] >= 2)
        eventually(lambda: percent_in_newest() == right)
        eventually(lambda: running.percent("kafka_log_log_retentionsizeinpercent", "orders") == right)
        eventually(lambda: running.state()["landing"]["spool"]["snapshots"] == 0)
        states, shown = running.states(), running.state()["landing"]
        counted = running.samples("brimline_landing_snapshots_total")

    landed = found[-1]
    assert (landed.header.broker_id, landed.header.source) == (1, Source.GUARD)
    assert {"/".join(Path(row["log_dir"]).parts[-2:]): row["state"] for row in landed.volumes} == states
    assert len({row["device"] for row in landed.volumes}) == 2
    assert {row["max_used_percent"] for row in landed.volumes} == {95}
    assert len(landed.orders) == 6
    assert {row["is_leader"] for row in landed.orders.values()} == {True}
    assert landed.orders[0]["size_bytes"] * 100 // (8 * MIB) == right
    assert landed.orders[0]["high_watermark"] == 4000
    assert landed.segments_of_logs == landed.segments
    assert (shown["failure"], shown["dropped"]) == (None, 0)
    assert counted['outcome="sent"'] >= 2
    assert running.events().count("landing-works") == 1


def test_a_full_landing_place_fills_the_spool_and_is_caught_up_with_later(sandbox: Sandbox, tmp_path: Path) -> None:
    """On a volume of its own size; a few pages stay free for the broker's checkpoints, and none for a snapshot."""
    volume = sandbox.broker(1).log_dirs[1].parent
    keys = {**landing_keys(volume / "landing", tmp_path / "state"), "brimline.landing.spool.bytes": str(SPOOL_BYTES)}
    with guard(sandbox, tmp_path / "log", keys) as running:
        eventually(lambda: running.state()["landing"]["sent"] >= 1)
        foreign = sandbox.fill(sandbox.broker(1).log_dirs[1], leave_free=Bytes(16 << 10))
        try:
            eventually(lambda: _spooled(running) >= 2)
            failure = running.state()["landing"]["failure"]
            eventually(lambda: running.state()["landing"]["dropped"] >= 1)
            while_full = running.state()
        finally:
            sandbox.unfill(foreign)
        eventually(lambda: _spooled(running) == 0 and running.state()["landing"]["failure"] is None)
        sent = running.state()["landing"]["sent"]
        eventually(lambda: running.state()["landing"]["sent"] > sent)

    assert "No space left" in failure
    assert while_full["landing"]["spool"]["bytes"] <= SPOOL_BYTES
    assert [event for event in running.events() if event == "landing-works"] == ["landing-works"] * 2
    assert "landing-fails" in running.events()
    assert while_full["guard"]["deadTasks"] == []
    landed = LandingPlace(str(sandbox.outside(volume / "landing")))
    names = landed.names()
    assert len(names) >= sent
    for name in names:
        with Snapshot(landed.open(name)) as snapshot:
            assert snapshot.header.name == name


def _spooled(running: RunningGuard) -> int:
    count: int = running.state()["landing"]["spool"]["snapshots"]
    return count


def test_without_a_landing_place_there_is_none(sandbox: Sandbox, tmp_path: Path) -> None:
    with guard(sandbox, tmp_path / "log") as running:
        state, samples = running.state(), running.samples("brimline_landing_snapshots_total")

    assert state["landing"] is None
    assert samples == {}
