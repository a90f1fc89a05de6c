"""One timeline of the ledger, the journals and the fences by hand; as a table and as JSON."""

import io
import json
import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brimline.act.ledger.entries import CordonAct, CordonEntry, Paused
from brimline.act.ledger.ledger import Ledger
from brimline.cli.history import write_history_table
from brimline.decide.admission import Fence, FenceCause
from brimline.documents.codec import from_json
from brimline.documents.history import Happening, Timeline, history_text
from brimline.documents.journal import GATEWAY, GUARD, Journal
from brimline.gateway.rules.fence_record import FenceRecord
from brimline.guard.history import KeptHistory, read_whole_history
from brimline.model import BrimlineError

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def at(minute: int) -> datetime:
    return NOW + timedelta(minutes=minute)


def say(folder: Path, process: str, minute: int, level: int, event: str, sentence: str) -> None:
    journal = Journal(folder, 1, process, lambda: at(minute))
    journal.tell(level, event, sentence)
    journal.write()


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """A disk that fills up, is fenced, cordoned, freed by hand and released."""
    say(tmp_path, GUARD, 0, logging.WARNING, "disk-full", "/data/a is full: 95.0 % used")
    say(tmp_path, GATEWAY, 1, logging.WARNING, "fenced", "/data/a is full: the gateway refuses Produce")
    say(tmp_path, GATEWAY, 2, logging.WARNING, "clients-refused", "Produce is refused: kcat for topic orders")
    ledger = Ledger(tmp_path, 1, lambda: at(3))
    ledger.append(CordonEntry(act=CordonAct.CORDONED, log_dir="/data/a", why="it is full"))
    ledger.append(Paused(by="alice", reason="audit"))
    ledger.close()
    fence = Fence(cause=FenceCause.MANUAL, reason="a test", since=at(4), topic="orders", by="root")
    FenceRecord(tmp_path, 1).note("fence", fence, at(4))
    say(tmp_path, GATEWAY, 5, logging.INFO, "released", "/data/a is no longer full")
    say(tmp_path, GUARD, 6, logging.INFO, "disk-ok", "/data/a has room")
    return tmp_path


def test_everything_in_the_order_in_which_it_happened(state_dir: Path) -> None:
    history = read_whole_history(state_dir, 1)

    told = [(event.at, event.word, event.by) for event in history.events]
    assert told == [
        (at(0), "FULL", "guard"),
        (at(1), "FENCED", "gateway"),
        (at(2), "REFUSED", "gateway"),
        (at(3), "CORDONED", "guard"),
        (at(3), "PAUSED", "alice"),
        (at(4), "FENCE", "root"),
        (at(5), "RELEASED", "gateway"),
        (at(6), "ROOM", "guard"),
    ]
    assert history.incomplete == ()


def test_since_then_and_the_newest(state_dir: Path) -> None:
    since = read_whole_history(state_dir, 1, at(4))
    newest = read_whole_history(state_dir, 1).newest(2)

    assert [event.word for event in since.events] == ["FENCE", "RELEASED", "ROOM"]
    assert ([event.word for event in newest.events], newest.left_out) == (["RELEASED", "ROOM"], 6)


def test_a_broker_that_nothing_was_recorded_of(tmp_path: Path) -> None:
    with pytest.raises(BrimlineError, match=r"no records in .* yet"):
        read_whole_history(tmp_path, 1)


def test_places_that_cannot_be_read_are_named(state_dir: Path) -> None:
    with (state_dir / "fences-1.log").open("a") as log:
        log.write("{half")
    with (state_dir / "journal-1-guard.jsonl").open("a") as journal:
        journal.write("{half")

    history = read_whole_history(state_dir, 1)

    assert len(history.events) == 8
    assert sorted(sentence.rpartition("/")[2] for sentence in history.incomplete) == [
        "fences-1.log line 2 is damaged",
        "journal-1-guard.jsonl: 1 line truncated or written by a later brimline",
    ]


def test_a_page_reads_the_files_only_when_one_has_changed(state_dir: Path) -> None:
    history = KeptHistory(state_dir, 1, lambda: at(10))
    first = history()
    assert history() is first

    say(state_dir, GUARD, 7, logging.INFO, "reloaded", "brimline.landing.uri was set")

    assert [event.word for event in history().events][-2:] == ["ROOM", "RELOADED"]


def test_a_page_without_any_record_says_so(tmp_path: Path) -> None:
    (sentence,) = KeptHistory(tmp_path, 1, lambda: NOW)().incomplete

    assert "no records" in sentence


def test_as_json_and_back(state_dir: Path) -> None:
    history = read_whole_history(state_dir, 1)

    document = json.loads(history_text(history))

    assert (document["format"], document["version"], document["broker"]) == ("brimline.history", 1, 1)
    assert document["events"][0] == {
        "at": "2026-01-31T12:00:00.000Z",
        "what": "disk-full",
        "level": "warning",
        "by": "guard",
        "sentence": "/data/a is full: 95.0 % used",
        "word": "FULL",
    }
    assert from_json(Timeline, document) == history


def test_as_a_table(state_dir: Path) -> None:
    out = io.StringIO()

    write_history_table(read_whole_history(state_dir, 1).newest(7), out)

    lines = out.getvalue().splitlines()
    assert lines[:4] == [
        "Broker 1  7 events",
        "1 older event not shown",
        "2026-01-31 (UTC)",
        "  12:01:00  FENCED     gateway  /data/a is full: the gateway refuses Produce",
    ]
    assert "  12:03:00  PAUSED     alice    reclaim paused: audit" in lines


def test_names_move_no_cursor() -> None:
    event = Happening(at=NOW, what="fence", level="odd", by="ro\x1bot", sentence="topic \x1b[2J")
    out = io.StringIO()

    write_history_table(Timeline(broker=1, events=(event,)), out)

    assert "\x1b" not in out.getvalue()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_journal_of_another_user(state_dir: Path) -> None:
    (state_dir / "journal-1-guard.jsonl").chmod(0)

    with pytest.raises(BrimlineError, match="cannot be read"):
        read_whole_history(state_dir, 1)
