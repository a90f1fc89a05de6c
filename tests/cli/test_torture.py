"""``brimline torture`` without a cluster: what it lists, refuses and says of a history."""

from pathlib import Path

import pytest

from brimline.cli import main
from brimline.torture.history import Acked, AnyEvent, Begun, Client, Finished, Stored, line_of

HELD: list[AnyEvent] = [
    Begun(at=0, seed=7, version="4.3.1", brokers=1, replicas=1, protected=["kept"], left_out={}),
    Client(at=0, client="c", topic="kept", promise="once"),
    Acked(at=1, client="c", number=0, partition=0, offset=0),
    Stored(at=2, topic="kept", partition=0, offset=0, client="c", number=0),
    Finished(at=3, minutes=1.5, faults=4),
]


def written(path: Path, events: list[AnyEvent]) -> Path:
    path.write_text("".join(map(line_of, events)))
    return path


def test_what_holds_is_told_apart_from_what_was_never_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["torture", "check", str(written(tmp_path / "history", HELD))]) == 0

    said = capsys.readouterr().out
    assert "Kafka 4.3.1, 1 broker, seed 7: 4 faults in 1.5 minutes" in said
    holds = [line.split()[0] for line in said.splitlines() if " holds " in line]
    assert holds == ["acknowledged-stored", "once-in-order", "no-enospc", "brokers-alive", "brimline-alive"]
    assert said.count("no data") == 4


def test_of_an_empty_history_nothing_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["torture", "check", str(written(tmp_path / "history", []))]) == 1

    said = capsys.readouterr().out
    assert "holds" not in said
    assert "recovers                  VIOLATED, 1 time " in said


def test_a_violation_is_told_with_its_line_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = written(tmp_path / "history", [event for event in HELD if not isinstance(event, Stored)])

    assert main(["torture", "check", str(history)]) == 1

    said = capsys.readouterr().out
    assert "acknowledged-stored       VIOLATED" in said
    assert f"{history}:3: record 0 of c, acknowledged in kept-0 at offset 0, is not there" in said


def test_what_is_no_history_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["torture", "check", str(tmp_path / "nothing")]) == 1

    assert capsys.readouterr().err == f"brimline: {tmp_path / 'nothing'} cannot be read: No such file or directory\n"


@pytest.mark.parametrize(("option", "known"), [("--only", "gateway-kill"), ("--clients", "kafka-python")])
def test_names_are_listed_and_unknown_ones_refused(option: str, known: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["torture", "run", option, "list"]) == 0
    assert known in capsys.readouterr().out

    assert main(["torture", "run", option, f"{known},nobody"]) == 1
    assert "no nobody: there are " in capsys.readouterr().err


@pytest.mark.parametrize("steps", ["0", "x", "3-", "-3", "3-x"])
def test_steps_are_a_number_or_some(steps: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["torture", "run", f"--steps={steps}"]) == 1

    assert "a number of steps such as 20, or some of them such as 4-6" in capsys.readouterr().err
