"""``brimline fleet``: which commands it has. Their modules are their options only; the work is imported when it begins.

So without the extra ``fleet`` installed there is help, and one sentence instead of a traceback.
"""

import argparse
import re
import shlex
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from brimline.model.failures import BrimlineError

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

# Each is a module here with `add_parser(subparsers)`; and the packages without which it can do nothing
COMMANDS = {
    "collect": ("pyarrow",),
    "run": ("pyspark", "delta", "pyarrow", "pandas"),
    "show": ("deltalake",),
    "plot": ("deltalake",),
    "simulate": ("pyarrow", "deltalake"),
    "maintain": ("pyspark", "delta", "pyarrow"),
    "synth": ("pyarrow",),
}
DESCRIPTION = """\
History, fleet view, forecast and what-if for many clusters: the snapshots of guards and collectors become tables.
"""
EPILOG = """\
examples:
  brimline fleet synth --landing /tmp/landing
  brimline fleet run --landing /tmp/landing --warehouse /tmp/warehouse
  brimline fleet show --warehouse /tmp/warehouse volume_pressure
      a made-up fleet, its tables, and a look at one: no cluster needed
  brimline fleet run --help
      the options of a command, with examples
"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("fleet", description=DESCRIPTION, epilog=EPILOG)
    commands = parser.add_subparsers(title="commands", dest="fleet_command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        import_module(f"brimline.cli.fleet.{command}").add_parser(commands)


def check_installed(command: str) -> None:
    """Raises the sentence that names the extra."""
    missing = [package for package in COMMANDS[command] if find_spec(package) is None]
    if missing:
        raise BrimlineError(
            f"'brimline fleet {command}' needs {', '.join(missing)}, not installed here: pip install 'brimline[fleet]'"
        )


WAREHOUSE_HELP = "where the tables are: a folder, or a URI that Spark opens (required)"
_SPAN = re.compile(r"(\d{1,6})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add_session_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--master",
        default="local[*]",
        metavar="URL",
        help="local[N], spark://host:port, or sc://host:port for Spark Connect (default: %(default)s)",
    )
    parser.add_argument("--driver-memory", default="1g", metavar="SIZE", help="of the driver's JVM (default: 1g)")
    parser.add_argument(
        "--conf", action="append", default=[], type=_setting, metavar="KEY=VALUE", help="a setting of Spark's own"
    )


def show_command(warehouse: str, table: str) -> str:
    """Whole, to be pasted into a shell."""
    return f"brimline fleet show --warehouse {shlex.quote(warehouse)} {table}"


def span_seconds(text: str) -> float:
    span = _SPAN.fullmatch(text.strip())
    if span is None or not int(span[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a span such as 90s, 5m, 1h or 2d")
    return float(int(span[1]) * _SECONDS[span[2]])


def _setting(text: str) -> tuple[str, str]:
    key, found, value = text.partition("=")
    if not found or not key.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not a setting such as spark.executor.memory=4g")
    return key, value
