"""`make test-long`: the tests marked long, and every property test with many more examples; writes docs/test-long.md.

Each file is a process of its own, one more side by side than there are cores: real clusters are waited for. Property
tests come first, then the longest. A file that fails, ends its process or hangs is named at the end, and the others go
on. ``python -m scripts.test_long WORD`` runs the files with the word in their paths, and only prints.
"""

import argparse
import ast
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from scripts.whole_run import ROOT, WholeRun, duration, exit_with, nothing_left_behind, sayer
from tests.conftest import MANY_EXAMPLES

RESULTS = ROOT / "docs" / "test-long.md"
say = sayer("test-long")
LONGEST_FIRST = (
    "tests/fleet/spark/test_killed.py",
    "tests/integration/test_reclaim_ceiling.py",
    "tests/integration/test_full_followers_long.py",
    "tests/integration/test_full_followers_cut_off.py",
    "tests/gateway/test_hostile.py",
    "tests/integration/test_full_followers.py",
    "tests/integration/test_guard_against_stock_gauges.py",
    "tests/integration/test_guard_percentages.py",
)
"""Otherwise one of them would run alone at the end, with the other cores idle."""
LONGEST_FILE_SECONDS = 3600
TIME_TO_CLEAN_UP_SECONDS = 60
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    title: str
    marks: str
    arguments: tuple[str, ...] = ()


LONG = Kind(title="Tests that take minutes", marks="long")
PROPERTIES = Kind(
    title=f"Property tests, with {MANY_EXAMPLES:,} examples each where they do not set a number of their own",
    marks="hypothesis and not integration and not long",
    arguments=("--hypothesis-profile=long",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    kind: Kind
    file: str

    @property
    def subject(self) -> str:
        """What the file says of itself."""
        said = ast.get_docstring(ast.parse((ROOT / self.file).read_text())) or ""
        return " ".join(said.partition("\n\n")[0].split()).replace("|", "\\|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    job: Job
    counts: Counter[str]
    failures: tuple[str, ...]
    skips: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        return f"{self.job.file}: {self.summary} in {duration(self.seconds)}"

    @property
    def summary(self) -> str:
        return ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.counts.items())) or "nothing ran"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.test_long", description="The long tests.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only files with this in their paths; only prints")
    asked = parser.parse_args(words).words
    run = WholeRun("make test-long")
    with nothing_left_behind("brimline-long-") as folder:
        jobs = [job for job in collected() if not asked or any(word in job.file for word in asked)]
        if not jobs:
            parser.error(f"no file with long tests has any of {', '.join(asked)} in its path")
        results = Runner(folder, run).results(jobs)
    if not asked:
        RESULTS.write_text(document(run, results))
        say(f"written to {RESULTS}")
    total = sum((result.counts for result in results), Counter[str]())
    say(f"{len(results)} files, {', '.join(f'{n} {what}' for what, n in sorted(total.items()))}, {run.time_so_far()}")
    failures = [failure for result in results for failure in result.failures]
    for failure in failures:
        say(f"FAILED: {failure}")
    return 1 if failures else 0


def collected() -> list[Job]:
    jobs = [Job(kind=kind, file=file) for kind in (LONG, PROPERTIES) for file in files_with(kind.marks)]
    known = {file: place for place, file in enumerate(LONGEST_FIRST)}
    return sorted(jobs, key=lambda job: (job.kind is LONG, known.get(job.file, len(known))))


def files_with(marks: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", "-m", marks]
    found = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return list(dict.fromkeys(line.partition("::")[0] for line in found.stdout.splitlines() if "::" in line))


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    job: Job
    process: "subprocess.Popen[str]"
    begin: float

    def is_over(self) -> bool:
        return self.process.poll() is not None or time.monotonic() - self.begin > LONGEST_FILE_SECONDS


class Runner:
    """Processes side by side. Interrupted, it interrupts them, waits until they have cleaned up, and ends the rest."""

    def __init__(self, folder: Path, run: WholeRun, workers: int = len(os.sched_getaffinity(0)) + 1) -> None:
        self._folder = folder
        self._run = run
        self._workers = workers

    def results(self, jobs: Sequence[Job]) -> list[Result]:
        waiting = list(enumerate(jobs))
        running: dict[int, Started] = {}
        results: dict[int, Result] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._workers:
                    number, job = waiting.pop(0)
                    running[number] = Started(job=job, process=self._start(number, job), begin=time.monotonic())
                time.sleep(_POLL_SECONDS)
                for number in [number for number, each in running.items() if each.is_over()]:
                    end([running[number].process])
                    results[number] = self._result(number, running.pop(number))
                    say(f"file {len(results)} of {len(jobs)}, {self._run.time_so_far()} so far: {results[number]}")
                    if results[number].failures:
                        print(self._log(number).read_text(errors="replace"), file=sys.stderr, flush=True)
        finally:
            end([each.process for each in running.values()])
        return [results[number] for number in sorted(results)]

    def _start(self, number: int, job: Job) -> "subprocess.Popen[str]":
        words = ["-q", "--color=no", "-m", job.kind.marks, *job.kind.arguments, f"--junitxml={self._report(number)}"]
        words += [f"--basetemp={self._folder / str(number)}", job.file]
        with self._log(number).open("w") as log:
            # In a session of its own: ctrl-C is for us.
            return subprocess.Popen(
                [sys.executable, "-m", "pytest", *words],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def _result(self, number: int, ended: "Started") -> Result:
        job, seconds = ended.job, time.monotonic() - ended.begin
        try:
            return read_report(self._report(number), job, seconds)
        except (OSError, ET.ParseError):
            said = f"{job.file}: its process ended with {ended.process.returncode} and without a report"
            return Result(job=job, counts=Counter(failed=1), failures=(said,), skips=(), seconds=seconds)

    def _report(self, number: int) -> Path:
        return self._folder / f"{number}.xml"

    def _log(self, number: int) -> Path:
        return self._folder / f"{number}.log"


def end(processes: Iterable["subprocess.Popen[str]"]) -> None:
    """pytest takes its brokers and files away when it is interrupted; what does not is killed with all it started."""
    alive = [process for process in processes if process.poll() is None]
    for process in alive:
        process.send_signal(signal.SIGINT)
    give_up_at = time.monotonic() + TIME_TO_CLEAN_UP_SECONDS
    for process in alive:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(give_up_at - time.monotonic(), 0))
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def read_report(path: Path, job: Job, seconds: float) -> Result:
    counts: Counter[str] = Counter()
    failures, skips = [], []
    for case in ET.parse(path).iter("testcase"):
        name = f"{job.file}::{case.get('name')}"
        wrong = [each for each in case if each.tag in ("failure", "error")]
        skipped = case.find("skipped")
        counts["failed" if wrong else "passed" if skipped is None else "skipped"] += 1
        failures += [f"{name}: {_first_line(each.get('message'))}" for each in wrong]
        skips += [] if skipped is None else [f"{name}: {_first_line(skipped.get('message'))}"]
    if not counts:
        failures.append(f"{job.file}: nothing ran")
    return Result(job=job, counts=counts, failures=tuple(failures), skips=tuple(skips), seconds=seconds)


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def document(run: WholeRun, results: Sequence[Result]) -> str:
    total = sum((result.counts for result in results), Counter[str]())
    lines = [
        "# `make test-long`",
        "",
        "What takes too long for `make test`. `make test-long` runs all of it, file by file, and writes this page;"
        " `python -m scripts.test_long WORD` runs the files with the word in their paths and only prints.",
        "",
        *run.head(),
        "",
        f"{total['passed']:,} passed, {total['failed']:,} failed, {total['skipped']:,} skipped.",
    ]
    for title, found in (
        ("Failed", [x for r in results for x in r.failures]),
        ("Skipped", [x for r in results for x in r.skips]),
    ):
        lines += ["", f"## {title}", "", *(f"- {each}" for each in found)] if found else []
    for kind in (LONG, PROPERTIES):
        lines += ["", f"## {kind.title}", "", "| file | what it says of itself | result | time |", "|---|---|---|---|"]
        of_kind = sorted((result for result in results if result.job.kind is kind), key=lambda each: each.job.file)
        lines += [
            f"| `{each.job.file}` | {each.job.subject} | {each.summary} | {duration(each.seconds)} |"
            for each in of_kind
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    exit_with(main, say)
