"""``brimline history``: what happened on a broker, as one timeline."""

import argparse
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from brimline.cli.shared.options import (
    CONFIG_VARIABLE,
    add_broker_cwd,
    add_config,
    add_debug_and_version,
    moment,
    whole_number,
)

if TYPE_CHECKING:
    from rich.text import Text

    from brimline.cli.parser import Parser
    from brimline.documents.history import Happening, Timeline

DESCRIPTION = """\
Show what happened on a broker, as one timeline: disks that became full, what was fenced and which clients were refused,
cordons, throttles, removed replicas, what reclaim deleted, what was released, and who did it.

With --config it reads the files beside the broker (the ledger and the journals in brimline.state.dir); guard
and broker need not run. With --url it asks a running guard for the last seven days. Changes nothing.
"""
EPILOG = """\
examples:
  brimline history --config /etc/kafka/server.properties --since 24h
  brimline history --url http://127.0.0.1:9827 --last 20
  brimline history --config /etc/kafka/server.properties --output json | jq '.events[] | select(.level != "info")'

exit codes:
  0    shown
  1    no records yet, they cannot be read, or no guard answers
  3    shown, but some records cannot be read; the places are named on stderr"""
_STYLES = {"info": "bold green", "warning": "bold yellow", "error": "bold red"}
_INDENT = 32


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("history", description=DESCRIPTION, epilog=EPILOG)
    source = parser.add_mutually_exclusive_group(required=CONFIG_VARIABLE not in os.environ)
    add_config(source, required=False)
    source.add_argument("--url", help="address of a guard, such as http://127.0.0.1:9827")
    add_broker_cwd(parser)
    parser.add_argument(
        "--since",
        type=moment,
        metavar="TIME",
        help="only events since then: 90m, 24h, 7d, or a time in UTC such as 2026-01-31 or 2026-01-31T08:30",
    )
    parser.add_argument(
        "--last", type=whole_number("a number of events"), metavar="N", help="only the newest N (default: all)"
    )
    parser.add_argument("--output", choices=("table", "json"), default="table", help="for people or for programs")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help="how long to wait (default: 5)")
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.cli.shared.output import writing_to

    history = _history(args)
    if args.last is not None:
        history = history.newest(args.last)
    with writing_to(sys.stdout, utf_8=args.output == "json") as out:
        if args.output == "json":
            from brimline.documents.history import history_text

            out.write(history_text(history))
        else:
            write_history_table(history, out)
    for sentence in history.incomplete:
        print(f"brimline: {sentence}", file=sys.stderr)
    return ExitCode.PARTIAL if history.incomplete else ExitCode.DONE


def _history(args: argparse.Namespace) -> "Timeline":
    from dataclasses import replace

    from brimline.guard.client import fetch_history
    from brimline.guard.history import read_whole_history
    from brimline.settings.config import load_config

    if args.url is None:
        config = load_config(args.config, os.environ, args.broker_cwd)
        return read_whole_history(config.state_dir, config.node_id, args.since)
    history = fetch_history(args.url, args.timeout)
    if args.since is None:
        return history
    return replace(history, events=tuple(each for each in history.events if each.at >= args.since))


def write_history_table(history: "Timeline", out: TextIO) -> None:
    from brimline.cli.shared.output import console_on, print_hanging

    console = console_on(out)
    for line in history_lines(history):
        print_hanging(console, line, _INDENT)


def history_lines(history: "Timeline") -> "Iterator[Text]":
    from rich.text import Text

    from brimline.model import counted

    yield Text.assemble((f"Broker {history.broker}", "bold"), f"  {counted(len(history.events), 'event')}")
    if history.left_out:
        yield Text(f"{counted(history.left_out, 'older event')} not shown", "dim")
    day = ""
    for event in history.events:
        if (today := f"{event.at:%Y-%m-%d}") != day:
            day = today
            yield Text(f"{day} (UTC)", "bold")
        yield _line(event)


def _line(event: "Happening") -> "Text":
    from rich.text import Text

    from brimline.cli.shared.glyphs import printable

    word = (f"{printable(event.word):<10} ", _STYLES.get(event.level, "bold"))
    by = (f"{printable(event.by)[:8]:<9}", "dim")
    return Text.assemble(f"  {event.at:%H:%M:%S}  ", word, by, printable(event.sentence))
