"""A table of the warehouse on a narrow terminal."""

import io

from rich.console import Console

from brimline.cli.fleet.tables import draw
from brimline.cli.shared.glyphs import ASCII
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
