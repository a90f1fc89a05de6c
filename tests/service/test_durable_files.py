"""The state dir: no link in it is followed, and what somebody else may have put there is not believed."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brimline.act.ledger.entries import Paused
from brimline.act.ledger.files import read_history
from brimline.act.ledger.ledger import Ledger, PauseFile
from brimline.decide.admission import Fence, FenceCause
from brimline.gateway.rules.fence_record import FenceRecord
from brimline.gateway.rules.sequence_file import SequenceFile
from brimline.landing.delivery import Spool
from brimline.model import BrimlineError
from brimline.service.durable_files import NotRecorded, put_on_record, why_untrusted

NOW = datetime(2026, 1, 31, tzinfo=UTC)
VICTIM = b'{"version": 1, "fences": []}\n'
NAME = "snapshots/c/1/20260131T000000000Z-1.parquet"


def ledger(folder: Path) -> Ledger:
    return Ledger(folder, 1, lambda: NOW, sleep=lambda _: None)


def append(folder: Path) -> None:
    ledger(folder).append(Paused(by="me", reason="a test"))


def note_a_fence(folder: Path) -> None:
    FenceRecord(folder, 1).note("fence", Fence(cause=FenceCause.MANUAL, reason="a", since=NOW, topic="t", by="me"), NOW)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("ledger-1.jsonl", append),
        ("ledger-1.lock", append),
        ("ledger-1.jsonl.tmp", append),
        ("fences-1.log", note_a_fence),
        ("fences-1.json.tmp", lambda folder: FenceRecord(folder, 1).write([])),
        ("sequences-1.map", lambda folder: SequenceFile(folder / "sequences-1.map", 8).close()),
        ("reclaim-pause-1.json.tmp", lambda folder: PauseFile(folder, 1).write(by="me", reason="a", since=NOW)),
        (f"{NAME.replace('/', '%2F')}.unfinished", lambda folder: Spool(folder, 1 << 20).add(NAME, b"data") and None),
    ],
)
def test_nothing_is_written_to_where_a_link_leads(tmp_path: Path, name: str, write: Callable[[Path], None]) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(VICTIM)
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    (folder / name).symlink_to(victim)

    with suppress(NotRecorded):
        write(folder)

    assert victim.read_bytes() == VICTIM


def test_nothing_is_read_from_where_a_link_leads(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text(json.dumps({"version": 1, "fences": [{"topic": "t", "reason": "r", "by": "b", "since": "2026"}]}))
    for name in ("fences-1.json", "ledger-1.jsonl"):
        (tmp_path / name).symlink_to(theirs)

    fences, warnings = FenceRecord(tmp_path, 1).read()

    assert fences == []
    assert "it is a symbolic link" in warnings[0]
    with pytest.raises(BrimlineError, match="it is a symbolic link"):
        list(read_history(ledger(tmp_path).files))


@pytest.mark.parametrize("leads_to", ["nowhere", "fifo"])
def test_whatever_is_in_the_place_of_a_pause_is_a_pause(tmp_path: Path, leads_to: str) -> None:
    path = PauseFile(tmp_path, 1).path
    if leads_to == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / leads_to)

    assert PauseFile(tmp_path, 1).read() is not None


def test_in_a_folder_that_everybody_may_write_to_nothing_is_put_on_record(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    with pytest.raises(NotRecorded, match=f"{tmp_path} is writable by everyone: chmod 0700 {tmp_path}"):
        append(tmp_path)
    tmp_path.chmod(0o750)
    append(tmp_path)


def test_whose_folder_it_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may look after the folder of a service's user, and a service may be given one of root's."""
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    as_root = why_untrusted(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    as_another = why_untrusted(tmp_path)

    assert as_root is None
    assert (as_another is None) is (owner == 0)
    assert why_untrusted(tmp_path / "not-there") is None


def test_a_file_is_put_in_the_place_of_a_link(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "record"
    victim.write_bytes(VICTIM)
    link.symlink_to(victim)

    put_on_record(link, b"new")

    assert victim.read_bytes() == VICTIM
    assert not link.is_symlink()
    assert link.read_bytes() == b"new"
