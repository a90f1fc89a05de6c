"""Options that several commands have, and the types of their values."""

import argparse
import math
import os
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from brimline import __version__

CONFIG_VARIABLE = "BRIMLINE_CONFIG"
_SPAN = re.compile(r"(\d{1,5})(m|h|d)")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def add_config_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    add_config(parser, required=required)
    add_broker_cwd(parser)


def add_config(parser: "argparse._ActionsContainer", *, required: bool) -> None:
    """The environment names it once for all commands; an option wins."""
    default = os.environ.get(CONFIG_VARIABLE)
    parser.add_argument(
        "--config",
        required=required and default is None,
        default=default,
        metavar="FILE",
        help=f"the broker's own properties file, server.properties (default: the variable {CONFIG_VARIABLE})",
    )


def add_broker_cwd(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--broker-cwd",
        metavar="DIR",
        help="the broker's working directory; needed when log.dirs has relative paths",
    )


def add_bootstrap_server(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument(
        "--bootstrap-server",
        action=Once,
        required=required,
        metavar="HOST:PORT",
        help=f"servers to connect to first, comma-separated{' (required)' * required}",
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
        help="timeout for answers of brokers (default: default.api.timeout.ms of the properties, else 30)",
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
            raise argparse.ArgumentError(self, "given more than once")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


def names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def topic_names(text: str) -> frozenset[str] | None:
    return frozenset(names(text)) or None


def broker_ids(text: str) -> tuple[int, ...] | None:
    ids = names(text)
    wrong = [part for part in ids if not part.removeprefix("-").isdecimal()]
    if wrong:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not a broker id: write comma-separated numbers")
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


def moment(text: str) -> datetime:
    """A span before now, or a time."""
    span = _SPAN.fullmatch(text.strip())
    if span:
        return datetime.now(UTC) - timedelta(**{_UNITS[span[2]]: int(span[1])})
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a span such as 24h nor a time such as 2026-01-31"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
