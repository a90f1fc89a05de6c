"""One fleet-wide reclaim plan in a process of its own: by Spark, by a plain process pool, by DuckDB, by Polars.

The first plan is the first in a new process (and, for Spark, in a new session, whose start is told apart); the warm one
is the median of those after it. Each prints what it measured as JSON.
"""

import cProfile
import io
import json
import os
import pstats
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import Enum
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench import fleet_result
from bench.fleet_landing import files_in
from bench.fleet_result import of_plan_rows
from bench.fleet_tree import cpu_seconds, watched
from brimline.fleet.planner.tasks import SnapshotFile

WARM_PLANS = 2
_FILES_AT_ONCE = 20
Plan = Callable[[], pa.Table]
Timed = Callable[[], Any]
"""Times end when the rows are here, in whatever form; ``Named`` makes a table of them afterwards."""
Named = Callable[[Any], fleet_result.Plan]


class Planner(Enum):
    SPARK = "Brimline on Spark"
    POOL = "the same kernel in a process pool"
    DUCKDB = "DuckDB"
    POLARS = "Polars"
    DUCKDB_COARSE = "DuckDB with our coarse ages"
    POLARS_COARSE = "Polars with our coarse ages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    start_seconds: float
    first_seconds: float
    warm_seconds: float
    warm_cpu_seconds: float
    digest: str
    peak_megabytes: float = 0.0


def measured(planner: Planner, folder: Path) -> Measured:
    run = watched([sys.executable, "-m", "bench.fleet_plan", planner.name, str(folder)])
    found = json.loads(run.output.splitlines()[-1])
    return Measured(**{**found, "peak_megabytes": run.peak_megabytes})


def measure_here(planner: Planner, folder: Path) -> Measured:
    begin = time.perf_counter()
    with _started(planner, folder) as (plan, named):
        started = time.perf_counter()
        times, cpu_times = [], []
        for _ in range(1 + WARM_PLANS):
            before, cpu_before = time.perf_counter(), cpu_seconds(os.getpid())
            rows = plan()
            times.append(time.perf_counter() - before)
            cpu_times.append(cpu_seconds(os.getpid()) - cpu_before)
        return Measured(
            start_seconds=started - begin,
            first_seconds=times[0],
            warm_seconds=statistics.median(times[1:]),
            warm_cpu_seconds=statistics.median(cpu_times[1:]),
            digest=named(rows).digest(),
        )


@contextmanager
def _started(planner: Planner, folder: Path) -> Iterator[tuple[Timed, Named]]:
    """Each library is imported by its own process only: they are large."""
    match planner:
        case Planner.SPARK:
            with _spark(folder) as plan:
                yield plan, of_plan_rows
        case Planner.POOL:
            with _pool(folder) as plan:
                yield plan, of_plan_rows
        case Planner.DUCKDB | Planner.DUCKDB_COARSE:
            from bench.fleet_duckdb import DuckPlanner

            duckdb = DuckPlanner(folder, is_coarse=planner is Planner.DUCKDB_COARSE)
            yield duckdb.plan, lambda trims: trims.named(folder)
        case Planner.POLARS | Planner.POLARS_COARSE:
            from bench.fleet_polars import PolarsPlanner

            polars = PolarsPlanner(folder, is_coarse=planner is Planner.POLARS_COARSE)
            yield polars.plan, lambda trims: trims.named(folder)


@contextmanager
def _spark(folder: Path) -> Iterator[Plan]:
    from brimline.fleet.planner.rows import PLAN
    from brimline.fleet.planner.spark_tasks import rows_on_spark
    from brimline.fleet.session.session import SessionSettings, spark_session
    from brimline.fleet.tables.gold_schemas import OWN_PLAN

    files = files_in(folder)
    with spark_session(SessionSettings()) as spark:
        yield lambda: rows_on_spark(spark, files, PLAN, OWN_PLAN).toArrow()


@contextmanager
def _pool(folder: Path) -> Iterator[Plan]:
    files = sorted(files_in(folder), key=lambda file: -file.segments)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        parts = [files[first : first + _FILES_AT_ONCE] for first in range(0, len(files), _FILES_AT_ONCE)]
        yield lambda: pa.Table.from_batches([each for rows in pool.map(_planned, parts) for each in rows])


def _planned(files: Sequence[SnapshotFile]) -> list[pa.RecordBatch]:
    from brimline.fleet.planner.rows import PLAN

    return list(PLAN.of_files(files))


def profile(folder: Path) -> str:
    """Where the time goes: our kernel over all files in one process, by function, then DuckDB's own profile."""
    from bench.fleet_duckdb import DuckPlanner
    from brimline.fleet.planner.rows import PLAN

    files = files_in(folder)
    list(PLAN.of_files(files[:1]))
    profiler = cProfile.Profile(time.process_time)
    profiler.enable()
    list(PLAN.of_files(files))
    profiler.disable()
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(25)
    return f"{text.getvalue()}\n\n{DuckPlanner(folder).profile()}"


if __name__ == "__main__":
    print(json.dumps(asdict(measure_here(Planner[sys.argv[1]], Path(sys.argv[2])))))
