"""``brimline fleet plot``: a volume's history and its forecast as a picture. No Spark is started."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from brimline.cli.fleet.command import WAREHOUSE_HELP
from brimline.cli.shared.options import add_debug_and_version

if TYPE_CHECKING:
    from brimline.cli.fleet.forecast_svg import Picture
    from brimline.cli.parser import Parser

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
  1    no such volume, several of that name, or a table cannot be read"""


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
    from brimline.cli.fleet.forecast_svg import svg

    text = svg(_picture(args))
    if args.out is None:
        sys.stdout.write(text)
    else:
        args.out.write_text(text, encoding="utf-8")
    return ExitCode.DONE


def _picture(args: argparse.Namespace) -> "Picture":
    from datetime import datetime

    from brimline.cli.fleet.forecast_svg import Picture
    from brimline.fleet.tables.catalogue import Table
    from brimline.fleet.tables.show import TableLook, look_at

    row = _forecast(args)
    device = {name: str(row[name]) for name in ("cluster_id", "device")}
    look = TableLook(
        columns=("taken_at", "total_bytes", "usable_bytes"), equal={**device, "broker_id": int(str(row["broker_id"]))}
    )
    readings = {
        (at, total - usable)
        for at, total, usable in look_at(args.warehouse, Table.VOLUMES, look).rows
        if isinstance(at, datetime) and isinstance(total, int) and isinstance(usable, int)
    }
    return Picture(row=row, readings=sorted(readings))


def _forecast(args: argparse.Namespace) -> dict[str, object]:
    from brimline.fleet.session.errors import FleetError
    from brimline.fleet.tables.catalogue import Table
    from brimline.fleet.tables.show import TableLook, look_at

    equal = {"cluster_id": args.cluster, "broker_id": args.broker}
    look = TableLook(equal={name: value for name, value in equal.items() if value is not None})
    shown = look_at(args.warehouse, Table.FORECAST, look)
    rows = [dict(zip(shown.columns, row, strict=True)) for row in shown.rows]
    found = [row for row in rows if args.volume in (row["device"], *str(row["log_dirs_of_device"]).split(", "))]
    if not found:
        raise FleetError(f"no forecast of {args.volume}: look at brimline fleet show forecast")
    if len(found) > 1:
        where = ", ".join(f"broker {row['broker_id']} of {row['cluster_id']}" for row in found[:3])
        raise FleetError(f"{len(found)} volumes match {args.volume} ({where}): say which by --broker and --cluster")
    return found[0]
