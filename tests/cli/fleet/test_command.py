"""What the command line says before any work begins."""

import signal
from contextlib import nullcontext
from pathlib import Path

import pytest

from brimline.cli import main
from brimline.cli.fleet import command as fleet
from brimline.cli.fleet.command import COMMANDS
from brimline.cli.fleet.run import _verdict
from brimline.fleet.jobs.run import RoundReport


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "--help"]) == 0

    told = capsys.readouterr().out
    assert all(command in told for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", command, "--help"]) == 0
    assert "exit codes:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--landing", "/l", "--warehouse", "/w"],
        ["show", "--warehouse", "/w"],
        ["maintain", "--warehouse", "/w"],
    ],
)
def test_without_the_extra_there_is_a_sentence_that_names_it(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fleet, "find_spec", lambda _: None)

    assert main(["fleet", *words]) == 1
    assert "pip install 'brimline[fleet]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--every", "5"], "not a span such as 90s, 5m, 1h or 2d"),
        (["--every", "0m"], "not a span"),
        (["--conf", "executor.memory=4g"], "not a setting such as spark.executor.memory=4g"),
    ],
)
def test_a_wrong_value_is_answered_with_a_right_one(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", "run", "--landing", "/l", "--warehouse", "/w", *words]) == 1
    assert said in capsys.readouterr().err


def test_a_landing_place_that_is_nowhere_is_told_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = tmp_path / "warehouse"

    assert main(["fleet", "run", "--landing", str(tmp_path / "nowhere"), "--warehouse", str(warehouse)]) == 1

    assert "no landing place" in capsys.readouterr().err
    assert not warehouse.exists()


def test_a_warehouse_that_is_nowhere_is_not_made_by_its_upkeep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = tmp_path / "warehouse"

    assert main(["fleet", "maintain", "--warehouse", str(warehouse)]) == 1

    assert "no table in" in capsys.readouterr().err
    assert not warehouse.exists()


@pytest.mark.parametrize(
    ("failures", "begins"),
    [({}, "done: 8 tables are up to date; "), ({"forecast": "x"}, "partial: forecast failed, as said above; ")],
)
def test_a_run_ends_with_a_verdict_and_what_to_do_next(failures: dict[str, str], begins: str) -> None:
    said = _verdict(RoundReport(ingest=None, failures=failures), "/data/my tables")

    assert said == f"{begins}look: brimline fleet show --warehouse '/data/my tables' volume_pressure"


def test_with_an_interval_every_round_says_how_long_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = iter([RoundReport(ingest=None), RoundReport(ingest=None, failures={"forecast": "no"})])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr("brimline.fleet.session.session.spark_session", lambda _: nullcontext())
    monkeypatch.setattr("brimline.fleet.jobs.run.rounds", lambda *_: range(2))
    monkeypatch.setattr("brimline.fleet.jobs.run.run_round", lambda *_, **__: next(ends))

    words = ["--landing", str(tmp_path), "--warehouse", str(tmp_path / "warehouse"), "--every", "5m"]
    assert main(["fleet", "run", *words]) == 3

    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("round")]
    assert [line.rpartition(" in ")[0] for line in told] == ["round 1: done", "round 2: partial"]
    assert all(line.endswith(" s") for line in told)
