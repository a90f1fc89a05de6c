"""``brimline fleet collect`` on a real cluster: a snapshot of every broker that answers, and the others named."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.landing.header import Header, Source
from brimline.landing.place import LandingPlace
from brimline.landing.reader import Snapshot
from brimline.landing.schema import LOGS, SEGMENTS, TOPICS, VOLUMES
from brimline.landing.tables import reclaim_tables
from brimline.model import BrokerId, Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import CALM, TIERED, admin, brimline, create_topic, hung, produce
from tests.waiting import eventually

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    # The cluster goes on listing the hung broker.
    spec = SandboxSpec(brokers=2, volumes=(VolumeSpec(size=Bytes(128 << 20)),), tiered=True, properties=CALM)
    with Sandbox(spec) as running:
        create_topic(running, "plain", config={"retention.ms": "3600000"}, assignment={0: [1, 2], 1: [2, 1]})
        create_topic(running, "tiered", config=TIERED, assignment={0: [1]})
        produce(running, "plain", 1)
        produce(running, "tiered", 2)
        yield running


def snapshots(landing: Path) -> dict[int, Snapshot]:
    place = LandingPlace(str(landing))
    found = [Snapshot(place.open(name)) for name in place.names()]
    return {snapshot.header.broker_id: snapshot for snapshot in found}


def test_a_snapshot_of_every_broker(sandbox: Sandbox, tmp_path: Path) -> None:
    done = brimline(
        "fleet", "collect", "--bootstrap-server", sandbox.bootstrap_servers, "--landing", str(tmp_path / "landing")
    )
    with admin(sandbox) as client:
        answers, cluster = client.describe_log_dirs(), client.cluster_id()

    assert done.returncode == 0, done.stderr
    found = snapshots(tmp_path / "landing")
    assert sorted(found) == [1, 2]
    for broker, snapshot in found.items():
        header: Header = snapshot.header
        assert (header.cluster_id, header.source) == (cluster, Source.COLLECT)
        assert header.sections[SEGMENTS].rows == 0
        topics, logs = snapshot.read(TOPICS).to_pylist(), snapshot.read(LOGS).to_pylist()
        sizes = {(topics[row["topic"]]["topic"], row["partition"]): row["size_bytes"] for row in logs}
        (log_dir,) = answers[BrokerId(broker)].log_dirs.values()
        described = {(where.topic, where.partition): info.size for where, info in log_dir.replica_infos.items()}
        assert sizes.keys() == described.keys()
        assert sizes["plain", 0] == described["plain", 0] > 1_000_000  # others may have changed between the two looks
        (volume,) = snapshot.read(VOLUMES).to_pylist()
        assert (volume["log_dir"], volume["total_bytes"]) == (log_dir.path, log_dir.total_bytes)
        assert len(reclaim_tables(snapshot).devices) == 1
    assert f"2 of 2 brokers of {cluster}" in done.stdout


def test_rules_leaders_and_remote_sizes(sandbox: Sandbox, tmp_path: Path) -> None:
    topics: dict[str, Any] = {}
    logs: dict[tuple[str, int], Any] = {}

    def has_remote_size() -> bool:
        brimline("fleet", "collect", "--bootstrap-server", sandbox.bootstrap_servers, "--landing", str(tmp_path))
        with snapshots(tmp_path)[1] as snapshot:
            rows = snapshot.read(TOPICS).to_pylist()
            names = [row["topic"] for row in rows]
            topics.update(zip(names, rows, strict=True))
            logs.update({(names[row["topic"]], row["partition"]): row for row in snapshot.read(LOGS).to_pylist()})
        return logs["tiered", 0]["remote_bytes"] is not None

    eventually(has_remote_size)
    assert topics["plain"]["retention_ms"] == 3_600_000
    assert (topics["plain"]["is_tiered"], topics["tiered"]["is_tiered"]) == (False, True)
    assert all(row["is_known"] for row in topics.values())
    plain, tiered = logs["plain", 0], logs["tiered", 0]
    assert (plain["is_leader"], plain["remote_bytes"], plain["remote_reason"]) == (True, None, "not-tiered")
    assert (tiered["is_leader"], logs["plain", 1]["is_leader"]) == (True, False)


def test_a_broker_that_does_not_answer_is_named_and_the_other_is_written(sandbox: Sandbox, tmp_path: Path) -> None:
    """With more and more time until the one that is alive has answered in it: the hung one takes all of it."""
    tries: list[subprocess.CompletedProcess[str]] = []

    def has_answered() -> bool:
        servers = ["--bootstrap-server", sandbox.bootstrap_servers, "--landing", str(tmp_path)]
        tries.append(brimline("fleet", "collect", *servers, "--timeout", str(5 * 2 ** len(tries))))
        return "1 of 2 brokers" in tries[-1].stdout

    with hung(sandbox, 2):
        eventually(has_answered)

    assert tries[-1].returncode == 3, tries[-1].stderr
    assert "broker 2" in tries[-1].stderr
    assert list(snapshots(tmp_path)) == [1]


def test_again_and_again(sandbox: Sandbox, tmp_path: Path) -> None:
    servers = ["--bootstrap-server", sandbox.bootstrap_servers, "--landing", str(tmp_path)]
    done = brimline("fleet", "collect", *servers, "--interval", "0.1", "--times", "3", "--broker-list", "1")

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(LandingPlace(str(tmp_path)).names()) == 3


def test_a_landing_place_that_cannot_be_written_to(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "snapshots").write_text("a file where a folder must be")
    done = brimline("fleet", "collect", "--bootstrap-server", sandbox.bootstrap_servers, "--landing", str(tmp_path))

    assert done.returncode == 1
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr
