"""``brimline torture hostile``: frames that nobody should send, at a real broker behind a real gateway with a fence.

Each frame goes through the gateway and, for a twin topic, past it. A violation is a record behind the fence, an answer
or an end that the broker would not have given, a dead process, or a wrong answer for an innocent client beside. What is
seen once under load is tried again alone before it counts.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from brimline.torture.conformance.clients import Written, writing
from brimline.torture.hostile.attack import Attackers, AttackTally, alone, culprits
from brimline.torture.hostile.connections import attack_by_connections
from brimline.torture.hostile.frames import Frames
from brimline.torture.hostile.judge import complaint, offered
from brimline.torture.hostile.world import INNOCENT, World, world

_SHOWN = 5
"""Frames of each kind of violation."""


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    parser = subparsers.add_parser(
        "hostile",
        help="malformed frames to a real broker behind a fence",
        description=__doc__.partition("\n\n")[2],
        epilog="exit codes:\n  0    nothing passed the fence\n  1    something did, or the run could not be done",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kafka", default="4.3.1", metavar="VERSION", help="of the broker (default: %(default)s)")
    parser.add_argument("--frames", type=int, default=20_000, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the same seed makes the same frames")
    parser.add_argument("--only", metavar="API", help="requests of this API, by name or key")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="that send (default: %(default)s)")
    parser.add_argument("--frame", metavar="HEX", help="send only this frame and print the result")
    parser.add_argument("--no-connections", action="store_true", help="leave out the slow, silent, huge and many")
    parser.set_defaults(func=run)


def run(options: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # brokers and gateway end with it
    with tempfile.TemporaryDirectory() as folder, world(options.kafka, Path(folder) / "gateway.log") as here:
        if options.frame:
            return _replay(here, bytes.fromhex(options.frame))
        frames = Frames(asyncio.run(offered(here.past)), options.seed, options.only)
        if frames.is_empty:
            print(f"--only {options.only}: the broker offers no such API", file=sys.stderr)
            return 1
        began, before, tally = time.monotonic(), here.fenced_files(), AttackTally()
        with (
            closing(Attackers(here, frames, options.processes)) as attackers,
            writing(here.sandbox.bootstrap_servers, INNOCENT, 0, per_second=50, size=100) as beside,
        ):
            for done in attackers.attack(options.frames):
                tally.add(done)
                _tell(f"{tally.frames:>9,} frames, {len(tally.violations)} violations")
            seconds = time.monotonic() - began
            attacks = {} if options.no_connections else attack_by_connections(here)
        tally.violations += culprits(here, frames, tally)
        return _report(options, here, tally, beside, attacks, seconds, before)


# What came of it -----------------------------------------------------------------------------------------------------


def _replay(here: World, frame: bytes) -> int:
    before = here.fenced_files()
    through, past = asyncio.run(alone(here, frame))
    for way, fate in (("through the gateway", through), ("without it", past)):
        print(f"{way:<20} {fate.kind.value} {fate.answer.hex()}")
    grown = dict(here.fenced_files().items() - before.items())
    said = [complaint(frame, through, past), f"stored behind the fence: {grown}" if grown else None, *here.dead()]
    found = [each for each in said if each is not None]
    print("\n".join(found) or "as it should be")
    return 1 if found else 0


def _report(
    options: argparse.Namespace,
    here: World,
    tally: AttackTally,
    beside: Written,
    attacks: Mapping[str, str],
    seconds: float,
    before: dict[str, int],
) -> int:
    now, highest = here.resident_kib() if here.gateway.poll() is None else (0, 0)
    if here.fenced_files() != before and not tally.grown:
        tally.violations.append(("the files of a fenced partition are not as before", b""))
    tally.violations += [
        (wrong, b"") for wrong in (*here.dead(), *(f"the innocent client: {wrong}" for wrong in beside.wrongs))
    ]
    shares = ", ".join(f"{kind} {count / tally.frames:.1%}" for kind, count in tally.fates.most_common())
    _tell(
        f"{tally.frames:,} hostile frames of {len(tally.apis)} APIs to Kafka {options.kafka} with seed {options.seed}, "
        f"in {seconds:.0f} s ({tally.frames / seconds:,.0f}/s, {tally.connections:,} connections): {shares}"
    )
    for attack, said in attacks.items():
        _tell(f"  {attack:<24}{said}")
    _tell(f"  gateway memory         {now // 1024} MiB, at most {highest // 1024} MiB")
    _tell(f"  innocent client        {len(beside.at):,} answers, the slowest after {beside.slowest * 1000:.0f} ms")
    _tell(f"  seen once, not alone   {tally.seen_once}")
    _tell(f"  violations             {len(tally.violations)}")
    for said, frame in _some_of_each(tally.violations):
        _tell(f"    {said}" + (f"\n      --frame {frame.hex()}" if frame else ""))
    return 1 if tally.violations else 0


def _some_of_each(violations: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    shown = Counter[str]()
    for said, frame in violations:
        shown[said] += 1
        if shown[said] <= _SHOWN:
            yield said, frame


def _tell(text: str) -> None:
    print(text, flush=True)
