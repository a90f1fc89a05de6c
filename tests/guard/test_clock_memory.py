"""What the clock should say, by what it said before."""

from pathlib import Path

import pytest

from brimline.guard.clock_memory import Boot, ClockMemory

THEN_MS = 1_000_000_000


def expected(folder: Path, boot: Boot) -> int | None:
    return ClockMemory(folder, 1, writes=False, boot=lambda: boot).expected_ms()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a guard that looked a hundred seconds after the machine had been started."""
    memory = ClockMemory(tmp_path, 1, writes=True, boot=lambda: Boot(id="a", seconds=100.0))
    memory.write(THEN_MS)
    assert memory.is_filed
    return tmp_path


def test_within_one_boot_the_time_has_gone_on_as_the_boots_has(folder: Path) -> None:
    assert expected(folder, Boot(id="a", seconds=1100.0)) == THEN_MS + 1_001_000


def test_after_another_it_has_gone_on_since_then_at_least(folder: Path) -> None:
    assert expected(folder, Boot(id="b", seconds=10.0)) == THEN_MS + 10_010


@pytest.mark.parametrize("content", [None, "", '{"version": 2}'])
def test_what_cannot_be_read_was_never_seen(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "clock-1.json").write_text(content)

    assert expected(tmp_path, Boot(id="a", seconds=1.0)) is None


def test_a_dry_run_files_nothing(tmp_path: Path) -> None:
    ClockMemory(tmp_path, 1, writes=False).write(THEN_MS)

    assert list(tmp_path.iterdir()) == []
