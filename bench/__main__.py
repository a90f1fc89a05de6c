"""`make bench`: prints every figure, and keeps the last results in docs/benchmarks.md. It takes long.

``python -m bench decod scan`` measures only those sections that have such a word in their titles.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench import (
    command,
    decode,
    fleet,
    fleet_rounds,
    followers,
    forecast,
    full_disk,
    gateway,
    gateway_rows,
    guard,
    metrics,
    reclaim,
    reclaim_cycle,
    replication,
    scan,
)

RESULTS = Path("docs/benchmarks.md")
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
        " intervals, one unscaled window of 300 s after the first passes, all percentages published, no JVM. Before"
        " each scrape (every 15 s) every plain partition and 20 tiered ones get a record.",
        header=AGAINST_GOAL,
        rows=guard.figures,
    ),
    Section(
        title="The fleet's reclaim plan and pipeline",
        explanation="DuckDB, Polars, the same kernel in a plain process pool, and PySpark as it comes (theirs) against"
        " `brimline fleet` (ours), from the same landed files; the same plan to the byte, the same tables row by row."
        " DuckDB and Polars plan as one would write it (windows; a sort and a running sum), and once more with our"
        " kernel's own shortcut (sums over coarse ages). Goals, warm: at least 2 against DuckDB, 1.43 against Polars,"
        " 0.67 against the pool at 20 million segments; cold, 3 brokers: 1.43 against PySpark as it comes.",
        rows=fleet.comparisons,
    ),
    Section(
        title="The fleet as it grows",
        explanation="From 6 to 20 to 60 million segments, and what is taken in a second.",
        header=AGAINST_GOAL,
        rows=fleet.figures,
    ),
    Section(
        title="Many rounds of the fleet in one JVM",
        explanation="3 brokers and a day of hourly snapshots, taken in anew and every table made, again and again, with"
        " the options of a run of one round. What the JVM's memory pools held at most, of what they may hold: one whose"
        " code cache is full may die in the middle. Without a goal: Java sets no limit.",
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
        " requests: one connection with 16 under way; directly, the broker refuses a topic that it does not have.",
        header=gateway_rows.HEADER,
        rows=gateway.figures,
    ),
    Section(
        title="A full disk beside a healthy one",
        explanation="One broker of Kafka 4.3.1 with two small disks behind the gateway; a producer of each kind on the"
        " healthy one, 500 records a second each, and one that is refused on the full one. Acknowledgements in windows"
        " of 5 s, with room on both disks and with one fenced, medians of 7 rounds in turns. Nothing is lost.",
        header=AGAINST_GOAL,
        rows=full_disk.figures,
    ),
)


HEAD = [
    "# Benchmarks",
    "",
    "Two ways of doing one thing, in one run: trust the ratios. `make bench` makes all of it, `python -m bench WORD`"
    " the sections with the word in their titles, and each section is the last run of its own.",
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Every figure, kept in docs/benchmarks.md.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only sections with this in their titles")
    words = [word.lower() for word in parser.parse_args().words]
    wanted = [each for each in SECTIONS if not words or any(word in each.title.lower() for word in words)]
    if not wanted:
        parser.error(f"no section has any of {', '.join(words)} in its title")
    kept = last_results(RESULTS.read_text() if RESULTS.exists() else "")
    for section in wanted:
        head = [f"## {section.title}", "", section.explanation, "", section.header]
        print("", *head, sep="\n", flush=True)
        kept[section.title] = "\n".join([*head, *printed(section.rows())])
        # At once: the next section may fail, and this one took minutes.
        in_order = [kept[each.title] for each in SECTIONS if each.title in kept]
        RESULTS.write_text("\n".join([*HEAD, *(f"\n{text}" for text in in_order)]) + "\n")
    print(f"\nkept in {RESULTS}")
    return 0


def last_results(document: str) -> dict[str, str]:
    """By title."""
    _, *sections = document.split("\n## ")
    return {text.partition("\n")[0]: f"## {text.rstrip()}" for text in sections}


def printed(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        print(row.row(), flush=True)
        yield row.row()


if __name__ == "__main__":
    sys.exit(main())
