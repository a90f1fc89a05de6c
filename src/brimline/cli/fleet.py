"""``brimline fleet``: which commands it has. Their modules are their options only; the work is imported when it begins.

So without the extra ``fleet`` installed there is help, and one sentence instead of a traceback.
"""

import argparse
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from brimline.model.failures import BrimlineError

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

# Each is a module `fleet_<name>` here with `add_parser(subparsers)`; and the packages without which it can do nothing
COMMANDS = {
    "collect": ("pyarrow",),
    "run": ("pyspark", "delta", "pyarrow", "pandas"),
    "show": ("deltalake",),
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
    parser = subparsers.add_parser(
        "fleet", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(title="commands", dest="fleet_command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        import_module(f"brimline.cli.fleet_{command}").add_parser(commands)


def check_installed(command: str) -> None:
    """Raises the sentence that names the extra."""
    missing = [package for package in COMMANDS[command] if find_spec(package) is None]
    if missing:
        raise BrimlineError(
            f"'brimline fleet {command}' needs {', '.join(missing)}, not installed here: pip install 'brimline[fleet]'"
        )
