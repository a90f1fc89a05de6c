"""The writer as a process of its own: what it delivers, and every way in which it can end before its time."""

import subprocess
import sys
from pathlib import Path

import pytest

from brimline.guard.landing.child import Delivered, SnapshotWriter, WriterFailed
from brimline.landing.header import Header
from brimline.landing.place import LandingPlace
from brimline.landing.tables import reclaim_tables
from tests.landing.snapshots import HEADER, sections, some_tables
from tests.landing.test_tables import assert_equal_tables

SPOOL_BYTES = 1 << 20
TABLES = some_tables()
_DIES_BEFORE_THE_RENAME = """
import os, signal
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
from brimline.landing.child import main
main()
"""
_HANGS = "import time; time.sleep(3600)"
_ENDS_ITSELF = "import signal, time; signal.alarm(1); time.sleep(3600)"


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    return tmp_path / "landing"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def write(
    landing: Path, state: Path, code: str | None = None, seconds: int = 600, header: Header = HEADER
) -> Delivered:
    if code is None:
        writer = SnapshotWriter(str(landing), state, 7)
    else:
        writer = SnapshotWriter(str(landing), state, 7, (sys.executable, "-c", code), seconds)
    return writer.write(header, sections(TABLES), SPOOL_BYTES)


def test_the_columns_arrive_as_a_snapshot(landing: Path, state: Path) -> None:
    delivered = write(landing, state)

    place = LandingPlace(str(landing))
    assert place.names() == [delivered.name] == [HEADER.name]
    assert (delivered.sent, delivered.failure) == (1, None)
    assert delivered.bytes == (landing / HEADER.name).stat().st_size
    assert_equal_tables(reclaim_tables(place.open(HEADER.name)), TABLES)
    assert list(state.iterdir()) == []


def test_an_unwritable_place_fills_the_spool_and_a_working_one_empties_it(landing: Path, state: Path) -> None:
    landing.write_text("a file where a folder must be")
    waits = write(landing, state)
    landing.unlink()
    later = Header(
        snapshot_id="ff", cluster_id=HEADER.cluster_id, broker_id=7, source=HEADER.source, taken_at_ms=1_800_000_000_000
    )
    sent = write(landing, state, header=later)

    assert (waits.sent, waits.waiting, waits.waiting_bytes) == (0, 1, waits.bytes)
    assert str(landing) in (waits.failure or "")
    assert (sent.sent, sent.waiting) == (2, 0)
    assert LandingPlace(str(landing)).names() == [HEADER.name, later.name]


def test_killed_in_the_middle_of_writing_nothing_half_is_visible(landing: Path, state: Path) -> None:
    with pytest.raises(WriterFailed, match="-9"):
        write(landing, state, _DIES_BEFORE_THE_RENAME)

    place = LandingPlace(str(landing))
    half = [path for path in landing.rglob("*") if path.is_file()]
    assert place.names() == []
    assert [path.name[0] for path in half] == ["."]
    write(landing, state)
    assert place.names() == [HEADER.name]


def test_one_that_hangs_is_ended(landing: Path, state: Path) -> None:
    with pytest.raises(WriterFailed, match="killed after 1 s"):
        write(landing, state, _HANGS, seconds=1)


def test_one_that_ends_itself_in_time(landing: Path, state: Path) -> None:
    with pytest.raises(WriterFailed, match="killed after 600 s"):
        write(landing, state, _ENDS_ITSELF)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit('the last line')", "ended with 1: the last line"),
        ("raise SystemExit(3)", "ended with 3: no message"),
        ("print('not JSON')", "answer cannot be read"),
        ("print('{}')", "answer cannot be read"),
    ],
)
def test_one_that_fails_says_why(landing: Path, state: Path, code: str, words: str) -> None:
    with pytest.raises(WriterFailed, match=words):
        write(landing, state, code)


def test_a_state_dir_that_cannot_be_used(landing: Path, state: Path) -> None:
    state.write_text("a file where a folder must be")

    with pytest.raises(WriterFailed, match=str(state)):
        write(landing, state)


def test_a_command_that_is_not_there(landing: Path, state: Path) -> None:
    with pytest.raises(WriterFailed, match="No such file"):
        SnapshotWriter(str(landing), state, 7, ("/nowhere/python",)).write(HEADER, sections(TABLES), SPOOL_BYTES)


def test_no_other_is_started_while_one_cannot_be_ended(
    landing: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that hangs in a dead mount does not die of SIGKILL; here it is one that is not sent any."""
    writer = SnapshotWriter(str(landing), state, 7, (sys.executable, "-c", _HANGS), 1)
    with monkeypatch.context() as patched:
        patched.setattr(subprocess.Popen, "kill", lambda _: None)
        with pytest.raises(WriterFailed, match="killed after"):
            writer.write(HEADER, sections(TABLES), SPOOL_BYTES)
    left_behind = writer._left_behind
    assert left_behind is not None
    try:
        with pytest.raises(WriterFailed, match=f"process {left_behind.pid}"):
            writer.write(HEADER, sections(TABLES), SPOOL_BYTES)
    finally:
        left_behind.kill()
        left_behind.communicate()


def test_the_guard_does_not_import_pyarrow() -> None:
    code = "import sys, brimline.guard.daemon; print([name for name in sys.modules if name.startswith('pyarrow')])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert answer.stdout.strip() == "[]"
