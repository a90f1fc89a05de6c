"""Many rounds in one JVM that was started for one round: what it holds, of what it may hold.

``python -m bench.fleet_rounds 5`` does five. Each takes a small fleet in, into a warehouse of its own, and makes every
table; then Java's own beans say what the JVM's memory pools held at most, and the kernel how many files it and its
driver have open. At the end the heap is collected: what stays is what leaks. The rounds are done once more with the
code cache that Java would choose for these flags, until it is crowded.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench.fleet import SMALL
from bench.fleet_landing import LANDING
from bench.fleet_pipeline import NOW
from bench.gateway_paths import JVM_LAST_WORD
from bench.ratio import AgainstGoal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 50
SHOWN_EVERY = 10
JAVAS_CHOICE = "48m"
"""Of Java 17 to 25, with the first compiler alone."""
CODE_CACHE = "CodeCache"
FILES, HEAP = "open files of driver and JVM", "heap after a collection"
MIB = 1 << 20
CROWDED = 0.9
"""From here on Java throws compiled code away to make room; what needs room meanwhile fails, or the whole JVM does."""

Pools = Mapping[str, tuple[int, int]]
"""The most that each held, and its limit (-1: none), in bytes."""


def figures(rounds: int = ROUNDS) -> Iterator[AgainstGoal]:
    with TemporaryDirectory(prefix="brimline-bench-") as folder:
        _land(Path(folder))
        number = 0
        pools: Pools = {}
        for number, pools in enumerate(_rounds(Path(folder), rounds), start=1):
            if number == 1 or number % SHOWN_EVERY == 0:
                for pool in (CODE_CACHE, HEAP, FILES):
                    yield _held(pool, f"after {number} round{'s'[: number != 1]}", *pools[pool])
        if number != rounds:
            raise RuntimeError(f"ended after round {number}: {pools}")
        for pool in sorted(pools.keys() - {CODE_CACHE, HEAP, FILES}):
            yield _held(pool, f"after {number} rounds", *pools[pool])
        yield _with_javas_choice(Path(folder), rounds)


def _with_javas_choice(folder: Path, rounds: int) -> AgainstGoal:
    found = list(_rounds(folder, rounds, {JVM_LAST_WORD: f"-XX:ReservedCodeCacheSize={JAVAS_CHOICE}"}))
    most, limit = found[-1][CODE_CACHE] if found else (0, -1)
    is_whole = len(found) == rounds or (found and _is_crowded(found[-1]))
    end = "" if is_whole else ", failed in the next"
    when = f"after round {len(found)}{end}, with the {JAVAS_CHOICE} that Java would choose"
    return _held(CODE_CACHE, when, most, limit)


def _is_crowded(pools: Pools) -> bool:
    most, limit = pools[CODE_CACHE]
    return most >= CROWDED * limit


def _held(pool: str, when: str, most: int, limit: int) -> AgainstGoal:
    size, unit = (1, "") if pool == FILES else (MIB, "MiB")
    return AgainstGoal(what=f"{pool} {when}", unit=unit, ours=most / size, goal=None if limit < 0 else limit / size)


def _land(folder: Path) -> None:
    from brimline.fleet.synth.synth import synthesise

    synthesise(SMALL, str(folder / LANDING), lambda _: None)


def _rounds(folder: Path, rounds: int, environment: Mapping[str, str] | None = None) -> Iterator[Pools]:
    """The pools after each round, in a process of its own; as many as there were before it ended."""
    command = [sys.executable, "-m", "bench.fleet_rounds", "here", str(folder), str(rounds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}) as run:
        assert run.stdout is not None
        for line in run.stdout:
            yield json.loads(line)


def rounds_here(folder: Path, rounds: int) -> Iterator[Pools]:
    """Until the code cache is crowded, or that many."""
    from brimline.fleet.jobs.run import run_round
    from brimline.fleet.session.progress import Lines, Progress
    from brimline.fleet.session.session import SessionSettings, spark_session
    from brimline.fleet.tables.warehouse import Warehouse

    settings = SessionSettings()
    with spark_session(settings) as spark:
        for _ in range(rounds):
            with TemporaryDirectory(prefix="warehouse-", dir=folder) as place:
                landing, warehouse, progress = str(folder / LANDING), Warehouse(place), Progress(Lines(StringIO()))
                report = run_round(spark, landing, warehouse, progress, tasks=settings.cores, now=NOW)
            if report.failures:
                raise RuntimeError(f"steps failed: {report.failures}")
            pools = _pools(spark)
            yield pools
            if _is_crowded(pools):
                return


def _pools(spark: "SparkSession") -> Pools:
    assert spark._jvm is not None
    java = spark._jvm.java.lang
    beans = java.management.ManagementFactory.getMemoryPoolMXBeans()
    peaks = {bean.getName(): bean.getPeakUsage() for bean in beans}
    java.System.gc()
    heap = java.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
    files = sum(
        1 for pid in (os.getpid(), java.ProcessHandle.current().pid()) for _ in Path(f"/proc/{pid}/fd").iterdir()
    )
    pools = {pool: (peak.getUsed(), peak.getMax()) for pool, peak in peaks.items()}
    return {**pools, HEAP: (heap.getUsed(), heap.getMax()), FILES: (files, -1)}


def main(arguments: list[str]) -> int:
    match arguments:
        case ["here", folder, rounds]:
            for pools in rounds_here(Path(folder), int(rounds)):
                print(json.dumps(pools), flush=True)
        case [] | [_]:
            for row in figures(*map(int, arguments)):
                print(row.row(), flush=True)
        case _:
            raise SystemExit("[ROUNDS]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
