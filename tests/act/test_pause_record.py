"""The file that says what to put back: whole or not at all, and never a reason to leave a broker paused for ever."""

import json
from pathlib import Path

import pytest

from brimline.act.move_pause import KEY, Pause, PauseRecord
from brimline.service.durable_files import NotRecorded
from tests.act.settings import NOW


@pytest.fixture
def record(tmp_path: Path) -> PauseRecord:
    return PauseRecord(tmp_path / "state" / "move-pause-1.json", KEY)


@pytest.mark.parametrize("before", [None, "20000000"])
def test_it_is_read_as_it_was_written(record: PauseRecord, before: str | None) -> None:
    pause = Pause(before=before, since=NOW)

    record.write(pause)

    assert record.read(NOW) == pause
    assert json.loads(record.path.read_text())["key"] == KEY
    assert record.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in record.path.parent.iterdir()] == [record.path.name]


def test_no_file_is_no_pause(record: PauseRecord) -> None:
    assert record.read(NOW) is None
    assert record.warnings == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 1, "key": "x", "before": null, "since": "2026-01-01T00:00:00Z"}',
        f'{{"version": 1, "key": "{KEY}", "before": 5, "since": "2026-01-01T00:00:00Z"}}',
        f'{{"version": 1, "key": "{KEY}", "before": null, "since": "yesterday"}}',
    ],
)
def test_a_damaged_file_still_says_that_the_pause_is_ours(record: PauseRecord, text: str) -> None:
    record.path.parent.mkdir()
    record.path.write_text(text)

    assert record.read(NOW) == Pause(before=None, since=NOW)
    assert "is damaged" in record.warnings[0]


def test_what_cannot_be_written_is_not_done(record: PauseRecord) -> None:
    record.path.parent.write_text("a file where the folder should be")

    with pytest.raises(NotRecorded, match="nothing was changed"):
        record.write(Pause(before=None, since=NOW))


def test_removing_it_twice_is_fine(record: PauseRecord) -> None:
    record.write(Pause(before=None, since=NOW))

    record.remove()
    record.remove()

    assert record.read(NOW) is None
