"""``brimline fleet run``: what has landed is taken in, and every table is made anew; once, or again and again."""

import argparse
import sys
from typing import TYPE_CHECKING

from brimline.cli.fleet.command import WAREHOUSE_HELP, add_session_options, show_command, span_seconds
from brimline.cli.shared.options import add_debug_and_version

if TYPE_CHECKING:
    from brimline.cli.parser import Parser
    from brimline.fleet.jobs.run import RoundReport

DESCRIPTION = """\
Ingest the landed snapshots and recreate every table, in one Spark session.

It resumes where it stopped: every snapshot is ingested exactly once, even if a run is interrupted or killed, and tables
are replaced atomically. Files that cannot be used are listed in the table quarantine, with the reason. The first run
downloads Delta's jars into this user's cache.
"""
EPILOG = """\
where it runs:
  --master local[*]           on this machine (the default)
  --master spark://host:7077  on a standalone cluster; its workers need this Python with brimline[fleet], or are sent
                              it (docs/fleet.md), and must reach the landing place and the warehouse by the same names
  --master sc://host:15002    through Spark Connect; the server needs Delta, and brimline[fleet] for its Python

examples:
  brimline fleet run --landing /data/landing --warehouse /data/warehouse
  brimline fleet run --landing /data/landing --warehouse /data/warehouse --every 5m

exit codes:
  0    done
  1    nothing done: wrong usage or input, no Spark, or another run in progress on the warehouse
  3    partial: a step failed and is named; the other tables were updated
  130  interrupted; the next run resumes there"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser(
        "run", help="ingest landed snapshots and recreate every table", description=DESCRIPTION, epilog=EPILOG
    )
    parser.add_argument("--landing", required=True, metavar="PLACE", help="where the snapshots land (required)")
    parser.add_argument("--warehouse", required=True, metavar="PLACE", help=WAREHOUSE_HELP)
    parser.add_argument(
        "--every", type=span_seconds, metavar="SPAN", help="repeat at this interval, such as 5m (default: once)"
    )
    add_session_options(parser)
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.fleet.command import check_installed

    check_installed("run")
    import signal
    import time
    from contextlib import ExitStack

    from brimline.cli.fleet.progress import progress_on
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.fleet.ingest.look import has_landed
    from brimline.fleet.jobs.run import rounds, run_round
    from brimline.fleet.session.session import SessionSettings, spark_session
    from brimline.fleet.tables.run_lock import only_run
    from brimline.fleet.tables.warehouse import Warehouse

    has_landed(args.landing)  # a mistake in the name is told before Spark is started, or a table made
    # As ctrl-C: what is under way is given up, and Spark ends with us
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        lock = stack.enter_context(only_run(args.warehouse))
        progress = stack.enter_context(progress_on(sys.stderr))
        settings = SessionSettings(
            master=args.master,
            driver_memory=args.driver_memory,
            more=dict(args.conf),
            is_long_lived=args.every is not None,
            held=lock,
        )
        with progress.step("Spark") as step:
            spark = stack.enter_context(spark_session(settings))
            step.note = "ready"
        for number in rounds(args.every, time.sleep, time.monotonic):
            began = time.monotonic()
            report = run_round(spark, args.landing, Warehouse(args.warehouse), progress, tasks=settings.cores)
            code = ExitCode.PARTIAL if report.failures else ExitCode.DONE
            if args.every is not None:
                progress.ended(f"round {number + 1}", began, "done" if code is ExitCode.DONE else "partial")
    print(_verdict(report, args.warehouse), file=sys.stderr)
    return code


def _verdict(report: "RoundReport", warehouse: str) -> str:
    from brimline.fleet.jobs.jobs import JOBS
    from brimline.model.secrets import without_login

    failed = ", ".join(report.failures)
    told = f"partial: {failed} failed, as said above" if failed else f"done: {len(JOBS)} tables are up to date"
    return without_login(f"{told}; look: {show_command(warehouse, 'volume_pressure')}")
