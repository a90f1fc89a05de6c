"""``brimline ledger``: what was deleted, why, and how much space it freed. Reads files, and asks nobody."""

import argparse
import sys
from typing import TYPE_CHECKING

from brimline.cli.shared.options import add_config_options, add_debug_and_version, moment

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

DESCRIPTION = """\
Show what Brimline has done to a broker's data: every cycle of reclaim with what was planned, why, requested,
answered and how many bytes were freed; every use of the ballast, and every pause.

Reads the ledger beside the broker (ledger-<node id>.jsonl in brimline.state.dir, and the closed parts of it). Guard
and broker need not run. Changes nothing.
"""
EPILOG = """\
examples:
  brimline ledger --config /etc/kafka/server.properties --since 24h
  brimline ledger --config /etc/kafka/server.properties --output csv > trims.csv
      a row for every trim: topic, partition, offsets, segments, bytes, age, reason, result
  brimline ledger --config /etc/kafka/server.properties --output json | jq '.cycles[].trims[] | select(.why != null)'
      everything; here what was abandoned, and why

exit codes:
  0    shown
  1    no ledger yet, or it cannot be read
  3    shown, but the ledger is damaged; the damaged places are named on stderr"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("ledger", description=DESCRIPTION, epilog=EPILOG)
    add_config_options(parser)
    parser.add_argument(
        "--since",
        type=moment,
        metavar="TIME",
        help="only entries since then: 90m, 24h, 7d, or a time in UTC such as 2026-01-31 or 2026-01-31T08:30",
    )
    parser.add_argument(
        "--output", choices=("table", "json", "csv"), default="table", help="for people or for programs"
    )
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    import os

    from brimline.act.ledger.files import LedgerFiles
    from brimline.act.ledger.story import tell
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.cli.shared.output import writing_to
    from brimline.settings.config import load_config

    config = load_config(args.config, os.environ, args.broker_cwd)
    files = LedgerFiles(config.state_dir, config.node_id)
    story = tell(files, args.since)
    with writing_to(sys.stdout, utf_8=args.output != "table") as out:
        if args.output == "json":
            from brimline.cli.ledger.for_programs import write_ledger_json

            write_ledger_json(story, files, out)
        elif args.output == "csv":
            from brimline.cli.ledger.for_programs import write_ledger_csv

            write_ledger_csv(story, out)
        else:
            from brimline.cli.ledger.table import write_ledger_table

            write_ledger_table(story, files, out)
    for damage in story.damage:
        print(f"brimline: {damage}", file=sys.stderr)
    return ExitCode.PARTIAL if story.damage else ExitCode.DONE
