"""``brimline fleet maintain``: the warehouse's upkeep. It deletes, so it first says what, and does it when told to."""

import argparse
import sys
from typing import TYPE_CHECKING

from brimline.cli.fleet.command import WAREHOUSE_HELP, add_session_options
from brimline.cli.shared.options import add_debug_and_version, whole_number

if TYPE_CHECKING:
    from brimline.cli.parser import Parser

_DAYS = whole_number("a number of days", most=36_500)
DESCRIPTION = """\
Show what upkeep of a warehouse would remove; with --apply, do it: thin out old history, remove landed files that were
ingested and are no longer needed, merge small data files, and remove data files of old table versions.

Each broker's newest snapshot with segments is kept at any age, and so are quarantined files. Without --apply nothing is
changed.
"""
EPILOG = """\
examples:
  brimline fleet maintain --warehouse /data/warehouse
  brimline fleet maintain --warehouse /data/warehouse --apply
      for example once a day; it refuses while a run is in progress

exit codes:
  0    shown, or done
  1    nothing done: wrong usage, no table there, no Spark, or a run in progress on the warehouse
  130  interrupted; the next one does the rest"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser(
        "maintain",
        help="compact tables, thin out history, remove what is no longer needed",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument("--warehouse", required=True, metavar="PLACE", help=WAREHOUSE_HELP)
    parser.add_argument("--apply", action="store_true", help="do it (default: only show what would be done)")
    parser.add_argument(
        "--raw-days", type=_DAYS, default=7, metavar="N", help="keep all snapshots this long (default: 7)"
    )
    parser.add_argument(
        "--hourly-days", type=_DAYS, default=180, metavar="N", help="keep one snapshot an hour this long (default: 180)"
    )
    parser.add_argument(
        "--landing-days", type=_DAYS, default=2, metavar="N", help="keep landed files this long (default: 2)"
    )
    add_session_options(parser)
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.fleet.command import check_installed

    check_installed("maintain")
    from contextlib import ExitStack
    from datetime import UTC, datetime

    from brimline.cli.fleet.progress import progress_on
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.fleet.session.session import SessionSettings, spark_session
    from brimline.fleet.tables.maintain import Keep, carry_out, plan_upkeep
    from brimline.fleet.tables.run_lock import only_run
    from brimline.fleet.tables.show import tables_in
    from brimline.fleet.tables.warehouse import Warehouse
    from brimline.model import Bytes, human_bytes, human_count

    tables_in(args.warehouse)  # a mistake in the name is told before Spark is started, or a folder made
    keep = Keep(raw_days=args.raw_days, hourly_days=args.hourly_days, landing_days=args.landing_days)
    warehouse, now = Warehouse(args.warehouse), datetime.now(UTC)
    with ExitStack() as stack:
        lock = stack.enter_context(only_run(args.warehouse))
        progress = stack.enter_context(progress_on(sys.stderr))
        settings = SessionSettings(
            master=args.master, driver_memory=args.driver_memory, more=dict(args.conf), held=lock
        )
        spark = stack.enter_context(spark_session(settings))
        upkeep = plan_upkeep(spark, warehouse, keep, now)
        verb = "removing" if args.apply else "would remove"
        print(
            f"{verb} the rows of {human_count(upkeep.snapshots)} snapshots from before {upkeep.closed_before} "
            f"(about {human_count(upkeep.rows)}), and {human_count(len(upkeep.landed_files))} landed files "
            f"({human_bytes(Bytes(upkeep.landed_bytes))})"
        )
        if args.apply:
            carry_out(spark, warehouse, upkeep, keep, progress, now)
        else:
            print("nothing was changed: --apply does it")
    return ExitCode.DONE
