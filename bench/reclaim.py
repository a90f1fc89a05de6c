"""Planning for a fleet: 10 million segments on 200 devices, against DuckDB and Polars on the same columns.

Everybody plans in a process of their own, which loads the columns into memory and then plans several times; the first
plan warms up. Memory is the process's peak (``VmHWM``), with the loaded columns, and without what was there when
planning began. The rows of the trimmed logs must be the same to the byte, or there is no figure at all.

``python -m bench.reclaim --quick`` plans for a tenth of it.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.ratio import Comparison
from bench.reclaim_columns import Fleet, load, make, tables_of
from bench.reclaim_result import Result, result_of

SEGMENTS, DEVICES = 10_000_000, 200
QUICK_SEGMENTS, QUICK_DEVICES = 1_000_000, 20
ROUNDS = 3
PLANS = 3
OURS, DUCKDB, POLARS = "ours", "DuckDB", "Polars"
Planner = Callable[[], Result]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    seconds: float
    peak_megabytes: float
    megabytes_before: float
    digest: str

    @property
    def megabytes_for_planning(self) -> float:
        return self.peak_megabytes - self.megabytes_before


def comparisons(segments: int = SEGMENTS, devices: int = DEVICES) -> Iterator[Comparison]:
    with tempfile.TemporaryDirectory(prefix="brimline-bench-") as folder:
        make(Path(folder), segments, devices)
        runs: dict[str, list[Run]] = {OURS: [], DUCKDB: [], POLARS: []}
        for _ in range(ROUNDS):
            for who, of_whom in runs.items():
                of_whom.append(run_in_child(who, folder))
    if len({run.digest for of_whom in runs.values() for run in of_whom}) != 1:
        raise RuntimeError("the planners disagree")
    what = f"plan for {segments:,} segments on {devices} devices"
    for who in (DUCKDB, POLARS):
        yield compared(f"{what}, {who}", "s", runs[who], runs[OURS], lambda run: run.seconds)
        yield compared(f"{who}: peak memory", "MB", runs[who], runs[OURS], lambda run: run.peak_megabytes)
        yield compared(
            f"{who}: peak memory beyond the columns",
            "MB",
            runs[who],
            runs[OURS],
            lambda run: run.megabytes_for_planning,
        )


def compared(what: str, unit: str, theirs: list[Run], ours: list[Run], figure: Callable[[Run], float]) -> Comparison:
    medians = [statistics.median(map(figure, side)) for side in (theirs, ours)]
    return Comparison(what=what, unit=unit, theirs=medians[0], ours=medians[1])


def run_in_child(who: str, folder: str) -> Run:
    command = [sys.executable, "-m", "bench.reclaim", "--child", who, folder]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Run(**json.loads(child.stdout))


def run_here(who: str, folder: Path) -> Run:
    plan = planner(who, load(folder))
    before = peak_megabytes()
    times = []
    for _ in range(PLANS):
        begin = time.perf_counter()
        result = plan()
        times.append(time.perf_counter() - begin)
    return Run(
        seconds=statistics.median(times[1:]),
        peak_megabytes=peak_megabytes(),
        megabytes_before=before,
        digest=result.digest(),
    )


def planner(who: str, fleet: Fleet) -> Planner:
    """Each library is imported by its own child only: they are large."""
    if who == DUCKDB:
        from bench.reclaim_duckdb import DuckPlanner

        return DuckPlanner(fleet).plan
    if who == POLARS:
        from bench.reclaim_polars import PolarsPlanner

        return PolarsPlanner(fleet).plan
    from brimline.decide.reclaim.plan import plan

    tables = tables_of(fleet)
    return lambda: result_of(plan(tables))


def peak_megabytes() -> float:
    """Since this program began: unlike ``ru_maxrss`` it does not remember the parent's size."""
    status = Path("/proc/self/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    if match is None:
        raise RuntimeError("the kernel does not tell the peak memory")
    return int(match[1]) / 1000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.reclaim")
    parser.add_argument("--quick", action="store_true", help="a tenth of the segments")
    parser.add_argument("--child", nargs=2, metavar=("WHO", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(asdict(run_here(options.child[0], Path(options.child[1])))))
        return 0
    sizes = (QUICK_SEGMENTS, QUICK_DEVICES) if options.quick else (SEGMENTS, DEVICES)
    for comparison in comparisons(*sizes):
        print(comparison.row(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
