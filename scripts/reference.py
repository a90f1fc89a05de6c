"""Writes docs/cli.md from the commands' own --help, so that the two cannot disagree."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

REFERENCE = Path(__file__).parent.parent / "docs" / "cli.md"
COMMANDS: tuple[tuple[str, ...], ...] = (
    (),
    ("log-dirs",),
    ("guard",),
    ("doctor",),
    ("status",),
    ("sandbox",),
    ("sandbox", "up"),
)
# argparse folds its lines to the terminal.
WIDTH = 110


def reference() -> str:
    return "".join(sections())


def sections() -> Iterator[str]:
    yield "# The command line\n\nMade from `--help` by `scripts/cli_reference.py`; a test holds the two together.\n"
    for command in COMMANDS:
        yield f"\n## brimline {' '.join(command)}".rstrip() + f"\n\n```text\n{help_text(command)}```\n"


def help_text(command: Sequence[str]) -> str:
    from brimline.cli.parser import build_parser

    os.environ["COLUMNS"] = str(WIDTH)
    parser: argparse.ArgumentParser = build_parser(command)
    for name in command:
        (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        parser = commands.choices[name]
    return parser.format_help()


if __name__ == "__main__":
    REFERENCE.write_text(reference())
    sys.exit(0)
