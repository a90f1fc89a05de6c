"""The main job, on a real Kafka: what `make demo` shows. Every command printed behind a `$` is run as printed.

Exit code 0: every line of the scoreboard was observed. 1: something was not. 130: interrupted. Nothing stays behind:
all files and processes are in the sandboxes, which end with this process.
"""

import argparse
import signal
import sys
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from kafka.errors import KafkaError
from rich.console import Console

from brimline.model import Bytes
from brimline.sandbox import SandboxError, SandboxSpec, VolumeSpec, why_no_real_volumes
from scripts import demo_acts
from scripts.demo_cluster import Cluster
from scripts.demo_stage import Scoreboard, Stage, Unsettled
from scripts.demo_svg import Film

_MIB = 1 << 20
_QUICK = {"log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "500"}
# Kafka ignores what it does not know: Brimline's keys stand in the broker's own file.
_BRIMLINE = {
    "disk.usage.check.interval.ms": "500",
    # It is never more than half of a disk, and would be half of disks this small
    "brimline.disk.reserve": "off",
    "brimline.enforcement": "gateway",
    "brimline.metrics.port": "0",
    "brimline.reclaim.interval.ms": "1000",
    "brimline.reclaim.protected.topics": "payments",
    "brimline.landing.interval.ms": "1500",
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave all running, with the page's address, until ctrl-C")
    parser.add_argument("--record", type=Path, metavar="FILE", help="draw the run as an animated SVG")
    args = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    film = Film() if args.record else None
    board = Scoreboard(demo_acts.TITLES)
    stage = Stage(Console(highlight=False), board, on_frame=film.take if film else None)
    try:
        with stage:
            play(stage, keep=args.keep)
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130 if board.missing else 0
    except (SandboxError, Unsettled, KafkaError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
    if board.missing:
        print(f"demo: not observed: {', '.join(board.missing)}", file=sys.stderr)
        return 1
    if film:
        args.record.write_text(film.svg(), encoding="utf-8")
    return 0


def play(stage: Stage, *, keep: bool) -> None:
    refused = why_no_real_volumes()
    disk = VolumeSpec(size=Bytes((1024 if refused else 96) * _MIB))
    volumes = (disk,) if refused else (disk, disk)
    spec = SandboxSpec(volumes=volumes, tiered=True, short_paths=True, properties=_QUICK)
    with_brimline = replace(spec, fronted=True, properties={**_QUICK, **_BRIMLINE})
    ours = Cluster("Kafka with Brimline", with_brimline)
    stock = None if refused else Cluster("stock Kafka", spec)
    demo = demo_acts.Demo(stage, ours, stock)
    if refused:
        stage.say(f"No private mounts here ({refused}): a plain folder, with limits just above the disk's present use.")
        stage.say("So there is no stock Kafka that dies, and no second disk that goes on beside a full one.")
        stage.board.not_here("stock", "needs private mounts; no disk of this machine is filled for a demo")
    with ExitStack() as stack:
        for cluster in demo.clusters:
            stack.callback(cluster.close)
        for act in demo_acts.ACTS:
            act(demo)
        if keep and not stage.board.missing:
            _keep(demo)


def _keep(demo: demo_acts.Demo) -> None:
    """Until ctrl-C: a producer, and pages of the broker and of the tables."""
    stage, ours = demo.stage, demo.ours
    ours.produce("orders", 100)
    fleet = ours.address_of(stage, "web", "--warehouse", str(ours.base / "warehouse"), "--port", "0")
    stage.console.print(stage.board.table(is_over=True))
    stage.say(f"All of it keeps running. Pages for a browser: {ours.guard}/ and {fleet}/ (ctrl-C ends it)", "bold")
    stage.say(f"In another terminal: .venv/bin/brimline status --url {ours.guard}")
    threading.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
