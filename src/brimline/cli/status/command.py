"""``brimline status``: a running guard at a glance. Reads its ``/v1/state`` and computes nothing."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from brimline.cli.shared.options import add_config_options, add_debug_and_version

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

DEFAULT_URL = "http://127.0.0.1:9827"
DESCRIPTION = """\
Show what a running guard knows: disks and limits, full followers, what it deletes to hold a ceiling, what the gateway
refuses and why, and the partitions closest to their retention limit.
"""
EPILOG = """\
examples:
  brimline status
  brimline status --config /etc/kafka/server.properties
  brimline status --url http://127.0.0.1:9827 --output json | jq '.volumes[] | select(.state != "ok")'
  brimline status --output json | jq '.gateway.state.fences'

exit codes:
  0    nothing needs attention
  1    no guard answers there
  3    something does; the first line names it, the worst first: broker or gateway down; a log dir offline; a volume
       full, unknown, or full within the hour without a ceiling; something fenced; a follower without room; a ceiling
       not held or paused"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("status", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--url", help=f"where the guard serves (default: as --config says, else {DEFAULT_URL})")
    add_config_options(parser, required=False)
    parser.add_argument("--output", choices=("table", "json"), default="table", help="for people or for programs")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help="how long to wait (default: 5)")
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.cli.shared.output import writing_to
    from brimline.documents.troubles import troubles
    from brimline.guard.client import fetch_state

    state, text = fetch_state(guard_url(args), args.timeout)
    with writing_to(sys.stdout, utf_8=args.output == "json") as out:
        if args.output == "json":
            out.write(text)
        else:
            from brimline.cli.status.table import write_guard_table

            write_guard_table(state, out)
    return ExitCode.PARTIAL if troubles(state) else ExitCode.DONE


def guard_url(args: argparse.Namespace) -> str:
    """A guard that serves on all addresses is asked on this host's own."""
    if args.url is not None:
        return str(args.url)
    if args.config is None:
        return DEFAULT_URL
    from brimline.settings import keys
    from brimline.settings.config import load_config

    config = load_config(args.config, os.environ, args.broker_cwd)
    host = config.text(keys.METRICS_HOST)
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{host}:{config.number(keys.METRICS_PORT)}"
