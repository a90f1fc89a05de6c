"""Tables looked at without Spark: written by deltalake here, which the command does not need Spark for either."""

import csv
import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from rich.console import Console

from brimline.cli import main
from brimline.cli.fleet.tables import draw
from brimline.cli.shared.glyphs import ASCII
from brimline.fleet.session.errors import FleetError
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.show import Shown, TableLook, look_at, tables_in

AT = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    rows = pa.table(
        {
            "cluster_id": ["a", "a", "it's"],
            "broker_id": pa.array([1, 2, 1], pa.int32()),
            "topic": ["orders", "orders", None],
            "used_bytes": pa.array([5 << 30, None, 1], pa.int64()),
            "used_percent": [50.0, None, 99.5],
            "taken_at": pa.array([AT, AT, AT], pa.timestamp("us", tz="UTC")),
        }
    )
    write_deltalake(tmp_path / "volume_pressure", rows)
    return str(tmp_path)


def shown(warehouse: str, *words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["fleet", "show", "--warehouse", warehouse, *words]) == 0
    return capsys.readouterr().out


def test_rows_are_filtered_sorted_and_cut(warehouse: str) -> None:
    look = TableLook(columns=("broker_id", "used_percent"), equal={"cluster_id": "a"}, sort=(("used_percent", True),))

    found = look_at(warehouse, Table.VOLUME_PRESSURE, look)

    assert found.rows == [(1, 50.0), (2, None)]
    assert look_at(warehouse, Table.VOLUME_PRESSURE, TableLook(limit=1)).total == 3


def test_a_quote_in_a_name_is_only_a_quote(warehouse: str) -> None:
    assert look_at(warehouse, Table.VOLUME_PRESSURE, TableLook(equal={"cluster_id": "it's"})).total == 1


def test_a_column_that_is_not_there_is_a_sentence_with_those_that_are(warehouse: str) -> None:
    with pytest.raises(FleetError, match="no column size: it has cluster_id, broker_id"):
        look_at(warehouse, Table.VOLUME_PRESSURE, TableLook(columns=("size",)))


def test_a_table_that_was_not_written_yet_is_a_sentence(warehouse: str) -> None:
    with pytest.raises(FleetError, match=r"no table forecast in .* yet"):
        look_at(warehouse, Table.FORECAST, TableLook())


def test_the_tables_that_are_there(warehouse: str) -> None:
    assert list(tables_in(warehouse)) == [(Table.VOLUME_PRESSURE, 3)]


def test_json_is_an_array_with_null_for_unknown(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(shown(warehouse, "volume_pressure", "--output", "json", capsys=capsys))

    assert rows[0] == {
        "cluster_id": "a",
        "broker_id": 1,
        "topic": "orders",
        "used_bytes": 5 << 30,
        "used_percent": 50.0,
        "taken_at": "2026-01-31T12:30:00.000Z",
    }
    assert rows[1]["used_bytes"] is None


def test_csv_has_a_header_and_nothing_for_unknown(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(warehouse, "volume_pressure", "--broker", "2", "--columns", "topic,used_bytes", capsys=capsys)

    assert list(csv.reader(io.StringIO(text))) == [["topic", "used_bytes"], ["orders", ""]]


def test_the_table_is_for_people(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("volume_pressure", "--output", "table", "--sort", "used_percent:desc", "--limit", "2")

    lines = shown(warehouse, *words, capsys=capsys).splitlines()

    assert lines[0].split() == ["cluster_id", "broker_id", "used_percent", "topic", "used_bytes", "taken_at"]
    assert lines[2].split() == ["a", "1", "50.00", "orders", "5.00", "GiB", "2026-01-31", "12:30:00"]
    assert lines[-1] == "2 of 3 rows; --all shows the others"


def test_without_a_table_there_is_a_list(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(warehouse, "--output", "csv", capsys=capsys).splitlines()[1].startswith("volume_pressure,3,")


@pytest.mark.parametrize(("output", "shown"), [("table", ""), ("json", "[]\n"), ("csv", "broker_id\r\n")])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("volume_pressure", "--cluster", "nosuch", "--broker", "1"),
            "no rows of cluster nosuch, broker 1 in volume_pressure",
        ),
        (("quarantine",), "nothing was quarantined"),
    ],
)
def test_what_has_no_rows_says_so(
    warehouse: str, words: tuple[str, ...], said: str, output: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--columns", "broker_id", "--output", output)

    assert main(["fleet", "show", "--warehouse", warehouse, *words, *options]) == 0

    captured = capsys.readouterr()
    assert captured.err == f"brimline: {said}\n"
    assert captured.out == shown


def test_no_news_of_a_place_without_tables_is_no_good_news(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "show", "--warehouse", str(tmp_path), "quarantine"]) == 1
    assert "no table in" in capsys.readouterr().err


def test_a_wrong_table_is_answered_with_those_that_exist(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "show", "--warehouse", warehouse, "tables"]) == 1
    assert "choose one of volumes, replicas" in capsys.readouterr().err


def test_a_look_imports_neither_spark_nor_pyarrow(warehouse: str) -> None:
    """What makes it quick: deltalake's import is a tenth of a second, theirs are more than the whole look."""
    code = (
        "import sys; from brimline.cli import main; "
        f"main(['fleet', 'show', '--warehouse', {warehouse!r}, 'volume_pressure']); "
        "sys.exit(any(name in sys.modules for name in ('pyspark', 'pyarrow', 'pandas', 'py4j')))"
    )

    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0


def test_every_table_says_what_it_answers() -> None:
    assert all(table.sentence for table in Table)


def test_a_place_without_a_table_is_a_sentence_and_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", "show", "--warehouse", str(tmp_path / "nowhere")]) == 1
    assert "no table in" in capsys.readouterr().err


def test_an_order_is_asc_or_desc(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("volume_pressure", "--columns", "broker_id", "--output", "json")
    rising = json.loads(shown(warehouse, *words, "--sort", "broker_id:asc", capsys=capsys))

    assert [row["broker_id"] for row in rising] == [1, 1, 2]
    assert main(["fleet", "show", "--warehouse", warehouse, "volume_pressure", "--sort", "broker_id:up"]) == 1
    assert "the order is asc or desc, as in broker_id:desc" in capsys.readouterr().err


def test_a_few_rows_that_are_too_wide_stand_upright() -> None:
    out = io.StringIO()
    console = Console(file=out, width=40, force_terminal=True, color_system=None)
    rows = [tuple(f"value-{place}" for place in range(9))]
    columns = tuple(f"a_long_name_{place}" for place in range(9))

    draw(Shown(columns=columns, rows=rows, total=1), console, ASCII)

    assert out.getvalue().splitlines() == [f"a_long_name_{place}  value-{place}" for place in range(9)]
