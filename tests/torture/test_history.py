"""A history is read as it was written, and what is none is named with its line."""

from pathlib import Path

import pytest

from brimline.model import BadInput
from brimline.torture.history import Acked, AnyEvent, Begun, Fault, History, line_of, read_history

EVENTS: list[AnyEvent] = [
    Begun(at=1.5, seed=1, version="4.3.1", brokers=1, replicas=1, protected=["kept"], left_out={"x": "not here"}),
    Acked(at=2.25, client="c", number=3, partition=0, offset=-1),
    Fault(at=3.0, step=1, fault="broker-kill", target="broker-1", suspends=[]),
]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    with (tmp_path / "history").open("w") as file:
        history = History(file)
        for event in EVENTS:
            history.note(event)

    assert list(read_history(tmp_path / "history")) == EVENTS


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"kind": "Nothing"}', '{"kind": "Acked", "at": 1}', "no json"])
def test_what_is_no_line_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "history").write_text(line_of(EVENTS[0]) + line + "\n")

    with pytest.raises(BadInput, match="line 2: no line of a history"):
        list(read_history(tmp_path / "history"))


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        list(read_history(tmp_path / "nothing"))
