"""``brimline fleet synth``: a made-up fleet's snapshots in a landing place. Needs no cluster and no Spark."""

import argparse
import sys
import time
from typing import TYPE_CHECKING

from brimline.cli.fleet.command import span_seconds
from brimline.cli.shared.options import add_debug_and_version, whole_number

if TYPE_CHECKING:
    from brimline.cli.parser import Parser
    from brimline.fleet.synth.spec import FleetSpec
    from brimline.fleet.synth.synth import WrittenFleet

_FIRST_YEAR, _LAST_YEAR = 2011, 2200  # of Kafka, and of what a plan can count with
_TO_LINE_START_AND_CLEAR = "\r\x1b[K"

DESCRIPTION = """\
Write the snapshots of a synthetic fleet into a landing place, to try the fleet's tables without a cluster and to
measure them at any size.

A few topics carry most of the traffic, with daily and weekly rhythm, growth and jumps. Logs are limited by time, size,
the remote store, compaction, or nothing. Topics come and go, a disk fails, another is enlarged, a foreign file appears,
uploads stall, replicas move. All replicas of a partition have the same offsets. Each broker's newest snapshot has
segments, the earlier ones volumes and replicas.

The same options give the same files, to the byte; --until is one of them (default: the beginning of this minute).
"""
EPILOG = """\
examples:
  brimline fleet synth --landing /tmp/landing
      6 brokers in 2 clusters, 200 replicas each, two weeks of history
  brimline fleet run --landing /tmp/landing --warehouse /tmp/warehouse
      make the tables from it
  brimline fleet synth --landing /tmp/large --brokers 2000 --clusters 10 --replicas 1000 --days 0
      20 million segments, without history

exit codes:
  0    written
  1    wrong usage, or the landing place cannot be written to
  130  interrupted from the keyboard; no file is incomplete"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser(
        "synth", help="write snapshots of a synthetic fleet", description=DESCRIPTION, epilog=EPILOG
    )
    parser.add_argument("--landing", required=True, metavar="PLACE", help="a folder, or a URI that pyarrow opens")
    for option, default, least, meaning in (
        ("--brokers", 6, 1, "brokers, in all clusters together"),
        ("--clusters", 2, 1, "clusters"),
        ("--replicas", 200, 1, "replicas on each broker"),
        ("--segments", 10, 2, "segments of a replica, on average"),
        ("--log-dirs", 2, 1, "log dirs of each broker"),
        ("--days", 14, 0, "days of history"),
        ("--ceiling", 85, 1, "log.retention.disk.usage.percent of every broker; 100 is off"),
        ("--seed", 0, 0, "another seed is another fleet"),
    ):
        parser.add_argument(
            option,
            type=whole_number(f"a whole number of at least {least}", least),
            default=default,
            metavar="N",
            help=f"{meaning} (default: {default})",
        )
    parser.add_argument(
        "--every",
        type=span_seconds,
        default=3 * 3600.0,
        metavar="SPAN",
        help="from one snapshot to the next, at least 1m (default: 3h)",
    )
    parser.add_argument(
        "--until", type=_moment, metavar="TIME", help="when the newest snapshots are taken, as 2026-01-31T12:00Z"
    )
    add_debug_and_version(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.fleet.command import check_installed

    check_installed("synth")
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.fleet.synth.synth import synthesise
    from brimline.landing.place import PlaceFailed
    from brimline.model import BadInput, BrimlineError, human_bytes

    spec = _spec(args)
    if spec.brokers < spec.clusters:
        raise BadInput(f"--clusters: {spec.clusters} clusters need at least as many brokers, not {spec.brokers}")
    if spec.every_minutes < 1:
        raise BadInput("--every: snapshots are at least a minute apart")
    line = _SynthLine(spec.brokers)
    try:
        written = synthesise(spec, args.landing, line.draw)
    except PlaceFailed as error:
        raise BrimlineError(str(error)) from None
    finally:
        line.clear()
    print(
        f"clusters: {spec.clusters:,}, brokers: {written.brokers:,}, snapshots: {written.snapshots:,} with"
        f" {written.replicas:,} rows of logs and {written.segments:,} segments, {human_bytes(written.bytes)}"
    )
    return ExitCode.DONE


def _spec(args: argparse.Namespace) -> "FleetSpec":
    from brimline.fleet.synth.spec import FleetSpec

    return FleetSpec(
        until_ms=_this_minute_ms() if args.until is None else args.until,
        seed=args.seed,
        clusters=args.clusters,
        brokers=args.brokers,
        replicas=args.replicas,
        segments=args.segments,
        log_dirs=args.log_dirs,
        days=args.days,
        every_minutes=int(args.every // 60),
        ceiling_percent=args.ceiling,
    )


def _moment(text: str) -> int:
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: write it as 2026-01-31T12:00Z") from None
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise argparse.ArgumentTypeError(f"{text!r} is not in the years from {_FIRST_YEAR} to {_LAST_YEAR}")
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()) * 1000


def _this_minute_ms() -> int:
    """Not this hour: what is older than a quarter of one is stale in every table."""
    minute_ms = 60_000
    return int(time.time() * 1000) // minute_ms * minute_ms


class _SynthLine:
    """One line on a terminal's stderr, drawn over itself; nothing anywhere else."""

    def __init__(self, brokers: int) -> None:
        self._brokers = brokers
        self._begin = time.monotonic()
        self._is_shown = sys.stderr.isatty()

    def draw(self, written: "WrittenFleet") -> None:
        if self._is_shown:
            seconds = max(time.monotonic() - self._begin, 1e-3)
            rate = (written.segments + written.replicas) / seconds
            line = (
                f"{written.brokers:,} of {self._brokers:,} brokers, {written.segments:,} segments, {rate:,.0f} rows/s"
            )
            sys.stderr.write(f"{_TO_LINE_START_AND_CLEAR}{line}")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._is_shown:
            sys.stderr.write(_TO_LINE_START_AND_CLEAR)
            sys.stderr.flush()
