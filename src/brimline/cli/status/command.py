"""``brimline status``: a running guard at a glance. Reads its ``/v1/state`` and computes nothing."""

import argparse
import sys
from typing import TYPE_CHECKING

from brimline.cli.shared.options import add_debug_and_version

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

DEFAULT_URL = "http://127.0.0.1:9827"
DESCRIPTION = """\
Show what a running guard knows: its disks and their limits, followers whose disk is full, what it deletes to hold a
ceiling, what the gateway refuses and why, and the partitions closest to their retention limit.
"""
EPILOG = """\
examples:
  brimline status
  brimline status --url http://127.0.0.1:9827 --output json | jq '.volumes[] | select(.state != "ok")'
  brimline status --output json | jq '.gateway.state.fences'

exit codes:
  0    every volume has room, and nothing is fenced
  1    no guard answers there
  3    at least one volume is full or cannot be watched, a follower's is full, something is fenced, a ceiling
       cannot be held or is paused, or the broker or the gateway does not answer"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("status", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--url", default=DEFAULT_URL, help=f"where the guard serves (default: {DEFAULT_URL})")
    parser.add_argument("--output", choices=("table", "json"), default="table", help="for people or for programs")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help="how long to wait (default: 5)")
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.cli.shared.output import writing_to
    from brimline.cli.status.state import fetch_state

    state, text = fetch_state(args.url, args.timeout)
    with writing_to(sys.stdout, utf_8=args.output == "json") as out:
        if args.output == "json":
            out.write(text)
        else:
            from brimline.cli.status.table import write_guard_table

            write_guard_table(state, out)
    return ExitCode.DONE if state.is_healthy else ExitCode.PARTIAL
