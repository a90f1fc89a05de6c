"""A round from a cold start, then rounds in the same session with nothing and with little new, for three brokers.

``python -m bench.fleet_warm`` prints wall time and the CPU time of this process and all that it started.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.fleet import SMALL
from bench.fleet_landing import LANDING, UNTIL_MS
from bench.fleet_tree import cpu_seconds
from bench.ratio import AgainstGoal

ROUNDS = 5
COLD_SECONDS, WARM_SECONDS = 25, 3
FIVE_MINUTES_MS = 300_000


def figures(rounds: int = ROUNDS) -> Iterator[AgainstGoal]:
    from brimline.fleet.jobs.run import run_round
    from brimline.fleet.session.session import SessionSettings, spark_session
    from brimline.fleet.synth.synth import synthesise
    from brimline.fleet.tables.warehouse import Warehouse

    with TemporaryDirectory(prefix="brimline-bench-") as folder:
        landing, warehouse = Path(folder) / LANDING, Warehouse(str(Path(folder) / "warehouse"))
        synthesise(SMALL, str(landing), lambda _: None)
        begin = time.monotonic(), cpu_seconds(os.getpid())
        settings = SessionSettings(is_long_lived=True)
        with spark_session(settings) as spark:

            def a_round(number: int) -> None:
                now = datetime.fromtimestamp((UNTIL_MS + number * FIVE_MINUTES_MS) / 1000, UTC) + timedelta(minutes=1)
                report = run_round(spark, str(landing), warehouse, tasks=settings.cores, now=now)
                if report.failures:
                    raise RuntimeError(f"steps failed: {report.failures}")

            a_round(0)
            cold = time.monotonic() - begin[0], cpu_seconds(os.getpid()) - begin[1]
            yield from _told("the first round, with the start of Spark", *cold, COLD_SECONDS)
            nothing: list[tuple[float, float]] = []
            little: list[tuple[float, float]] = []
            for number in range(1, rounds + 1):
                _land(landing, number)
                little.append(_measured(partial(a_round, number)))
                nothing.append(_measured(partial(a_round, number)))
            for what, found in (("a snapshot of each broker is new", little), ("nothing is new", nothing)):
                medians = [statistics.median(each) for each in zip(*found, strict=True)]
                yield from _told(f"a later round in which {what}", medians[0], medians[1], WARM_SECONDS)


def _measured(function: Callable[[], None]) -> tuple[float, float]:
    begin, cpu = time.monotonic(), cpu_seconds(os.getpid())
    function()
    return time.monotonic() - begin, cpu_seconds(os.getpid()) - cpu


def _told(what: str, seconds: float, cpu: float, goal: float) -> Iterator[AgainstGoal]:
    yield AgainstGoal(what=f"{what}: wall time", unit="s", ours=seconds, goal=goal)
    yield AgainstGoal(what=f"{what}: CPU time", unit="s", ours=cpu)


def _land(landing: Path, number: int) -> None:
    """What the guards put down in five minutes."""
    from brimline.fleet.synth.broker import SynthBroker
    from brimline.landing.writer import encode

    spec = replace(SMALL, until_ms=UNTIL_MS + number * FIVE_MINUTES_MS, days=0)
    for broker in range(spec.brokers):
        made = SynthBroker(spec, 0, broker).newest()
        path = landing / made.header.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(made.header, made.tables))


if __name__ == "__main__":
    for row in figures(*map(int, sys.argv[1:2])):
        print(row.row(), flush=True)
