"""Whole brokers through a function of one broker: in this process or in a few. No broker needs another.

**Invariant.** A device belongs to one broker, and a snapshot file holds a whole broker in the order of its scan; so a
task needs its own files and nothing else, and holds few small brokers in memory at a time. A file that cannot be used
costs its own rows: it becomes a ``Failed`` that is named in them, and no task ends for it.
"""

import heapq
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from brimline.fleet.planner.broker_snapshot import BrokerSnapshot, read_broker_at
from brimline.landing.seal import BadSnapshot

# By the number of segments, and not by that of cores, which Spark Connect does not tell.
SEGMENTS_PER_TASK = 2_000_000
"""About a second of work: enough to hide what a task costs to start and to tidy up after (40 ms), little enough to even
out."""
FILES_PER_TASK = 250
MOST_TASKS = 2_000
_SEGMENTS_AT_ONCE = 1 << 17
"""Of several brokers: with fewer, calls cost more than what they do; with four times as many it was slower again."""
_WORTH_A_POOL = 1_000_000
"""Of segments in all: with fewer, processes take longer to start than to work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    """A row of the manifest: one broker's newest snapshot with segments."""

    path: str
    segments: int
    cluster_id: str
    broker_id: int
    snapshot_id: str
    taken_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBroker:
    """A file that is not what it was when it was ingested, or tables that contradict each other."""

    file: SnapshotFile
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRows:
    """From a broker to its rows; both functions are of a module, so that they can be sent to where the work is."""

    of_broker: Callable[[BrokerSnapshot], pa.RecordBatch]
    of_failure: Callable[[FailedBroker], pa.RecordBatch]
    of_brokers: Callable[[Sequence[BrokerSnapshot]], pa.RecordBatch] | None = None
    """The rows of several, where that is cheaper than one by one. ``ValueError`` if one of them has none."""

    def of_files(self, files: "Files") -> Iterator[pa.RecordBatch]:
        if self.of_brokers is None:
            yield from map(self.of_file, files)
            return
        for lot in _lots(files):
            brokers, failed = _read(lot)
            yield from map(self.of_failure, failed)
            try:
                if brokers:
                    yield self.of_brokers(list(brokers.values()))
            except ValueError:  # one by one it is seen whose it is
                yield from map(self.of_file, brokers)

    def of_file(self, file: SnapshotFile) -> pa.RecordBatch:
        try:
            return self.of_broker(read_broker_at(file.path))
        except (BadSnapshot, ValueError) as error:
            return self.of_failure(FailedBroker(file=file, why=str(error)))


Files: TypeAlias = Sequence[SnapshotFile]


def _read(files: Files) -> tuple[dict[SnapshotFile, BrokerSnapshot], list[FailedBroker]]:
    brokers, failed = {}, []
    for file in files:
        try:
            brokers[file] = read_broker_at(file.path)
        except (BadSnapshot, ValueError) as error:
            failed.append(FailedBroker(file=file, why=str(error)))
    return brokers, failed


def _lots(files: Files) -> Iterator[Files]:
    """As many as follow one another and have few segments together."""
    lot: list[SnapshotFile] = []
    for file in files:
        if lot and sum(each.segments for each in lot) + file.segments > _SEGMENTS_AT_ONCE:
            yield lot
            lot = []
        lot.append(file)
    if lot:
        yield lot


def processes_for(files: Files) -> int:
    """One for each core, unless the work is done before others have started."""
    return (os.cpu_count() or 1) if sum(file.segments for file in files) > _WORTH_A_POOL else 1


def rows_locally(files: Files, rows: BrokerRows, processes: int = 1) -> Iterator[pa.RecordBatch]:
    """The largest first, so that no process is left alone with a large one at the end."""
    largest_first = sorted(files, key=lambda file: -file.segments)
    if processes <= 1 or len(files) <= 1:
        yield from map(rows.of_file, largest_first)
        return
    # A fork would copy pyarrow's threads in whatever state they are.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(files)), mp_context=context) as pool:
        yield from pool.map(rows.of_file, largest_first)


def tasks_for(files: Files) -> int:
    by_segments = -(-sum(file.segments for file in files) // SEGMENTS_PER_TASK)
    by_files = -(-len(files) // FILES_PER_TASK)
    # An even number, or the last one of a few large tasks keeps one core busy and the other waiting.
    most = 2 * -(-max(by_segments, by_files) // 2)
    return min(most, len(files), MOST_TASKS)


def balanced(files: Files, tasks: int) -> tuple[Files, ...]:
    """Largest first, each to the task that has least so far."""
    held: list[list[SnapshotFile]] = [[] for _ in range(tasks)]
    least = [(0, task) for task in range(tasks)]
    for file in sorted(files, key=lambda file: -file.segments):
        segments, task = heapq.heappop(least)
        held[task].append(file)
        heapq.heappush(least, (segments + file.segments + 1, task))
    return tuple(map(tuple, held))
