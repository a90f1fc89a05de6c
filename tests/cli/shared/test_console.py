import io

import pytest
from rich.text import Text

from brimline.cli.shared.output import _PassingOn, print_hanging

LINE = "  ok      " + "seven words that do not fit here"


@pytest.mark.parametrize(
    ("is_terminal", "shown"),
    [
        pytest.param(True, "  ok      seven words\n          that do not\n          fit here\n", id="terminal"),
        pytest.param(False, LINE + "\n", id="pipe"),
    ],
)
def test_what_does_not_fit_goes_on_below_the_text(*, is_terminal: bool, shown: str) -> None:
    out = io.StringIO()
    console = _PassingOn(file=out, force_terminal=is_terminal, width=22, no_color=True, highlight=False)

    print_hanging(console, Text(LINE), 10)

    assert out.getvalue() == shown


def test_a_number_and_its_unit_stay_on_one_line() -> None:
    out = io.StringIO()
    console = _PassingOn(file=out, force_terminal=True, width=22, no_color=True, highlight=False)

    print_hanging(console, Text("  ok      volume is 6.4 % used, 114 MiB free"), 10)

    assert out.getvalue() == "  ok      volume is\n          6.4 % used,\n          114 MiB free\n"
