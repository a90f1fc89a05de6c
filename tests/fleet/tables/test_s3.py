"""Landing place, warehouse and lock on a real S3 server that fails one request in ten, without Spark.

A whole round there, with Spark, is in ``tests/fleet/spark/test_killed.py``.
"""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from deltalake.exceptions import DeltaError

from brimline.fleet.ingest.file import take_in
from brimline.fleet.ingest.look import has_landed, look_for_new, look_through
from brimline.fleet.ingest.memory import Memory, remember, remembered
from brimline.fleet.session.errors import FleetError, LandingFailed, WarehouseBusy
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.run_lock import Lease
from brimline.fleet.tables.show import TableLook, look_at
from brimline.fleet.tables.warehouse import BatchName, Warehouse
from brimline.guard.landing.child import SnapshotWriter
from brimline.landing.file_systems import opened_file
from brimline.landing.place import LandingPlace
from tests.fleet.s3 import BUCKET, SECRET, failed_of, s3_server
from tests.landing.snapshots import HEADER, sections, some_tables

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
ROOT = Path(__file__).parents[3]
BEAT_SECONDS, GONE_SECONDS = 0.1, 2.0


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with s3_server(one_in=10) as environment:
        yield environment
        asked, failed = failed_of(environment)
        assert failed == asked // 10 > 0


@pytest.fixture
def place(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid4().hex}"


def refused(path: str) -> dict[str, object]:
    empty = dict.fromkeys((c.CLUSTER_ID, c.BROKER_ID, c.SNAPSHOT_ID, c.TAKEN_AT, c.SOURCE))
    return {**empty, c.PATH: path, c.REASON: "corrupt", c.DETAIL: "", c.SEEN_AT: NOW}


def paths(warehouse: str) -> list[object]:
    return [row[0] for row in look_at(warehouse, Table.QUARANTINE, TableLook(columns=[c.PATH])).rows]


def lease(place: str) -> Lease:
    return Lease(place, BEAT_SECONDS, GONE_SECONDS)


def commit_second(place: str) -> str:
    try:
        Warehouse(place).write([refused("second")], Table.QUARANTINE, "append", BatchName(stream="s", number=1))
    except DeltaError:  # another commit has this batch
        return "there"
    return "done"


def take_over(place: str) -> str:
    try:
        with lease(place).held(GONE_SECONDS + 1):
            return "done"
    except WarehouseBusy:
        return "busy"


def processes(function: str, place: str, number: int) -> list[str]:
    """What the same function says in several processes at once."""
    code = f"import sys; from {__name__} import {function}; print({function}(sys.argv[1]))"
    command = [sys.executable, "-c", code, place]
    started = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(number)]
    return [process.communicate()[0].strip() for process in started]


def test_a_guards_snapshot_lands_and_is_found_and_read(place: str, tmp_path: Path) -> None:
    delivered = SnapshotWriter(place, tmp_path, 7).write(HEADER, sections(some_tables()), 1 << 20)

    assert (delivered.sent, delivered.waiting, delivered.failure) == (1, 0, None)
    assert has_landed(place)
    found = look_through(place)
    assert found == look_for_new(place, {})
    taken = take_in(found[0].path)
    assert taken.examined.failure is None
    assert taken.examined.header is not None
    assert taken.examined.header.snapshot_id == HEADER.snapshot_id
    assert taken.examined.file_bytes == delivered.bytes


def test_a_file_that_is_gone_is_refused_and_a_store_that_fails_is_not_the_files_fault(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert take_in(f"{place}/gone.parquet").examined.failure is not None
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("brimline.landing.file_systems._ATTEMPTS", 1)

    with pytest.raises(OSError, match="NETWORK_CONNECTION") as failed:
        take_in(f"{place}/unreachable.parquet")
    assert SECRET not in str(failed.value)


def test_a_file_that_is_shorter_than_the_stores_complaint_is_fetched(place: str) -> None:
    LandingPlace(place).put("short", b"x")

    assert {bytes(opened_file(f"{place}/short").read()) for _ in range(30)} == {b"x"}


def test_a_landing_place_that_is_not_there_is_a_sentence(place: str) -> None:
    with pytest.raises(LandingFailed, match="no landing place"):
        has_landed(f"{place}/nothing")


def test_a_batch_that_several_commit_at_once_is_in_the_table_once(place: str) -> None:
    warehouse = Warehouse(place)
    warehouse.write([refused("first")], Table.QUARANTINE, "append", BatchName(stream="other", number=1))

    ends = processes("commit_second", place, 3)

    assert set(ends) <= {"done", "there"}
    assert sorted(map(str, paths(place))) == ["first", "second"]


def test_a_commit_whose_answer_is_lost_has_happened_and_is_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked again, the store says that this version is there already."""
    with s3_server(one_in=-1) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        place = f"s3://{BUCKET}/{uuid4().hex}"
        warehouse = Warehouse(place)
        for number, path in enumerate(("first", "second"), 1):
            warehouse.write([refused(path)], Table.QUARANTINE, "append", BatchName(stream="s", number=number))
        assert sorted(map(str, paths(place))) == ["first", "second"]
        for path in ("third", "fourth"):
            warehouse.write([refused(path)], Table.QUARANTINE, "overwrite")
        assert paths(place) == ["fourth"]
        assert failed_of(environment)[1] >= 4


def test_what_a_run_remembers_is_kept_and_a_file_older_than_the_tables_is_not_believed(place: str) -> None:
    warehouse = Warehouse(place)
    memory = remembered(warehouse)
    remember(warehouse, Memory(stream=memory.stream, number=3, begun=("a", "b")))
    assert remembered(warehouse).begun == ("a", "b")

    warehouse.commit(Table.VOLUMES, [], "append", BatchName(stream=memory.stream, number=4))

    assert remembered(warehouse).stream != memory.stream


def test_a_second_run_is_refused_and_the_next_may_begin(place: str) -> None:
    with (
        lease(place).held(1),
        pytest.raises(WarehouseBusy, match=r"pid \d+ on .* is in progress"),
        lease(place).held(1),
    ):
        pass

    with lease(place).held(0):
        pass


HOLD = """
import os, sys
from brimline.fleet.tables.run_lock import Lease
with Lease(sys.argv[1], 0.1, 2.0).held(0):
    os.kill(os.getpid(), 9)
"""


def test_a_killed_runs_place_is_taken_over_by_one_of_several(place: str) -> None:
    assert subprocess.run([sys.executable, "-c", HOLD, place], check=False).returncode == -9

    ends = processes("take_over", place, 2)

    assert "done" in ends
    assert set(ends) <= {"done", "busy"}


def test_a_warehouse_takes_no_options_of_a_uri(place: str) -> None:
    with pytest.raises(FleetError, match="set AWS_REGION and AWS_ENDPOINT_URL instead"):
        look_at(f"{place}?region=x", Table.FORECAST, TableLook())
