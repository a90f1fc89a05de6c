"""``brimline fleet simulate``: what other limits would delete and refuse, and when. Changes nothing anywhere."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from brimline.cli.fleet.command import WAREHOUSE_HELP, show_command
from brimline.cli.shared.options import add_debug_and_version, add_top, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import ExitStack

    from pyarrow import RecordBatch, Schema

    from brimline.cli.parser import Parser
    from brimline.fleet.planner.tasks import BrokerRows, SnapshotFile
    from brimline.fleet.simulate.simulate import Simulation
    from brimline.fleet.simulate.what_if import RetentionRule, WhatIf

_MOST_DAYS = 3650
_PERCENT = whole_number("a whole number from 0 to 100", most=100)
_DAYS = whole_number(f"a number of days from 0 to {_MOST_DAYS}", most=_MOST_DAYS)
_PROCESSES = whole_number("a number of processes", least=1, most=9_999)
DESCRIPTION = """\
What other limits would do: what retention and a ceiling would delete, what Produce would be refused from which day on,
and how old the oldest record of every topic would be at the end. Estimated from the newest segments of every broker and
from how fast its logs grow. Nothing is changed, and no Spark is needed.

Limits that are not given stay as every broker has them. All figures are estimates. Ages are, too: a segment tells when
its newest record was made, and how long it took to fill follows from the log's growth. The step is a day, so ages at
the end are a span of a day. Each broker is simulated alone, as its guard works; what today's deletions free on all
replicas is listed beside. Replication, uploads and compaction are assumed to keep up.
"""
EPILOG = """\
examples:
  brimline fleet simulate --warehouse /data/warehouse --ceiling 80
  brimline fleet simulate --warehouse /data/warehouse --max-used 90 --days 30
  brimline fleet simulate --warehouse /data/warehouse --retention 'clicks-.*=200GB' --retention 'orders=30d'
      a pattern for whole names of topics, and retention.bytes, retention.ms, or both: 200GB, 30d, '200GB|30d'
  brimline fleet simulate --warehouse /data/warehouse --ceiling 80 --plan-out plans/
  brimline reclaim --config /etc/kafka/server.properties --apply --plan plans/Zs3Y...-1.json --ceiling 80
      a plan file for every broker with something to delete now; reclaim deletes what is still true of it

exit codes:
  0    shown
  1    wrong usage, there is nothing to simulate, or no --retention matches a topic
  3    shown, but the snapshots of some brokers could not be used: they are named
  141  the output was closed early"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser(
        "simulate", help="what other limits would delete and refuse, and when", description=DESCRIPTION, epilog=EPILOG
    )
    add = parser.add_argument
    add("--warehouse", required=True, metavar="PLACE", help=WAREHOUSE_HELP)
    add(
        "--ceiling",
        type=_PERCENT,
        metavar="PERCENT",
        help="log.retention.disk.usage.percent of every broker; 100 is off",
    )
    add("--max-used", type=_PERCENT, metavar="PERCENT", help="disk.max.used.percent of every broker; 100 is off")
    add(
        "--retention",
        type=_retention,
        action="append",
        default=[],
        metavar="PATTERN=LIMIT",
        help="see below; may be repeated, and the last one that matches a topic counts",
    )
    add("--days", type=_DAYS, default=7, metavar="N", help="how far to look ahead (default: 7)")
    add("--cluster", metavar="ID", help="only this cluster")
    add("--broker", type=int, metavar="ID", help="only this broker, of every cluster or of the one above")
    add(
        "--plan-out",
        type=Path,
        metavar="FOLDER",
        help="write what a ceiling would delete now as plans for brimline reclaim",
    )
    add(
        "--processes",
        type=_PROCESSES,
        metavar="N",
        help="parallel processes (default: one per core; one for a small fleet)",
    )
    add("--master", metavar="URL", help="run it on Spark: local[N], spark://host:port or sc://host:port")
    add_top(parser, "topics")
    add("--output", choices=("table", "json"), default="table", help="for people or for programs; json has all topics")
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.fleet.command import check_installed
    from brimline.cli.shared.exit_codes import ExitCode

    check_installed("simulate")
    from brimline.cli.shared.output import writing_to
    from brimline.fleet.simulate.what_if import WhatIf
    from brimline.fleet.simulate.words import unmatched
    from brimline.fleet.tables.manifest import newest_files
    from brimline.model import BadInput

    if args.plan_out is not None and args.ceiling is None:
        raise BadInput("--plan-out needs --ceiling")
    limits = {"ceiling_percent": args.ceiling, "max_used_percent": args.max_used, "retention": tuple(args.retention)}
    what_if = WhatIf(**limits, days=args.days)
    files = [file for file in newest_files(args.warehouse) if _is_meant(file, args)]
    if not files:
        raise BadInput(f"no broker with segments matches: see {show_command(args.warehouse, 'newest')}")
    found = _simulated(files, what_if, args)
    misses = unmatched(found)
    if misses and len(misses) == len(args.retention):
        raise BadInput(f"no topic matches {', '.join(misses)}: see {show_command(args.warehouse, 'topic_configs')}")
    with writing_to(sys.stdout, utf_8=args.output != "table") as out:
        if args.output == "json":
            from brimline.cli.fleet.simulation_json import write_simulation_json

            write_simulation_json(found, out)
        else:
            from brimline.cli.fleet.simulation_table import write_simulation_table

            write_simulation_table(found, out, top=args.top)
    if args.plan_out is not None:
        _write_plans(files, args.ceiling, args.plan_out)
    for pattern in misses:
        print(f"brimline: no topic matches {pattern}", file=sys.stderr)
    for unusable in found.unusable:
        print(f"brimline: broker {unusable.broker_id} of {unusable.cluster_id}: {unusable.why}", file=sys.stderr)
    if not found.brokers:
        return ExitCode.FAILED
    return ExitCode.PARTIAL if found.unusable else ExitCode.DONE


def _simulated(files: "Sequence[SnapshotFile]", what_if: "WhatIf", args: argparse.Namespace) -> "Simulation":
    """Every broker by itself; then, where ceilings trim, what that frees on all replicas."""
    from contextlib import ExitStack
    from dataclasses import replace

    from brimline.fleet.simulate.broker import SIMULATED_ROWS
    from brimline.fleet.simulate.replicas import FREED_ROWS, freed_bytes, freed_rows
    from brimline.fleet.simulate.simulate import rows_of, simulation

    with ExitStack() as stack:
        run = _runner(files, args, stack)
        found = simulation(what_if, run(rows_of(what_if), SIMULATED_ROWS))
        if not found.trims:
            return found
        return replace(found, freed_today_bytes=freed_bytes(run(freed_rows(what_if, found.trims), FREED_ROWS)))


def _runner(
    files: "Sequence[SnapshotFile]", args: argparse.Namespace, stack: "ExitStack"
) -> "Callable[[BrokerRows, Schema], Iterable[RecordBatch]]":
    """In this process or a few, or by Spark's tasks."""
    if args.master is None:
        from brimline.fleet.planner.tasks import processes_for, rows_locally

        return lambda rows, _: rows_locally(files, rows, args.processes or processes_for(files))
    from functools import partial

    from brimline.fleet.planner.spark_tasks import batches_on_spark
    from brimline.fleet.session.session import SessionSettings, spark_session

    spark = stack.enter_context(spark_session(SessionSettings(master=args.master)))
    return partial(batches_on_spark, spark, files)


def _write_plans(files: "Sequence[SnapshotFile]", ceiling: int, folder: Path) -> None:
    from brimline.fleet.planner.plan_files import write_plans

    written = write_plans(files, ceiling, folder)
    brokers = "broker has" if len(written) == 1 else "brokers have"
    print(f"brimline: {len(written)} {brokers} something to delete now: {folder}", file=sys.stderr)


def _is_meant(file: "SnapshotFile", args: argparse.Namespace) -> bool:
    is_cluster = args.cluster is None or file.cluster_id == args.cluster
    return is_cluster and (args.broker is None or file.broker_id == args.broker)


def _retention(text: str) -> "RetentionRule":
    from brimline.fleet.simulate.what_if import parse_retention

    try:
        return parse_retention(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
