"""A line is read as it was written, and nothing that was not written whole is taken for a line."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.act.ledger.entries import CycleId, Entry, GivenUp, GivenUpAct, GivenUpTrim, Paused, Recorded, TrimNumber
from brimline.act.ledger.files import BadLine, read_line, read_lines, write_line
from brimline.model import Bytes
from tests.act.ledger.entries import NOW, a_plan, a_trim, entries


def recorded(entry: Entry, sequence: int = 1) -> Recorded:
    return Recorded(sequence=sequence, at=NOW, entry=entry)


@given(entries, st.integers(1, 2**62))
def test_an_entry_is_read_as_it_was_written(entry: Entry, sequence: int) -> None:
    line = write_line(recorded(entry, sequence))

    assert line.count(b"\n") == 1
    assert read_line(line[:-1]) == recorded(entry, sequence)


def test_no_name_makes_the_ledger_large() -> None:
    """A consumer group may be called anything, and there may be thousands of them behind one partition."""
    named = ", ".join(f"group {number} {'x' * 30_000}" for number in range(20))
    trims = [replace(a_trim(number), reason=f"{number}: {named}") for number in range(50)]
    given_up = [GivenUpTrim(number=TrimNumber(number), why=named, freed_bytes=Bytes(0)) for number in range(50)]

    for entry in (
        a_plan("8:1-1", *trims),
        GivenUp(act=GivenUpAct.ABANDONED, cycle=CycleId("8:1-1"), trims=tuple(given_up)),
        Paused(by=named, reason=named),
    ):
        line = write_line(recorded(entry))
        read = read_line(line[:-1]).entry
        assert len(line) < 50 * 1000
        assert write_line(recorded(read)) == line


@given(entries, st.data())
def test_a_line_with_one_wrong_byte_is_no_line(entry: Entry, data: st.DataObject) -> None:
    line = bytearray(write_line(recorded(entry))[:-1])
    position = data.draw(st.integers(0, len(line) - 1))
    line[position] ^= data.draw(st.integers(1, 255))

    with pytest.raises(BadLine) as bad:
        read_line(bytes(line))
    assert not bad.value.is_whole


@given(st.lists(entries, min_size=1, max_size=4), st.data())
def test_what_is_cut_short_is_as_if_it_had_not_been_written(written: list[Entry], data: st.DataObject) -> None:
    lines = [write_line(recorded(entry, number)) for number, entry in enumerate(written, start=1)]
    content = b"".join(lines)
    cut = data.draw(st.integers(0, len(content)))

    found = read_lines(content[:cut])

    whole = next(n for n in range(len(lines), -1, -1) if len(b"".join(lines[:n])) <= cut)
    assert [each.sequence for each in found.recorded] == list(range(1, whole + 1))
    assert found.good_bytes == len(b"".join(lines[:whole]))
    assert found.damaged == 0


def test_damage_between_whole_lines_is_counted_and_left() -> None:
    good, bad = write_line(recorded(a_plan())), b"\0" * 20 + b"\n"

    found = read_lines(good + bad + bad + write_line(recorded(a_plan(), 2)) + bad)

    assert [each.sequence for each in found.recorded] == [1, 2]
    assert found.damaged == 2
    assert found.good_bytes == len(good) * 2 + len(bad) * 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"v": 2}, "written by a later Brimline"),
        ({"kind": "invented"}, "no entry that this version knows"),
        ({"trims": [[1, 2, 3]]}, "no entry that this version knows"),
        ({"columns": ["topic"]}, "no entry that this version knows"),
        ({"usedBytes": True}, "no entry that this version knows"),
        ({"cycle": 5}, "no entry that this version knows"),
        ({"at": "yesterday"}, "no entry that this version knows"),
    ],
)
def test_what_another_version_has_written_is_whole_and_not_understood(
    change: dict[str, object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brimline.act.ledger.files.document_of", lambda entry: {**document(entry), **change})

    with pytest.raises(BadLine, match=words) as bad:
        read_line(write_line(recorded(a_plan()))[:-1])
    assert bad.value.is_whole


def document(entry: Entry) -> dict[str, object]:
    line = json.loads(write_line_of(entry))
    return {key: value for key, value in line.items() if key not in ("v", "seq", "crc")}


def write_line_of(entry: Entry) -> bytes:
    from brimline.act.ledger.writing import document_of

    return json.dumps({"at": "2026-01-01T12:30:00.000Z", **document_of(entry)}).encode()


def test_a_plan_of_ten_thousand_trims_and_a_million_segments_stays_small() -> None:
    trims = [a_trim(partition, segments=100, topic=f"topic-{partition % 200}") for partition in range(10_000)]

    line = write_line(recorded(a_plan("8:1-1", *trims)))

    assert len(line) < 1_000_000
    assert read_line(line[:-1]).entry == a_plan("8:1-1", *trims)


def test_a_line_is_plain_json() -> None:
    line = json.loads(write_line(recorded(a_plan())))

    assert (line["seq"], line["kind"], line["cycle"]) == (1, "plan", "8:1-1")
    assert dict(zip(line["columns"], line["trims"][0], strict=True))["lastBaseOffset"] == 2000
