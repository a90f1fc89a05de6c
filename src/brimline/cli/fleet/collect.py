"""``brimline fleet collect``: its options and its help. The work begins in ``collecting``."""

import argparse
from typing import TYPE_CHECKING

from brimline.cli.shared.options import (
    Once,
    add_bootstrap_server,
    add_command_config,
    add_timeout,
    broker_ids,
    seconds_above_zero,
    whole_number,
)

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

DESCRIPTION = """\
Take a snapshot of every broker of a cluster for the fleet's tables, through the admin protocol.

Volumes, replicas, configurations and remote sizes; nothing needs to be installed near a broker. Segments,
which reclaim plans need, come from guards only: set brimline.landing.uri in a broker's properties.
"""
EPILOG = """\
examples:
  brimline fleet collect --bootstrap-server broker:9092 --landing /data/landing
  brimline fleet collect --bootstrap-server broker:9092 --landing s3://bucket/fleet --interval 300
      every five minutes, until it is interrupted

exit codes:
  0    done; a snapshot of every broker is in the landing place
  1    no snapshot: wrong usage or input, no answer from the cluster, or a landing place that cannot be written to
  3    partial: some brokers did not answer, or some snapshots could not be written; the others were
  130  interrupted from the keyboard
"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser(
        "collect", help="take snapshots of a cluster that has no guards", description=DESCRIPTION, epilog=EPILOG
    )
    add = parser.add_argument
    add_bootstrap_server(parser)
    add(
        "--landing",
        action=Once,
        required=True,
        metavar="URI",
        help="where the snapshots go: a folder, or a URI that pyarrow opens (required)",
    )
    add("--broker-list", action=Once, type=broker_ids, metavar="IDS", help="only these broker ids (default: all)")
    add("--interval", type=seconds_above_zero, metavar="SECONDS", help="repeat at this interval (default: once)")
    add(
        "--times",
        type=whole_number("a number of times", least=1),
        metavar="N",
        help="with --interval: end after this many (default: never)",
    )
    add_command_config(parser, "a Java properties file for the client")
    add_timeout(parser)
    add("--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks and the client's log")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.fleet.command import check_installed

    check_installed("collect")
    from brimline.cli.fleet.collecting import collect

    return collect(args)
