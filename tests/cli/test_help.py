"""``brimline help``: the same as ``--help``, and the exit codes of every command in one table."""

from argparse import ArgumentParser

import pytest

from brimline.cli import main
from brimline.cli.help import exit_codes
from brimline.cli.parser import COMMANDS, commands_of, every_command, find_parser
from brimline.cli.shared.exit_codes import ExitCode, exit_codes_in


def test_help_on_a_command_is_the_commands_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "fleet", "run"]) == 0
    by_help = capsys.readouterr().out
    assert main(["fleet", "run", "--help"]) == 0

    assert by_help == capsys.readouterr().out


def test_help_alone_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0

    shown = capsys.readouterr().out
    assert [command for command in COMMANDS if f"\n    {command} " not in shown] == []


def test_no_such_topic_is_one_sentence_with_all_topics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "disks"]) == 1

    said = capsys.readouterr().err
    assert said.startswith("brimline: no help on 'disks': choose one of doctor, ")
    assert said.endswith(", exit-codes\n")


def test_every_command_says_what_0_and_1_mean() -> None:
    """What a script depends on stands in the command's own help; the table is made of that."""
    codes = dict(exit_codes())

    assert len(codes) > 15
    assert [command for command, known in codes.items() if not {0, 1} <= set(known)] == []
    runnable = [" ".join(command) for command in every_command() if not any(commands_of(_parser(command)))]
    assert list(codes) == runnable


def _parser(command: tuple[str, ...]) -> ArgumentParser:
    found = find_parser(command)
    assert found is not None
    return found


def test_a_meaning_on_several_lines_is_one_sentence() -> None:
    epilog = "examples:\n  1 of them\n\nexit codes:\n  0    done\n  3    partly:\n       the rest is named\n"

    assert exit_codes_in(epilog) == {ExitCode.DONE: "done", ExitCode.PARTIAL: "partly: the rest is named"}


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "exit-codes"]) == 0

    shown = capsys.readouterr().out
    assert "brimline log-dirs\n  0    done; every broker answered\n" in shown
    assert shown.endswith("every command\n  130  interrupted from the keyboard\n  141  the output was closed early\n")
