"""Options that several commands have, and the types of their values."""

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any

from brimline import __version__


def add_config_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", required=True, metavar="FILE", help="the broker's own properties file (server.properties)"
    )
    parser.add_argument(
        "--broker-cwd",
        metavar="DIR",
        help="the directory that the broker was started in; needed when log.dirs has relative paths",
    )


def add_bootstrap_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap-server",
        action=Once,
        required=True,
        metavar="HOST:PORT",
        help="a server to connect to first, or several with commas (required)",
    )


def add_command_config(parser: argparse.ArgumentParser, file_help: str) -> None:
    parser.add_argument("--command-config", action=Once, metavar="FILE", help=file_help)
    parser.add_argument(
        "--command-property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one client property; wins over the file; may be repeated",
    )


def add_top(parser: argparse.ArgumentParser, things: str) -> None:
    shown = parser.add_mutually_exclusive_group()
    help_text = f"{things} in the table (default: 20)"
    shown.add_argument("--top", type=whole_number(f"a number of {things}"), default=20, metavar="N", help=help_text)
    shown.add_argument("--all", action="store_const", dest="top", const=None, help=f"all {things} in the table")


def add_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        type=seconds_above_zero,
        metavar="SECONDS",
        help="how long brokers have to answer (default: default.api.timeout.ms of the properties, else 30)",
    )


def add_debug_and_version(parser: argparse.ArgumentParser, *, uses_client: bool = False) -> None:
    shown = "show tracebacks and the client's log" if uses_client else "show tracebacks"
    # Suppressed: the whole program has it too, and a default here would undo what was said there.
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=shown)
    parser.add_argument("--version", action="version", version=f"brimline {__version__}")


class Once(argparse.Action):
    """An option that the stock tool refuses to be given twice; argparse would drop the first without a word."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        given: set[str] = vars(namespace).setdefault("given", set())
        if self.dest in given:
            raise argparse.ArgumentError(self, "given more than once, and only one can count")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


def names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def broker_ids(text: str) -> tuple[int, ...] | None:
    ids = names(text)
    wrong = [part for part in ids if not part.removeprefix("-").isdecimal()]
    if wrong:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not a broker id: write numbers with commas between them")
    return tuple(sorted({int(part) for part in ids})) or None


def seconds_above_zero(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def whole_number(what: str, least: int = 0, most: float = math.inf) -> Callable[[str], int]:
    """``what`` it is, for the error."""

    def number(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return int(text)

    return number
