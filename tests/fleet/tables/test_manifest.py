"""What is newest of each broker, without Spark: kept from batch to batch, or worked out from all snapshots."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brimline.fleet.session.errors import FleetError
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.manifest import Row, newest, newest_files, newest_of, planned_from, since, with_snapshots
from brimline.fleet.tables.warehouse import Warehouse

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def snapshot(broker: int, minutes: int, name: str = "a", segments: int = 1) -> Row:
    at = NOON + timedelta(minutes=minutes)
    of_file = {"path": f"/{broker}/{minutes}/{name}", "file_bytes": 1, "made_by": "a test", "ingested_at": NOON}
    counts = {"volumes_rows": 1, "topics_rows": 1, "logs_rows": 1, "segments_rows": segments}
    who = {"cluster_id": "c", "broker_id": broker, "taken_at": at, "snapshot_id": name, "source": "guard"}
    return who | {"taken_on": at.date()} | of_file | counts


def told(rows: list[Row]) -> dict[object, tuple[object, object]]:
    return {row["broker_id"]: (row["taken_at"], row["segments_path"]) for row in rows}


def test_the_newest_of_each_broker_counts_whatever_the_order() -> None:
    landed = [snapshot(1, 5), snapshot(1, 10), snapshot(1, 0), snapshot(2, 0)]

    found = with_snapshots([], landed)

    assert told(found) == {1: (NOON + timedelta(minutes=10), "/1/10/a"), 2: (NOON, "/2/0/a")}
    assert with_snapshots([], reversed(landed)) == found
    assert with_snapshots(with_snapshots([], landed[:2]), landed[2:]) == found


def test_of_two_of_one_moment_the_larger_id_is_newer() -> None:
    (row,) = with_snapshots([], [snapshot(1, 0, "b"), snapshot(1, 0, "a")])

    assert (row["snapshot_id"], row["segments_snapshot_id"]) == ("b", "b")


def test_the_planner_reads_the_newest_one_that_has_segments() -> None:
    """A collector's snapshots have none."""
    rows = with_snapshots([], [snapshot(1, 0), snapshot(1, 5, segments=0), snapshot(2, 5, segments=0)])

    assert told(rows) == {1: (NOON + timedelta(minutes=5), "/1/0/a"), 2: (NOON + timedelta(minutes=5), None)}
    (file,) = planned_from(rows)
    assert (file.path, file.segments, file.broker_id) == ("/1/0/a", 1, 1)
    assert file.taken_at_ms == int(NOON.timestamp() * 1000)


def test_it_is_the_same_from_its_table_and_from_all_snapshots(tmp_path: Path) -> None:
    """A warehouse of an older version has no such table."""
    warehouse = Warehouse(str(tmp_path / "ware house"))
    landed = [snapshot(1, 0), snapshot(1, 5, segments=0), snapshot(2, 0)]
    warehouse.write(landed, Table.SNAPSHOTS, "append")
    before = newest(warehouse.place)

    warehouse.write(with_snapshots([], landed), Table.NEWEST, "overwrite")

    assert newest(warehouse.place) == before == newest_of(warehouse.place) == with_snapshots([], landed)


def test_what_history_no_longer_has_is_not_newest_either() -> None:
    rows = with_snapshots([], [snapshot(1, -60), snapshot(2, -60), snapshot(2, 0, segments=0), snapshot(3, 0)])

    assert told(since(rows, NOON)) == {2: (NOON, None), 3: (NOON, "/3/0/a")}


def test_nothing_to_plan_from_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="no snapshot with segments in"):
        newest_files(str(tmp_path))
