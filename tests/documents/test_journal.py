"""What guard and gateway say is kept, in bounds, whatever the disk does."""

import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brimline.documents import journal
from brimline.documents.journal import GATEWAY, GUARD, Journal, JournalLine, read_journal
from brimline.model import BrimlineError

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def kept(folder: Path) -> Journal:
    return Journal(folder, 1, GUARD, lambda: NOW)


def test_what_was_said_is_read_back(tmp_path: Path) -> None:
    journal = kept(tmp_path / "not" / "there")

    journal.tell(logging.WARNING, "disk-full", "/data/ä is full")
    journal.write()

    expected = JournalLine(at=NOW, event="disk-full", level="warning", sentence="/data/ä is full")
    assert read_journal(tmp_path / "not" / "there", 1, GUARD) == ([expected], 0)


def test_only_changes_are_kept_and_what_the_ledger_has_is_not_kept_twice(tmp_path: Path) -> None:
    journal = kept(tmp_path)

    for event in ("cordoned", "reclaim", "jmx", "config"):
        journal.tell(logging.INFO, event, "something")
    journal.write()

    assert read_journal(tmp_path, 1, GUARD) == ([], 0)


def test_two_files_and_no_more(tmp_path: Path) -> None:
    written = kept(tmp_path)

    for number in range(3000):
        written.tell(logging.INFO, "disk-ok", f"{number} {'x' * 400}")
        written.write()

    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert all(size <= journal.MAX_FILE_BYTES for size in sizes)
    lines, others = read_journal(tmp_path, 1, GUARD)
    numbers = [int(line.sentence.split()[0]) for line in lines]
    assert numbers == list(range(numbers[0], 3000))
    assert others == 0


def test_a_disk_that_takes_nothing_holds_up_nobody_and_gets_it_later(tmp_path: Path) -> None:
    blocked = tmp_path / "state"
    blocked.write_text("a file where the state dir should be")
    journal = kept(blocked)
    journal.tell(logging.ERROR, "disk-unknown", "it hangs")
    journal.write()

    blocked.unlink()
    journal.write()

    lines, _ = read_journal(blocked, 1, GUARD)
    assert [line.sentence for line in lines] == ["it hangs"]


def test_of_many_that_wait_the_oldest_are_lost(tmp_path: Path) -> None:
    blocked = tmp_path / "state"
    blocked.write_text("")
    journal = kept(blocked)
    for number in range(1000):
        journal.tell(logging.INFO, "disk-ok", str(number))
    blocked.unlink()

    journal.write()

    lines, _ = read_journal(blocked, 1, GUARD)
    assert [int(line.sentence) for line in lines] == list(range(800, 1000))


@pytest.mark.parametrize("line", [b'{"v": 1, "at": "2026', b'{"v": 2, "at": "2026-01-31T12:00:00Z"}', b"\xff", b"[]"])
def test_lines_that_cannot_be_read_are_counted(tmp_path: Path, line: bytes) -> None:
    journal = kept(tmp_path)
    journal.tell(logging.INFO, "disk-ok", "room")
    journal.write()
    with journal.path.open("ab") as file:
        file.write(line + b"\n")

    lines, others = read_journal(tmp_path, 1, GUARD)

    assert (len(lines), others) == (1, 1)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    journal = kept(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("")
    journal.path.symlink_to(secret)

    journal.tell(logging.INFO, "disk-ok", "room")
    journal.write()

    assert secret.read_text() == ""
    with pytest.raises(BrimlineError, match="symbolic link"):
        read_journal(tmp_path, 1, GUARD)


def test_guard_and_gateway_have_a_journal_each(tmp_path: Path) -> None:
    kept(tmp_path).write()
    gateway = Journal(tmp_path, 1, GATEWAY, lambda: NOW)
    gateway.tell(logging.WARNING, "fenced", "/data/a is full")
    gateway.write()

    assert read_journal(tmp_path, 1, GUARD) == ([], 0)
    assert [line.event for line in read_journal(tmp_path, 1, GATEWAY)[0]] == ["fenced"]


def test_a_notice_is_kept_unless_it_is_fine(tmp_path: Path) -> None:
    journal = kept(tmp_path)

    journal.tell(logging.DEBUG, "notice-reserve", "fine")
    journal.tell(logging.WARNING, "notice-held", "not so")
    journal.write()

    lines, _ = read_journal(tmp_path, 1, GUARD)
    assert [line.event for line in lines] == ["notice-held"]
