"""``brimline help``: the help of a command, and the exit codes of all of them in one table."""

import argparse
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

EXIT_CODES = "exit-codes"
DESCRIPTION = "Show the help of a command, as COMMAND --help does, or the exit codes of every command (exit-codes)."
EPILOG = """\
examples:
  brimline help fleet run
  brimline help exit-codes

exit codes:
  0    shown
  1    no such command"""
_WIDTH = 110


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("help", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("topic", nargs="*", help=f"a command, or {EXIT_CODES}; without: the list of commands")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.parser import COMMANDS, find_parser
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.model.failures import BadInput

    if args.topic == [EXIT_CODES]:
        print("\n".join(exit_code_lines()))
        return ExitCode.DONE
    parser = find_parser(args.topic)
    if parser is None:
        topics = ", ".join([*COMMANDS, EXIT_CODES])
        raise BadInput(f"no help on {' '.join(args.topic)!r}: choose one of {topics}")
    parser.print_help()
    return ExitCode.DONE


def exit_code_lines() -> Iterator[str]:
    from brimline.cli.shared.exit_codes import EVERYWHERE

    for command, codes in exit_codes():
        yield f"brimline {command}"
        for code, meaning in codes.items():
            yield from textwrap.wrap(meaning, _WIDTH, initial_indent=f"  {code:<5}", subsequent_indent=" " * 7)
    yield "every command"
    yield from (f"  {code:<5}{meaning}" for code, meaning in EVERYWHERE.items())


def exit_codes() -> "Iterator[tuple[str, dict[int, str]]]":
    """Command, and what its exit codes mean beyond what they mean everywhere."""
    from brimline.cli.parser import commands_of, every_command, find_parser
    from brimline.cli.shared.exit_codes import EVERYWHERE, exit_codes_in

    for command in every_command():
        parser = find_parser(command)
        if parser is not None and not any(commands_of(parser)):
            codes = exit_codes_in(parser.epilog)
            yield (
                " ".join(command),
                {int(code): meaning for code, meaning in codes.items() if EVERYWHERE.get(code) != meaning},
            )
