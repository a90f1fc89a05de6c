"""``brimline log-dirs``: its options and its help. The work begins in ``describe``."""

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from brimline import __version__
from brimline.cli.shared.exit_codes import EXIT_CODES_HELP

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

OUTPUTS = ("table", "json", "csv", "kafka-json")

DESCRIPTION = """\
Show how full the volume under every log dir of a cluster is, and which replicas fill it.

A drop-in for kafka-log-dirs.sh: same options, same output in a pipe. Nothing needs to be installed near a broker.
The volumes' bytes need brokers of Kafka 3.3 or newer.
"""
EPILOG = f"""\
outputs:
  table       volumes and the largest replicas, for people (the default on a terminal)
  kafka-json  exactly what kafka-log-dirs.sh prints (the default in a pipe or a file)
  json        everything, documented: volumes, log dirs, replicas, failures, reasons
  csv         one row per replica, with a header

examples:
  brimline log-dirs --bootstrap-server broker:9092
  brimline log-dirs --bootstrap-server broker:9092 --broker-list 1,2 --topic-list orders --all
  brimline log-dirs --bootstrap-server broker:9092 --include-remote-info
      how much of each tiered partition is in remote storage, and how much only on this disk
  brimline log-dirs --bootstrap-server broker:9093 --command-config client.properties --output csv > replicas.csv
  brimline log-dirs --bootstrap-server broker:9092 --describe | tail -1 | jq .brokers

{EXIT_CODES_HELP}
"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser(
        "log-dirs",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add_bootstrap_server(parser)
    add("--describe", action="store_true", help="accepted for the stock tool's sake: describing is all this does")
    add(
        "--topic-list",
        action=Once,
        type=_names,
        metavar="TOPICS",
        help="only replicas of these topics, with commas (default: all)",
    )
    add(
        "--broker-list",
        action=Once,
        type=broker_ids,
        metavar="IDS",
        help="only these broker ids, with commas (default: all)",
    )
    add(
        "--command-config",
        action=Once,
        metavar="FILE",
        help="a Java properties file for the client (SASL, TLS, timeouts)",
    )
    add(
        "--command-property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one client property; wins over the file; may be repeated",
    )
    add(
        "--include-remote-info",
        action="store_true",
        help="also the remote and the only-local size of each replica (reads __remote_log_metadata)",
    )
    add("--output", choices=OUTPUTS, help="see below (default: table on a terminal, else kafka-json)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--top", type=_count, default=20, metavar="N", help="replicas in the table (default: 20)")
    shown.add_argument("--all", action="store_const", dest="top", const=None, help="all replicas in the table")
    add(
        "--timeout",
        type=seconds_above_zero,
        metavar="SECONDS",
        help="how long brokers have to answer (default: default.api.timeout.ms of the properties, else 30)",
    )
    add("--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks and the client's log")
    add("--version", action="version", version=f"brimline {__version__}")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.log_dirs.describe import describe

    return describe(args)


def add_bootstrap_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap-server",
        action=Once,
        required=True,
        metavar="HOST:PORT",
        help="a server to connect to first, or several with commas (required)",
    )


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


def _names(text: str) -> frozenset[str] | None:
    return frozenset(name.strip() for name in text.split(",") if name.strip()) or None


def broker_ids(text: str) -> tuple[int, ...] | None:
    ids = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in ids if not part.removeprefix("-").isdecimal()]
    if wrong:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not a broker id: write numbers with commas between them")
    return tuple(sorted({int(part) for part in ids})) or None


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of replicas")
    return int(text)


def seconds_above_zero(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds
