"""``brimline guard``: the daemon beside a broker, and ``--check``, which only looks."""

import argparse
from typing import TYPE_CHECKING

from brimline.cli.shared.options import add_config_options, add_debug_and_version

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

DESCRIPTION = """\
Watch the disks of one broker, and publish how full they are and how close each partition is to its retention limit.

Runs beside the broker with the broker's own properties file, which holds the keys of KIP-1201 and KIP-61 and
Brimline's own; Kafka ignores them. With brimline.enforcement=observe (the default) it reports what it would refuse;
with gateway it tells the gateway which log dirs are full, and the gateway refuses Produce for them.
"""
EPILOG = """\
signals:
  SIGHUP   read the file again; the log names what needs a restart
  SIGTERM  end

examples:
  brimline guard --config /etc/kafka/server.properties --check
      show the effective configuration and every problem, then end
  brimline guard --config /etc/kafka/server.properties
      run; http://127.0.0.1:9827/metrics, /v1/state, /healthz, /readyz

exit codes:
  0    ended by SIGTERM; with --check: nothing is wrong
  1    the configuration cannot be used, or the port is taken
  3    with --check: problems found: the guard could run, but could not do all of its work
  130  interrupted from the keyboard"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("guard", description=DESCRIPTION, epilog=EPILOG)
    add_config_options(parser)
    parser.add_argument("--check", action="store_true", help="show the configuration and every problem, then end")
    add_debug_and_version(parser, uses_client=True)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    import os
    import signal
    import sys

    from brimline.cli.shared.exit_codes import ExitCode

    if args.check:
        from brimline.cli.doctor import examine

        return examine(args, output="text")
    from brimline.service.signals import note_early_reloads

    note_early_reloads()
    from brimline.guard.daemon import Guard
    from brimline.service.clock import SystemClock
    from brimline.settings.config import load_config
    from brimline.settings.reload import Surroundings

    config = load_config(args.config, os.environ, args.broker_cwd)
    surroundings = Surroundings(log=sys.stderr, environment=os.environ, broker_cwd=args.broker_cwd)
    ended_by = Guard(config, SystemClock(), surroundings).run()
    return ExitCode.INTERRUPTED if ended_by == signal.SIGINT else ExitCode.DONE
