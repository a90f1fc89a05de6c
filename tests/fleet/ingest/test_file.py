"""One landed file to rows, without Spark."""

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from brimline.fleet.ingest.file import take_in
from brimline.fleet.tables.catalogue import Table
from brimline.landing.schema import LOGS, TOPICS, VOLUMES
from brimline.landing.writer import encode
from tests.fleet.landed import broker, land, put, with_column


def test_every_section_becomes_the_rows_of_its_table(tmp_path: Path) -> None:
    made = broker()
    path = str(land(tmp_path, made))

    taken = take_in(path)
    rows = taken.rows

    assert taken.examined.failure is None
    assert len(rows[Table.VOLUMES]) == len(made.tables[VOLUMES])
    assert len(rows[Table.TOPIC_CONFIGS]) == len(made.tables[TOPICS])
    assert len(rows[Table.REPLICAS]) == len(made.tables[LOGS])
    assert {row["snapshot_id"] for batch in rows.values() for row in batch.to_pylist()} == {made.header.snapshot_id}


def test_replicas_carry_the_names_that_the_file_only_points_to(tmp_path: Path) -> None:
    made = broker()
    volumes, topics, logs = (made.tables[name].to_pylist() for name in (VOLUMES, TOPICS, LOGS))

    found = take_in(str(land(tmp_path, made))).rows[Table.REPLICAS].to_pylist()

    for row, log in zip(found, logs, strict=True):
        assert row["log_dir"] == volumes[log["volume"]]["log_dir"]
        assert row["device"] == volumes[log["volume"]]["device"]
        assert row["topic"] == (None if log["topic"] < 0 else topics[log["topic"]]["topic"])
        assert row["high_watermark"] == (None if log["high_watermark"] < 0 else log["high_watermark"])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: b"", "not-parquet"),
        (lambda data: b"what is this?", "not-parquet"),
        (lambda data: data[: len(data) // 2], "truncated"),
        (lambda data: data[:-1], "truncated"),
    ],
)
def test_bytes_that_are_no_snapshot_have_a_reason(tmp_path: Path, damage: object, reason: str) -> None:
    assert callable(damage)
    made = broker()

    found = take_in(str(put(tmp_path, made.header.name, damage(encode(made.header, made.tables))))).examined

    assert found.failure is not None
    assert found.failure.reason.value == reason


def test_a_file_that_is_gone_is_unreadable(tmp_path: Path) -> None:
    found = take_in(str(tmp_path / "gone.parquet")).examined

    assert found.failure is not None
    assert found.failure.reason.value == "unreadable"


def test_rows_that_point_nowhere_are_inconsistent_and_the_header_is_kept(tmp_path: Path) -> None:
    made = broker()
    nowhere = with_column(made, LOGS, "topic", pa.array([10_000] * len(made.tables[LOGS]), pa.int32()))

    found = take_in(str(land(tmp_path, nowhere))).examined

    assert found.failure is not None
    assert found.failure.reason.value == "inconsistent"
    assert found.header is not None
    assert found.header.cluster_id == made.header.cluster_id


def test_a_long_name_is_not_given_to_every_log(tmp_path: Path) -> None:
    """A file of some ten thousand bytes: each text is once in it, and would stand in every row of a table."""
    made = broker()
    names = ["x" * ((80 << 20) // len(made.tables[LOGS])), *made.tables[TOPICS]["topic"].to_pylist()[1:]]
    path = land(tmp_path, with_column(made, TOPICS, "topic", pa.array(names)))

    found = take_in(str(path)).examined

    assert path.stat().st_size < 100_000
    assert found.failure is not None
    assert found.failure.reason.value == "too-large"


@pytest.mark.parametrize(("section", "name"), [(VOLUMES, "usable_bytes"), (LOGS, "size_bytes")])
def test_fewer_than_no_bytes_are_inconsistent(tmp_path: Path, section: str, name: str) -> None:
    made = broker()
    below = with_column(made, section, name, pa.array([-1] * len(made.tables[section]), pa.int64()))

    found = take_in(str(land(tmp_path, below))).examined

    assert found.failure is not None
    assert found.failure.reason.value == "inconsistent"
    assert f"{name} is below 0" in found.failure.detail


def test_a_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened = str(land(tmp_path, broker())), []

    def counted(name: str) -> pa.OSFile:
        opened.append(name)
        return pa.OSFile(name)

    monkeypatch.setattr("brimline.landing.file_systems.pa", SimpleNamespace(**{**vars(pa), "OSFile": counted}))
    taken = take_in(path)

    assert taken.rows.keys() == {Table.VOLUMES, Table.REPLICAS, Table.TOPIC_CONFIGS}
    assert opened == [path]
