"""Two ways of doing one thing, measured in turns."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Medians of both sides. A ratio above 1 says how many times better ours is."""

    what: str
    unit: str
    theirs: float
    ours: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    def row(self) -> str:
        digits = 1 if self.ratio >= 10 else 2
        return (
            f"| {self.what} | {self.theirs:.4g} {self.unit} | {self.ours:.4g} {self.unit} | {self.ratio:.{digits}f} |"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstGoal:
    """A figure that has nothing to be compared with but what it should stay under."""

    what: str
    unit: str
    ours: float
    goal: float | None = None

    def row(self) -> str:
        goal = "" if self.goal is None else f"under {self.goal:.4g} {self.unit}"
        return f"| {self.what} | {self.ours:.4g} {self.unit} | {goal} |"


def compare_calls(what: str, theirs: Callable[[], object], ours: Callable[[], object], rounds: int) -> Comparison:
    """Milliseconds of two functions; the first call of each warms up and is thrown away."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for side, function in zip(times, (theirs, ours), strict=True):
            begin = time.perf_counter()
            function()
            if number:
                side.append((time.perf_counter() - begin) * 1000)
    return Comparison(what=what, unit="ms", theirs=statistics.median(times[0]), ours=statistics.median(times[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    seconds: float
    cpu_seconds: float
    megabytes: float


def compare_commands(
    what: str, theirs: Sequence[str], ours: Sequence[str], rounds: int
) -> tuple[Comparison, Comparison, Comparison]:
    """Wall time, CPU time and peak memory of two commands, run in turns."""
    runs: tuple[list[Run], list[Run]] = ([], [])
    for number in range(rounds + 1):
        for side, command in zip(runs, (theirs, ours), strict=True):
            run = run_command(command)
            if number:
                side.append(run)

    def compared(name: str, unit: str, figure: Callable[[Run], float]) -> Comparison:
        medians = [statistics.median(map(figure, side)) for side in runs]
        return Comparison(what=f"{what}: {name}", unit=unit, theirs=medians[0], ours=medians[1])

    return (
        compared("wall time", "s", lambda run: run.seconds),
        compared("CPU time", "s", lambda run: run.cpu_seconds),
        compared("peak memory", "MB", lambda run: run.megabytes),
    )


# A child's peak memory counts from the fork, when it still is a copy of its parent: so the parent must be small.
_LAUNCHER = """
import os, subprocess, sys, time
begin = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def run_command(command: Sequence[str]) -> Run:
    launched = subprocess.run(
        [sys.executable, "-S", "-E", "-c", _LAUNCHER, *command], stdout=subprocess.PIPE, text=True, check=True
    )
    seconds, cpu_seconds, megabytes = map(float, launched.stdout.split())
    return Run(seconds=seconds, cpu_seconds=cpu_seconds, megabytes=megabytes)
