"""The fleet: its plan against DuckDB and Polars from the same landed files, its growth, its ingest, its whole pipeline.

``python -m bench.fleet --quick`` does all of it with small fleets, ``--large`` with one of 64 million segments more and
in several rounds. ``--profile`` says where the time goes instead.
"""

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.fleet_landing import LANDING, UNTIL_MS, Size, make, write_file_list
from bench.fleet_pipeline import Piped, Session, ingested, piped
from bench.fleet_plan import Measured, Planner, measured, profile
from bench.ratio import AgainstGoal, Comparison
from brimline.fleet.synth.spec import FleetSpec
from brimline.fleet.synth.synth import synthesise

ROWS_A_SECOND = 150_000
LARGEST_EXPONENT = 1.1
FLAT = 1.25
"""How many times the memory of the smallest fleet the largest one may take, to call it flat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    compared: Mapping[Size, tuple[Planner, ...]]
    """And who plans for it."""
    piped: Size
    largest: Size | None = None
    """Planned for by us alone, once."""
    rounds: int = 1
    """One has several plans of each planner."""
    cold_rounds: int = 1


EVERYBODY = tuple(Planner)
NOT_COARSE = (Planner.SPARK, Planner.POOL, Planner.DUCKDB, Planner.POLARS)
MEDIUM = Size(brokers=150, clusters=3, replicas=4_000)
MANY_BROKERS = Size(brokers=2_000, clusters=10, replicas=1_000)
USUAL = Sizes(compared={MEDIUM: EVERYBODY, MANY_BROKERS: NOT_COARSE}, piped=MEDIUM)
LARGE = Sizes(
    compared={MEDIUM: EVERYBODY, MANY_BROKERS: EVERYBODY},
    piped=MEDIUM,
    largest=Size(brokers=2_000, clusters=10, replicas=3_000),
    rounds=3,
    cold_rounds=5,
)
SMALLER, SMALLEST = (Size(brokers=brokers, clusters=2, replicas=1_000) for brokers in (40, 12))
QUICK = Sizes(
    compared={SMALLEST: EVERYBODY, SMALLER: EVERYBODY},
    piped=SMALLEST,
    largest=Size(brokers=120, clusters=2, replicas=1_000),
)
SMALL = FleetSpec(
    until_ms=UNTIL_MS, seed=7, clusters=1, brokers=3, replicas=200, days=1, every_minutes=60, ceiling_percent=60
)
"""Three brokers, and a day of hourly snapshots."""


class Fleets:
    """Made once, planned for in turns, and gone with the process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="brimline-bench-")
        self._made: dict[Size, tuple[Path, int]] = {}
        self._runs: dict[tuple[Size, Planner], list[Measured]] = {}
        self._warehouses = 0

    def of(self, size: Size) -> tuple[Path, int]:
        """The folder of a fleet, and its segments."""
        if size not in self._made:
            folder = self._new(f"{size.brokers}-{size.replicas}")
            self._made[size] = folder, make(folder, size)
        return self._made[size]

    def small(self) -> Path:
        folder = self._new("small")
        synthesise(SMALL, str(folder / LANDING), lambda _: None)
        return folder

    def warehouse(self) -> Path:
        self._warehouses += 1
        return self._new(f"warehouse-{self._warehouses}")

    def run(self, size: Size, planners: Sequence[Planner], rounds: int) -> dict[Planner, list[Measured]]:
        """All in turns. Raises if two plans are not the same."""
        folder, _ = self.of(size)
        if Planner.DUCKDB in planners:
            write_file_list(folder)
        for _ in range(rounds - len(self._runs.get((size, planners[0]), ()))):
            for planner in planners:
                self._runs.setdefault((size, planner), []).append(measured(planner, folder))
        found = {planner: self._runs[size, planner] for planner in planners}
        if len({run.digest for runs in found.values() for run in runs}) != 1:
            raise RuntimeError(f"the planners disagree: {found}")
        return found

    def _new(self, name: str) -> Path:
        folder = Path(self._folder.name) / name
        folder.mkdir()
        return folder


@cache
def fleets() -> Fleets:
    return Fleets()


def comparisons(sizes: Sizes = USUAL) -> Iterator[Comparison]:
    for size, planners in sizes.compared.items():
        _, segments = fleets().of(size)
        what = f"plan for {segments / 1e6:.3g} M segments of {size.brokers:,} brokers"
        runs = fleets().run(size, planners, sizes.rounds)
        ours = runs[Planner.SPARK]
        for planner in (each for each in planners if each is not Planner.SPARK):
            yield _compared(f"{what}, {planner.value}: warm", "s", runs[planner], ours, lambda run: run.warm_seconds)
            yield _compared(f"{planner.value}: CPU, warm", "s", runs[planner], ours, lambda run: run.warm_cpu_seconds)
            yield _compared(f"{planner.value}: first", "s", runs[planner], ours, lambda run: run.first_seconds)
            yield _compared(f"{planner.value}: peak memory", "MB", runs[planner], ours, lambda run: run.peak_megabytes)
    yield from _cold(sizes)


def figures(sizes: Sizes = USUAL) -> Iterator[AgainstGoal]:
    yield from _growth(sizes)
    yield from _ingest(sizes)
    folder, segments = fleets().of(sizes.piped)
    run = piped(Session.OURS, folder, fleets().warehouse())
    what = (
        f"whole pipeline, {sizes.piped.brokers} brokers with {sizes.piped.replicas:,} replicas, {segments:,} segments"
    )
    yield AgainstGoal(what=f"{what}: from starting Python to the last table", unit="s", ours=run.seconds)
    yield AgainstGoal(what="the same: peak memory of all processes", unit="MB", ours=run.peak_megabytes)
    for step, seconds in run.steps.items():
        yield AgainstGoal(what=f"of it: {step}", unit="s", ours=seconds)


def _cold(sizes: Sizes) -> Iterator[Comparison]:
    folder = fleets().small()
    runs: dict[Session, list[Piped]] = {session: [] for session in Session}
    for _ in range(sizes.cold_rounds):
        for session, of_session in runs.items():
            of_session.append(piped(session, folder, fleets().warehouse()))
    if len({run.digest for of_session in runs.values() for run in of_session}) != 1:
        raise RuntimeError("the two sessions made different tables")
    for what, unit, figure in (
        ("whole pipeline, 3 brokers, from a cold start, a default session", "s", lambda run: run.seconds),
        ("the same: peak memory", "MB", lambda run: run.peak_megabytes),
    ):
        medians = {session: statistics.median(map(figure, of_session)) for session, of_session in runs.items()}
        yield Comparison(what=what, unit=unit, theirs=medians[Session.DEFAULT], ours=medians[Session.OURS])


def _growth(sizes: Sizes) -> Iterator[AgainstGoal]:
    seconds, megabytes, counts = [], [], []
    for size in (*sizes.compared, *((sizes.largest,) if sizes.largest else ())):
        _, segments = fleets().of(size)
        rounds = 1 if size is sizes.largest else sizes.rounds
        runs = fleets().run(size, (Planner.SPARK,), rounds)[Planner.SPARK]
        counts.append(segments)
        seconds.append(statistics.median(run.warm_seconds for run in runs))
        megabytes.append(statistics.median(run.peak_megabytes for run in runs))
        yield AgainstGoal(what=f"plan for {segments / 1e6:.3g} M segments, warm", unit="s", ours=seconds[-1])
        yield AgainstGoal(what="the same: peak memory of all processes", unit="MB", ours=megabytes[-1])
    span = f"from {counts[0] / 1e6:.3g} M to {counts[-1] / 1e6:.3g} M segments"
    yield AgainstGoal(
        what=f"time grows with the segments to the power of, {span}",
        unit="",
        ours=exponent(counts, seconds),
        goal=LARGEST_EXPONENT,
    )
    yield AgainstGoal(what=f"memory grows by, {span}", unit="times", ours=megabytes[-1] / megabytes[0], goal=FLAT)


def exponent(counts: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of the straight line through the logarithms."""
    return statistics.linear_regression(list(map(math.log, counts)), list(map(math.log, seconds))).slope


def _ingest(sizes: Sizes) -> Iterator[AgainstGoal]:
    folder, _ = fleets().of(sizes.piped)
    run = ingested(folder, fleets().warehouse())
    goal = 1e6 / ROWS_A_SECOND
    yield AgainstGoal(
        what=f"ingest of {run.rows:,} landed rows ({run.rows / run.seconds:,.0f} rows/s), a row",
        unit="µs",
        ours=run.seconds * 1e6 / run.rows,
        goal=goal,
    )
    yield AgainstGoal(
        what=f"by the {run.appended:,} rows of them that tables keep ({run.appended / run.seconds:,.0f} rows/s), a row",
        unit="µs",
        ours=run.seconds * 1e6 / run.appended,
    )


def _compared(
    what: str, unit: str, theirs: Sequence[Measured], ours: Sequence[Measured], figure: Callable[[Measured], float]
) -> Comparison:
    medians = [statistics.median(map(figure, side)) for side in (theirs, ours)]
    return Comparison(what=what, unit=unit, theirs=medians[0], ours=medians[1])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fleet")
    parser.add_argument("--quick", action="store_true", help="small fleets")
    parser.add_argument("--large", action="store_true", help="64 million segments too, and several rounds")
    parser.add_argument("--profile", action="store_true", help="where the time of a plan goes, instead of the figures")
    options = parser.parse_args()
    sizes = QUICK if options.quick else LARGE if options.large else USUAL
    if options.profile:
        folder, _ = fleets().of(next(iter(sizes.compared)))
        write_file_list(folder)
        print(profile(folder))
        return 0
    for made in (comparisons, figures):
        for row in made(sizes):
            print(row.row(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
