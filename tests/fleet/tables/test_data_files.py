"""Data files without Spark: what a commit makes of them, once and whole."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.data_files import DataFiles
from brimline.fleet.tables.gold_schemas import GOLD
from brimline.fleet.tables.schemas import ARROW
from brimline.fleet.tables.warehouse import BatchName, Wanted, Warehouse, _stored_files

MOMENT = datetime(2026, 1, 31, 12, 0, 0, 1500, tzinfo=UTC)
BATCH = BatchName(stream="s", number=1)


def row(number: int, at: datetime = MOMENT) -> dict[str, Any]:
    of_snapshot = {"cluster_id": "c", "broker_id": number, "taken_at": at, "snapshot_id": f"{number:x}"}
    counts = {f"{section}_rows": 1 for section in ("volumes", "topics", "logs", "segments")}
    of_file = {"path": f"/{number}", "file_bytes": 1, "made_by": "a test", "ingested_at": MOMENT}
    return of_snapshot | {"source": "guard", "taken_on": at.date()} | of_file | counts


def written(warehouse: Warehouse, wanted: Wanted) -> list[int]:
    return sorted(warehouse.select(Table.SNAPSHOTS, ["broker_id"], wanted).column(0).to_pylist())


def test_a_batch_is_in_a_table_once_however_often_it_is_committed(tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path / "ware house"))
    for batch in (BATCH, BATCH, BatchName(stream="s", number=2), BatchName(stream="other", number=1)):
        warehouse.write([row(1)], Table.SNAPSHOTS, "append", batch)

    found = warehouse.opened(Table.SNAPSHOTS)

    assert found is not None
    assert found.count() == 3
    # The one that was not wanted has left no file
    assert len(list((tmp_path / "ware house").rglob("part-*.parquet"))) == 3


def test_rows_are_found_by_their_day_and_snapshot(tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path))
    warehouse.write([row(1), row(2, MOMENT - timedelta(days=1)), row(3)], Table.SNAPSHOTS, "append", BATCH)

    assert written(warehouse, Wanted(since=date(2026, 1, 31))) == [1, 3]
    assert written(warehouse, Wanted(days=[date(2026, 1, 30)])) == [2]
    assert written(warehouse, Wanted(days=[date(2026, 1, 31)], snapshots=["3"])) == [3]
    assert written(warehouse, Wanted(snapshots=[])) == []
    assert written(warehouse, Wanted.of({"3": MOMENT, "2": MOMENT - timedelta(days=1)})) == [2, 3]
    assert written(warehouse, Wanted.of({})) == []


def test_of_a_day_of_rounds_only_the_files_of_the_wanted_moments_are_read(tmp_path: Path) -> None:
    """Forty rounds; all brokers but two were heard in the last of them."""
    warehouse = Warehouse(str(tmp_path))
    moments = [MOMENT - timedelta(minutes=5 * (39 - number)) for number in range(40)]
    for number, moment in enumerate(moments):
        batch = BatchName(stream="s", number=number + 1)
        warehouse.write([row(1000 + number, moment), row(2000 + number, moment)], Table.SNAPSHOTS, "append", batch)
    found = warehouse.opened(Table.SNAPSHOTS)
    assert found is not None

    wanted = Wanted.of({f"{1000 + number:x}": moments[number] for number in (3, 20, 39)})

    assert written(warehouse, wanted) == [1003, 1020, 1039]
    assert len(_stored_files(found, wanted)) == 3
    # More moments than spans: nothing is lost
    every_other = Wanted.of({f"{1000 + number:x}": moments[number] for number in range(0, 40, 2)})
    assert written(warehouse, every_other) == list(range(1000, 1040, 2))


def test_an_overwritten_table_has_the_new_rows_alone(tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path))
    for number in (1, 2):
        files = DataFiles(warehouse.place, {Table.QUARANTINE: ARROW[Table.QUARANTINE]})
        refused = {"path": f"/{number}", "reason": "late", "detail": "x", "seen_at": MOMENT}
        for batch in pa.Table.from_pylist([refused], schema=ARROW[Table.QUARANTINE]).to_batches():
            files.add(Table.QUARANTINE, batch)
        warehouse.commit(Table.QUARANTINE, files.finished(), "overwrite")

    assert warehouse.select(Table.QUARANTINE, ["path"]).column(0).to_pylist() == ["/2"]


def test_bounds_hold_every_value_although_delta_keeps_milliseconds(tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path))
    warehouse.write([row(1)], Table.SNAPSHOTS, "append", BATCH)
    found = warehouse.opened(Table.SNAPSHOTS)
    assert found is not None

    (added,) = pa.table(found.get_add_actions(flatten=True)).to_pylist()

    assert added["min.taken_at"] <= MOMENT <= added["max.taken_at"]
    assert (added["num_records"], added["min.cluster_id"], added["max.broker_id"]) == (1, "c", 1)


@pytest.mark.parametrize("times", [1, 2])
def test_a_table_without_a_row_is_a_table(tmp_path: Path, times: int) -> None:
    warehouse = Warehouse(str(tmp_path))
    for _ in range(times):
        warehouse.commit(Table.FORECAST, [], "overwrite")

    assert warehouse.exists(Table.FORECAST)
    assert not warehouse.exists(Table.FINDINGS)


def test_a_table_of_an_older_version_gets_the_columns_that_were_added_since(tmp_path: Path) -> None:
    old = ARROW[Table.SNAPSHOTS]
    older = pa.Table.from_pylist([row(1)], schema=old).drop_columns(["file_bytes", "segments_rows"])
    write_deltalake(str(tmp_path / "snapshots"), older, partition_by=["taken_on"])
    warehouse = Warehouse(str(tmp_path))
    before = warehouse.select(Table.SNAPSHOTS, ["broker_id", "segments_rows"]).to_pylist()

    warehouse.write([row(2)], Table.SNAPSHOTS, "append", BATCH)

    found = warehouse.select(Table.SNAPSHOTS, ["broker_id", "segments_rows"]).to_pylist()
    assert before == [{"broker_id": 1, "segments_rows": None}]
    assert sorted(found, key=lambda each: each["broker_id"]) == [*before, {"broker_id": 2, "segments_rows": 1}]


def test_others_cannot_write_less_than_no_bytes_and_what_is_not_known_may_be_null(tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path))
    for number in (1, 2):
        warehouse.write([row(number)], Table.SNAPSHOTS, "append", BatchName(stream="s", number=number))
    wrong, unknown = ({**row(3), "file_bytes": value} for value in (-1, None))

    with pytest.raises(DeltaError, match="failed validation check"):
        write_deltalake(str(tmp_path / "snapshots"), _rows(wrong), mode="append")
    write_deltalake(str(tmp_path / "snapshots"), _rows(unknown), mode="append")
    warehouse.write([row(4)], Table.SNAPSHOTS, "append", BatchName(stream="s", number=3))

    assert sorted(written(warehouse, Wanted())) == [1, 2, 3, 4]


def _rows(made: dict[str, object]) -> pa.Table:
    schema = pa.schema([pa.field(each.name, each.type) for each in ARROW[Table.SNAPSHOTS]])
    return pa.Table.from_pylist([made], schema=schema)


def test_an_overwritten_table_has_the_columns_of_now(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "forecast"), pa.table({"cluster_id": ["c"], "dropped_since": [1]}))
    warehouse = Warehouse(str(tmp_path))

    warehouse.commit(Table.FORECAST, [], "overwrite")

    found = warehouse.opened(Table.FORECAST)
    assert found is not None
    assert [each.name for each in found.schema().fields] == GOLD[Table.FORECAST].names
    assert found.count() == 0


def test_old_versions_of_a_table_that_is_written_whole_go_after_some_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(str(tmp_path))

    def overwrite(times: int) -> int:
        for number in range(times):
            refused = {"path": f"/{number}", "reason": "late", "detail": "x", "seen_at": MOMENT}
            warehouse.write([refused], Table.QUARANTINE, "overwrite")
        return len(list(tmp_path.rglob("part-*.parquet")))

    young = overwrite(13)
    monkeypatch.setattr("brimline.fleet.tables.warehouse.OLD_VERSIONS_HOURS", 0)
    old = overwrite(12)

    assert young == 13
    assert old < 13
    assert warehouse.select(Table.QUARANTINE, ["path"]).to_pylist() == [{"path": "/11"}]


def test_what_is_appended_to_keeps_its_old_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brimline.fleet.tables.warehouse.OLD_VERSIONS_HOURS", 0)
    warehouse = Warehouse(str(tmp_path))

    for number in range(13):
        warehouse.write([row(number)], Table.SNAPSHOTS, "append")

    assert written(warehouse, Wanted()) == list(range(13))
