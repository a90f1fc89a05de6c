"""``brimline web``: pages for a browser, of the guards of a cluster and of the warehouse of a fleet."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from brimline.cli.shared.options import add_debug_and_version, whole_number

if TYPE_CHECKING:
    from brimline.cli.parser import Parser
    from brimline.web.pages import Fleet

DEFAULT_PORT = 9828
DESCRIPTION = """\
Serve pages for a browser: every volume of a cluster or a fleet with its use, its limits and the time until it is full.
Read-only, and without Spark.

--guard asks running guards, and shows their timeline. --warehouse reads the tables of 'brimline fleet run':
its disks have their topics, their use over time with the forecast, a slider for another ceiling, and a what-if form.
Both can be given. A single guard serves its own page without this command.

It listens on loopback. Another --host needs --token-file: browsers ask for the token as a password, with any user name.
There is no TLS: put a reverse proxy in front of it. A reverse proxy without a token must send 'Host: localhost'.
"""
EPILOG = """\
examples:
  brimline web --guard http://broker1:9827 --guard http://broker2:9827 --guard http://broker3:9827
  brimline web --warehouse /data/warehouse
  brimline web --guard http://broker1:9827 --host 0.0.0.0 --token-file /etc/brimline/web.token
  curl -H "Authorization: Bearer $(cat /etc/brimline/web.token)" http://127.0.0.1:9828/

exit codes:
  0    ended by a signal
  1    wrong usage, or the port cannot be served"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("web", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument(
        "--guard",
        action="append",
        default=[],
        metavar="URL",
        help="address of a guard (brimline.metrics.host and port); may be repeated",
    )
    parser.add_argument("--warehouse", metavar="PLACE", help="the fleet's tables: a folder or a URI")
    parser.add_argument("--cluster", default="", metavar="NAME", help="name of the cluster of these guards")
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--port",
        type=whole_number("a port", 0, 65535),
        default=DEFAULT_PORT,
        metavar="PORT",
        help="0: any free port (default: %(default)s)",
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file whose first line is the token")
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.guard.http import HttpServer
    from brimline.model import BadInput
    from brimline.web.access import access_for
    from brimline.web.pages import WebPages

    if not args.guard and args.warehouse is None:
        raise BadInput("give --guard or --warehouse")
    for url in args.guard:
        if not url.startswith(("http://", "https://")):
            raise BadInput(f"{url!r} is not the address of a guard: write http://host:port")
    access = access_for(args.host, _token(args.token_file))
    fleet = _fleet(args.warehouse)
    pages = WebPages(access=access, guards=args.guard, cluster=args.cluster, fleet=fleet)
    server = HttpServer(args.host, args.port, pages.respond, asked_for=f"--host {args.host} --port {args.port}")
    port = server.start()
    host = f"[{args.host}]" if ":" in args.host else args.host
    print(f"http://{host}:{port}/  (Ctrl-C ends it)", flush=True)
    _wait()
    server.stop()
    if fleet is not None:
        fleet.close()
    return 0


def _fleet(warehouse: str | None) -> "Fleet | None":
    if warehouse is None:
        return None
    from importlib.util import find_spec

    from brimline.model import BadInput

    missing = [package for package in ("deltalake", "pyarrow") if find_spec(package) is None]
    if missing:
        raise BadInput(f"--warehouse needs {', '.join(missing)}, not installed here: pip install 'brimline[web]'")
    from brimline.fleet.tables.show import tables_in
    from brimline.web.warehouse import FleetSource

    tables_in(warehouse)  # one that is not there is said now, and not on every page
    return FleetSource(warehouse)


def _token(path: Path | None) -> str | None:
    from brimline.model import BadInput

    if path is None:
        return None
    try:
        return path.read_text().split("\n", 1)[0].strip()
    except (OSError, UnicodeError) as error:
        raise BadInput(f"the token file {path} cannot be read: {getattr(error, 'strerror', error)}") from error


def _wait() -> None:
    import signal
    import threading

    from brimline.service import signals

    ended = threading.Event()
    signals.listen(lambda number, _frame: None if number == signal.SIGHUP else ended.set())
    ended.wait()
    print("ended", file=sys.stderr)
