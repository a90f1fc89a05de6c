"""The command line as a whole: which commands there are, and how a wrong one is answered.

Only the module of the command that was asked for is imported, and nothing here imports the client library or numpy:
``brimline --help`` is as fast as Python starts.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

from brimline import __version__
from brimline.cli.shared.exit_codes import ExitCode

# Each is a module here, or `command` in a folder, with `add_parser(subparsers)`, which sets `func`: the command, from
# arguments to exit code.
COMMANDS = {
    "doctor": "check a broker's properties file and host before a guard runs there",
    "fence": "refuse Produce for a log dir or a topic, by hand",
    "fleet": "history, fleet view, forecast and what-if for many clusters",
    "gateway": "proxy that refuses Produce for full disks",
    "guard": "watch the disks of one broker and publish how full they are",
    "help": "help on a command, or on exit-codes",
    "history": "timeline of a broker: full, fenced, refused, reclaimed, released",
    "ledger": "what was deleted, why, and how much space it freed",
    "log-dirs": "volumes, log dirs and replicas of a cluster, with their sizes",
    "reclaim": "show, or delete, the oldest segments on a disk above its ceiling",
    "sandbox": "run a real Kafka cluster on small volumes",
    "status": "show what a running guard knows, and what the gateway refuses",
    "topics": "which topics fill the disks, who reads them, and why they do not shrink",
    "torture": "fault injection against a sandbox, judged by invariants",
    "unfence": "lift a fence that was set by hand",
    "web": "pages for a browser: the volumes of a cluster or a fleet",
}

_FOLDERS = ("fleet", "ledger", "log-dirs", "reclaim", "status", "topics")

DESCRIPTION = "Disk-space management for Apache Kafka, from outside an unmodified broker."
EPILOG = """\
examples:
  brimline log-dirs --bootstrap-server broker:9092
      how full is the volume under every log dir, and which replicas are the largest
  brimline log-dirs --help
      the options of a command, with examples
  brimline help exit-codes
      exit codes of every command, for scripts
"""


_WRONG_CHOICE = re.compile(r"argument COMMAND: invalid choice: '(.*)' \(choose from (.*)\)$")


class Parser(argparse.ArgumentParser):
    """Answers wrong usage as Kafka's tools do: usage on stderr, exit code 1. Like them it takes no option shortened."""

    def __init__(self, **settings: Any) -> None:
        laid_out_as_written = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"formatter_class": laid_out_as_written, **settings}, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        from brimline.model.secrets import without_login

        self.print_usage(sys.stderr)
        if wrong := _WRONG_CHOICE.match(message):
            near = get_close_matches(wrong[1], re.findall(r"'([^']+)'", wrong[2]), 1)
            message = f"there is no {wrong[1]!r}; {f'did you mean {near[0]!r}?' if near else f'choose from {wrong[2]}'}"
        self.exit(ExitCode.FAILED, f"{self.prog}: {without_login(message)}\n")


def build_parser(argv: Sequence[str]) -> Parser:
    """The parser for these arguments: with the one command they name, or with a list of all."""
    parser = Parser(prog="brimline", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"brimline {__version__}")
    parser.add_argument(
        "--debug", action="store_true", help="show tracebacks and the client's log (or BRIMLINE_DEBUG=1)"
    )
    subparsers = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", parser_class=Parser)
    named = next((argument for argument in argv if argument in COMMANDS), None)
    if named is not None:
        home = named.replace("-", "_") + (".command" if named in _FOLDERS else "")
        import_module(f"brimline.cli.{home}").add_parser(subparsers)
    else:
        for command, purpose in COMMANDS.items():
            subparsers.add_parser(command, help=purpose)
    return parser


def find_parser(command: Sequence[str]) -> argparse.ArgumentParser | None:
    """Of a command and what is below it, such as ``("fleet", "run")``; ``None``: there is none."""
    parser: argparse.ArgumentParser = build_parser(command)
    for name in command:
        below = dict(commands_of(parser))
        if name not in below:
            return None
        parser = below[name]
    return parser


def commands_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def every_command() -> Iterator[tuple[str, ...]]:
    """All that have options of their own, with those below another."""
    for name in COMMANDS:
        command = find_parser((name,))
        assert command is not None
        yield (name,)
        yield from ((name, below) for below, _ in commands_of(command))
