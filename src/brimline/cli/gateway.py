"""``brimline gateway``: the process between clients and one broker."""

import argparse
from typing import TYPE_CHECKING

from brimline.cli.shared.options import add_config_options, add_debug_and_version

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

DESCRIPTION = """\
A proxy between the clients and one broker that refuses Produce for exactly the partitions in a full log dir.

Everything else passes through: reads, other partitions, other disks, every other request. DescribeLogDirs answers get
what an older broker lacks (KIP-827, KIP-1187). Refused clients get an error with the log dir, how full it is and the
limit; writing resumes automatically when there is room. The gateway reads the disks itself, so it works without a
guard; a guard adds metrics and `status`. With brimline.enforcement=observe (the default) it counts what it would refuse
and refuses nothing.
"""
EPILOG = """\
listeners (all from the broker's own file):
  A client listener goes through the gateway when its advertised port is not the port it is bound to: the gateway
  listens on the advertised port, the broker on a private one. Listeners for replication, controllers, remote log
  metadata and the guard's own client bypass the gateway.
    listeners=CLIENT://127.0.0.1:19092,BROKERS://10.0.0.7:9093
    advertised.listeners=CLIENT://kafka7.example.org:9092,BROKERS://10.0.0.7:9093
    inter.broker.listener.name=BROKERS
    listener.security.protocol.map=CLIENT:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT
    brimline.enforcement=gateway
  Here the gateway listens on port 9092. `brimline doctor` shows the layout and what is wrong with it.

signals:
  SIGTERM  accept no new connections, answer open requests, then end
  SIGHUP   read the file again; the log names what needs a restart

socket activation:
  Started with systemd's LISTEN_FDS, it takes the listening sockets from there instead of opening its own, so that a
  restart refuses no connection.

examples:
  brimline doctor --config /etc/kafka/server.properties
      which listeners go through the gateway, and what is wrong
  brimline gateway --config /etc/kafka/server.properties
      run
  brimline fence --help
      refuse by hand

exit codes:
  0    ended by SIGTERM
  1    the configuration cannot be used, or a port is taken
  130  interrupted from the keyboard"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("gateway", description=DESCRIPTION, epilog=EPILOG)
    add_config_options(parser)
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    import os
    import signal
    import sys

    from brimline.service.signals import note_early_reloads

    note_early_reloads()
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.gateway.process import run_gateway
    from brimline.settings.config import load_config

    config = load_config(args.config, os.environ, args.broker_cwd)
    ended_by = run_gateway(config, sys.stderr, os.environ, args.broker_cwd)
    return ExitCode.INTERRUPTED if ended_by == signal.SIGINT else ExitCode.DONE
