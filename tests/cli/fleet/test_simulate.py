"""``fleet simulate`` as a command, on a warehouse that no Spark was needed for."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from brimline.act.plan_file import load_plan
from brimline.cli import main
from brimline.fleet.planner.tasks import SnapshotFile
from tests.fleet.snapshots import broker_of_one_log, file_of, header_of, sections_of, write_snapshot


def snapshots_of(warehouse: Path, files: list[SnapshotFile]) -> None:
    rows = [
        {
            "cluster_id": file.cluster_id,
            "broker_id": file.broker_id,
            "snapshot_id": file.snapshot_id,
            "taken_at": file.taken_at_ms * 1000,
            "source": "guard",
            "path": file.path,
            "segments_rows": file.segments,
        }
        for file in files
    ]
    schema = pa.schema(
        [
            ("cluster_id", pa.string()),
            ("broker_id", pa.int32()),
            ("snapshot_id", pa.string()),
            ("taken_at", pa.timestamp("us", tz="UTC")),
            ("source", pa.string()),
            ("path", pa.string()),
            ("segments_rows", pa.int64()),
        ]
    )
    write_deltalake(str(warehouse / "snapshots"), pa.Table.from_pylist(rows, schema=schema))


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Two brokers of which one is above a ceiling of 50 %, and an older snapshot of it that nobody is to read."""
    folder = tmp_path / "landing"
    above, below = broker_of_one_log(700, [0, 10, 20, 30, 40]), broker_of_one_log(400, [0, 10, 20])
    files = [
        write_snapshot(folder, header_of(broker=1), sections_of(above)),
        write_snapshot(folder, header_of(broker=2), sections_of(below)),
        file_of(folder / "older", header_of(broker=1, taken_at_ms=1), 5),
    ]
    snapshots_of(tmp_path / "warehouse", files)
    return tmp_path / "warehouse"


def run(*arguments: object) -> int:
    return main(["fleet", "simulate", *map(str, arguments)])


def test_json_has_everything(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run("--warehouse", warehouse, "--ceiling", 50, "--days", 0, "--output", "json", "--processes", 1)

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (found["format"], found["version"], found["brokers"]) == ("brimline.simulation", 1, 2)
    assert found["whatIf"] == {"ceilingPercent": 50, "maxUsedPercent": None, "days": 0, "retention": []}
    (topic,) = found["topics"]
    assert (topic["topic"], topic["byCeilingTodayBytes"], topic["ceilingOnDay"]) == ("orders", 200, 0)
    assert [device["byCeilingBytes"] for device in found["devices"]] == [200, 0]
    # The other broker has a replica of the same partition, and a trim is for all
    assert found["freedTodayBytes"] == 400


def test_the_table_says_what_was_asked_and_what_would_be_lost(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run("--warehouse", warehouse, "--ceiling", 50, "--max-used", 90, "--retention", "ord.*=7d", "--processes", 1)

    shown = capsys.readouterr().out
    assert code == 0
    assert "a ceiling of 50 %, Produce refused above 90 %, retention of ord.*: 7 days; for 7 days" in shown
    assert "2 brokers, 2 volumes" in shown
    assert "orders" in shown
    assert "each broker by its own plan, 200 B of it today" in shown
    assert "freed today        400 B, on all replicas" in shown


def test_plans_are_files_for_reclaim(warehouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run("--warehouse", warehouse, "--ceiling", 50, "--plan-out", tmp_path / "plans", "--processes", 1)

    (path,) = (tmp_path / "plans").iterdir()
    assert code == 0
    assert "1 broker has something to delete now" in capsys.readouterr().err
    assert (path.name, load_plan(path).trims[0].target) == ("cluster-a-1.json", 20)


def test_only_the_broker_that_is_meant(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--warehouse", warehouse, "--broker", 2, "--cluster", "cluster-a", "--output", "json", "--processes", 1)

    assert [each["broker"] for each in json.loads(capsys.readouterr().out)["devices"]] == [2]


def test_a_snapshot_that_is_gone_is_named_and_the_others_are_shown(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(str(warehouse.parent / "landing" / header_of(broker=2).name)).unlink()

    code = run("--warehouse", warehouse, "--processes", 1)

    captured = capsys.readouterr()
    assert code == 3
    assert "1 broker, 1 volume" in captured.out
    assert "broker 2 of cluster-a: unreadable" in captured.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ceiling", "101"], "not a whole number from 0 to 100"),
        (["--days", "-1"], "not a number of days"),
        (["--retention", "orders=1000"], "1000 of what?"),
        (["--plan-out", "x"], "--plan-out needs --ceiling"),
        (["--cluster", "other"], "no broker with segments"),
    ],
)
def test_wrong_usage_is_one_sentence(
    warehouse: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    try:
        code = run("--warehouse", warehouse, *arguments)
    except SystemExit as exit_:
        code = int(exit_.code or 0)

    assert code == 1
    assert says in capsys.readouterr().err


def test_a_warehouse_without_segments_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--warehouse", tmp_path) == 1
    assert "no snapshot with segments in" in capsys.readouterr().err
