"""``brimline guard``: the daemon beside a broker, and ``--check``, which only looks."""

import argparse
from typing import TYPE_CHECKING

from brimline.cli.shared.options import add_config_options, add_debug_and_version

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

DESCRIPTION = """\
Watch the disks of one broker, and publish how full they are and how close each partition is to its retention limit.

Runs beside the broker and starts from the broker's own properties file, where the keys of KIP-1201 and KIP-61 and
Brimline's own stand; Kafka ignores what it does not know. With brimline.enforcement=observe (the default) it says what
it would do; with gateway it tells the gateway beside it what is full, which then refuses Produce for that.
"""
EPILOG = """\
signals:
  SIGHUP   read the file again; what cannot change without a restart is named in the log
  SIGTERM  end

examples:
  brimline guard --config /etc/kafka/server.properties --check
      explain the effective configuration and everything that is wrong, then end
  brimline guard --config /etc/kafka/server.properties
      run; http://127.0.0.1:9827/metrics, /v1/state, /healthz, /readyz

exit codes:
  0    ended by SIGTERM; with --check: nothing is wrong
  1    the configuration cannot be used, or the port is taken
  3    with --check: the guard could run, but not do all of its work
  130  interrupted from the keyboard"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("guard", description=DESCRIPTION, epilog=EPILOG)
    add_config_options(parser)
    parser.add_argument("--check", action="store_true", help="explain the configuration and what is wrong, then end")
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
