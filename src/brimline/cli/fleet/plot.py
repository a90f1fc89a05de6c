"""``brimline fleet plot``: a volume's history and its forecast as a picture. No Spark is started."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from brimline.cli.fleet.command import WAREHOUSE_HELP, show_command
from brimline.cli.shared.options import add_debug_and_version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from brimline.cli.parser import Parser

_NAMED = 3
DESCRIPTION = """\
Draw how full a volume was, and when it is forecast to be full, as SVG: any browser shows it. No Spark is started, and
nothing is changed.
"""
EPILOG = """\
examples:
  brimline fleet show --warehouse /data/warehouse forecast --sort days_to_full
      which volumes there are
  brimline fleet plot forecast /data/kafka-1 --warehouse /data/warehouse --broker 3 > volume.svg
  brimline fleet plot forecast /data/kafka-1 --warehouse /data/warehouse --broker 3 --out volume.svg

exit codes:
  0    drawn
  1    no such volume, no reading of it, several of that name, or a table cannot be read"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser(
        "plot", help="draw a volume's history and forecast", description=DESCRIPTION, epilog=EPILOG
    )
    parser.add_argument("table", choices=("forecast",), metavar="forecast", help="what to draw")
    parser.add_argument("volume", metavar="VOLUME", help="a log dir, or a device as the table forecast names it")
    parser.add_argument("--warehouse", required=True, metavar="PLACE", help=WAREHOUSE_HELP)
    parser.add_argument("--cluster", metavar="ID", help="of this cluster")
    parser.add_argument("--broker", type=int, metavar="ID", help="of this broker")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it there (default: to the standard output)")
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.fleet.command import check_installed
    from brimline.cli.shared.exit_codes import ExitCode

    check_installed("plot")
    text = _drawn(args)
    if args.out is None:
        sys.stdout.write(text)
    else:
        args.out.write_text(text, encoding="utf-8")
    return ExitCode.DONE


def _drawn(args: argparse.Namespace) -> str:
    from brimline.fleet.session.errors import FleetError
    from brimline.fleet.tables.catalogue import Table
    from brimline.fleet.tables.show import TableLook, look_at
    from brimline.web.warehouse import readings_of, use_chart

    row = _forecast(args)
    equal = {"cluster_id": row["cluster_id"], "broker_id": row["broker_id"], "device": row["device"]}
    look = TableLook(columns=("taken_at", "total_bytes", "usable_bytes"), equal=equal)
    readings = readings_of(
        (at, total, usable) for at, total, usable in look_at(args.warehouse, Table.VOLUMES, look).rows
    )
    limit, total = row["limit_bytes"], row["total_bytes"]
    chart = use_chart(readings, row, fence=100 * limit / total if limit is not None and total else None)
    if chart is None:
        raise FleetError(f"no reading of {args.volume} is kept: there is nothing to draw")
    title = f"broker {row['broker_id']} of {row['cluster_id']}: {row['log_dirs_of_device']}"
    return f"{chart.as_file(title, _verdict(row))}\n"


def _verdict(row: "Mapping[str, Any]") -> str:
    from brimline.decide.forecast import outlook_words

    if row["days_to_full"] is None:
        return outlook_words(row["outlook"])
    until = "more than a year" if row["latest_days"] is None else f"{row['latest_days']:.1f}"
    return f"{row['outlook']}: full in {row['days_to_full']:.1f} days ({row['soonest_days'] or 0.0:.1f} to {until})"


def _forecast(args: argparse.Namespace) -> "Mapping[str, Any]":
    from brimline.fleet.session.errors import FleetError
    from brimline.fleet.tables.catalogue import Table
    from brimline.fleet.tables.show import TableLook, look_at

    equal = {"cluster_id": args.cluster, "broker_id": args.broker}
    look = TableLook(equal={name: value for name, value in equal.items() if value is not None})
    shown = look_at(args.warehouse, Table.FORECAST, look)
    rows = [dict(zip(shown.columns, row, strict=True)) for row in shown.rows]
    found = [row for row in rows if args.volume in (row["device"], *str(row["log_dirs_of_device"]).split(", "))]
    if not found:
        raise FleetError(f"no forecast of {args.volume}: see {show_command(args.warehouse, 'forecast')}")
    if len(found) > 1:
        where = ", ".join(f"broker {row['broker_id']} of {row['cluster_id']}" for row in found[:_NAMED])
        where += f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise FleetError(f"{len(found)} volumes match {args.volume} ({where}): choose with --broker and --cluster")
    return found[0]
