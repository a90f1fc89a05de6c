"""``brimline topics``: its options and its help. The work begins in ``describe``."""

import argparse
from typing import TYPE_CHECKING

from brimline.cli.shared.exit_codes import EXIT_CODES_HELP
from brimline.cli.shared.options import (
    add_bootstrap_server,
    add_command_config,
    add_config_options,
    add_debug_and_version,
    add_timeout,
    add_top,
    broker_ids,
    topic_names,
)

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

DESCRIPTION = """\
Show which topics fill the disks, and why each does not shrink. The largest first.

With --bootstrap-server it asks any cluster; nothing is installed near a broker. On a broker's host --config also reads
that broker's segment files, so the reason is exact for its replicas.

columns:
  Size       all replicas, as Kafka counts them
  One copy   one replica of each partition
  Written/h  about what was written in the last hour, one copy (records, times the mean size of a record)
  Retention  retention.ms and retention.bytes (a partition); * where the topic itself sets it
  Oldest     age of the first record
  Readers    consumer groups that have committed an offset. Behind: records not read by the slowest of them
"""
EPILOG = f"""\
outputs:
  table  for people (the default); --by disk lists the topics of every log dir
  json   everything, documented; what is unknown is null
  csv    a row per topic and log dir, with a header

examples:
  brimline topics --bootstrap-server broker:9092
  brimline topics --bootstrap-server broker:9092 --unread
      topics that no consumer group reads: candidates for deletion
  brimline topics --config /etc/kafka/server.properties --by disk --broker-list 1
      what fills the log dirs of broker 1
  brimline topics --bootstrap-server broker:9092 --include-remote-info --output csv > topics.csv
  brimline topics --config /etc/kafka/server.properties --output json | jq '.topics[] | select(.stays=="no-limit")'

{EXIT_CODES_HELP}
"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("topics", description=DESCRIPTION, epilog=EPILOG)
    add = parser.add_argument
    add_bootstrap_server(parser, required=False)
    add_config_options(parser, required=False)
    add_command_config(parser, "with --bootstrap-server: a Java properties file for the client")
    add(
        "--topic-list",
        type=topic_names,
        metavar="TOPICS",
        help="only these topics, comma-separated; exit code 1 if none of them exists (default: all)",
    )
    add("--broker-list", type=broker_ids, metavar="IDS", help="only replicas on these brokers (default: all)")
    add("--unread", action="store_true", help="only topics that no consumer group reads, Kafka's own left out")
    add("--include-remote-info", action="store_true", help="also remote and only-local sizes of tiered topics")
    add("--by", choices=("topic", "disk"), default="topic", help="the rows of the table (default: topic)")
    add("--output", choices=("table", "json", "csv"), default="table", help="see below (default: table)")
    add_top(parser, "topics")
    add_timeout(parser)
    add_debug_and_version(parser, uses_client=True)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.topics.describe import describe

    return describe(args)
