"""``brimline fleet synth`` from its arguments to its files."""

from pathlib import Path

import pytest

from brimline.cli import main
from brimline.cli.shared.exit_codes import ExitCode

SMALL = ("--brokers", "3", "--clusters", "1", "--replicas", "12", "--days", "1", "--every", "8h")
UNTIL = ("--until", "2026-01-31T12:00Z")


def synth(folder: Path | str, *options: str) -> int:
    return main(["fleet", "synth", "--landing", str(folder), *options])


def test_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert synth(tmp_path, *SMALL, *UNTIL) == ExitCode.DONE
    files = list(tmp_path.rglob("*.parquet"))
    assert f"clusters: 1, brokers: 3, snapshots: {len(files)} with" in capsys.readouterr().out


def test_the_newest_snapshots_are_of_the_asked_moment(tmp_path: Path) -> None:
    synth(tmp_path, *SMALL, *UNTIL)
    newest = max(int(path.name.split("-")[0]) for path in tmp_path.rglob("*.parquet"))
    asked_ms = 1_769_860_800_000
    assert asked_ms - 60_000 <= newest <= asked_ms


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--brokers", "1", "--clusters", "2"), "--clusters: 2 clusters need at least as many brokers, not 1"),
        (("--brokers", "none"), "'none' is not a whole number of at least 1"),
        (("--until", "tomorrow"), "'tomorrow' is not a time"),
        (("--until", "1969-01-01"), "is not in the years from 2011 to 2200"),
        (("--every", "1s"), "--every: snapshots are at least a minute apart"),
    ],
)
def test_wrong_usage_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], sentence: str
) -> None:
    assert synth(tmp_path, *options) == ExitCode.FAILED
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_place_that_takes_no_files_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert synth(tmp_path / "file", *SMALL, *UNTIL) == ExitCode.FAILED
    assert str(tmp_path / "file") in capsys.readouterr().err
