"""A table of the warehouse on a narrow terminal."""

import io

import pytest
from rich.console import Console

from brimline.cli.fleet.tables import at_a_glance, draw, write_list
from brimline.cli.shared.glyphs import ASCII
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.gold_schemas import GOLD
from brimline.fleet.tables.show import Shown

COLUMNS = ("cluster_id", "broker_id", "log_dirs", "total_bytes", "used_percent", "state")
ROWS = [("prod", number, "/data/kafka/" + "x" * 30, 1 << 40, 90.0 - number, "ok") for number in range(6)]


def drawn(width: int, *sorted_by: str) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    draw(Shown(columns=COLUMNS, rows=ROWS, total=len(ROWS)), console, ASCII, sorted_by)
    return out.getvalue().splitlines()


def test_the_column_that_it_is_sorted_by_is_kept() -> None:
    shown = drawn(80, "used_percent")

    assert shown[0].split() == ["cluster_id", "broker_id", "log_dirs", "total_bytes", "used_percent", "state"]
    assert max(map(len, shown)) == 80
    assert drawn(60, "used_percent")[0].split() == ["cluster_id", "broker_id", "log_dirs", "used_percent"]


def test_names_are_cut_before_a_number_is_left_out_and_the_note_wraps_at_words() -> None:
    shown = drawn(49)

    assert shown[0].split() == ["cluster_id", "broker_id", "log_dirs"]
    assert shown[1].split()[2].startswith("/data/ka")
    assert shown[-2:] == ["no room for total_bytes, used_percent, state;", "  --columns chooses"]
    assert max(map(len, shown)) <= 49


def test_without_an_order_the_first_columns_are_shown() -> None:
    assert drawn(55)[0].split() == ["cluster_id", "broker_id", "log_dirs", "total_bytes"]
    assert drawn(200)[0].split() == list(COLUMNS)


@pytest.mark.parametrize(
    ("table", "answer"),
    [
        (Table.VOLUME_PRESSURE, "days_to_fence"),
        (Table.FORECAST, "days_to_full"),
        (Table.TIER_OVERLAP, "stalled_partitions"),
        (Table.RECLAIM_PLAN, "freed_bytes"),
        (Table.FLEET_HISTORY, "days_to_fence"),
    ],
)
def test_the_answer_of_a_table_fits_a_terminal_of_80_columns(table: Table, answer: str) -> None:
    columns = tuple(GOLD[table].names)
    texts = {"cluster_id": "x" * 22, "log_dir": "/data/kafka/" + "x" * 30, "outlook": "not-filling", "state": "ok"}
    texts |= {"topic": "x" * 30, "topic_id": "x" * 22, "snapshot_id": "x" * 32, "device_outcome": "floor-reached"}
    row = tuple(texts.get(name, 1.0) for name in columns)
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)

    draw(at_a_glance(Shown(columns=columns, rows=[row] * 9, total=9), table), console, ASCII)

    assert answer in out.getvalue().splitlines()[0].split()
    assert set(at_a_glance(Shown(columns=columns, rows=[row], total=1), table).columns) == set(columns)


@pytest.mark.parametrize(("width", "is_whole"), [(80, False), (120, True)])
def test_the_list_of_tables_uses_the_room_that_there_is(
    width: int, *, is_whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    monkeypatch.setattr("brimline.cli.fleet.tables.console_on", lambda _: console)

    write_list([(table, 9_143) for table in Table], out, "table")

    assert all(table.value in out.getvalue() for table in Table)
    assert (Table.NEWEST.sentence in out.getvalue()) is is_whole
