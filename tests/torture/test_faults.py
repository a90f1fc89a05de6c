"""The table of faults: told as it is, and with nothing in it that the judge does not know."""

from pathlib import Path

from brimline.torture.faults.all_faults import BY_NAME, FAULTS, markdown_table
from brimline.torture.judge import INVARIANTS

DOCUMENT = Path(__file__).parents[2] / "docs" / "torture.md"


def test_the_document_has_the_table_as_it_is() -> None:
    assert markdown_table() in DOCUMENT.read_text()


def test_the_document_explains_every_invariant() -> None:
    text = DOCUMENT.read_text()

    assert [each.name for each in INVARIANTS if f"| `{each.name}` | {each.sentence}" not in text] == []


def test_names_are_unique_and_suspend_what_there_is() -> None:
    known = {invariant.name for invariant in INVARIANTS}

    assert len(BY_NAME) == len(FAULTS)
    assert [fault.name for fault in FAULTS if not set(fault.suspends) <= known] == []


def test_what_needs_several_brokers_is_left_out_for_one_with_the_reason() -> None:
    assert BY_NAME["leader-move"].why_not(1) == "needs 2 brokers"
    assert BY_NAME["leader-move"].why_not(3) is None
