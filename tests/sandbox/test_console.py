import pytest

from brimline.model import Bytes
from brimline.sandbox import BadSpec, Sandbox
from brimline.sandbox.console import HELP, Console, leave_free


@pytest.mark.parametrize(("target", "left"), [("90%", 100), ("100%", 0), ("12.5%", 875), ("64", 64), ("1KiB", 1024)])
def test_fill_targets(target: str, left: int) -> None:
    assert leave_free(target, Bytes(1000)) == left


def test_a_target_that_is_none_is_refused() -> None:
    with pytest.raises(BadSpec, match="neither a percentage"):
        leave_free("much", Bytes(1000))


@pytest.mark.parametrize(
    ("line", "why"),
    [("dance", "no command dance"), ("stop", "takes other arguments"), ("stop one", "one is not a number")],
)
def test_a_line_that_makes_no_sense_is_refused(line: str, why: str) -> None:
    with pytest.raises(BadSpec, match=why):
        Console(Sandbox()).obey(line)


def test_help_names_every_command() -> None:
    assert Console(Sandbox()).obey("help") == HELP
