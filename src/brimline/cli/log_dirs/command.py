"""``brimline log-dirs``: its options and its help. The work begins in ``describe``."""

import argparse
from typing import TYPE_CHECKING

from brimline.cli.shared.exit_codes import EXIT_CODES_HELP
from brimline.cli.shared.options import (
    Once,
    add_bootstrap_server,
    add_command_config,
    add_debug_and_version,
    add_timeout,
    add_top,
    broker_ids,
    topic_names,
)

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
  kafka-json  exactly what kafka-log-dirs.sh prints (the default in a pipe or a file); if a broker does not answer, no
              JSON and exit code 1, as there
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
    parser = subparsers.add_parser("log-dirs", description=DESCRIPTION, epilog=EPILOG)
    add = parser.add_argument
    add_bootstrap_server(parser)
    add("--describe", action="store_true", help="accepted for compatibility; this command always describes")
    add(
        "--topic-list",
        action=Once,
        type=topic_names,
        metavar="TOPICS",
        help="only replicas of these topics, comma-separated (default: all)",
    )
    add(
        "--broker-list",
        action=Once,
        type=broker_ids,
        metavar="IDS",
        help="only these broker ids, comma-separated (default: all)",
    )
    add_command_config(parser, "a Java properties file for the client (SASL, TLS, timeouts)")
    add(
        "--include-remote-info",
        action="store_true",
        help="also the remote and the only-local size of each replica (reads __remote_log_metadata)",
    )
    add("--output", choices=OUTPUTS, help="see below (default: table on a terminal, else kafka-json)")
    add_top(parser, "replicas")
    add_timeout(parser)
    add_debug_and_version(parser, uses_client=True)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.log_dirs.describe import describe

    return describe(args)
