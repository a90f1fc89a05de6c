"""`make bench`: prints every figure and writes docs/benchmarks.md, one whole run of one commit.

``python -m bench decod scan`` measures only those sections that have such a word in their titles, and only prints.
"""

import argparse
import signal
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Protocol

from bench import (
    command,
    decode,
    fleet,
    fleet_control,
    fleet_pages,
    fleet_rounds,
    fleet_warm,
    followers,
    forecast,
    full_disk,
    gateway,
    gateway_rows,
    guard,
    interception,
    metrics,
    older_gateway,
    one_clock,
    reclaim,
    reclaim_cycle,
    replication,
    scan,
)
from scripts.whole_run import ROOT, WholeRun, duration, exit_with, nothing_left_behind, sayer

RESULTS = ROOT / "docs" / "benchmarks.md"
say = sayer("bench")
LONGEST_SECTION_SECONDS = 3600
COMPARED = "| what | theirs | ours | theirs / ours |\n|---|---|---|---|"
AGAINST_GOAL = "| what | ours | goal |\n|---|---|---|"


class Row(Protocol):
    def row(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    title: str
    explanation: str
    header: str = COMPARED
    rows: Callable[[], Iterable[Row]]
    large: Callable[[], Iterable[Row]] | None = None
    """With ``--large``, where that is something else."""


SECTIONS = (
    Section(
        title="Decoding DescribeLogDirs into columns",
        explanation="kafka-python's own decoder (theirs) against `brimline.wire.describe_log_dirs` (ours), version 4 of"
        " the answer, medians of 9 rounds in turns. Goal: at least 10.",
        rows=decode.comparisons,
    ),
    Section(
        title="`brimline log-dirs` against `kafka-log-dirs.sh`",
        explanation="The stock tool's main class of Kafka 4.3.1 (theirs) against the whole command in a pipe (ours), on"
        " one real broker with 1,000 partitions, medians of 7 rounds in turns. The stock script passes the stock flags;"
        " its own shell start-up is not counted. The quickest flags (`-XX:+UseSerialGC -XX:TieredStopAtLevel=1`) are"
        " what the JVM could do. Goal, against the stock flags: at least 2 for wall time and memory.",
        rows=command.comparisons,
    ),
    Section(
        title="Scanning log dirs",
        explanation="`du -s` (theirs) against a scan that tells every kind of file apart (ours), 40,000 segments in"
        " 2,000 folders, 164,000 files, warm, medians of 9 rounds in turns. Goals: the first scan at most 1.5 times du"
        " (0.67 here), a repeat with 1 % of the folders changed at most 0.3 times (3.3 here).",
        rows=scan.comparisons,
    ),
    Section(
        title="Planning what goes first",
        explanation="DuckDB and Polars (theirs) against `brimline.decide.reclaim` (ours), the same plan to the byte"
        " from the same columns: 10 million segments on 200 devices. Goals: no slower than the faster of them (1 here),"
        " with at most half its memory (2 here).",
        rows=reclaim.comparisons,
    ),
    Section(
        title="Deciding what goes, beside a broker",
        explanation="`du -s` (theirs) against a whole look at a broker with 40,000 segments in 2,000 partitions (ours):"
        " scan with timestamps, sizes, topics, configurations and offsets asked of the broker, and the plan; medians of"
        " 7 rounds in turns. By default this is done once a minute.",
        rows=reclaim_cycle.comparisons,
    ),
    Section(
        title="Rendering and publishing metrics",
        explanation="prometheus_client's renderer and py4j's gauges (theirs) against the guard's (ours), in turns.",
        rows=metrics.comparisons,
    ),
    Section(
        title="The guard beside a broker with 4,000 partitions",
        explanation="Kafka 4.3.1, 100 topics, 1,000 partitions tiered with at least 3 uploaded segments each, default"
        " intervals, one unscaled window of at least 300 s after the first passes, all percentages and the sizes of the"
        " topics published, no JVM. Before each scrape (every 15 s) every plain partition and 20 tiered ones get a"
        " record. Then `brimline topics --config` tells of all of them, beside the guard.",
        header=AGAINST_GOAL,
        rows=guard.figures,
    ),
    Section(
        title="The fleet's reclaim plan and pipeline",
        explanation="DuckDB, Polars, the same kernel in a plain process pool, and PySpark as it comes (theirs) against"
        " `brimline fleet` (ours), from the same landed files; the same plan to the byte, the same tables row by row."
        " DuckDB and Polars plan as one would write it (windows; a sort and a running sum), and once more with our"
        " kernel's own shortcut (sums over coarse ages; for 20 million segments with `--large` only). Goals, warm: at"
        " least 2 against DuckDB, 1.43 against Polars, 0.67 against the pool at 20 million segments; cold, 3 brokers:"
        " 1.43 against PySpark as it comes.",
        rows=fleet.comparisons,
        large=partial(fleet.comparisons, fleet.LARGE),
    ),
    Section(
        title="The fleet as it grows",
        explanation="From 6 to 20 million segments (with `--large` to 60), and what is taken in a second.",
        header=AGAINST_GOAL,
        rows=fleet.figures,
        large=partial(fleet.figures, fleet.LARGE),
    ),
    Section(
        title="The pages of a fleet",
        explanation="`brimline web` over a warehouse of 2,000 brokers: 4,000 volumes with two weeks of readings,"
        " 2 million replicas; each page as a browser asks for it, over HTTP. Goal: any page within a second.",
        header=AGAINST_GOAL,
        rows=fleet_pages.figures,
    ),
    Section(
        title="Rounds of a small fleet",
        explanation="3 brokers and a day of hourly snapshots in one session, as `fleet run --every` has it: the first"
        " round, and medians of later ones.",
        header=AGAINST_GOAL,
        rows=fleet_warm.figures,
    ),
    Section(
        title="The ingest's control path",
        explanation="Listing, choosing, judging and committing a snapshot of each broker, without reading the files,"
        " late on a day with one every five minutes: 1,000 brokers, with `--large` 10,000. Goal: within a round.",
        header=AGAINST_GOAL,
        rows=fleet_control.figures,
        large=partial(fleet_control.figures, fleet_control.LARGE_BROKERS),
    ),
    Section(
        title="Many rounds of the fleet in one JVM",
        explanation="3 brokers and a day of hourly snapshots, taken in anew and every table made, again and again, with"
        " the options of a run of one round. What the JVM's memory pools held at most, of what they may hold: one whose"
        " code cache is full may die in the middle. The heap is what a collection leaves. Without a goal: there is no"
        " limit.",
        header=AGAINST_GOAL,
        rows=fleet_rounds.figures,
    ),
    Section(
        title="The forecast's error",
        explanation="Families and seeds set aside before tuning began (`bench/forecast_families.py`).",
        header=forecast.HEADER,
        rows=forecast.rows,
    ),
    Section(
        title="Watching each other's disks",
        explanation="150 brokers with 4,000 partitions each, replication factor 3, a check every 60 s, by simulation:"
        " the guards' own task on a clock that is ticked, requests and answers encoded as on the wire.",
        header=AGAINST_GOAL,
        rows=followers.figures,
    ),
    Section(
        title="Replication through the gateway",
        explanation="Three clusters of two brokers of Kafka 4.3.1, in turns: the follower fetches from its leader"
        " directly, through HAProxy (as below) or through the gateway. Catching up: four partitions of 256 MB, from"
        " the first byte to the last. Written: records of 10 KB with acks=all, straight to the leader, so that only"
        " replication takes the way. Beside a skipped partition: the same catching up while the follower's thread is"
        " not sent a fifth partition. Brokers, proxy and client share two cores.",
        header=gateway_rows.HEADER,
        rows=replication.figures,
    ),
    Section(
        title="The gateway beside HAProxy and beside no proxy",
        explanation="One broker of Kafka 4.3.1 with a listener for each way; clients, proxies and broker on the same"
        " cores, medians of rounds in turns. HAProxy: TCP mode, one thread, `option splice-auto`. Throughput: the stock"
        " perf tools, 1 KB records in batches of 64 KB; with TLS both proxies terminate it before a plain listener."
        " HAProxy's own ratio to direct stands beside the gateway's: it tells what a forwarder costs on this machine."
        " Added time: one connection, one request under way, to a backend that only answers, all on one core; what a"
        " way takes more than the direct one in the same round, with real-time priority where that is allowed. Refused"
        " requests: one connection with 16 under way; directly, the broker refuses a topic that it does not have. On"
        " two cores that clients, broker and proxy share, a proxy's own work is taken from the others.",
        header=gateway_rows.HEADER,
        rows=gateway.figures,
    ),
    Section(
        title="One clock for two watchers",
        explanation="One broker of Kafka 4.3.1 with two small disks, guard and gateway. One of the two looks every"
        f" 100 ms, the other one every ten hours; {one_clock.CROSSINGS} times a file fills a disk in one go and goes"
        " again. Between the line of the first and the line of the other in their logs.",
        header=one_clock.HEADER,
        rows=one_clock.figures,
    ),
    Section(
        title="The gateway against an older gateway",
        explanation=f"Those of commit {older_gateway.COMMIT} and of today side by side in front of one broker, each"
        f" with its guard, nothing fenced and every limit far away; {older_gateway.PAIRS} pairs in turns. The ratio is"
        " the median of the pairs' ratios. Goal: at most 1.03, and its interval's end at most 1.10.",
        header=older_gateway.HEADER,
        rows=older_gateway.figures,
    ),
    Section(
        title="A full disk beside a healthy one",
        explanation="One broker of Kafka 4.3.1 with two small disks behind the gateway; a producer of each kind on the"
        " healthy one, 500 records a second each, and one that is refused on the full one. Acknowledgements in windows"
        " of 5 s, with room on both disks and with one fenced, medians of 7 rounds in turns. Nothing is lost.",
        header=AGAINST_GOAL,
        rows=full_disk.figures,
    ),
    Section(
        title="Interception: the gateway in the path only near a limit",
        explanation="One broker of Kafka 4.3.1 with guard and gateway, clients in another network namespace."
        f" {interception.ROUNDS} rounds, {interception.PAIRS} pairs in each, in turns: guard and gateway stopped"
        " (SIGSTOP), so the broker alone (beside it), against both running with clients connected directly, and against"
        " clients sent to the gateway. Written: 96 MiB of 10 KiB records by librdkafka. Then a volume of 512 MiB is"
        f" filled at full speed, {interception.FILLS} times in turns with a gateway that is always in the path (beside"
        " it), default arming. Broker, gateway and client share two cores. Goal, connected directly: 1.00, as far as"
        " the pairs agree.",
        header=interception.HEADER,
        rows=interception.figures,
    ),
)


HEAD = [
    "# Benchmarks",
    "",
    "Two ways of doing one thing, in one run: trust the ratios. `make bench` runs all of it and writes this file;"
    " `python -m bench WORD` runs the sections with the word in their titles and only prints. `--large` adds what takes"
    " long: a fleet of 64 million segments, and three to five rounds of everything in the fleet's sections. Before"
    " figures are published, run it twice at one commit (`git diff` shows the second beside the first) and keep the"
    " weaker run.",
    "",
]


def main(words: Sequence[str] | None = None, sections: Sequence[Section] = SECTIONS, results: Path = RESULTS) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Every figure, written to docs/benchmarks.md.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only sections with this in their titles; only prints")
    parser.add_argument("--large", action="store_true", help="with the largest sizes, and more rounds")
    options = parser.parse_args(words)
    asked = [word.lower() for word in options.words]
    wanted = [each for each in sections if not asked or any(word in each.title.lower() for word in asked)]
    if not wanted:
        parser.error(f"no section has any of {', '.join(asked)} in its title")
    run = WholeRun("python -m bench --large" if options.large else "make bench")
    with nothing_left_behind("brimline-bench-"):
        done = [measured(section, large=options.large, place=place) for section, place in places(wanted, run)]
    failed = [each.title for each in done if each.failure]
    if not asked:
        results.write_text("\n".join([*HEAD, *run.head(), *(f"\n{each.text}" for each in done)]) + "\n")
        say(f"written to {results}")
    say(f"{len(done) - len(failed)} of {len(done)} sections in {run.time_so_far()}")
    for title in failed:
        say(f"FAILED: {title}")
    return 1 if failed else 0


def places(sections: Sequence[Section], run: WholeRun) -> Iterator[tuple[Section, str]]:
    for number, section in enumerate(sections, 1):
        yield section, f"section {number} of {len(sections)}, {run.time_so_far()} so far"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    title: str
    text: str
    failure: str


def measured(section: Section, *, large: bool, place: str) -> Done:
    """Whatever happens in it: the others go on."""
    say(f"{place}: {section.title}")
    print(f"\n## {section.title}\n\n{section.explanation}\n\n{section.header}", flush=True)
    begin = time.monotonic()
    rows: list[str] = []
    failure = ""
    try:
        with limited(LONGEST_SECTION_SECONDS), ended((section.large if large else None) or section.rows) as made:
            for each in made:
                rows.append(each.row())
                print(rows[-1], flush=True)
    except Exception as error:  # noqa: BLE001  it is named at the end, and in the document
        traceback.print_exc()
        failure = f"{type(error).__name__}: {error}".splitlines()[0]
    took = f"Took {duration(time.monotonic() - begin)}."
    if failure:
        took += f" **It failed** and is not whole: `{failure}`"
    text = "\n".join([f"## {section.title}", "", f"{section.explanation} {took}", "", section.header, *rows])
    return Done(title=section.title, text=text, failure=failure)


@contextmanager
def ended(rows: Callable[[], Iterable[Row]]) -> Iterator[Iterable[Row]]:
    """Brokers and files of a generator that is left in its middle go at once, not when somebody collects it."""
    made = rows()
    try:
        yield made
    finally:
        if isinstance(made, Generator):
            made.close()


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """One that hangs must not keep the others from being measured."""

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"not done after {duration(seconds)}")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    exit_with(main, say)
