"""``brimline torture writers``: does a broker outlive every writer of its disk?

Each run starts a real broker with Kafka's own settings on a small volume of its own, with Brimline as it comes
(brimline.enforcement=gateway, nothing else) or without. One writer goes on until the disk is fenced and for 100 seconds
behind the fence, longer than Kafka's deletion delay; then room is made. Violations: the broker or Brimline ended, the
broker's log has an ENOSPC or a KafkaStorageException, a log dir is offline, the fence is not released by itself.
docs/torture.md has the table of writers.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from brimline.model import BadInput, BrimlineError, Bytes
from brimline.sandbox.jars.lock import locked_versions
from brimline.sandbox.spec import Filesystem
from brimline.torture.waiting import came_true
from brimline.torture.writers.loads import FILLER, INTERNAL, WRITERS, Hands, Writer, fill, make_room
from brimline.torture.writers.world import WritersWorld, writers_world

EPILOG = """\
examples:
  brimline torture writers --only compaction,commits
      two writers, once each
  brimline torture writers --unprotected --output without.jsonl
      the control: the same writers without Brimline
  brimline torture writers --only compaction --kafka-version 3.9.2 --filesystem ext4 --runs 3

exit codes:
  0    every broker outlived its writer
  1    one did not, or a run could not be carried out"""
_ROOM_SHARE = 0.45
"""Of the volume: so much free is room enough for any reserve."""
_ROOM_SECONDS = 150.0
"""Until deleted topics are gone: twice Kafka's deletion delay, and a little."""
_RELEASE_SECONDS = 60.0
_FILESYSTEMS: tuple[Filesystem, ...] = ("tmpfs", "ext4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of a run. Times in seconds; those that did not come are ``None``."""

    writer: str
    kafka_version: str
    filesystem: str
    protected: bool
    run: int
    seconds_alive: float
    """Since the writer began, until the broker ended or the run did."""
    broker_alive: bool
    lowest_free_bytes: int
    lowest_free_inodes: int
    fenced_after: float | None
    """Since the writer began; below 0: by what was there before."""
    released_after: float | None
    """Since there was room."""
    free_at_the_end: int
    operations: int
    """Acknowledged, of all that wrote."""
    operations_behind: int
    """Of them while the fence stood."""
    violations: tuple[str, ...]

    @property
    def verdict(self) -> str:
        if self.violations:
            return "VIOLATED"
        return "lived" if self.fenced_after is not None or not self.protected else "lived, never fenced"


def violations(
    *,
    ended: bool,
    trouble: Sequence[str],
    offline: Sequence[str],
    brimline_ended: Sequence[str],
    was_fenced: bool,
    was_released: bool,
) -> tuple[str, ...]:
    """What may not be, whoever writes."""
    found = ["the broker ended"] if ended else []
    found += [f"in the broker's log: {line}" for line in trouble[:3]]
    found += [f"offline: {log_dir}" for log_dir in offline]
    found += brimline_ended
    if was_fenced and not was_released and not ended:
        found.append("not released by itself after room came back")
    return tuple(found)


def carry_out(
    writer: Writer,
    version: str,
    filesystem: Filesystem,
    *,
    protected: bool,
    run: int,
    minutes: float,
    tell: Callable[[str], None],
) -> Row:
    """One run. Raises ``BrimlineError`` if it could not be carried out."""
    with (
        writers_world(
            version,
            filesystem,
            Bytes(writer.volume),
            volumes=writer.volumes,
            brokers=writer.brokers,
            protected=protected,
            report=lambda _: None,
        ) as world,
        Hands(world) as hands,
    ):
        if writer.prefill is not None:
            world.create_topic(FILLER, 4)
            fill(world, hands, FILLER, writer.prefill)
        seen, began = world.looked, time.monotonic()
        writer.start(world, hands)
        end = began + minutes * 60
        came_true(lambda: seen.fenced_at is not None or not world.lives, max(0.0, end - time.monotonic()))
        fenced_at, behind_from = seen.fenced_at, hands.operations()
        if fenced_at is not None:
            tell(f"fenced {fenced_at - began:.0f} s after the writer began, {seen.bytes_free >> 20} MiB free")
            came_true(lambda: not world.lives, max(0.0, max(fenced_at, began) + writer.seconds - time.monotonic()))
        operations = hands.operations()
        complaints = hands.died()
        hands.stop()
        released_after = _released(world, writer, tell) if world.lives else None
        offline = world.offline()
        return Row(
            writer=writer.name,
            kafka_version=version,
            filesystem=filesystem,
            protected=protected,
            run=run,
            seconds_alive=round((seen.broker_ended_at or time.monotonic()) - began, 1),
            broker_alive=world.lives,
            lowest_free_bytes=seen.lowest_bytes,
            lowest_free_inodes=seen.lowest_inodes,
            fenced_after=None if fenced_at is None else round(fenced_at - began, 1),
            released_after=released_after,
            free_at_the_end=seen.bytes_free,
            operations=operations,
            operations_behind=operations - behind_from if fenced_at is not None else 0,
            violations=(
                *violations(
                    ended=not world.lives,
                    trouble=seen.trouble,
                    offline=offline,
                    brimline_ended=world.ended(),
                    was_fenced=fenced_at is not None,
                    was_released=released_after is not None,
                ),
                *complaints,
            ),
        )


def _released(world: WritersWorld, writer: Writer, tell: Callable[[str], None]) -> float | None:
    """Make room, wait until it is there, and see whether the probe is taken again; seconds since there was room."""
    with world.admin() as client:
        topics = tuple(name for name in client.list_topics() if name not in INTERNAL)
    make_room(world, writer, topics)
    came_true(lambda: world.looked.bytes_free > _ROOM_SHARE * writer.volume or not world.lives, _ROOM_SECONDS)
    room_at = time.monotonic()
    tell(f"room was made: {world.looked.bytes_free >> 20} MiB free")
    taken = came_true(lambda: world.probed.at and world.probed.at[-1] > room_at, _RELEASE_SECONDS)
    return round(next(at for at in world.probed.at if at > room_at) - room_at, 1) if taken else None


# The command ----------------------------------------------------------------------------------------------------------


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    parser = subparsers.add_parser(
        "writers",
        help="every writer of a broker's disk, and whether the broker outlives it",
        description=__doc__.partition("\n\n")[2],
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="WRITER[,WRITER]", help="only these; `list`: name them")
    parser.add_argument("--kafka-version", default="4.3.1", metavar="VERSION", help="of Kafka (default: %(default)s)")
    parser.add_argument(
        "--filesystem", choices=_FILESYSTEMS, default="tmpfs", help="of the volumes; ext4 needs root (default: tmpfs)"
    )
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="of each writer (default: %(default)s)")
    parser.add_argument("--unprotected", action="store_true", help="the control: without Brimline")
    parser.add_argument(
        "--minutes", type=float, default=5.0, metavar="M", help="wait so long for the fence (default: 5)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="append a JSON line for each run to this file")
    parser.set_defaults(func=run)


def run(options: argparse.Namespace) -> int:
    if options.only == "list":
        for writer in WRITERS:
            _tell(f"{writer.name:18}{writer.writes}")
        return 0
    if options.kafka_version not in locked_versions():
        raise BadInput(f"no Kafka {options.kafka_version} here: there are {', '.join(locked_versions())}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # brokers and writers end with it
    rows = list(_rows(options))
    return 0 if rows and all(row is not None and not row.violations for row in rows) else 1


def _rows(options: argparse.Namespace) -> Iterator[Row | None]:
    for writer in chosen(options.only, options.kafka_version, options.filesystem):
        for number in range(1, options.runs + 1):
            _tell(f"{writer.name}, run {number}: {writer.writes}")
            try:
                row = carry_out(
                    writer,
                    options.kafka_version,
                    options.filesystem,
                    protected=not options.unprotected,
                    run=number,
                    minutes=options.minutes,
                    tell=lambda text: _tell(f"    {text}"),
                )
            except BrimlineError as error:
                _tell(f"    could not be carried out: {error}")
                yield None
                continue
            _tell(report(row))
            if options.output:
                with options.output.open("a") as file:
                    file.write(json.dumps({**asdict(row), "verdict": row.verdict}) + "\n")
            yield row


def chosen(only: str, version: str, filesystem: Filesystem) -> list[Writer]:
    """Those that were asked for and are to be had; raises ``BadInput`` for a name that nobody knows."""
    names = [name.strip() for name in only.split(",") if name.strip()]
    unknown = set(names) - {writer.name for writer in WRITERS}
    if unknown:
        raise BadInput(f"no {', '.join(sorted(unknown))}: there are {', '.join(writer.name for writer in WRITERS)}")
    release = tuple(int(part) for part in version.split("."))
    return [
        writer
        for writer in WRITERS
        if (not names or writer.name in names) and filesystem in writer.filesystems and release >= writer.since
    ]


def report(row: Row) -> str:
    fenced = "never fenced" if row.fenced_after is None else f"fenced after {row.fenced_after:.0f} s"
    released = "" if row.released_after is None else f", writable {row.released_after:.1f} s after there was room"
    lines = [
        f"    {row.verdict}: {row.writer}, Kafka {row.kafka_version}, {row.filesystem}, "
        f"{'with' if row.protected else 'without'} Brimline: alive for {row.seconds_alive:.0f} s, {fenced}, "
        f"at least {row.lowest_free_bytes >> 20} MiB and {row.lowest_free_inodes:,} inodes free{released}",
        *(f"      {each}" for each in row.violations),
    ]
    return "\n".join(lines)


def _tell(text: str) -> None:
    print(text, file=sys.stdout, flush=True)
