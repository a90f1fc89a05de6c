"""kill -9, really: of the driver anywhere in a round, and of executors at work. The rerun gives the same tables."""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from deltalake import DeltaTable, QueryBuilder

from brimline.fleet.tables.catalogue import Table
from brimline.landing.place import LandingPlace
from tests.fleet.landed import ROUND_NOW, broker, land, later, name_beside, put
from tests.fleet.s3 import BUCKET, SECRET, failed_of, s3_server
from tests.fleet.spark.standalone import StandaloneCluster, connect_server, packed_environment, standalone_cluster
from tests.waiting import LONGER, PATIENCE_SECONDS, SPARK_SECONDS, eventually

pytestmark = [pytest.mark.integration, pytest.mark.long, LONGER]

WHEN_WORKED_ON = {"ingested_at", "seen_at"}
WRITTEN = [table for table in Table if table is not Table.THINNED]
"""By a round over the landed files below, which has something for every table."""
LOCAL = "local[2]"
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three brokers, twice each, and a file that is none: four batches of two."""
    place = tmp_path_factory.mktemp("landing")
    for number in range(3):
        made = broker(number, now=ROUND_NOW)
        land(place, made)
        land(place, later(made, 1))
    put(place, name_beside(broker(0, now=ROUND_NOW).header, "text.parquet"), b"not Parquet")
    return str(place)


@pytest.fixture(scope="module")
def undisturbed(landing: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    warehouse = tmp_path_factory.mktemp("undisturbed")
    assert driver(landing, warehouse, LOCAL) == 0
    found = tables(warehouse)
    assert len(found["snapshots"]) == 6
    return found


def driver(landing: str, warehouse: Path | str, master: str, *death: str) -> int:
    return start(landing, warehouse, master, *death).wait(SPARK_SECONDS)


def start(landing: str, warehouse: Path | str, master: str, *death: str) -> "subprocess.Popen[bytes]":
    words = ["-m", "tests.fleet.spark.driver", landing, str(warehouse), master, "all", *death]
    return subprocess.Popen([sys.executable, *words], cwd=ROOT)


def killed_after(more: int, seconds: float, landing: str, warehouse: Path) -> int:
    """How a driver ended that was killed some time after so many more writes; it may have been done before."""
    enough = writes(warehouse) + more
    process = start(landing, warehouse, LOCAL)
    eventually(lambda: writes(warehouse) >= enough or process.poll() is not None)
    time.sleep(seconds)
    process.kill()
    return process.wait(PATIENCE_SECONDS)


def writes(warehouse: Path) -> int:
    return len(list(warehouse.glob("*/_delta_log/*.json")))


def tables(warehouse: Path | str) -> dict[str, list[str]]:
    """Every row of every table, without the columns that say when somebody worked on it."""
    return {table.value: sorted(rows(f"{warehouse}/{table.value}")) for table in WRITTEN}


def rows(path: str) -> Iterator[str]:
    found = DeltaTable(path)
    names = [field.name for field in found.schema().fields if field.name not in WHEN_WORKED_ON]
    chosen = ", ".join(f'"{name}"' for name in names)
    read = QueryBuilder().register("t", found).execute(f"SELECT {chosen} FROM t").read_all()
    columns = [read.column(place).to_pylist() for place in range(len(names))]
    return map(str, zip(*columns, strict=True))


def test_a_driver_killed_behind_every_write_leaves_nothing_behind(
    landing: str, undisturbed: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table or of the ingest's memory, each in a warehouse of its own, which the next run completes.

    Two batches are enough: what a third would leave is what the second leaves.
    """
    monkeypatch.setenv("FILES_PER_BATCH", "4")
    for count in itertools.count(1):
        warehouse = tmp_path / str(count)
        code = driver(landing, warehouse, LOCAL, str(count))
        if code == 0:
            break
        assert code == -signal.SIGKILL
        assert driver(landing, warehouse, LOCAL) == 0
        assert tables(warehouse) == undisturbed, f"killed behind write {count}"

    assert count > len(WRITTEN)


def test_a_driver_killed_at_any_moment_leaves_nothing_behind(
    landing: str, undisturbed: dict[str, list[str]], tmp_path: Path
) -> None:
    """After so many more writes, and some time on, to be in the middle of something."""
    moments = ((1, 0.0), (2, 0.5), (4, 0.0), (6, 1.0), (8, 0.0), (4, 2.0), (3, 0.3))
    ends = [killed_after(more, seconds, landing, tmp_path) for more, seconds in moments]
    # Once the ingest is done there may be fewer writes than that
    assert ends.count(-signal.SIGKILL) >= 3

    assert driver(landing, tmp_path, LOCAL) == 0

    assert tables(tmp_path) == undisturbed


def test_a_standalone_cluster_gives_the_same_tables_and_survives_its_executors(
    landing: str, undisturbed: dict[str, list[str]], tmp_path: Path
) -> None:
    """An executor is killed in the ingest, and again while the jobs run."""
    with standalone_cluster(tmp_path / "spark") as cluster:
        whole, wounded = tmp_path / "whole", tmp_path / "wounded"
        assert driver(landing, whole, cluster.url) == 0

        process = start(landing, wounded, cluster.url)
        for table in ("volumes", "volume_pressure"):
            eventually((wounded / table / "_delta_log").exists)
            eventually(lambda: kills_one(cluster))
        assert process.wait(SPARK_SECONDS) == 0

    assert tables(whole) == undisturbed
    assert tables(wounded) == undisturbed


def kills_one(cluster: StandaloneCluster) -> bool:
    """Spark ends executors, too."""
    for pid in cluster.executors():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def test_workers_whose_python_lacks_brimline_are_sent_an_environment(
    landing: str, undisturbed: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is unpacked in each executor's folder; without it the very Python is missing there."""
    monkeypatch.setenv("PYSPARK_PYTHON", "./env/bin/python")
    with standalone_cluster(tmp_path / "spark") as cluster:
        assert driver(landing, tmp_path / "without", cluster.url) == 1
        monkeypatch.setenv("ARCHIVES", f"{packed_environment(tmp_path)}#env")
        assert driver(landing, tmp_path / "warehouse", cluster.url) == 0

    assert tables(tmp_path / "warehouse") == undisturbed


def test_spark_connect_gives_the_same_tables(landing: str, undisturbed: dict[str, list[str]], tmp_path: Path) -> None:
    with connect_server(tmp_path / "spark") as url:
        assert driver(landing, tmp_path / "warehouse", url) == 0

    assert tables(tmp_path / "warehouse") == undisturbed


def test_an_object_store_that_fails_one_request_in_ten_gives_the_same_tables(
    landing: str, undisturbed: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Landing place and warehouse on a real S3 server. A driver is killed on the way: the next takes its place."""
    place, warehouse = f"s3://{BUCKET}/landing", f"s3://{BUCKET}/warehouse"
    with s3_server(one_in=10) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        for path in Path(landing).rglob("*.parquet"):
            LandingPlace(place).put(str(path.relative_to(landing)), path.read_bytes())
        assert driver(place, warehouse, LOCAL, "3") == -signal.SIGKILL
        assert driver(place, warehouse, LOCAL) == 0
        found = tables(warehouse)
        show = [sys.executable, "-m", "brimline.cli", "fleet", "show", "--warehouse", warehouse, "forecast"]
        assert subprocess.run(show, check=False).returncode == 0
        asked, failed = failed_of(environment)

    assert {name: [row.replace(place, landing) for row in each] for name, each in found.items()} == undisturbed
    assert failed == asked // 10
    assert SECRET not in "".join(capfd.readouterr())
