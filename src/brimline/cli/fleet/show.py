"""``brimline fleet show``: a table as people, or programs, read it. No Spark is started."""

import argparse
import sys
from typing import TYPE_CHECKING

from brimline.cli.fleet.command import WAREHOUSE_HELP
from brimline.cli.shared.options import add_debug_and_version, names, whole_number

if TYPE_CHECKING:
    from brimline.cli.parser import Parser
    from brimline.fleet.tables.catalogue import Table
    from brimline.fleet.tables.show import Shown, TableLook

_AS_MANY = 50
_NOTHING = {"quarantine": "nothing was quarantined", "findings": "nothing odd was found in the input"}
"""What it says of tables in which no row is good news."""
DESCRIPTION = """\
Show a table of the warehouse. No Spark is started, and nothing is changed.

Without a table: which tables there are, what each answers, and how many rows it has.
"""
EPILOG = """\
outputs:
  table  for people, as many columns as fit (the default on a terminal)
  json   an array of objects, a row per line; unknown is null
  csv    with a header; unknown is empty (the default in a pipe or a file)

examples:
  brimline fleet show --warehouse /data/warehouse
  brimline fleet show --warehouse /data/warehouse volume_pressure --sort used_percent:desc --limit 10
  brimline fleet show --warehouse /data/warehouse reclaim_plan --topic orders --output json
  brimline fleet show --warehouse /data/warehouse quarantine --columns path,reason,detail

exit codes:
  0    shown; also when no row matches, which it says
  1    no such table or column, or it cannot be read
  141  the output was closed early"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser(
        "show", help="show a table, without starting Spark", description=DESCRIPTION, epilog=EPILOG
    )
    parser.add_argument("table", nargs="?", metavar="TABLE", help="which one (default: a list of all)")
    parser.add_argument("--warehouse", required=True, metavar="PLACE", help=WAREHOUSE_HELP)
    parser.add_argument("--cluster", metavar="ID", help="only rows of this cluster")
    parser.add_argument("--broker", type=int, metavar="ID", help="only rows of this broker")
    parser.add_argument("--topic", metavar="NAME", help="only rows of this topic")
    parser.add_argument("--columns", type=names, default=(), metavar="NAMES", help="these columns, comma-separated")
    parser.add_argument(
        "--sort",
        type=_order,
        default=(),
        metavar="NAMES",
        help="by these columns, comma-separated; name:desc for descending order",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--limit",
        type=whole_number("a number of rows"),
        metavar="N",
        help=f"number of rows to show (default: {_AS_MANY} in a table, else all)",
    )
    shown.add_argument("--all", action="store_true", help="all rows, in a table too")
    parser.add_argument("--output", choices=("table", "json", "csv"), help="see below")
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.fleet.command import check_installed
    from brimline.cli.shared.exit_codes import ExitCode

    check_installed("show")
    from brimline.cli.shared.output import writing_to
    from brimline.fleet.session.errors import FleetError
    from brimline.fleet.tables.catalogue import Table
    from brimline.fleet.tables.show import TableLook, tables_in

    output = args.output or ("table" if sys.stdout.isatty() else "csv")
    if args.table is None:
        tables = tables_in(args.warehouse)
        with writing_to(sys.stdout, utf_8=output != "table") as out:
            from brimline.cli.fleet.tables import write_list

            write_list(tables, out, output)
        return ExitCode.DONE
    if args.table not in [table.value for table in Table]:
        raise FleetError(f"no table {args.table}: choose one of {', '.join(table.value for table in Table)}")
    equal = {"cluster_id": args.cluster, "broker_id": args.broker, "topic": args.topic}
    limit = _AS_MANY if output == "table" and args.limit is None and not args.all else args.limit
    look = TableLook(
        columns=args.columns,
        equal={name: value for name, value in equal.items() if value is not None},
        sort=args.sort,
        limit=limit,
    )
    shown = _looked(args, Table(args.table), look)
    if not shown.total:
        print(f"brimline: {_nothing(args)}", file=sys.stderr)
        if output == "table":
            return ExitCode.DONE
    with writing_to(sys.stdout, utf_8=output != "table") as out:
        from brimline.cli.fleet.tables import at_a_glance, write_shown

        shown = at_a_glance(shown, args.table) if output == "table" and not args.columns else shown
        write_shown(shown, out, output, [name for name, _ in args.sort])
    return ExitCode.DONE


def _looked(args: argparse.Namespace, table: "Table", look: "TableLook") -> "Shown":
    from brimline.fleet.tables.show import NoTable, Shown, look_at, tables_in

    try:
        return look_at(args.warehouse, table, look)
    except NoTable:
        if table.value not in _NOTHING:
            raise
        tables_in(args.warehouse)  # a place without any table is a mistake, and no good news
        return Shown(columns=tuple(args.columns), rows=[], total=0)


def _nothing(args: argparse.Namespace) -> str:
    asked = {"cluster": args.cluster, "broker": args.broker, "topic": args.topic}
    chosen = ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None)
    if chosen:
        return f"no rows of {chosen} in {args.table}"
    return _NOTHING.get(args.table, f"no rows in {args.table}")


def _order(text: str) -> tuple[tuple[str, bool], ...]:
    return tuple(map(_in_order, names(text)))


def _in_order(text: str) -> tuple[str, bool]:
    name, _, order = text.partition(":")
    if order not in ("", "asc", "desc"):
        raise argparse.ArgumentTypeError(f"{text!r}: the order is asc or desc, as in {name}:desc")
    return name, order == "desc"
