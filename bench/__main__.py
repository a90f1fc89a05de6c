"""`make bench`: prints every comparison, and keeps the last results in docs/benchmarks.md."""

import sys
from collections.abc import Iterable
from pathlib import Path

from bench import command, decode, metrics, scan
from bench.ratio import Comparison

RESULTS = Path("docs/benchmarks.md")
HEADER = "| what | theirs | ours | theirs / ours |\n|---|---|---|---|"
SECTIONS = (
    (
        "Decoding DescribeLogDirs into columns",
        "kafka-python's own decoder (theirs) against `brimline.wire.describe_log_dirs` (ours), version 4 of the answer,"
        " medians of 9 rounds in turns. Goal: at least 10.",
        decode.comparisons,
    ),
    (
        "`brimline log-dirs` against `kafka-log-dirs.sh`",
        "The stock tool's main class of Kafka 4.3.1 (theirs) against the whole command in a pipe (ours), on one real"
        " broker with 1,000 partitions, medians of 7 rounds in turns. The stock script passes the stock flags; its own"
        " shell start-up is not counted. The quickest flags (`-XX:+UseSerialGC -XX:TieredStopAtLevel=1`) are what"
        " the JVM could do. Goal, against the stock flags: at least 2 for wall time and memory.",
        command.comparisons,
    ),
    (
        "Scanning log dirs",
        "`du -s` (theirs) against a scan that tells every kind of file apart (ours), 40,000 segments in 2,000 folders,"
        " 164,000 files, warm, medians of 9 rounds in turns. Goals: the first scan at most 1.5 times du (0.67 here), a"
        " repeat with 1 % of the folders changed at most 0.3 times (3.3 here).",
        scan.comparisons,
    ),
    (
        "Rendering and publishing metrics",
        "prometheus_client's renderer and py4j's gauges (theirs) against the guard's (ours), medians in turns.",
        metrics.comparisons,
    ),
)


def main() -> int:
    text = ["# Benchmarks", "", "Made by `make bench`. Two ways of doing one thing, in one run: trust the ratios."]
    print(*text, sep="\n")
    for title, explanation, comparisons in SECTIONS:
        section = ["", f"## {title}", "", explanation, "", HEADER]
        print(*section, sep="\n", flush=True)
        text += [*section, *printed(comparisons())]
    RESULTS.write_text("\n".join(text) + "\n")
    print(f"\nkept in {RESULTS}")
    return 0


def printed(comparisons: Iterable[Comparison]) -> Iterable[str]:
    for comparison in comparisons:
        print(comparison.row(), flush=True)
        yield comparison.row()


if __name__ == "__main__":
    sys.exit(main())
