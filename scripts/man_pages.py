"""Manual pages, made from the argument parser: ``python -m scripts.man_pages FOLDER`` writes one for each command."""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from brimline import __version__
from brimline.cli.parser import COMMANDS, DESCRIPTION, commands_of, every_command, find_parser

_HEADING = re.compile(r"^(\S[^\n]*):\n", re.MULTILINE)
"""Of a part of an epilog: "examples:", "exit codes:"."""
_NOTHING = "\\&"


def man_pages() -> dict[str, str]:
    """File name → page."""
    return {f"{_name(path)}.1": "\n".join(_page(path)) + "\n" for path in ((), *every_command())}


def _name(path: tuple[str, ...]) -> str:
    return "-".join(("brimline", *path))


def _page(path: tuple[str, ...]) -> Iterator[str]:
    parser = find_parser(path)
    assert parser is not None
    description = (parser.description or _purpose(path)).strip()
    yield f'.TH {_name(path).upper()} 1 "" "brimline {__version__}" "Brimline"'
    yield f".SH NAME\n{_name(path)} \\- {_text(_purpose(path))}"
    yield f".SH SYNOPSIS\n.nf\n{_text(parser.format_usage().removeprefix('usage: ').rstrip())}\n.fi"
    yield f".SH DESCRIPTION\n{_described(description)}"
    options = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    yield ".SH OPTIONS"
    for action in options:
        if not isinstance(action, argparse._SubParsersAction):
            yield f".TP\n{_text(_spelled(action))}\n{_text(_help(action)) or _NOTHING}"
    for heading, body in _parts(parser.epilog or ""):
        yield f".SH {heading.upper()}\n.nf\n{_text(body)}\n.fi"
    names = [_name((*path, name)) for name, _ in commands_of(parser)] or [_name(path[:-1])]
    yield ".SH SEE ALSO\n" + ", ".join(f"\\fB{_text(name)}\\fR(1)" for name in names)


def _purpose(path: tuple[str, ...]) -> str:
    if not path:
        return DESCRIPTION
    if len(path) == 1:
        return COMMANDS[path[0]]
    parent = find_parser(path[:-1])
    assert parent is not None
    (group,) = (action for action in parent._actions if isinstance(action, argparse._SubParsersAction))
    (purpose,) = (choice.help for choice in group._choices_actions if choice.dest == path[-1])
    return purpose or path[-1]


def _spelled(action: argparse.Action) -> str:
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    if not action.option_strings:
        return str(action.metavar or action.dest)
    return ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")


def _parts(epilog: str) -> Iterator[tuple[str, str]]:
    pieces = _HEADING.split(epilog)
    for heading, body in zip(pieces[1::2], pieces[2::2], strict=True):
        yield heading, body.rstrip()


def _described(text: str) -> str:
    """Paragraphs, and a list where lines are a word and what it means."""
    listed = re.sub(r"^  (\S+(?: \S+)*)  +(?=\S)", r".TP\n\1\n", _text(text), flags=re.MULTILINE)
    return listed.replace("\n\n", "\n.PP\n")


def _text(text: str) -> str:
    """As it is: a backslash, a dash that is one, and no line that would be a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.MULTILINE)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m scripts.man_pages FOLDER")
    for name, page in man_pages().items():
        Path(sys.argv[1], name).write_text(page)
